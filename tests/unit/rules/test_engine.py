"""Rule sets: order, phases, scope, sensitivity, failures, traces."""

from __future__ import annotations

import itertools
import json
import traceback
from collections.abc import Callable
from typing import Any

import orjson
import pytest

from ironic_rules import rules
from ironic_rules.exceptions import InvalidRule, RuleFailed
from ironic_rules.rules.signatures import Registry
from tests.unit.rules import world
from tests.walking import walking

FAIL = {"op": "fail", "args": ["hunter2"]}


def case_facts(case: dict[str, Any]) -> rules.Facts:
    """Return a vector's facts."""
    return world.facts(case.get("node"), case.get("plugin_data"), case.get("inventory"),
                       previous=case.get("previous"))


def case_rules(case: dict[str, Any]) -> rules.RuleSet:
    """Return a vector's rules."""
    return rules.RuleSet([world.compiled(world.rule(**one)) for one in case["rules"]])


@walking("vector", [v for v in world.vectors("rules") if "fails" not in v[1]])
def test_rules_have_the_expected_effect(vector: Any) -> None:
    _, case = vector
    facts = case_facts(case)
    case_rules(case).run("main", facts)
    assert world.effects(facts) == case["expect"]


@walking("vector", [v for v in world.vectors("rules") if "fails" in v[1]])
def test_rules_fail_as_expected(vector: Any) -> None:
    _, case = vector
    facts = case_facts(case)
    with pytest.raises(RuleFailed, match=case["fails"]):
        case_rules(case).run("main", facts)
    assert world.effects(facts) == case["expect"]


@walking("vector", world.vectors("rules"))
def test_explaining_changes_nothing(vector: Any) -> None:
    _, case = vector
    facts = case_facts(case)
    try:
        case_rules(case).run("main", facts, explain=True)
    except RuleFailed:
        assert "fails" in case
    assert world.effects(facts) == case["expect"]


def test_early_rules_run_without_a_node() -> None:
    facts = world.facts(early=True)
    rule = world.rule(phase="early", conditions=[{"op": "eq", "args": ["{inventory[cpu][count]}", 40]}],
                      actions=[{"op": "set-plugin-data", "args": ["x", "{plugin_data[y]}"]}])
    facts.plugin_data["y"] = 1
    world.run(rule, given=facts, phase="early")
    assert facts.plugin_data == {"x": 1, "y": 1}


@walking("root", ["node.uuid", "ports", "port_groups", "previous"])
def test_early_rules_can_not_name_the_node(root: str) -> None:
    problem, = world.validate(world.rule(phase="early", conditions=[{"op": "is-none", "args": [f"{{{root}}}"]}]))
    assert "not available in the early phase" in problem.text


def test_a_stored_early_rule_runs_for_every_callback_whatever_its_scope() -> None:
    stored = rules.Rule(**world.rule(phase="early"), scope="a")
    rule_set = rules.RuleSet([rules.compile_stored(stored)])
    assert [trace.matched for trace in rule_set.run("early", world.facts(early=True))] == [True]


def test_every_node_of_a_scope_gets_its_rules() -> None:
    rule_set = rules.RuleSet([world.compiled(world.rule(scope="a"))])
    ran = [rule_set.run("main", world.facts(node={"inspection_scope": scope})) for scope in ("a", "b", "a")]
    assert [[trace.matched for trace in traces] for traces in ran] == [[True], [], [True]]


def test_main_rules_need_a_node() -> None:
    with pytest.raises(ValueError, match="without a node"):
        world.run(world.rule(), given=world.facts(early=True))


def test_unknown_phase_is_refused() -> None:
    with pytest.raises(ValueError, match="early, preprocess, main"):
        world.run(world.rule(), phase="late")


def test_trace_says_which_rules_matched() -> None:
    given = world.rule(description="a"), world.rule(conditions=[{"op": "is-true", "args": [False]}])
    assert [(trace.description, trace.matched) for trace in world.run(*given)] == [("a", True)]
    assert [(trace.description, trace.matched) for trace in world.run(*given, explain=True)] == [
        ("a", True), (None, False)]


