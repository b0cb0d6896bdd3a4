"""Rules that run together do what they do one after the other: drafts, journal, traces, failures and history."""

from __future__ import annotations

import copy
import uuid
from typing import Any
from unittest import mock

import orjson
import pytest
from hypothesis import strategies as st

from ironic_rules import rules
from ironic_rules.exceptions import RuleFailed
from ironic_rules.inspection import records
from ironic_rules.models import authorship, inspections
from ironic_rules.models.inspections import Inspection
from ironic_rules.rules import joint
from tests import strategies
from tests.unit.rules import world

PATHS = st.one_of(st.sampled_from([f"/extra/{letter}" for letter in "abcdefghijklmnopq"]), st.sampled_from([
    "/extra/old", "/extra/list", "/properties/capabilities", "/properties/x", "/instance_info/y", "/extra/a~1b",
    "/driver_info/ipmi_password", "/driver_info/ipmi_username", "/extra/deep/z", "/description", "/extra",
    "/traits/-"]))
VALUES = st.one_of(
    st.sampled_from([
        "{inventory[hostname]}", "{inventory[system_vendor][manufacturer]}", "{inventory[cpu][count]}",
        "on {inventory[hostname]}"]),
    st.sampled_from([
        "x", "a:b,boot_mode:bios", 7, True, None, [1, 2], "{inventory[disks]}", "{inventory[nosuch]}",
        "{node.extra[a]}", "{plugin_data[p]}", "x{plugin_data[p]}", "{node.driver_info[ipmi_password]}", "s3cret",
        "{inventory[hostname]|upper}", "CUSTOM_A", "http://u:pw@example.org/"]))
SET = st.builds(lambda path, value: {"op": "set-attribute", "args": {"path": path, "value": value}}, PATHS, VALUES)
OTHER = st.sampled_from([
    {"op": "set-plugin-data", "args": {"path": "p", "value": "changed"}},
    {"op": "add-trait", "args": {"name": "CUSTOM_B"}},
    {"op": "del-attribute", "args": {"path": "/extra/a"}},
    {"op": "extend-attribute", "args": {"path": "/extra/list", "value": 1}},
    {"op": "set-attribute", "args": {"path": "/extra/{item}", "value": "{item}"}, "loop": ["a", "k"]},
    {"op": "set-port-attribute", "args": {"port_id": world.PORT_UUID, "path": "/extra/b", "value": "s3cret"}},
])
CONDITION = st.sampled_from([
    {"op": "eq", "args": ["{inventory[cpu][count]}", 40]},
    {"op": "eq", "args": ["{inventory[cpu][count]}", 41]},
    {"op": "gt", "args": ["{inventory[cpu][count]}", 1]},
    {"op": "contains", "args": {"value": "{inventory[cpu][model_name]}", "regex": "Xeon"}},
    {"op": "contains", "args": {"value": "{inventory[nosuch]}", "regex": "Xeon"}},
    {"op": "matches", "args": {"value": "{inventory[hostname]}", "regex": "rack(?P<rack>[0-9]+).*"}},
    {"op": "eq", "args": ["{plugin_data[p]}", "changed"]},
    {"op": "!eq", "args": ["{node.extra[a]}", "x"]},
    {"op": "eq", "args": ["{inventory[hostname]}", "other"]},
])
#: Mostly what can run together.
RULE = st.fixed_dictionaries(
    {"actions": st.one_of(
        *[st.lists(SET, min_size=1, max_size=1)] * 4, st.lists(SET, min_size=1, max_size=3),
        st.lists(st.one_of(SET, OTHER), min_size=1, max_size=2))},
    optional={"conditions": st.lists(CONDITION, max_size=2), "sensitive": st.sampled_from([False] * 9 + [True])})


def compiled(many: list[dict[str, Any]]) -> list[rules.CompiledRule]:
    return [world.compiled({**each, "uuid": str(uuid.UUID(int=number)), "position": number})
            for number, each in enumerate(many, start=1) if not world.validate(each)]


