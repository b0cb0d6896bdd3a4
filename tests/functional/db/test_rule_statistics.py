"""Statistics of rules, on each db."""

from __future__ import annotations

import datetime
import functools

import sqlalchemy as sa

from ironic_rules.db import inspection_rules, nodes, rule_records
from ironic_rules.db.session import Database
from ironic_rules.db.tables import inspection_rule_changed_nodes, inspection_rule_statistics
from ironic_rules.models.rules import Counts
from tests.functional.db.concurrency import at_once
from tests.functional.db.test_inspection_rules import rule

NOW = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC)
NODE = "00000000-0000-4000-8000-00000000000a"
BUILT_IN = "00000000-0000-4000-8000-0000000000b1"
GONE = "00000000-0000-4000-8000-0000000000c1"


def test_batches_are_added_up_and_end_with_their_rules(conn: sa.Connection) -> None:
    first, second = (inspection_rules.create(conn, rule()).uuid for _ in range(2))
    node = nodes.create(conn, {"driver": "fake-hardware", "uuid": NODE}).id
    counts = {first: Counts(3, 2, 1, 0, (NOW, NODE), {node, 99999}), second: Counts(3), GONE: Counts(1, 1, 1),
              BUILT_IN: Counts(3, 3, 3, 1, (NOW, None))}
    for _ in range(2):
        assert rule_records.add_statistics(conn, counts, {BUILT_IN: True}) == {first: False, second: False,
                                                                               BUILT_IN: True}
    rule_records.add_statistics(conn, {first: Counts(matched=1, last=(NOW - datetime.timedelta(1), None))}, {})
    found, untouched = rule_records.statistics_of_stored(conn)
    assert (found.considered, found.evaluated, found.matched, found.failed) == (6, 4, 3, 0)
    assert (found.last_matched_at, found.last_node, found.nodes_changed) == (NOW, NODE, 1)
    assert (untouched.considered, untouched.matched, untouched.last_matched_at) == (6, 0, None)
    assert rule_records.statistics_of_built_in(conn)[BUILT_IN].failed == 2
    inspection_rules.destroy(conn, first)
    rule_records.forget_built_in(conn, ())
    assert list(conn.scalars(sa.select(inspection_rule_statistics.c.rule_uuid))) == [second]
    assert conn.scalar(sa.select(sa.func.count()).select_from(inspection_rule_changed_nodes)) == 0


def test_processes_that_add_at_the_same_time_lose_nothing(db: Database) -> None:
    uuids = [db.write(lambda conn: inspection_rules.create(conn, rule()).uuid) for _ in range(4)]
    first = {uuid: Counts(1) for uuid in uuids}
    db.write(lambda conn: rule_records.add_statistics(conn, first, {}))

    def add(number: int) -> None:
        counts = {uuid: Counts(1, int(place == number)) for place, uuid in enumerate(uuids)}
        for _ in range(5):
            db.write(lambda conn: rule_records.add_statistics(conn, counts, {}))

    assert at_once([functools.partial(add, number) for number in range(4)]) == [None] * 4
    with db.reader() as conn:
        assert [(row.considered, row.evaluated) for row in rule_records.statistics_of_stored(conn)] == [(21, 5)] * 4
