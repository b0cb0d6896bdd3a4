"""The compiled legacy rules are as current as the database, and cost nothing while nothing changes."""

import pytest
import sqlalchemy as sa

from ironic_rules.db import legacy_rules
from ironic_rules.db.tables import legacy_rules as table
from ironic_rules.db.tables import revisions
from ironic_rules.inspection.rule_sets import LegacyRuleCache, RuleSettings, legacy_rule_problem
from ironic_rules.legacy import Plugins
from ironic_rules.models.draft import NodeDraft
from ironic_rules.models.task import Task
from ironic_rules.rules import Limits
from tests.unit.rules.world import NODE

UUIDS = [f"8b7ee0c6-1f5c-4c1f-8a3e-{number:012}" for number in range(3)]
SET = {"action": "set-attribute", "path": "/extra/x", "value": 1}


@pytest.fixture
def queries(db):
    """The texts of the queries since the test began."""
    texts = []
    sa.event.listen(db.engine, "before_cursor_execute", lambda *args: texts.append(args[2]))
    return texts


def store(db, uuid=UUIDS[0], **values):
    with db.writer() as conn:
        return legacy_rules.create(conn, {"uuid": uuid, "conditions": [], "actions": [SET], **values}).revision


def extra(rule_set):
    """Return what the rules of a set give to a node."""
    task = Task(NodeDraft({**NODE, "extra": {}, "properties": {}}))
    outcome = rule_set.run(task, dict)
    assert outcome.failure is None
    return task.node.extra


def test_a_set_whose_revision_was_read_with_the_node_costs_no_query(db, queries):
    revision = store(db)
    cache = LegacyRuleCache(db)
    first = cache.current(revision)
    queries.clear()

    assert cache.current(revision) is first
    assert queries == []
    assert extra(first) == {"x": 1}


def test_only_what_has_changed_is_compiled_again(db, monkeypatch):
    store(db, UUIDS[0])
    store(db, UUIDS[1], actions=[{**SET, "path": "/extra/y"}])
    cache = LegacyRuleCache(db)
    assert extra(cache.current()) == {"x": 1, "y": 1}
    compiled = []
    original = RuleSettings.compile_legacy
    monkeypatch.setattr(RuleSettings, "compile_legacy",
                        lambda self, rule: compiled.append(rule.uuid) or original(self, rule))
    with db.writer() as conn:
        revision = legacy_rules.update(conn, UUIDS[0], {"actions": [{**SET, "value": 2}]}).revision
    assert extra(cache.current(revision)) == {"x": 2, "y": 1}
    with db.writer() as conn:
        legacy_rules.destroy(conn, UUIDS[1])
    assert extra(cache.current(revision + 1)) == {"x": 2}

    assert compiled == [UUIDS[0]]


def test_a_set_that_is_doubted_is_read_again_whatever_the_caller_knows(db):
    revision = store(db)
    cache = LegacyRuleCache(db)
    assert len(cache.current(revision)) == 1
    with db.writer() as conn:
        legacy_rules.destroy(conn, UUIDS[0])

    assert len(cache.current(revision)) == 1
    cache.doubt()
    assert len(cache.current(revision)) == 0


def test_a_database_that_was_restored_is_read_as_a_whole(db):
    store(db)
    cache = LegacyRuleCache(db)
    assert extra(cache.current()) == {"x": 1}
    with db.writer() as conn:
        conn.execute(sa.update(table).values(actions=[{**SET, "value": "old"}], revision=0))
        conn.execute(sa.update(revisions).where(revisions.c.name == legacy_rules.RULE_SET).values(revision=0))

    assert extra(cache.current()) == {"x": "old"}


def test_rules_that_cannot_be_used_are_told_with_their_reasons(db, caplog):
    store(db, UUIDS[0])
    store(db, UUIDS[1], actions=[SET] * 3)
    store(db, UUIDS[2], conditions=[{"field": "x", "op": "unloadable", "value": 1, "multiple": "any", "invert": False}])
    broken = Plugins(broken={("ironic_inspector.rules.conditions", "unloadable"): "no such module"})
    cache = LegacyRuleCache(db, RuleSettings(limits=Limits(actions=2), plugins=broken))

    found = {uuid: str(legacy_rule_problem(rule)) for uuid, rule in cache.broken().items()}

    assert found.keys() == {UUIDS[1], UUIDS[2]}
    assert "/actions" in found[UUIDS[1]]
    assert "no such module" in found[UUIDS[2]]
    assert [record.levelname for record in caplog.records if any(uuid in record.getMessage() for uuid in UUIDS)] == [
        "ERROR"] * 2