def facts(given: dict[str, Any]) -> rules.Facts:
    return world.facts({"extra": {"old": "x", "list": [1, 2], **given}}, {"p": "plain"})


def outcome(sets: list[rules.RuleSet], given: rules.Facts) -> dict[str, Any]:
    """Run sets of rules one after the other; return all that this has done."""
    task, traces, error = given.task, [], None
    assert task is not None
    task.checkpoint()
    try:
        for each in sets:
            traces += each.run("main", given)
    except RuleFailed as exc:
        error = str(exc)
        traces += exc.traces  # type: ignore[attr-defined]
    task.checkpoint()
    entry = Inspection()
    records.describe(
        entry, task, [trace for trace in traces if trace.matched], task.messages,
        RuntimeError(error) if error else None)
    changed_by = records.changed_by(task)
    return {
        "history": inspections.rules({"rules": orjson.loads(entry.rules), "together": orjson.loads(entry.together)}),
        "changed by": set(entry.changed_by), "again": set(changed_by), "error": error,
        "traces": traces, "node": task.node.read(),
        "keys": {name: list(value) for name, value in task.node.read().items() if isinstance(value, dict)},
        "changes": authorship.changes(task.node), "ports": [authorship.changes(port) for port in task.ports],
        "authors": {name: _author(task.node.author_of(name)) for name in (*task.node.read(), None)},
        "data": given.plugin_data, "overwritten": sorted(map(str, authorship.overwritten(task.node)))}


def _author(found: tuple[Any, Any]) -> tuple[Any, Any]:
    rule, action = found
    return rule and rule.uuid, action and action.where


def both(many: list[dict[str, Any]], node: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any], rules.RuleSet]:
    """Return what rules do each alone, and together, when the same candidates have come before; and their set."""
    made = compiled(many)
    alone = outcome([rules.RuleSet([each]) for each in made], facts(node))
    together = rules.RuleSet(made)
    for _ in range(3):
        found = outcome([together], facts(node))
    return alone, found, together


def check_together(many: list[dict[str, Any]], node: dict[str, Any]) -> None:
    alone, found, _ = both(many, node)
    assert found == alone


@pytest.mark.slow
@pytest.mark.parametrize("batch", strategies.batches(150))
def test_rules_together_do_what_they_do_alone(batch: tuple[int, int]) -> None:
    strategies.check(
        batch, check_together, many=st.lists(RULE, min_size=4, max_size=24), node=st.sampled_from(
            [{}, {"a": "x", "b": 7, "c": "rack07-node3"}, {"a": {"b": 1}, "d": True, "e": 1.0}]))


def setting(*paths: str, value: Any = "{inventory[hostname]}", **fields: Any) -> dict[str, Any]:
    return {"conditions": [{"op": "eq", "args": ["{inventory[cpu][count]}", 40]}], "actions": [
        {"op": "set-attribute", "args": {"path": path, "value": value}} for path in paths], **fields}


def stretches(together: rules.RuleSet) -> list[tuple[int, int]]:
    """Return where the stretches are that are known."""
    return [(each.start, each.end) for known in together._phases["main"].plans._known.values() for each in known]


def test_rules_that_set_keys_run_together() -> None:
    alone, found, together = both([setting(f"/extra/{number}", value=number) for number in range(10)], {})
    assert stretches(together) == [(0, 10)]
    assert found == alone
    assert [rule["changes"] for rule in found["history"]] == [
        {"node": [{"op": "add", "path": f"/extra/{number}", "value": number}]} for number in range(10)]


def test_rules_with_several_actions_run_together() -> None:
    many = [setting(f"/extra/{number}", f"/extra/{number}/again".replace("/again", "x")) for number in range(6)]
    alone, found, together = both(many, {})
    assert stretches(together) == [(0, 6)]
    assert found == alone
    again = both(many, {"1": "x", "3x": "rack07-node3"})
    assert again[0] == again[1]