def test_explanation_has_every_condition_and_what_changed() -> None:
    rule = world.rule(
        conditions=[{"op": "!eq", "args": ["{node.name}", "x"]}, {"op": "is-true", "args": [True], "loop": [1]}],
        actions=[{"op": "set-attribute", "args": ["/driver_info/ipmi_password", "new"]},
                 {"op": "add-trait", "args": ["{item}"], "loop": ["CUSTOM_A", "CUSTOM_B"]},
                 {"op": "set-port-attribute", "args": [world.PXE_MAC, "/name", "p"]},
                 {"op": "set-plugin-data", "args": ["x", 1]}],
    )
    trace, = world.run(rule, explain=True)
    assert [(c.where, c.op, c.outcome) for c in trace.conditions] == [
        ("/conditions/0", "!eq", True), ("/conditions/1", "is-true", True)]
    assert [(a.op, a.times) for a in trace.actions] == [
        ("set-attribute", 1), ("add-trait", 2), ("set-port-attribute", 1), ("set-plugin-data", 1)]
    assert trace.changes == {
        "node": [{"op": "replace", "path": "/driver_info/ipmi_password", "value": "******"},
                 {"op": "add", "path": "/traits/-", "value": "CUSTOM_A"},
                 {"op": "add", "path": "/traits/-", "value": "CUSTOM_B"}],
        "ports": {world.PXE_MAC: [{"op": "replace", "path": "/name", "value": "p"}]},
        "plugin_data": [{"op": "add", "path": "/x", "value": 1}]}


def test_explanation_says_why_a_condition_has_no_answer() -> None:
    conditions = [{"op": "!eq", "args": ["a{inventory[nosuch]}", "a"]}, {"op": "is-true", "args": [True]}]
    trace, = world.run(world.rule(conditions=conditions), explain=True)
    assert not trace.matched
    assert trace.conditions[0].outcome is None
    assert trace.conditions[0].note == "{inventory[nosuch]} is missing"
    assert trace.conditions[1].outcome is True


def test_failure_carries_the_traces_up_to_it() -> None:
    with pytest.raises(RuleFailed) as caught:
        world.run(world.rule(priority=1), world.rule(actions=[FAIL]), explain=True)
    traces = caught.value.traces  # type: ignore[attr-defined]
    assert [trace.error is not None for trace in traces] == [False, True]


def test_failing_rule_leaves_the_draft_as_it_was() -> None:
    facts = world.facts(plugin_data={"deep": {"l": [1]}}, node={"traits": ["CUSTOM_A"]})
    before = json.dumps([facts.task.node.read(), facts.plugin_data])  # type: ignore[union-attr]
    rule = world.rule(actions=[
        {"op": "set-attribute", "args": ["/extra/list/0", 5]}, {"op": "del-attribute", "args": ["/extra/old"]},
        {"op": "extend-attribute", "args": ["/extra/list", 5]}, {"op": "set-capability", "args": ["a", "z"]},
        {"op": "set-attribute", "args": ["/name", "other"]}, {"op": "remove-trait", "args": ["CUSTOM_A"]},
        {"op": "set-port-attribute", "args": [world.PXE_MAC, "/extra/x", 1]},
        {"op": "extend-plugin-data", "args": ["deep.l", 2]}, {"op": "set-plugin-data", "args": ["new", 2]},
        {"op": "unset-plugin-data", "args": ["deep.l.0"]}, FAIL,
    ])
    with pytest.raises(RuleFailed):
        world.run(rule, given=facts)
    assert json.dumps([facts.task.node.read(), facts.plugin_data]) == before  # type: ignore[union-attr]
    assert world.effects(facts) == {"plugin_data": {"deep": {"l": [1]}}}


SECRET_ACTIONS = [
    FAIL,
    {"op": "set-attribute", "args": ["/name", "{plugin_data[hunter2]}"]},
    {"op": "add-trait", "args": ["{item}"], "loop": ["hunter2"]},
    {"op": "set-attribute", "args": ["{item}", "hunter2"], "loop": ["/hunter2"]},
    {"op": "set-port-attribute", "args": ["{item}", "/extra/hunter2", "hunter2"], "loop": ["52:54:00:00:00:99"]},
]


