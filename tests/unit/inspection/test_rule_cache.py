import gc
import logging
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa
from sqlalchemy import event

from ironic_rules.db import inspection_rules
from ironic_rules.db.tables import revisions
from ironic_rules.exceptions import RuleFailed
from ironic_rules.inspection import rule_sets
from ironic_rules.inspection.rule_sets import RuleCache, RuleSettings
from ironic_rules.models.draft import NodeDraft
from ironic_rules.models.task import Task
from ironic_rules.rules import Facts, Rule, RuleSet, compiler

UUID = "8b7ee0c6-1f5c-4c1f-8a3e-6f2d9c0a4b11"
ACTION = {"op": "set-attribute", "args": {"path": "/extra/x", "value": 1}}
BROKEN = [{"op": "of-a-removed-plug-in", "args": {}}]


@pytest.fixture
def queries(db):
    """The texts of the queries since the test began."""
    texts = []
    event.listen(db.engine, "before_cursor_execute", lambda *args: texts.append(args[2]))
    return texts


def uuid(number):
    return f"8b7ee0c6-1f5c-4c1f-8a3e-{number:012}"


def store(db, **values):
    rule = {"uuid": UUID, "phase": "main", "priority": 0, "conditions": [], "actions": [ACTION], **values}
    with db.writer() as conn:
        inspection_rules.create(conn, rule)


def change(db, uuid=UUID, **values):
    with db.writer() as conn:
        inspection_rules.update(conn, uuid, values)


def revision(db):
    with db.reader() as conn:
        return inspection_rules.revision(conn)


def descriptions(rule_set, phase="main"):
    return [rule.description for rule in rule_set.rules(phase)]


def run(rule_set, scope=None):
    return rule_set.run("main", Facts(Task(NodeDraft({"extra": {}, "inspection_scope": scope})), {}, {}))


def settle(cache):
    """Wait until nothing is prepared in the background."""
    with cache._compiling, cache._tidying:
        pass


def test_without_rules_the_set_is_empty(db):
    assert len(RuleCache(db).current()) == 0


def test_rules_whose_revision_was_read_are_the_same_object_and_cost_no_query(db, queries):
    store(db)
    cache = RuleCache(db)
    first, now = cache.current(), revision(db)
    queries.clear()

    assert cache.current(now) is first
    assert queries == []
    assert [rule.uuid for rule in first.rules("main")] == [UUID]


def test_a_change_is_seen_at_once_and_compiles_only_what_changed(db, monkeypatch):
    for number in range(50):
        store(db, uuid=uuid(number), description=str(number))
    cache, other = (RuleCache(db, settings) for settings in [RuleSettings()] * 2)
    before = cache.current()
    compiled = []
    monkeypatch.setattr(compiler, "check", lambda *args, check=compiler.check, **how: compiled.append(1) or check(
        *args, **how))
    change(db, uuid(7), description="new")
    with db.writer() as conn:
        inspection_rules.destroy(conn, uuid(9))
    store(db, uuid=uuid(50), description="last")

    expected = [*map(str, range(7)), "new", "8", *map(str, range(10, 50)), "last"]
    assert descriptions(cache.current(revision(db))) == expected
    # Sets of one process share what they have compiled.
    assert descriptions(other.current()) == expected
    assert len(compiled) == 2
    assert len(before) == 50


def test_a_disabled_built_in_rule_is_not_in_the_set(db):
    settings = RuleSettings(built_in=tuple(
        Rule(uuid=uuid(enabled), enabled=enabled, actions=[ACTION], built_in=True) for enabled in (False, True)))

    assert [rule.uuid for rule in RuleCache(db, settings).current().rules("main")] == [uuid(True)]


def test_a_disabled_rule_is_not_in_the_set(db):
    store(db)
    cache = RuleCache(db)
    for enabled in (False, True, False):
        change(db, enabled=enabled)
        assert len(cache.current()) == enabled
    change(db, enabled=True, description="again")
    assert descriptions(cache.current()) == ["again"]


