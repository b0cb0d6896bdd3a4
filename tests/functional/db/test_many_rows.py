"""Pages of the lists that grow: a database reads about as many rows as a page has, however many there are."""

from __future__ import annotations

import datetime
import sqlite3
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from ironic_rules.db import (
    clock,
    fact_values,
    facts,
    inspection_journal,
    node_records,
    nodes,
    operations,
    ports,
    search,
)
from ironic_rules.db import tables as t
from ironic_rules.db.paging import Page
from ironic_rules.db.questions import Asking
from ironic_rules.db.session import Database
from ironic_rules.facts import questions
from tests.functional import databases

#: Rows of each table, and of a page.
ROWS, PAGE = 20_000, 100
#: The number of nodes, and of those that have inspections.
MANY_NODES, NODES = 10_000, 200
#: Facts of each node, with their types: few have the same vendor, none the same serial.
FACTS = {"vendor": "text", "serial": "text", "memory_gib": "integer", "virtual": "boolean"}
#: Maximum cost of reading a page. SQLite counts instructions, about ten for each row that is only looked at.
MOST_ROWS, MOST_INSTRUCTIONS = 1_500, 60_000


def _uuid(kind: int, number: int) -> str:
    return f"{kind:08x}-0000-4000-8000-{number:012x}"


@pytest.fixture(scope="module", params=[
    "sqlite", pytest.param("mysql", marks=pytest.mark.servers), pytest.param("postgresql", marks=pytest.mark.servers)])
def full(request: pytest.FixtureRequest) -> Iterator[Database]:
    with databases.migrated_database(request.param) as url:
        db = databases.open_database(url)
        try:
            with db.writer() as conn:
                _fill(conn)
            _gather_statistics(db)
            with db.writer() as conn:
                _end_what_many_had(conn)
            yield db
        finally:
            db.dispose()


def _gather_statistics(db: Database) -> None:
    """Do what a server does by itself some time after so many rows were written."""
    if db.dialect == "sqlite":
        return
    what = "ANALYZE" if db.dialect == "postgresql" else f"ANALYZE TABLE {', '.join(t.metadata.tables)}"
    with db.engine.connect() as conn:
        conn.execution_options(isolation_level="AUTOCOMMIT").exec_driver_sql(what)


def _end_what_many_had(conn: sa.Connection) -> None:
    """End what is true of one node in 20 by what the server knows: it does not gather statistics for so few changes."""
    nodes_of = sa.update(t.nodes).values(updated_at=t.nodes.c.updated_at)
    c = t.nodes.c
    conn.execute(nodes_of.where(c.provision_state == "inspecting", c.id < MANY_NODES - 20).values(
        provision_state="manageable"))
    conn.execute(nodes_of.where(c.maintenance.is_(True), c.id % 2500 != 0).values(maintenance=False))
    conn.execute(nodes_of.where(c.fault.is_not(None), c.id % 2500 != 1).values(fault=None))


