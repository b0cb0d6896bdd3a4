"""Questions to each database: they find the nodes for which the rule engine, node by node, says that a rule matches."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from ironic_rules.db import clock, node_sets, nodes
from ironic_rules.db import tables as t
from ironic_rules.db.questions import Asking
from ironic_rules.db.session import Database
from ironic_rules.exceptions import Invalid, InvalidRule
from ironic_rules.facts import questions, where
from ironic_rules.models import draft
from ironic_rules.models import questions as questions_models
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.facts import Scalar, of_stored
from ironic_rules.models.questions import StoredFact
from ironic_rules.rules import compiler
from ironic_rules.rules.errors import CannotEvaluate
from ironic_rules.rules.getters import View
from ironic_rules.rules.values import Scope
from tests.functional import databases

#: Queries of the equivalence test on each database.
EXAMPLES = int(os.environ.get("IRONIC_RULES_TEST_EXAMPLES", "300"))
NODES = 60
#: Texts that databases are known to confuse: case, blanks, wildcards, letters that sort by locale, and beyond 16 bits.
TEXTS = ["Dell", "dell", "Dell ", "Dell Inc.", "DELL%", "De_l", "a{b}", "{x}", "", "512", "true", "ÄÖ", "äö", "z", "é",
         "\U0001f600", "\ufffd", "10.0.0.1", "fe80::1", "a'b\"c\\d"]
NUMBERS: list[Scalar] = [0, 1, -5, 512, 512.5, 1e10, 0.1, 2**53]
MACS = ["52:54:00:00:00:01", "52:54:00:00:00:02", "aa:bb:cc:00:00:01"]
TRAITS = ["CUSTOM_A", "CUSTOM_B", "CUSTOM_GPU"]
FACTS = {
    "vendor": StoredFact(1, "text"), "memory": StoredFact(2, "integer", unit="GiB"), "load": StoredFact(3, "number"),
    "virtual": StoredFact(4, "boolean"), "gpus": StoredFact(5, "text", True), "speeds": StoredFact(6, "integer", True),
    "bmc": StoredFact(7, "address"), "macs": StoredFact(8, "mac", True), "never": StoredFact(9, None)}
CHOICES: dict[str, list[Any]] = {
    "vendor": TEXTS, "memory": [value for value in NUMBERS if isinstance(value, int)],
    "load": [float(value) for value in NUMBERS], "virtual": [False, True], "gpus": TEXTS,
    "speeds": [1000, 25000, 0], "bmc": ["10.0.0.1", "10.1.0.1", "fe80::1"], "macs": MACS}


def _filled(conn: sa.Connection, chance: random.Random) -> None:
    for name, fact in FACTS.items():
        conn.execute(sa.insert(t.facts).values(
            id=fact.id, name=name, revision=1, defined=1, value="{inventory[x]}", conditions=[], watched=False,
            origin="operator", type=fact.type, is_list=fact.is_list, created_at=clock.now()))
    for number in range(NODES):
        node = nodes.create(conn, {
            "driver": chance.choice(["ipmi", "redfish"]), "owner": chance.choice([None, "p1", "P1"]),
            "name": chance.choice([None, f"Web-{number}", f"db_{number}"]), "maintenance": chance.random() < 0.3,
            "provision_state": chance.choice(["manageable", "active"]), "resource_class": chance.choice([None, "x"]),
            "secure_boot": chance.choice([None, True, False]), "conductor_group": chance.choice(["", "rack"])})
        node_sets.set_traits(conn, node.id, chance.sample(TRAITS, chance.randint(0, 3)))
        for mac in chance.sample(MACS, 1) if number < 3 else ():
            if not conn.scalar(sa.select(t.ports.c.id).where(t.ports.c.address == mac)):
                conn.execute(sa.insert(t.ports).values(
                    uuid=f"00000000-0000-4000-8000-{number:012d}", address=mac, node_id=node.id,
                    created_at=clock.now()))
        for name, values in CHOICES.items():
            fact = FACTS[name]
            if chance.random() < 0.25:
                continue
            table = t.fact_texts if fact.is_text else t.fact_numbers
            for position, value in enumerate(chance.sample(values, chance.randint(1, 2) if fact.is_list else 1)):
                value = float(value) if table is t.fact_numbers else value
                conn.execute(sa.insert(table).values(node_id=node.id, fact_id=fact.id, position=position, value=value))


@pytest.fixture(scope="module", params=[
    "sqlite", pytest.param("mysql", marks=pytest.mark.servers), pytest.param("postgresql", marks=pytest.mark.servers)])
def fleet(request: pytest.FixtureRequest) -> Iterator[Database]:
    with databases.migrated_database(request.param) as url:
        db = databases.open_database(url)
        try:
            with db.writer() as conn:
                _filled(conn, random.Random(40))
            yield db
        finally:
            db.dispose()


def _machines(conn: sa.Connection) -> dict[int, JSONObject]:
    """Return what rules read of each node."""
    rows = conn.execute(sa.select(t.nodes)).all()
    traits = node_sets.list_traits(conn, [row.id for row in rows])
    found: dict[int, JSONObject] = {}
    for row in rows:
        facts: JSONObject = {}
        for name, fact in FACTS.items():
            table = t.fact_texts if fact.is_text else t.fact_numbers
            stored = list(conn.scalars(sa.select(table.c.value).where(
                table.c.node_id == row.id, table.c.fact_id == fact.id).order_by(table.c.position)))
            if stored:
                facts[name] = of_stored(fact.type or "", fact.is_list, stored)
        ports = conn.scalars(sa.select(t.ports.c.address).where(t.ports.c.node_id == row.id))
        found[row.id] = {"fact": facts, "node": draft.NodeDraft(row._mapping, traits[row.id]).read(),
                         "ports": [{"address": address} for address in ports]}
    return found


def _matches(condition: JSONObject, machine: JSONObject) -> bool:
    """Return whether the rule engine finds a condition true of a machine."""
    compiled = compiler.compile_condition(Scope(("fact", "node", "ports"), False, False, []), condition, "")
    assert compiled is not None
    view = View({}, False, set())
    view.update(machine)
    try:
        return compiled.call(view)
    except CannotEvaluate:
        return False


def _asked(conn: sa.Connection, question: questions_models.Question) -> set[int]:
    return set(conn.scalars(sa.select(t.nodes.c.id).where(Asking(conn, FACTS).condition(question))))


def _template(chance: random.Random) -> str:
    name = chance.choice([*FACTS, *FACTS, "node"])
    if name == "node":
        field = chance.choice(["driver", "name", "owner", "maintenance", "secure_boot", "conductor_group"])
        return f"{{node[{field}]}}"
    return f"{{fact[{name}]{chance.choice(['', '', '', '|lower'])}}}"


def _constant(chance: random.Random) -> Any:
    value = chance.choice([*TEXTS, *NUMBERS, True, False, None, "p1", "ipmi", "Web-3", *MACS[:1], "25000", 25000])
    return value.replace("{", "{{").replace("}", "}}") if isinstance(value, str) else value


_REGEXES = ["^De", "Dell", "^Dell$", "(?i)dell", "^$", "5", "[a-z]+", "\\.", "e$", "^\\{x\\}", "Web-\\d", "5[0-9]{2}"]


def _condition(chance: random.Random) -> JSONObject:
    op, template = chance.choice([*_MAKE]), _template(chance)
    made: JSONObject = {"op": chance.choice(["", "", "!"]) + op, "args": _MAKE[op](chance, template)}
    if chance.random() < 0.2:
        loop, item = chance.choice([("{ports}", "{item[address]}"), ("{node[traits]}", "{item}"),
                                    ("{fact[gpus]}", "{item}"), ("{fact[speeds]}", "{item}"),
                                    ("{fact[never]}", "{item}")])
        made = {"op": made["op"], "args": _MAKE[op](chance, item), "loop": loop,
                "multiple": chance.choice(["any", "all", None])}
    elif chance.random() < 0.1:
        made["args"] = _MAKE[op](chance, "{node[traits]}")
    return made


def _pair(chance: random.Random, template: str) -> JSONObject:
    values = [template, _constant(chance)]
    more = {"force_strings": True} if chance.random() < 0.1 else {}
    return {"values": values if chance.random() < 0.8 else values[::-1], **more}


_MAKE: dict[str, Callable[[random.Random, str], JSONObject]] = {
    **dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge"), _pair),
    **dict.fromkeys(("is-true", "is-false", "is-none", "is-empty"), lambda _, template: {"value": template}),
    **dict.fromkeys(("contains", "matches"), lambda chance, template: {
        "value": template, "regex": chance.choice(_REGEXES)}),
    "one-of": lambda chance, template: chance.choice([
        {"value": template, "values": [_constant(chance) for _ in range(3)]},
        {"value": _constant(chance), "values": template}]),
    "in-net": lambda chance, template: {"address": template, "subnet": chance.choice(["10.0.0.0/8", "::/0"])}}


def _quoted(value: object) -> str:
    return '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"' if isinstance(value, str) else str(value)


def _clause(chance: random.Random, depth: int = 0) -> str:
    if depth < 3 and chance.random() < 0.6:
        parts = [_clause(chance, depth + 1) for _ in range(chance.randint(1, 3))]
        joined = f" {chance.choice(['and', 'or'])} ".join(parts)
        return f"{chance.choice(['', '', 'not '])}({joined})"
    text, number = _quoted(chance.choice(TEXTS)), chance.choice(NUMBERS)
    sign = chance.choice(["=", "!=", "<", "<=", ">", ">="])
    return chance.choice(["", "", "", "not "]) + chance.choice([
        f"vendor {sign} {text}", f"memory {sign} {number}", f"load {sign} {number}",
        f"virtual = {chance.choice(['true', 'false'])}",
        f"vendor in ({text}, Dell)", f"gpus has {text}", f"gpus starts {text}", f"vendor starts {text}",
        f"vendor contains {_quoted(chance.choice(_REGEXES))}", f"gpus contains {_quoted(chance.choice(_REGEXES))}",
        f"vendor matches {_quoted(chance.choice(_REGEXES))}", "bmc in-net 10.0.0.0/8",
        f"speeds has {chance.choice([1000, 5])}",
        f"macs has {chance.choice(MACS)}", f"ports has {chance.choice(MACS)}", "ports starts 52:54",
        f"traits has {chance.choice(TRAITS)}", "traits is empty", "gpus is not empty", "vendor is absent",
        "vendor is empty", f"owner {sign} P1", f"name starts {chance.choice(['Web', 'w'])}", "maintenance = true",
        "secure_boot = false",
        "conductor_group is empty", "owner is absent", f"state {sign} manageable", "created_at < 2020-01-01",
        "never = x"])


def test_a_clause_selects_the_nodes_that_the_rule_engine_finds(fleet: Database) -> None:
    chance = random.Random(EXAMPLES)
    with fleet.reader() as conn:
        machines = _machines(conn)
        for _ in range(EXAMPLES):
            clause = _clause(chance)
            tree = where.parse(clause, questions.names(FACTS))
            wanted = {node_id for node_id, machine in machines.items()
                      if where.holds(tree, lambda written, machine=machine: _matches(written, machine))}

            assert _asked(conn, questions.of_tree(tree, FACTS)) == wanted, clause


def test_conditions_of_a_rule_select_the_nodes_that_it_matches(fleet: Database) -> None:
    chance = random.Random(-EXAMPLES)
    asked = 0
    with fleet.reader() as conn:
        machines = _machines(conn)
        while asked < EXAMPLES:
            conditions = [_condition(chance) for _ in range(chance.choice([1, 1, 2]))]
            try:
                question = questions.of_conditions(conditions, FACTS)
            except InvalidRule:
                continue
            asked += 1
            wanted = {node_id for node_id, machine in machines.items()
                      if all(_matches(condition, machine) for condition in conditions)}

            assert _asked(conn, question) == wanted, conditions


def test_a_question_that_no_index_answers_is_refused(fleet: Database) -> None:
    refused = {
        "{inventory[cpu][count]}": "questions have facts and fields of nodes, but not {inventory[cpu][count]}",
        "{node[properties][cpus]}": "create a fact with this value", "{fact[vendr]}": "did you mean 'vendor'?",
        "{fact[gpus]|count}": "no conversions of lists",
        "{fact[vendor]}{fact[bmc]}": "one value of a node with constants"}
    for template, reason in refused.items():
        with pytest.raises(InvalidRule, match=re.escape(reason)) as caught:
            questions.of_conditions([{"op": "eq", "args": [template, "x"]}], FACTS)
        assert [problem.where for problem in caught.value.problems] == ["/conditions/0/args"]


def test_a_function_is_not_called_for_too_many_values(fleet: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ironic_rules.db.questions.MAX_VALUES", 3)
    with fleet.reader() as conn, pytest.raises(Invalid, match="vendor has more than 3 different values"):
        _asked(conn, questions.of_clause("vendor contains '[a-z]'", FACTS))