def test_a_rule_without_a_phase_runs_in_the_main_one(db):
    store(db, phase=None)

    assert len(RuleCache(db).current().rules("main")) == 1


def test_a_broken_rule_fails_only_the_nodes_that_it_applies_to_until_it_is_mended(db, caplog):
    store(db, scope="a", actions=BROKEN)
    store(db, uuid=uuid(1))
    cache = RuleCache(db)

    assert len(run(cache.current())) == 1
    for _ in range(2):
        with pytest.raises(RuleFailed, match=f"{UUID} failed at /actions/0/op: it is no longer valid: .* plug-in is "
                                             "missing on this host"):
            run(cache.current(), "a")
    assert [(record.levelno, UUID in record.getMessage()) for record in caplog.records] == [(logging.ERROR, True)]
    assert [problem.where for problem in cache.broken()[UUID].problems] == ["/actions/0/op"]
    change(db, actions=[ACTION])
    assert len(run(cache.current(), "a")) == 2
    assert cache.broken() == {}


def test_a_disabled_broken_rule_fails_nothing(db, caplog):
    store(db, phase="early", actions=BROKEN)
    cache = RuleCache(db)
    cache.current()
    change(db, enabled=False)

    for each in (cache, RuleCache(db)):
        caplog.clear()
        each.current().check("early", None)
        assert list(each.broken()) == [UUID]
        assert [(record.levelno, record.getMessage().endswith("It is not enabled, and does not run."))
                for record in caplog.records] == [(logging.WARNING, True)]


def test_a_broken_sensitive_rule_tells_nothing(db, caplog):
    store(db, actions=[{"op": "set-atribute", "args": {"path": "/extra/x", "value": 1}}], sensitive=True)

    with pytest.raises(RuleFailed, match=r"at /: it is no longer valid$") as caught:
        run(RuleCache(db).current())
    assert caught.value.__cause__ is None
    assert "atribute" not in caplog.text


def test_every_thread_that_notices_a_change_has_it(db, monkeypatch):
    """No inspection that begins after a rule was created runs without it, whichever thread compiles first."""
    store(db)
    cache = RuleCache(db)
    cache.current()
    store(db, uuid=uuid(1), description="new")
    now, both = revision(db), threading.Barrier(2)
    monkeypatch.setattr(RuleSettings, "compile", lambda self, rule, compile=RuleSettings.compile: (
        both.wait(60), compile(self, rule))[1])
    with ThreadPoolExecutor(2) as pool:
        sets = list(pool.map(cache.current, [now, now]))

    assert [descriptions(rule_set) for rule_set in sets] == [[None, "new"]] * 2


def test_many_changes_are_compiled_while_inspections_go_on_with_the_last_rules(db, monkeypatch):
    """Neither the thread that notices nor any other waits, and the new rules follow."""
    monkeypatch.setattr(rule_sets, "_FEW", 3)
    store(db, description="old")
    cache = RuleCache(db)
    last = cache.current()
    for number in range(4):
        store(db, uuid=uuid(number), description=str(number))
    go_on = threading.Event()
    monkeypatch.setattr(RuleSettings, "compile", lambda self, rule, compile=RuleSettings.compile: (
        go_on.wait(60) and compile(self, rule)))

    assert cache.current() is last
    assert cache.current(revision(db)) is last
    go_on.set()
    settle(cache)
    assert descriptions(cache.current(revision(db))) == ["old", "0", "1", "2", "3"]


EARLY = {"phase": "early", "actions": [{"op": "fail", "args": ["no"]}]}