@walking("action", SECRET_ACTIONS)
@walking("explain", [False, True])
def test_sensitive_rule_tells_nothing_when_it_fails(action: dict[str, Any], explain: bool) -> None:
    conditions = [{"op": "!eq", "args": ["hunter2", "x"]}]
    with pytest.raises(RuleFailed) as caught:
        world.run(world.rule(sensitive=True, conditions=conditions, actions=[action]), explain=explain)
    shown = "".join(traceback.format_exception(caught.value)) + repr(caught.value.traces)  # type: ignore[attr-defined]
    assert "hunter2" not in shown.replace(repr(action), "")
    assert caught.value.facts["where"] == "/actions/0"
    assert caught.value.facts["reason"] == "details are withheld, the rule is sensitive"


def test_sensitive_rule_tells_nothing_when_it_works() -> None:
    facts = world.facts()
    rule = world.rule(
        sensitive=True, conditions=[{"op": "eq", "args": ["hunter2", "hunter2"]}],
        actions=[{"op": "log", "args": ["hunter2"]}, {"op": "set-attribute", "args": ["/extra/hunter2", "hunter2"]}],
    )
    traces = world.run(rule, given=facts, explain=True)
    assert "hunter2" not in repr(traces) + repr(facts.messages)
    assert len(facts.messages) == 1


def test_plain_rule_names_its_missing_path() -> None:
    rule = world.rule(actions=[{"op": "log", "args": ["x"]},
                               {"op": "set-plugin-data", "args": ["x", "{plugin_data[a][0].b}"]}])
    with pytest.raises(RuleFailed, match=r"failed at /actions/1: \{plugin_data\[a\]\[0\]\.b\} is missing"):
        world.run(rule)


@walking("mode, sensitive, seen", [
    ("always", False, "******"), ("always", True, "******"), ("never", False, "s3cret"), ("never", True, "s3cret"),
    ("sensitive", False, "******"), ("sensitive", True, "s3cret"),
])
def test_mask_secrets_decides_what_rules_read(mode: str, sensitive: bool, seen: str) -> None:
    facts = world.facts(node={"extra": {}}, inventory={"nested": [{"bmc_password": "s3cret"}]},
                        plugin_data={"auth_token": "s3cret"})
    rule = world.rule(sensitive=sensitive, actions=[
        {"op": "set-attribute", "args": ["/extra/a", "{node.driver_info[ipmi_password]}"]},
        {"op": "set-attribute", "args": ["/extra/b", "{inventory[nested][0][bmc_password]}"]},
        {"op": "set-attribute", "args": ["/extra/c", "{plugin_data.auth_token}"]},
    ])
    world.run(rule, given=facts, mask_secrets=mode)
    assert world.effects(facts)["node"]["extra"] == {"a": seen, "b": seen, "c": seen}


def test_writes_are_not_masked() -> None:
    facts = world.facts()
    world.run(world.rule(actions=[{"op": "set-attribute", "args": ["/driver_info/ipmi_password", "new"]}]), given=facts)
    assert world.effects(facts)["node"]["driver_info"]["ipmi_password"] == "new"


def test_unknown_mask_mode_is_refused() -> None:
    with pytest.raises(ValueError, match="always, never, sensitive"):
        rules.RuleSet([], mask_secrets="maybe")


def test_compile_refuses_with_all_problems() -> None:
    with pytest.raises(InvalidRule) as caught:
        world.compiled({"actions": [{"op": "nosuch"}], "priority": -1})
    assert {problem.where for problem in caught.value.problems} == {"/actions/0/op", "/priority"}


def test_rule_sets_keep_rules_by_phase_and_order() -> None:
    compiled = [world.compiled(world.rule(priority=p, phase=phase)) for p in (1, 5) for phase in rules.PHASES]
    rule_set = rules.RuleSet(compiled)
    assert len(rule_set) == 6
    assert [rule.priority for rule in rule_set.rules("early")] == [5, 1]


class Broken(rules.InspectionRuleActionBase):
    """A plug-in that changes everything in place and then fails."""

    def __call__(self, task: Any, rule: rules.ActiveRule, value: Any = None, **options: Any) -> None:
        task.node.extra["list"].append(3)
        task.node.extra = {"replaced": True}
        task.node.save()
        task.add_port("52:54:00:aa:00:01")
        task.remove_port(task.ports[0])
        rule.plugin_data["deep"]["l"].append(2)
        raise KeyError("what the plug-in did not expect")