@pytest.mark.parametrize("other", [
    setting("/extra/3", value="later"), setting("/extra/x", sensitive=True),
    setting("/extra/x", value="{inventory[disks]}"),
    setting("/extra/x", value="{node.extra[a]}"), setting("/extra/x/y"), setting("/extra/x", "/properties/x"),
    setting("/description"), setting("/extra/x", value="******")], ids=str)
def test_what_cannot_run_with_others_runs_alone_between_them(other: dict[str, Any]) -> None:
    many = [setting(f"/extra/{number}") for number in range(10)]
    alone, found, together = both([*many[:5], other, *many[5:]], {"a": "x"})
    assert stretches(together) in ([(0, 5), (6, 11)], [(0, 5), (5, 11)])
    assert found == alone


def test_only_the_rules_whose_conditions_hold_run() -> None:
    xeon = {"op": "contains", "args": {"value": "{inventory[cpu][model_name]}", "regex": "Xeon"}}
    epyc = {"op": "contains", "args": {"value": "{inventory[cpu][model_name]}", "regex": "EPYC"}}
    made = compiled([{**setting(f"/extra/{number}"), "conditions": [(xeon, epyc)[number % 2]]} for number in range(12)])
    together = rules.RuleSet(made)
    for model in ("Xeon", "EPYC", "Xeon EPYC", "none", "Xeon") * 2:
        given = [world.facts({"extra": {}}, {}, {"cpu": {"model_name": model, "count": 40}}) for _ in range(2)]
        assert outcome([together], given[0]) == outcome([rules.RuleSet([each]) for each in made], given[1])


def test_a_rule_that_fails_fails_as_ever_and_the_others_are_done() -> None:
    many = [setting(f"/extra/{number}") for number in range(8)]
    many[5]["actions"][0]["args"]["value"] = "{inventory[nosuch]}"
    alone, found, together = both(many, {})
    assert stretches(together) == [(0, 8)]
    assert "{inventory[nosuch]}" in found["error"]
    assert found == alone


def test_too_much_text_is_refused_as_ever() -> None:
    made = [world.compiled({**setting(f"/extra/{number}"), "uuid": str(uuid.UUID(int=number + 1)), "position": number},
                           limits=rules.Limits(written=100)) for number in range(8)]
    together = rules.RuleSet(made)
    for _ in range(3):
        given = facts({})
        with pytest.raises(RuleFailed, match="write more than 100 characters"):
            together.run("main", given)
        assert given.task is not None
        assert len(given.task.node.extra) == 2 + 5


@pytest.mark.parametrize(("length", "are_shown"), [(689, True), (690, False)])
def test_the_limit_of_a_history_is_that_of_what_is_shown(length: int, are_shown: bool) -> None:
    many = [setting(f"/extra/{number}", value="x" * length) for number in range(80)]
    alone, found, together = both(many, {})
    assert stretches(together) == [(0, 80)]
    assert found == alone
    assert len(orjson.dumps(found["history"])) < 64 * 1024
    assert all((rule["changes"] is not None) is are_shown for rule in found["history"])


def test_what_was_written_together_is_undone() -> None:
    together = rules.RuleSet(compiled([setting(f"/extra/{name}") for name in ("old", "a", "b", "c", "d")]))
    for _ in range(3):
        task = (given := facts({})).task
        assert task is not None
        before = copy.deepcopy(task.node.read())
        position = task.node.position()
        together.run("main", given)
        copied = task.copy()
        assert copied.node.read() == task.node.read()
        task.node.rollback(position)
        assert task.node.read() == before
        assert list(task.node.read()["extra"]) == list(before["extra"])