def _fill(conn: sa.Connection) -> None:
    now = clock.now()
    conn.execute(sa.insert(t.nodes), [
        {"id": number, "uuid": _uuid(1, number), "name": f"n{number * 7919 % MANY_NODES:05d}", "created_at": now,
         "driver": "d", "provision_state": "inspecting" if number % 20 == 3 else "manageable",
         "updated_at": now + datetime.timedelta(seconds=-number),
         "maintenance": number % 20 == 0, "fault": "power failure" if number % 20 == 1 else None,
         "reservation": "conductor" if number % 5000 == 2 else None} for number in range(1, MANY_NODES + 1)])
    conn.execute(sa.insert(t.ports), [
        {"id": number, "uuid": _uuid(6, number), "node_id": number, "created_at": now,
         "address": f"52:54:00:{number >> 16:02x}:{number >> 8 & 255:02x}:{number & 255:02x}"}
        for number in range(1, MANY_NODES + 1)])
    numbers = range(ROWS)
    conn.execute(sa.insert(t.node_inspections), [
        {"uuid": _uuid(2, number), "node_id": number % NODES + 1, "created_at": now, "kind": "ramdisk",
         "outcome": "finished", "details": {}} for number in numbers])
    conn.execute(sa.insert(t.node_history), [
        {"uuid": _uuid(3, number), "node_id": number % NODES + 1, "created_at": now, "severity": "INFO", "event": "x"}
        for number in numbers])
    conn.execute(sa.insert(t.inspection_journal), [
        {"id": number + 1, "uuid": _uuid(4, number), "created_at": now,
         "seen_at": now + datetime.timedelta(seconds=number), "machine": f"{number:064x}",
         "reason": "malformed" if number % 200 == 0 else "two nodes" if number % 10 == 1 else "unknown", "times": 1,
         "macs": [], "bmc_addresses": [], "nodes": []}
        for number in numbers])
    conn.execute(sa.insert(t.inspection_journal_keys), [
        {"value": f"52:54:00:{number >> 16:02x}:{number >> 8 & 255:02x}:{number & 255:02x}", "entry_id": number + 1}
        for number in numbers])
    for number in range(1, 11):
        facts.create(conn, {"name": f"f{number}", "value": "{inventory[hostname]}"})
    conn.execute(sa.insert(t.fact_changes), [
        {"uuid": _uuid(7, number), "node_id": number % NODES + 1, "fact_id": number % 200 // 20 + 1, "before": 1,
         "after": 2, "created_at": now + datetime.timedelta(seconds=number)} for number in numbers])
    conn.execute(sa.insert(t.fact_texts), [
        {"node_id": number, "fact_id": place, "position": 0, "value": f"v{number}"}
        for number in range(1, NODES + 1) for place in range(1, 11)])
    conn.execute(sa.insert(t.operations), [
        {"id": number, "uuid": _uuid(5, number), "kind": "reapply", "status": "running", "filters": {},
         "created_at": now} for number in range(1, 11)])
    conn.execute(sa.insert(t.operation_items), [
        {"operation_id": number * 10 // ROWS + 1, "node_uuid": _uuid(1, number), "result_hash": f"{number % 3:064x}",
         "status": "failed" if number % 400 == 0 else "changed", "result": {}} for number in numbers])
    conn.execute(sa.insert(t.facts), [
        {"id": place, "name": name, "type": type_, "value": "{inventory[x]}", "origin": "operator", "revision": 1,
         "defined": 1, "is_list": False, "conditions": [], "watched": False, "created_at": now}
        for place, (name, type_) in enumerate(FACTS.items(), 101)])
    conn.execute(sa.insert(t.fact_texts), [
        {"node_id": number, "fact_id": fact, "position": 0, "value": value}
        for number in range(1, MANY_NODES + 1) for fact, value in (
            (101, "rare" if number % 100 == 0 else "common"), (102, f"SN{number:06d}"))])
    conn.execute(sa.insert(t.fact_numbers), [
        {"node_id": number, "fact_id": fact, "position": 0, "value": float(value)}
        for number in range(1, MANY_NODES + 1) for fact, value in (
            (103, number * 7919 % MANY_NODES), (104, number % 2))])
    for number in range(1, 11):
        assert operations.finish(conn, number)


def cost_of(db: Database, work: Callable[[sa.Connection], Any]) -> tuple[Any, int]:
    """Return what the work returns, and the rows, on SQLite the instructions, that its statements took."""
    with db.reader() as conn:
        work(conn)  # what is prepared once does not count
        if db.dialect == "sqlite":
            raw: sqlite3.Connection = conn.connection.dbapi_connection  # type: ignore[assignment]
            counted: list[int] = []
            raw.set_progress_handler(lambda: counted.append(10), 10)  # type: ignore[arg-type, return-value]
            try:
                return work(conn), sum(counted)
            finally:
                raw.set_progress_handler(None, 0)
        if db.dialect == "mysql":
            before = _handled(conn)
            found = work(conn)
            return found, _handled(conn) - before
        seen: list[tuple[str, Any]] = []
        sa.event.listen(conn, "before_cursor_execute", lambda *given: seen.append((given[2], given[3])))
        found = work(conn)
        plans = [conn.connection.cursor().execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {text}", given).fetchone()[0]
                 for text, given in list(seen)]
        return found, sum(_read(plan[0]["Plan"]) for plan in plans)


def _handled(conn: sa.Connection) -> int:
    rows = conn.exec_driver_sql("SHOW SESSION STATUS LIKE 'Handler_read%%'").all()
    return sum(int(value) for _, value in rows)


def _read(plan: dict[str, Any]) -> int:
    """Return how many rows the scans of a plan have read."""
    own = 0
    if "Scan" in plan["Node Type"]:
        own = (plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)) * plan["Actual Loops"]
    return int(own) + sum(map(_read, plan.get("Plans", ())))