def test_error_of_a_plugin_fails_the_rule_and_is_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = Registry("action", rules.ACTIONS._read)
    registry.add("broken", Broken)
    monkeypatch.setattr("ironic_rules.rules.compiler.ACTIONS", registry)
    facts = world.facts(plugin_data={"deep": {"l": [1]}})
    with pytest.raises(RuleFailed, match="KeyError: 'what the plug-in did not expect'"):
        world.run(world.rule(actions=[{"op": "broken"}]), given=facts)
    assert world.effects(facts) == {"plugin_data": {"deep": {"l": [1]}}}
    assert not facts.task.port_changes()  # type: ignore[union-attr]


class LostLogin(Exception):
    """An error of a library that derives its errors directly from Exception, as most do."""


class Fetch(rules.InspectionRuleActionBase):
    """A plug-in that fails in a library that it uses."""

    formatted_params = ["password"]
    supports_early = True

    def __call__(self, task: Any, rule: rules.ActiveRule, password: str) -> None:
        raise LostLogin(f"401 for admin:{password}")

    def call_early(self, rule: rules.ActiveRule, password: str) -> None:  # type: ignore[override]
        self(None, rule, password)


@pytest.mark.parametrize("phase", ["early", "main"])
@pytest.mark.parametrize(("sensitive", "reason"), [
    (False, "/actions/0: LostLogin: 401 for admin:calvin"), (True, "/actions/0: details are withheld")])
def test_whatever_a_plugin_raises_fails_the_rule(monkeypatch: pytest.MonkeyPatch, phase: str, sensitive: bool,
                                                 reason: str) -> None:
    registry = Registry("action", rules.ACTIONS._read)
    registry.add("fetch", Fetch)
    monkeypatch.setattr("ironic_rules.rules.compiler.ACTIONS", registry)
    rule = world.rule(phase=phase, sensitive=sensitive, actions=[{"op": "fetch", "args": ["calvin"]}])
    with pytest.raises(RuleFailed, match=reason) as caught:
        world.run(rule, given=world.facts(early=phase == "early"), phase=phase)
    assert ("calvin" in "".join(traceback.format_exception(caught.value))) is not sensitive


def add_operator(monkeypatch: pytest.MonkeyPatch, name: str, call: Callable[..., bool]) -> None:
    """Let rules use another operator during a test."""
    registry = Registry("operator", rules.OPERATORS._read)
    for operator in rules.OPERATORS:
        registry.add(operator.name, operator.call)
    registry.add(name, call)
    monkeypatch.setattr("ironic_rules.rules.compiler.OPERATORS", registry)


@pytest.mark.parametrize("others", [[], ["{node.name}"], [1, "{node.name}"]])
def test_what_an_operator_must_not_raise_fails_the_rule_at_its_condition(monkeypatch: pytest.MonkeyPatch,
                                                                         others: list[Any]) -> None:
    """Also of a rule that has only one condition, which is evaluated without a loop."""

    def broken(value: Any) -> bool:
        raise RuntimeError("an error of the operator")

    add_operator(monkeypatch, "broken", broken)
    holds = [{"op": "!is-none", "args": [other]} for other in others]
    rule = world.rule(conditions=[*holds, {"op": "broken", "args": ["{node.uuid}"]}])
    with pytest.raises(RuleFailed, match=f"failed at /conditions/{len(others)}: RuntimeError: an error of the"):
        world.run(rule)


@pytest.mark.parametrize("explain", [False, True])
@pytest.mark.parametrize("others", [[], ["{node.name}"]])
def test_an_error_of_an_operator_that_read_a_secret_quotes_nothing(monkeypatch: pytest.MonkeyPatch, others: list[str],
                                                                   explain: bool) -> None:
    def broken(value: Any) -> bool:
        raise ValueError(f"not {value}")

    add_operator(monkeypatch, "broken", broken)
    holds = [{"op": "!is-none", "args": [other]} for other in others]
    rule = world.rule(conditions=[*holds, {"op": "broken", "args": ["{node.driver_info[ipmi_password]}"]}])
    with pytest.raises(RuleFailed) as caught:
        world.run(rule, given=world.facts(), mask_secrets="never", explain=explain)
    assert str(caught.value.facts["reason"]) == "details are withheld, the rule reads a secret"
    assert "s3cret" not in "".join(traceback.format_exception(caught.value))


