import pytest
from sqlalchemy import event

from ironic_rules.db import inspection_rules
from ironic_rules.exceptions import RuleFailed
from ironic_rules.inspection.rule_cache import RuleCache

UUID = "8b7ee0c6-1f5c-4c1f-8a3e-6f2d9c0a4b11"
ACTION = {"op": "set-attribute", "args": {"path": "/extra/x", "value": 1}}


@pytest.fixture
def queries(db):
    """The texts of the queries since the test began."""
    texts = []
    event.listen(db.engine, "before_cursor_execute", lambda *args: texts.append(args[2]))
    return texts


def store(db, **values):
    rule = {"uuid": UUID, "phase": "main", "priority": 0, "conditions": [], "actions": [ACTION], **values}
    with db.writer() as conn:
        inspection_rules.create(conn, rule)


def current(db, cache):
    with db.reader() as conn:
        return cache.current(conn)


def test_without_rules_the_set_is_empty(db):
    assert len(current(db, RuleCache())) == 0


def test_stored_rules_are_compiled(db):
    store(db)

    assert [rule.uuid for rule in current(db, RuleCache()).rules("main")] == [UUID]


def test_unchanged_rules_cost_one_query_and_stay_the_same_object(db, queries):
    store(db)
    cache = RuleCache()
    first = current(db, cache)
    queries.clear()

    assert current(db, cache) is first
    assert len([text for text in queries if text.startswith("SELECT")]) == 1


def test_a_change_is_seen_at_once(db):
    store(db)
    cache = RuleCache()
    current(db, cache)
    with db.writer() as conn:
        inspection_rules.update(conn, UUID, {"description": "new"})

    assert [rule.description for rule in current(db, cache).rules("main")] == ["new"]


def test_a_deleted_rule_is_gone_at_once(db):
    store(db)
    cache = RuleCache()
    current(db, cache)
    with db.writer() as conn:
        inspection_rules.destroy(conn, UUID)

    assert len(current(db, cache)) == 0


def test_a_rule_without_a_phase_runs_in_the_main_one(db):
    store(db, phase=None)

    assert len(current(db, RuleCache()).rules("main")) == 1


def test_a_rule_that_is_not_valid_any_more_fails_with_its_place(db):
    store(db, actions=[{"op": "of-a-removed-plug-in", "args": {}}])

    with pytest.raises(RuleFailed, match=f"{UUID} failed at /actions/0/op: it is no longer valid"):
        current(db, RuleCache())


def test_a_sensitive_rule_that_is_not_valid_any_more_tells_nothing(db):
    store(db, actions=[{"op": "set-atribute", "args": {"path": "/extra/x", "value": 1}}], sensitive=True)

    with pytest.raises(RuleFailed) as caught:
        current(db, RuleCache())

    assert str(caught.value).endswith("it is no longer valid")
    assert caught.value.__cause__ is None


def test_a_broken_rule_is_noticed_every_time(db):
    store(db, actions=[{"op": "nosuch", "args": {}}])
    cache = RuleCache()

    for _ in range(2):
        with pytest.raises(RuleFailed):
            current(db, cache)