def _page(marker: str | None = None, **given: Any) -> Page:
    return Page(PAGE, marker, **given)


def _nodes(page: Page, **filters: Any) -> Callable[[sa.Connection], Any]:
    return lambda conn: nodes.list_nodes(conn, filters, page, ["uuid", "name"])


def _asked(clause: str, page: Page) -> Callable[[sa.Connection], Any]:
    def work(conn: sa.Connection) -> Any:
        known = fact_values.stored_facts(conn)
        condition = Asking(conn, known).condition(questions.of_clause(clause, known))
        return nodes.list_nodes(conn, {"where": condition}, page, ["uuid", "name"])

    return work


def _in_order(page: Page) -> Callable[[sa.Connection], Any]:
    def work(conn: sa.Connection) -> Any:
        known = fact_values.stored_facts(conn)
        return fact_values.sorted_nodes(
            conn, known, known["memory_gib"], page, lambda asking: [asking.without_parent()], [])

    return work


def _known(work: Callable[[sa.Connection, Any], Any]) -> Callable[[sa.Connection], Any]:
    """Return the work without the reading of the definitions of facts."""
    found: list[Any] = []

    def with_facts(conn: sa.Connection) -> Any:
        found[:] = found or [fact_values.stored_facts(conn)]
        return work(conn, found[0])

    return with_facts


def _among(clause: str | None, known: Any) -> fact_values.Conditions:
    """Return the conditions for nodes that a clause selects, as requests for counts have them."""
    return lambda asking: [asking.without_parent(), *(
        [] if clause is None else [asking.condition(questions.of_clause(clause, known))])]


def _counts(name: str, clause: str | None = None) -> Callable[[sa.Connection], Any]:
    return _known(lambda conn, known: fact_values.counts(
        conn, known, known[name], _among(clause, known), 20, narrowed=clause is not None).values)