@walking("steps, expected", [
    ("[a][b]", 1), ("[a][b][c]", None), ("[a][c]", None), ("[text][b]", None), ("[list][b]", None), ("[none][b]", None),
    ("[list][0][x]", 2), ("[list][9][x]", None), ("[list][-1][x]", None), ("[list][00][x]", 2), ("[a][0][x]", 3),
    ("[a][00][x]", None), ("[text][0][x]", None), ("[none][0][x]", None), ("[list][1][x]", None),
    ("[list][0][password]", "******"), ("[a][password]", "******"), ("[list][0][url]", "http://u:******@h/"),
    ("[a][url]", "http://u:******@h/"), ("[list][99999999999][x]", None),
])
def test_values_are_found_at_all_forms_of_paths(steps: str, expected: Any) -> None:
    url = "http://u:s3cret@h/"
    data = {"a": {"b": 1, "0": {"x": 3}, "password": "s3cret", "url": url}, "text": "abc", "none": None,
            "list": [{"x": 2, "password": "s3cret", "url": url}, None]}
    given = world.facts(plugin_data={"d": data["a"], **data})
    path = f"{{plugin_data{steps}}}"
    found = world.rule(actions=[{"op": "set-attribute", "args": ["/extra/found", True]}], conditions=[
        {"op": "is-none", "args": [path]} if expected is None else
        {"op": "eq", "args": {"values": [path, expected, expected]}}])
    world.run(found, given=given)
    assert given.task is not None
    assert given.task.node.extra.get("found") is True


def copies(count: int) -> list[int]:
    """Return items for a loop that would increase a value by a factor of 2 to the power of ``count``."""
    return list(range(count))


@walking("action", [
    {"op": "set-plugin-data", "args": ["x{item}", "{plugin_data}"], "loop": copies(64)},
    {"op": "extend-plugin-data", "args": ["x", "{plugin_data}"], "loop": copies(64)},
    {"op": "set-attribute", "args": ["/extra/x{item}", "{node.extra}"], "loop": copies(64)},
    {"op": "extend-attribute", "args": ["/extra/x", "{node.extra}"], "loop": copies(64)},
    {"op": "set-attribute", "args": ["/extra/x", {str(number): "{inventory}" for number in range(3000)}]},
    {"op": "set-plugin-data", "args": ["x", ["{inventory}"] * 3000]},
    {"op": "set-plugin-data", "args": ["x{item}", "x" * 60000], "loop": copies(100)},
])
def test_what_rules_write_is_bounded(action: dict[str, Any]) -> None:
    facts = world.facts(plugin_data={"a": 1})
    compiled = world.compiled(world.rule(actions=[action]), limits=rules.Limits(written=100_000))
    with pytest.raises(RuleFailed, match="the rules write more than 100000 characters for this node"):
        rules.evaluate(compiled, facts)
    facts.messages.clear()
    assert world.effects(facts) == {"plugin_data": {"a": 1}}


def test_too_many_messages_are_left_out_and_fail_nothing() -> None:
    facts = world.facts(plugin_data={"a": 1})
    actions = [{"op": "log", "args": ["{item}" + "x" * 60000], "loop": copies(100)},
               {"op": "set-plugin-data", "args": ["b", 2]}]
    rules.evaluate(world.compiled(world.rule(actions=actions), limits=rules.Limits(written=100_000)), facts)
    _, (level, last) = facts.messages
    assert level == "warning" and last.endswith("the rules have too many for this node")
    assert facts.plugin_data == {"a": 1, "b": 2}


def test_the_bound_is_for_all_rules_of_a_phase_together() -> None:
    facts = world.facts()
    many = [
        world.rule(uuid=f"0d2f8a52-70f4-4f3b-8b4e-8f2f7d6f3a{number}",
                   actions=[{"op": "set-plugin-data", "args": [f"x{number}", "x" * 400]}])
        for number in range(10, 13)]
    limits = rules.Limits(written=1000)
    with pytest.raises(RuleFailed, match="3a12 failed at /actions/0: the rules write more than 1000 characters"):
        rules.RuleSet([world.compiled(one, limits=limits) for one in many]).run("main", facts)
    assert set(facts.plugin_data) == {"x10", "x11"}