def test_early_rules_are_the_present_ones_while_many_others_are_compiled(db, monkeypatch):
    """Rules that came, changed, became early or ceased to be, and changes that follow while the others are compiled."""
    monkeypatch.setattr(rule_sets, "_FEW", 4)
    names = ["same", "changed", "disabled", "removed", "now main"]
    for number, name in enumerate(names):
        store(db, uuid=uuid(number), description=name, **EARLY)
    store(db, uuid=uuid(10), description="now early")
    cache = RuleCache(db)
    last = cache.current()
    for number in range(20, 25):
        store(db, uuid=uuid(number), description=str(number))
    change(db, uuid(1), description="changed!")
    change(db, uuid(2), enabled=False)
    with db.writer() as conn:
        inspection_rules.destroy(conn, uuid(3))
    change(db, uuid(4), phase="main", actions=[ACTION])
    go_on = threading.Event()
    monkeypatch.setattr(RuleSettings, "compile", lambda self, rule, compile=RuleSettings.compile: (
        (rule.phase == "early" or go_on.wait(60)) and compile(self, rule)))

    now = revision(db)
    assert descriptions(cache.early(now), "early") == ["same", "changed!"]
    assert cache.current(now) is last
    change(db, uuid(10), **EARLY)
    store(db, uuid=uuid(11), description="new", **EARLY)
    for _ in range(2):
        assert descriptions(cache.early(revision(db)), "early") == ["same", "changed!", "now early", "new"]
    assert cache.current(revision(db)) is last
    go_on.set()
    settle(cache)
    for rule_set in (cache.current(), cache.early(), cache.latest()):
        assert descriptions(rule_set, "early") == ["same", "changed!", "now early", "new"]
        assert descriptions(rule_set) == ["now main", "20", "21", "22", "23", "24"]


@pytest.mark.parametrize(("values", "read"), [
    (EARLY, RuleCache.early), ({}, RuleCache.latest), ({}, lambda cache: cache.as_if((), ()))])
def test_what_needs_the_present_rules_waits_for_many_and_has_later_ones_too(db, monkeypatch, values, read):
    monkeypatch.setattr(rule_sets, "_FEW", 3)
    cache = RuleCache(db)
    cache.current()
    for number in range(4):
        store(db, uuid=uuid(number), **values)
    begun, go_on = threading.Event(), threading.Event()
    monkeypatch.setattr(RuleSettings, "compile", lambda self, rule, compile=RuleSettings.compile: (
        begun.set(), go_on.wait(60), compile(self, rule))[2])
    cache.current()
    assert begun.wait(60)
    store(db, uuid=uuid(4), **values)
    with ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(read, cache) for _ in range(2)]
        assert not any(each.done() for each in waiting)
        go_on.set()
        assert [len(each.result(60)) for each in waiting] == [5, 5]


def test_a_set_that_cannot_be_compiled_is_an_error_for_what_needs_the_present_rules(db, monkeypatch):
    """An early rule among few is in effect nevertheless; among many it is not left out silently."""
    monkeypatch.setattr(rule_sets, "_FEW", 3)
    cache = RuleCache(db)
    cache.current()
    for number in range(4):
        store(db, uuid=uuid(number))
    store(db, uuid=uuid(4), description="new", **EARLY)
    monkeypatch.setattr(RuleSettings, "compile", lambda self, rule, compile=RuleSettings.compile: (
        compile(self, rule) if rule.description == "new" else 1 / 0))

    assert descriptions(cache.early(revision(db)), "early") == ["new"]
    settle(cache)
    for number in range(5, 9):
        store(db, uuid=uuid(number), **EARLY)
    for read in (cache.early, cache.latest):
        with pytest.raises(ZeroDivisionError):
            read()


def test_an_error_in_the_background_is_logged_and_the_rules_are_read_again(db, monkeypatch, caplog):
    monkeypatch.setattr(rule_sets, "_FEW", 0)
    cache = RuleCache(db)
    cache.current()
    store(db)
    with monkeypatch.context() as patch:
        patch.setattr(RuleSettings, "compile", lambda self, rule: 1 / 0)
        cache.current()
        settle(cache)
    assert "could not be prepared" in caplog.text
    cache.current()
    settle(cache)
    assert len(cache.current()) == 1


