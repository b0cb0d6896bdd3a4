"""Plug-ins that were written for ironic-inspector: loaded, checked, called, and what they write is owned."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Iterable
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ironic_rules import legacy
from ironic_rules.exceptions import InvalidRule
from ironic_rules.legacy import plugins as legacy_plugins
from ironic_rules.legacy.plugins import ACTIONS, CONDITIONS, Plugins
from ironic_rules.models.task import Abandoned
from tests.unit.legacy.world import Machine, rule, rule_set
from tests.walking import walking

_SAMPLE = Path(__file__).parents[2] / "plugins" / "sample_legacy" / "sample_legacy_rules.py"


def _sample() -> Any:
    spec = importlib.util.spec_from_file_location("sample_legacy_rules", _SAMPLE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SAMPLE = _sample()
PLUGINS = Plugins({"sample-even": SAMPLE.Even()}, {"sample-rack": SAMPLE.SetRack()})
RULE = {"conditions": [{"field": "cpus", "op": "sample-even"}],
        "actions": [{"action": "sample-rack", "rack": "r-{data[rack]}", "labels": ["{kept}", "b"]}]}


def _with(*, check: Any = None, apply: Any = None, **said: Any) -> Plugins:
    """Return plug-ins named ``it`` with these methods."""
    return Plugins({"it": SimpleNamespace(check=check, **said)}, {"it": SimpleNamespace(apply=apply, **said)})


class TestSample:
    def test_all_that_it_writes_is_taken_back(self) -> None:
        machine = Machine({"extra": {"labels": ["operator"]}, "properties": {"capabilities": "a:1,spare:true,z:9"}})
        before = machine.state()
        rules = rule_set([RULE], plugins=PLUGINS)
        machine.inspect(rules, {"cpus": 16, "rack": 7})

        assert machine.node["extra"] == {"rack": "r-7", "labels": ["operator", "{kept}", "b"]}
        assert machine.node["properties"] == {"rack": "r-7", "capabilities": "a:1,z:9,rack:r-7"}
        assert machine.traits == ["CUSTOM_RACKED"]
        assert machine.ports[0]["extra"] == {"rack": "r-7"}

        machine.inspect(rules, {"cpus": 16, "rack": 7})
        assert not machine.is_changed

        machine.inspect(rules, {"cpus": 15, "rack": 7})
        assert machine.state() == before

    def test_cleanup_is_called_if_the_rule_does_not_match_and_is_taken_back(self) -> None:
        machine, rules = Machine(), rule_set([RULE], plugins=PLUGINS)
        machine.inspect(rules, {"cpus": 15})
        assert machine.node["properties"] == {"capabilities": "spare:true"}
        machine.inspect(rules, {"cpus": 15})
        assert not machine.is_changed
        machine.inspect(rules, {"cpus": 16, "rack": 1}, cleanup="own")
        assert machine.node["properties"]["capabilities"] == "rack:r-1"

    def test_in_a_dry_run_its_actions_are_named_and_do_not_run(self) -> None:
        machine = Machine()
        for cpus, matched in ((16, True), (15, False)):
            task = machine.task()
            trace, = rule_set([RULE], plugins=PLUGINS).run(
                task, lambda cpus=cpus: {"cpus": cpus, "rack": 7}, explain=True, dry_run=True).traces
            assert not task.node.changes()
            action, = trace.actions
            assert (trace.matched, action.op, action.times) == (matched, "sample-rack", 0)
            assert action.notes == ("sample-rack of another package is not run",)
            assert [(each.name, each.value) for each in action.runs[0]] == [
                ("rack", "r-7"), ("labels", ["{kept}", "b"])]
            assert [each.value for each in trace.conditions[0].arguments] == [cpus]
            assert trace.conditions[0].why == ("true" if matched else "not true")

    def test_cleanup_is_off(self) -> None:
        machine = Machine()
        machine.inspect(rule_set([RULE], plugins=PLUGINS), {"cpus": 15}, cleanup="off")
        assert machine.node["properties"] == {}

    @walking("condition, where", [
        ({"field": "a", "op": "sample-even", "value": 0}, ["/conditions/0"]),
        ({"field": "a", "op": "sample-even", "other": 0}, ["/conditions/0/other"]),
        ({"field": "a", "op": "sample-evne"}, ["/conditions/0/op"])])
    def test_parameters_are_checked(self, condition: dict[str, Any], where: list[str]) -> None:
        with pytest.raises(InvalidRule) as caught:
            rule([condition], [{"action": "sample-rack", "rack": 1}], plugins=PLUGINS)
        assert [problem.where for problem in caught.value.problems] == where

    def test_a_required_parameter_is_missing(self) -> None:
        with pytest.raises(InvalidRule, match="/actions/0/rack: is required"):
            rule([], [{"action": "sample-rack"}], plugins=PLUGINS)


class TestDefaults:
    def test_a_condition_needs_a_value(self) -> None:
        plugins = _with(check=lambda node_info, field, params: True)
        for condition in ({}, {"value": ""}, {"value": None}, {"value": 1, "more": 1}):
            with pytest.raises(InvalidRule):
                rule([{"field": "a", "op": "it", **condition}], [{"action": "fail", "message": "m"}], plugins=plugins)

    def test_an_action_has_no_parameters(self) -> None:
        plugins = _with(apply=lambda node_info, params: None)
        rule([], [{"action": "it"}], plugins=plugins)
        with pytest.raises(InvalidRule, match="/actions/0/x: unknown parameter"):
            rule([], [{"action": "it", "x": 1}], plugins=plugins)

    def test_params_are_all_keys_but_the_required_ones(self) -> None:
        seen: list[Any] = []
        plugins = _with(check=lambda node_info, field, params: bool(seen.append((field, params))),
                        REQUIRED_PARAMS={"value"}, OPTIONAL_PARAMS={"x"})
        condition = {"field": "l[*]", "op": "it", "value": 1, "x": [2], "multiple": "all", "invert": True}
        Machine().inspect(rule_set([{"conditions": [condition], "actions": [{"action": "fail", "message": "m"}]}],
                                   plugins=plugins), {"l": [1, 2]})
        assert seen == [(1, {"value": 1, "x": [2]}), (2, {"value": 1, "x": [2]})]

    @walking("allowed, seen", [(True, [None]), (False, [])])
    def test_a_missing_field(self, allowed: bool, seen: list[Any]) -> None:
        found: list[Any] = []
        plugins = _with(check=lambda node_info, field, params: bool(found.append(field)), ALLOW_NONE=allowed)
        Machine().inspect(rule_set([{"conditions": [{"field": "no", "op": "it", "value": 1}],
                                     "actions": [{"action": "fail", "message": "m"}]}], plugins=plugins))
        assert found == seen


class TestBadOnes:
    @walking("invert", [True, False])
    @walking("error", [ValueError("x"), SystemExit(1), KeyError("y")])
    def test_a_condition_that_raises_is_false_and_so_is_its_inverse(self, error: BaseException, invert: bool) -> None:
        def check(node_info: Any, field: Any, params: Any) -> bool:
            raise error

        machine = Machine()
        rules = rule_set([{"conditions": [{"field": "a", "op": "it", "value": 1, "invert": invert}],
                           "actions": [{"action": "fail", "message": "m"}]}], plugins=_with(check=check))
        outcome = machine.inspect(rules, {"a": 1}, explain=True)
        assert outcome.failure is None
        assert outcome.traces[0].conditions[0].note == f"the plug-in failed: {type(error).__name__}"

    @pytest.mark.parametrize("apply", [
        pytest.param(lambda node_info, params: 1 / 0, id="raises"),
        pytest.param(lambda node_info, params: node_info.patch([{"op": "add", "path": "/extra/x", "value": math.nan}]),
                     id="writes NaN"),
        pytest.param(lambda node_info, params: node_info.patch([{"op": "add", "path": "/uuid", "value": "x"}]),
                     id="writes a protected field"),
        pytest.param(lambda node_info, params: node_info.patch([{"op": "move", "path": "/extra/x"}]), id="moves"),
        pytest.param(lambda node_info, params: node_info.patch_port("nope", []), id="has no such port"),
        pytest.param(lambda node_info, params: node_info.update_properties(x={1, 2}), id="writes a set")])
    def test_an_action_that_fails_changes_nothing(self, apply: Any) -> None:
        machine = Machine({"extra": {"a": 1}})
        before = machine.state()
        rules = rule_set([{"actions": [{"action": "set-attribute", "path": "/extra/b", "value": 1}]},
                          {"actions": [{"action": "it"}]}], plugins=_with(apply=apply))
        outcome = machine.inspect(rules)
        assert outcome.failure is not None
        assert "/actions/0" in str(outcome.failure.error)
        assert machine.state() == before
        assert outcome.owned == ()

    def test_changes_of_params_and_data_are_their_own(self) -> None:
        def apply(node_info: Any, params: dict[str, Any]) -> None:
            params["list"].append(1)
            node_info.node().extra["changed"] = True
            node_info.patch([{"op": "add", "path": "/extra/n", "value": len(params["list"])}])

        machine = Machine()
        rules = rule_set([{"actions": [{"action": "it", "list": []}]}],
                         plugins=_with(apply=apply, OPTIONAL_PARAMS={"list"}))
        for _ in range(2):
            machine.inspect(rules)
            assert machine.node["extra"] == {"n": 1}

    def test_a_condition_does_not_write(self) -> None:
        def check(node_info: Any, field: Any, params: Any) -> bool:
            node_info.add_trait("CUSTOM_X")
            return True

        machine = Machine()
        machine.inspect(rule_set([{"conditions": [{"field": "a", "op": "it", "value": 1}],
                                   "actions": [{"action": "fail", "message": "m"}]}], plugins=_with(check=check)),
                        {"a": 1})
        assert machine.traits == []

    def test_the_watchdog_knows_what_runs_and_abandons_it(self) -> None:
        seen: list[Any] = []

        def check(node_info: Any, field: Any, params: Any) -> bool:
            doing = task.watch.doing
            assert doing is not None
            seen.append(doing[0])
            return bool(field)

        def apply(node_info: Any, params: Any) -> None:
            doing = task.watch.doing
            assert doing is not None
            seen.append(doing[0])
            task.watch.abandon(doing)

        task = Machine().task()
        rules = rule_set([{"conditions": [{"field": "a", "op": "it", "value": 1}], "actions": [{"action": "it"}]}],
                         plugins=Plugins({"it": SimpleNamespace(check=check)}, {"it": SimpleNamespace(apply=apply)}))
        with pytest.raises(Abandoned):
            rules.run(task, lambda: {"a": 1})
        assert seen == ["action", "action"]


class TestLoading:
    @staticmethod
    def _load(conditions: Iterable[tuple[str, str]] = (), actions: Iterable[tuple[str, str]] = ()) -> Plugins:
        given = {CONDITIONS: list(conditions), ACTIONS: list(actions)}
        return legacy_plugins.load(lambda group: [EntryPoint(name, value, group) for name, value in given[group]])

    def test_those_of_ironic_inspector_are_ours_silently(self) -> None:
        found = self._load([("eq", "ironic_inspector.plugins.rules:EqCondition")],
                           [("fail", "ironic_inspector.plugins.rules:FailAction"),
                            ("example", "ironic_inspector.plugins.example:Example")])
        assert found == Plugins()

    def test_a_taken_name_is_a_warning(self) -> None:
        found = self._load([("eq", "nowhere:Eq"), ("a", f"{__name__}:Good"), ("a", f"{__name__}:Other")])
        assert list(found.conditions) == ["a"]
        assert len(found.warnings) == 2
        assert not found.broken

    def test_one_that_cannot_be_loaded_disables_the_rules_that_use_it(self) -> None:
        found = self._load([("gone", "no_such_module:It"), ("empty", f"{__name__}:Empty")])
        assert found.broken.keys() == {(CONDITIONS, "gone"), (CONDITIONS, "empty")}
        machine = Machine()
        good = {"actions": [{"action": "set-attribute", "path": "/extra/b", "value": 1}]}
        loaded = Plugins({"gone": SimpleNamespace(check=lambda node_info, field, params: True)})
        stored = [rule([{"field": "a", "op": "gone", "value": 1}],
                       [{"action": "set-attribute", "path": "/extra/a", "value": 1}], number=1, plugins=loaded),
                  rule(**good, number=2)]
        everything = legacy.LegacyRuleSet(legacy.compile_stored(each, plugins=loaded) for each in stored)
        machine.inspect(everything, {"a": 1})
        assert machine.node["extra"] == {"a": 1, "b": 1}

        rules = legacy.LegacyRuleSet(legacy.compile_stored(each, plugins=found) for each in stored)
        outcome = machine.inspect(rules, {"a": 1}, explain=True)

        # What it has given stays: it is not known whether it would match.
        assert machine.node["extra"] == {"a": 1, "b": 1}
        assert not machine.is_changed
        assert [trace.matched for trace in outcome.traces] == [False, True]
        assert "no_such_module" in (outcome.traces[0].note or "")
        with pytest.raises(InvalidRule, match="the plug-in cannot be loaded"):
            rule([{"field": "a", "op": "gone", "value": 1}], good["actions"], plugins=found)


class Good:
    """A condition."""

    def check(self, node_info: Any, field: Any, params: Any) -> bool:
        return True


class Other(Good):
    """Another one."""


class Empty:
    """Not a condition."""