@walking("action", [
    {"op": "set-plugin-data", "args": ["x", "{plugin_data}"], "loop": copies(200)},
    {"op": "set-attribute", "args": ["/extra/x", "{node.extra}"], "loop": copies(200)},
])
def test_what_rules_write_can_be_stored_however_often_it_is_nested(action: dict[str, Any]) -> None:
    facts = world.facts(plugin_data={"a": 1}, node={"extra": {}})
    with pytest.raises(RuleFailed, match="nested deeper than 100 levels"):
        world.run(world.rule(actions=[action]), given=facts)


@walking("op", ["set-plugin-data", "set-attribute"])
def test_the_deepest_value_at_the_end_of_the_longest_path_can_be_stored(op: str) -> None:
    facts = world.facts()
    deep: Any = 1
    for _ in range(100):
        deep = [deep]
    facts.plugin_data["deep"] = deep
    path = "/extra" + "/a" * 99
    world.run(world.rule(actions=[{"op": op, "args": [path, "{plugin_data[deep]}"]}]), given=facts)
    assert facts.task is not None
    assert orjson.loads(orjson.dumps([facts.plugin_data, facts.task.node.read()]))


def broken(**fields: Any) -> rules.CompiledRule | rules.BrokenRule:
    """Return a stored rule that does not compile."""
    found = rules.compile_stored(rules.Rule.of(world.rule(conditions=[{"op": "nosuch"}], **fields)))
    assert isinstance(found, rules.BrokenRule)
    return found


def test_a_broken_rule_fails_the_nodes_that_it_applies_to_and_no_others() -> None:
    stored = broken(scope="a")
    rule_set = rules.RuleSet([stored, world.compiled(world.rule())])
    assert len(rule_set.run("main", world.facts())) == len(rule_set.run("preprocess", world.facts())) + 1
    for explain in (False, True):
        with pytest.raises(RuleFailed, match="/conditions/0/op: it is no longer valid: there is no such") as caught:
            rule_set.run("main", world.facts(node={"inspection_scope": "a"}), explain=explain)
        assert caught.value.traces == []  # type: ignore[attr-defined]
    mended = rule_set.changed([stored], [world.compiled(world.rule(scope="a"))])
    assert len(mended.run("main", world.facts(node={"inspection_scope": "a"}))) == 2


def test_a_node_that_moves_to_the_scope_of_a_broken_rule_fails() -> None:
    mover = world.rule(actions=[{"op": "set-attribute", "args": ["/inspection_scope", "a"]}])
    with pytest.raises(RuleFailed, match="no longer valid") as caught:
        rules.RuleSet([broken(scope="a"), world.compiled(mover)]).run("main", world.facts())
    assert len(caught.value.traces) == 1  # type: ignore[attr-defined]


def test_a_broken_sensitive_rule_does_not_say_what_it_does() -> None:
    with pytest.raises(RuleFailed, match=r"at /: it is no longer valid$"):
        rules.RuleSet([broken(sensitive=True)]).run("main", world.facts())


@walking("scope", [None, "a"])
def test_a_broken_early_rule_fails_every_machine(scope: str | None) -> None:
    with pytest.raises(RuleFailed):
        rules.RuleSet([broken(phase="early", scope=scope)]).check("early", None)


def limited(key: str, **values: Any) -> dict[str, Any]:
    return world.rule(uuid=f"0d2f8a52-70f4-4f3b-8b4e-8f2f7d6f3a1{key}", max_nodes=2, actions=[
        {"op": "set-attribute", "args": [f"/extra/{key}", 1]}], **values)