def test_the_set_is_tidied_after_many_changes(db, monkeypatch):
    """The regular expressions of single changes are collected into sets, and rules stay the same."""
    monkeypatch.setattr(rule_sets, "_UNTIDY", 2)
    cache = RuleCache(db)
    for number in range(40):
        store(db, uuid=uuid(number), description=str(number), conditions=[
            {"op": "matches", "args": {"value": "{inventory[hostname]}", "regex": f"x{number}"}}])
        cache.current()
        settle(cache)
    facts = Facts(Task(NodeDraft({"extra": {}, "inspection_scope": None})), {"hostname": "x39"}, {})
    rule_set = cache.current()
    assert [trace.description for trace in rule_set.run("main", facts)] == ["39"]
    assert rule_set.tidied() is rule_set


@pytest.mark.parametrize("many", [3, 9])
def test_rules_that_change_while_the_set_is_tidied_are_in_it(db, monkeypatch, many):
    monkeypatch.setattr(rule_sets, "_UNTIDY", 2)
    monkeypatch.setattr(rule_sets, "_FEW", 3)
    cache = RuleCache(db)
    cache.current()
    tidying, go_ahead = threading.Event(), threading.Event()
    monkeypatch.setattr(RuleSet, "tidied", lambda self, tidied=RuleSet.tidied: (
        tidying.set(), go_ahead.wait(60), tidied(self))[2])
    for number in range(2):
        store(db, uuid=uuid(number), description=str(number))
    cache.current()
    assert tidying.wait(60)

    store(db, uuid=uuid(2), description="2")
    assert descriptions(cache.current()) == ["0", "1", "2"]
    with db.writer() as conn:
        inspection_rules.destroy(conn, uuid(0))
    for number in range(3, many):
        store(db, uuid=uuid(number), description=str(number))
    go_ahead.set()
    settle(cache)
    assert descriptions(cache.latest()) == [str(number) for number in range(1, many)]


def test_of_many_changed_rules_a_thread_reads_few(db, monkeypatch):
    """The others are read once, in the background, however many threads notice."""
    monkeypatch.setattr(rule_sets, "_FEW", 3)
    cache = RuleCache(db)
    cache.current()
    for number in range(20):
        store(db, uuid=uuid(number))
    read, threads = [], 8
    all_have_read = threading.Barrier(threads)

    def changed_since(conn, revision, limit=None, real=inspection_rules.changed_since):
        found = real(conn, revision, limit)
        read.append(len(found))
        if limit is not None:
            all_have_read.wait(60)
        return found

    monkeypatch.setattr(inspection_rules, "changed_since", changed_since)
    now = revision(db)
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(cache.current, [now] * threads))
    settle(cache)
    assert len(cache.current(now)) == 20
    assert sorted(read)[:threads] == [4] * threads
    assert sorted(read)[threads:] in ([20], [])


def test_an_older_database_is_read_as_a_whole_and_once(db, monkeypatch):
    store(db, description="before the backup")
    cache = RuleCache(db)
    at_backup = revision(db)
    cache.current()
    change(db, description="after it")
    assert descriptions(cache.current()) == ["after it"]
    with db.writer() as conn:
        conn.execute(sa.update(revisions).values(revision=at_backup))
        conn.execute(sa.text("update inspection_rules set description = 'restored', revision = revision - 1"))

    reads, both = [], threading.Barrier(2)
    monkeypatch.setattr(inspection_rules, "all_rules", lambda conn, real=inspection_rules.all_rules: (
        reads.append(1), real(conn))[1])
    monkeypatch.setattr(RuleCache, "_difference", lambda *args, real=RuleCache._difference: (
        both.wait(60), real(*args))[1])
    with ThreadPoolExecutor(2) as pool:
        sets = list(pool.map(cache.current, [at_backup] * 2))

    assert [descriptions(rule_set) for rule_set in sets] == [["restored"]] * 2
    assert len(reads) == 1


def test_compiled_rules_are_kept_only_while_a_set_has_them(db):
    settings = RuleSettings()
    cache = RuleCache(db, settings)
    for number in range(3):
        store(db, uuid=uuid(number))
        change(db, uuid(number), description="new")
        cache.current()
    with db.writer() as conn:
        inspection_rules.destroy(conn, uuid(0))
    cache.current()
    gc.collect()
    assert {uuid for uuid, _ in settings.compiled} == {uuid(1), uuid(2)}