_MIDDLE = _uuid(1, MANY_NODES // 2 + 1)

LISTS: dict[str, tuple[Callable[[sa.Connection], Any], int]] = {
    "nodes from the middle": (_nodes(_page(_MIDDLE)), PAGE),
    "nodes by name": (_nodes(_page(sort_key="name")), PAGE),
    "nodes by name from the middle": (_nodes(_page(_MIDDLE, sort_key="name")), PAGE),
    "nodes changed last": (_nodes(_page(sort_key="updated_at", sort_dir="desc")), PAGE),
    "the few nodes in maintenance": (_nodes(_page(), maintenance=True), 4),
    "the few nodes with a fault": (_nodes(_page(), fault="power failure"), 4),
    "the few nodes in a state that many had": (_nodes(_page(), provision_state="inspecting"), 1),
    "the few nodes that are locked": (_nodes(_page(), reserved=True), 2),
    "nodes with a fact of few": (_asked("vendor = rare and virtual = false", _page()), PAGE),
    "values that begin with a text": (_known(lambda conn, known: search.find_values(conn, "com", known, [], 10)), 1),
    "many values that begin with a text": (_known(lambda conn, known: search.find_values(conn, "sn00", known, [], 10)),
                                           10),
    "the node with a serial": (_asked("vendor = common and serial = SN004321", _page()), 1),
    "nodes in the order of a fact": (_in_order(_page()), PAGE),
    "nodes in the order of a fact from the middle": (_in_order(_page(_MIDDLE, sort_dir="desc")), PAGE),
    "locks": (lambda conn: nodes.locks(conn, ""), 2),
    "ports": (lambda conn: ports.list_ports(conn, {}, _page()), PAGE),
    "ports of a node": (lambda conn: ports.list_ports(conn, {"node_uuid": _MIDDLE}, _page()), 1),
    "inspections of a node": (lambda conn: node_records.list_inspections(conn, 7, _page()), PAGE),
    "the next page": (lambda conn: node_records.list_inspections(conn, 7, _page(_uuid(2, 10_006))), 49),
    "history of a node": (lambda conn: node_records.list_history(conn, 7, _page()), PAGE),
    "journal": (lambda conn: inspection_journal.list_entries(conn, {}, _page()), PAGE),
    "newest of the journal": (lambda conn: inspection_journal.list_entries(
        conn, {}, _page(sort_key="seen_at", sort_dir="desc")), PAGE),
    "the last page of the journal": (lambda conn: inspection_journal.list_entries(
        conn, {}, _page(_uuid(4, ROWS - 11))), 10),
    "journal by reason": (lambda conn: inspection_journal.list_entries(conn, {"reason": "malformed"}, _page()), PAGE),
    "journal by a rare reason": (lambda conn: inspection_journal.list_entries(
        conn, {"reason": "two nodes"}, _page(_uuid(4, 10_001))), PAGE),
    "journal by MAC address": (lambda conn: inspection_journal.list_entries(
        conn, {"mac": "52:54:00:00:12:34"}, _page()), 1),
    "newest changes of facts": (lambda conn: facts.list_changes(conn, _page(sort_dir="desc")), PAGE),
    "changes of facts since a time": (lambda conn: facts.list_changes(
        conn, _page(sort_dir="desc"), since=clock.now() + datetime.timedelta(seconds=ROWS - 600)), PAGE),
    "changes of a fact": (lambda conn: facts.list_changes(conn, _page(sort_dir="desc"), fact="f7"), PAGE),
    "changes of a node from the middle": (lambda conn: facts.list_changes(
        conn, _page(_uuid(7, 10_006)), node_id=7), 49),
    "facts of a node": (lambda conn: facts.of_node(conn, 7)[0], 14),
    "operations": (lambda conn: [operations.counts(conn, rows := operations.list_operations(conn, _page())), rows][1],
                   10),
    "nodes of an operation": (lambda conn: operations.list_items(conn, 3, None, _uuid(1, 5002), PAGE), PAGE),
    "failed nodes of an operation": (lambda conn: operations.errors(conn, 1, PAGE), 5),
    "nodes of a group": (lambda conn: operations.list_items(
        conn, 3, None, _uuid(1, 5002), PAGE, result_hash=f"{0:064x}"), PAGE),
}


@pytest.mark.parametrize("name", LISTS)
def test_a_page_takes_no_longer_with_many_rows(full: Database, name: str) -> None:
    work, expected = LISTS[name]
    found, cost = cost_of(full, work)
    assert len(found) == expected
    assert 0 < cost <= (MOST_INSTRUCTIONS if full.dialect == "sqlite" else MOST_ROWS)


#: Queries that look at each value of a fact, by the index: numbers of rows of the reply, and of values looked at.
OF_ALL_VALUES: dict[str, tuple[Callable[[sa.Connection], Any], int, int]] = {
    "counts of a text": (_counts("vendor"), 2, MANY_NODES),
    "counts of a number": (_counts("virtual"), 2, MANY_NODES),
    "counts of a unique text": (_counts("serial"), 20, 3 * MANY_NODES),
    "counts among few nodes": (_counts("virtual", "vendor = rare"), 1, MANY_NODES),
    "counts among many nodes": (_counts("virtual", "vendor = common"), 2, 2 * MANY_NODES),
    "a table of two facts": (_known(lambda conn, known: fact_values.pairs(
        conn, known, "vendor", ["common", "rare"], "virtual", _among(None, known), 100)), 3, 4 * MANY_NODES),
    "nodes without a value": (_asked("not vendor = rare and memory_gib >= 0", _page()), PAGE, MANY_NODES),
    "nodes by a range": (_asked("memory_gib < 120 and virtual = true", _page()), 60, 3 * MANY_NODES),
    "nodes by a regular expression": (_asked("vendor contains '(?i)RARE' and memory_gib >= 0", _page()), PAGE,
                                      3 * MANY_NODES),
    "nodes by one of two": (_asked("(vendor = rare or serial = SN000001) and virtual = false", _page()), PAGE,
                            2 * MANY_NODES),
    "a part of a name": (lambda conn: search.find_nodes(conn, "0432", [], [], 10), 10, MANY_NODES),
}


@pytest.mark.parametrize("name", OF_ALL_VALUES)
def test_counts_look_at_each_value_a_few_times(full: Database, name: str) -> None:
    work, expected, values = OF_ALL_VALUES[name]
    found, cost = cost_of(full, work)
    assert len(found) == expected
    # PostgreSQL counts rows of a bitmap and those that it finds by it; MariaDB those of groups, too.
    assert cost <= (values * 20 if full.dialect == "sqlite" else values * 2 + 2 * MOST_ROWS)


def test_the_counts_of_operations_that_have_ended_are_kept(full: Database) -> None:
    with full.reader() as conn:
        rows = operations.list_operations(conn, _page())
        assert operations.counts(conn, rows)[1] == {"changed": ROWS // 10 - 5, "failed": 5}