@walking("sensitive", [False, True])
@walking("explain", [False, True])
def test_a_spent_rule_does_not_run(explain: bool, sensitive: bool) -> None:
    facts = world.facts()
    spent, other = limited("a", sensitive=sensitive), limited("b")
    facts.spent = lambda: {spent["uuid"]: 5, "another": 2}
    traces = world.run(spent, other, world.rule(), given=facts, explain=explain)
    assert facts.task is not None
    assert facts.task.node.extra == {"old": "x", "list": [1, 2], "b": 1}
    note = "not applied: it has been applied to 5 other nodes, and may not to more"
    expected = [(spent["uuid"], False, True, note), (other["uuid"], True, True, None),
                (world.rule()["uuid"], True, False, None)]
    assert [(trace.uuid, trace.matched, trace.limited, trace.note) for trace in traces] == expected[not explain:]


@walking("explain", [False, True])
def test_it_is_not_asked_which_rules_are_spent_unless_one_could_be(explain: bool) -> None:
    facts = world.facts()

    def spent() -> dict[str, int]:
        raise AssertionError("a query for nothing")

    facts.spent = spent
    never = [{"op": "eq", "args": ["{inventory[hostname]}", "x"]}]
    traces = world.run(limited("a", conditions=never), limited("b", scope="y"), world.rule(), given=facts,
                       explain=explain)
    assert [trace.matched for trace in traces][-1:] == [True]


LAST = {"op": "eq", "args": ["{previous[hostname]}", "rack01"]}
NEVER = {"op": "eq", "args": ["{inventory[hostname]}", "x"]}


def asked(*many: dict[str, Any], error: Exception | None = None, **options: Any) -> tuple[int, list[rules.Trace]]:
    """Run rules; return how often the previous inventory was read, and the traces."""
    given, count = world.facts(), itertools.count()

    def read() -> dict[str, Any]:
        next(count)
        if error is not None:
            raise error
        return {"hostname": "rack01", "bmc_password": "s3cret"}

    assert given.task is not None
    given.task.begin_inspection((), read)
    traces = world.run(*many, given=given, **options)
    return next(count), traces


def test_the_previous_inventory_is_read_once_and_only_for_rules_that_may_match() -> None:
    reads = world.rule(conditions=[LAST])
    assert asked(world.rule(), world.rule(phase="preprocess", conditions=[LAST])) == (0, asked(world.rule())[1])
    assert asked(world.rule(conditions=[NEVER, LAST]), world.rule(scope="a", conditions=[LAST]))[0] == 0
    assert asked(reads, reads, world.rule(sensitive=True, conditions=[LAST]))[0] == 1
    assert asked(world.rule(actions=[{"op": "log", "args": ["{item}"], "loop": "{previous}"}]))[0] == 1
    assert asked(world.rule(), explain=True)[0] == 0
    count, (trace,) = asked(reads, explain=True)
    assert (count, trace.matched) == (1, True)


def test_it_is_read_once_a_changed_set_has_rules_that_need_it() -> None:
    reads, other = world.compiled(world.rule(conditions=[LAST])), world.compiled(world.rule())
    for rule_set, expected in ((rules.RuleSet([other]).changed([], [reads]).tidied(), 1),
                               (rules.RuleSet([other, reads]).changed([reads], []), 0)):
        given, found = world.facts(), []
        assert given.task is not None
        given.task.begin_inspection((), lambda found=found: found.append(1))  # type: ignore[misc]
        rule_set.run("main", given)
        assert len(found) == expected


def test_an_error_while_it_is_read_is_not_one_of_a_rule() -> None:
    with pytest.raises(ConnectionError):
        asked(world.rule(conditions=[LAST]), error=ConnectionError("no database"))


def test_its_secrets_are_known_to_explanations() -> None:
    trace, = asked(world.rule(actions=[{"op": "set-attribute", "args": ["/extra/x", "{previous[bmc_password]}"]}]),
                   explain=True, mask_secrets="never")[1]
    assert trace.changes == {"node": [{"op": "add", "path": "/extra/x", "value": "******"}]}


@walking("explain", [False, True])
def test_a_task_that_rules_have_changed_can_be_copied(explain: bool) -> None:
    """Legacy rules copy it for the hooks that they need."""
    facts = world.facts()
    world.run({"actions": [{"op": "set-attribute", "args": ["/extra/a", 1]}]}, given=facts, explain=explain)
    task = facts.task
    assert task is not None
    copied = task.copy()
    copied.node.write("/extra/a", 2)
    assert (task.node.extra["a"], copied.node.extra["a"]) == (1, 2)