def test_a_secret_that_was_written_together_is_masked() -> None:
    """Rules may read secrets: of those that do, nothing is shown; of the others, everything is."""
    many = [setting(f"/extra/n{number}", value="it is {inventory[bmc][password]}") for number in range(4)]
    made = compiled([*many, setting("/extra/guess", value="it is s3cret"), setting("/extra/name")])
    sent = {"bmc": {"password": "s3cret"}}
    alone = outcome([rules.RuleSet([each], mask_secrets="never") for each in made], world.facts(inventory=sent))
    together = rules.RuleSet(made, mask_secrets="never")
    for _ in range(3):
        found = outcome([together], world.facts(inventory=sent))
    assert stretches(together) and found == alone
    values = [operation["value"] for rule in found["history"] for operation in rule["changes"]["node"]]
    assert values == ["******"] * 4 + ["it is s3cret", "rack07-node3"]


def test_what_is_prepared_is_limited() -> None:
    made = compiled([{**setting(f"/extra/{number}"), "conditions": [
        {"op": "eq", "args": [f"{{inventory[numbers][{number % 40}]}}", 1]}]} for number in range(400)])
    together = rules.RuleSet(made)
    plans = together._phases["main"].plans
    for number in range(40):
        for _ in range(2):
            together.run("main", world.facts({"extra": {}}, {}, {"numbers": [0] * number + [1] * (40 - number)}))
            assert sum(each.end - each.start for known in plans._known.values() for each in known) <= joint._MOST
            assert all(len(each._by_outcome) <= joint._MOST_OUTCOMES
                       for known in plans._known.values() for each in known)
    assert plans._known


def test_what_is_too_much_to_be_prepared_at_once_is_not_prepared_again_and_again(
        monkeypatch: pytest.MonkeyPatch) -> None:
    """Machines of ten kinds come in turns; there is room for what is prepared for five of them."""
    monkeypatch.setattr(joint, "_MOST", 40)
    made = mock.Mock(wraps=joint.Stretch)
    monkeypatch.setattr(joint, "Stretch", made)
    together = rules.RuleSet(compiled([{**setting(f"/extra/{number}"), "scope": f"s{number % 10}"}
                                       for number in range(80)]))

    def run(*scopes: int) -> int:
        before = made.call_count
        for number in scopes:
            given = facts({})
            assert given.task is not None
            given.task.node.inspection_scope = f"s{number}"
            together.run("main", given)
            assert len(given.task.node.extra) == 2 + 8
        return made.call_count - before

    run(*range(10), *range(10))
    assert run(*range(10)) == 0
    assert run(*[*range(10)] * 30) < 30
    # Those that no longer come make room for others in the end.
    run(*[*range(5, 10)] * 40)
    assert run(*range(5, 10)) == 0
    assert {stretch.end for known in together._phases["main"].plans._known.values() for stretch in known} == {8}


def test_rules_whose_conditions_always_have_another_outcome_run_alone() -> None:
    made = compiled([{**setting(f"/extra/{number}"), "conditions": [
        {"op": "contains", "args": {"value": "{inventory[hostname]}", "regex": f"x{number}|y"}, "loop": ["a"]}]}
        for number in range(8)])
    together = rules.RuleSet(made)
    for number in range(2 + joint._MOST_OUTCOMES + joint._MOST_MISSES):
        hostname = "-".join(f"x{bit}" for bit in range(8) if number >> bit & 1)
        given = [world.facts({"extra": {}}, {}, {"hostname": hostname}) for _ in range(2)]
        assert outcome([together], given[0]) == outcome([rules.RuleSet([each]) for each in made], given[1])
    stretch, = next(iter(together._phases["main"].plans._known.values()))
    assert stretch._misses == joint._MOST_MISSES
    task = world.facts().task
    assert task is not None
    assert stretch.run(task.node, None, None) is None  # type: ignore[arg-type]


def test_lists_of_candidates_are_not_kept_when_they_come_once() -> None:
    together = rules.RuleSet(compiled([setting(f"/extra/{number}") for number in range(8)]))
    together.run("main", facts({}))
    assert stretches(together) == []
