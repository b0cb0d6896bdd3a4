"""Trials with and without traces show the same, and each of them begins with the same machine."""

from __future__ import annotations

from typing import Any

from ironic_rules import rules
from ironic_rules.inspection import trial_machines, trials
from ironic_rules.inspection.hooks.base import InspectionHook
from ironic_rules.inspection.pipeline import Pipeline
from ironic_rules.inspection.trials import Result, RulesToTry, TrialSetting
from ironic_rules.models.inventories import InspectionData
from ironic_rules.models.task import Task
from tests.unit.rules import world
from tests.walking import walking

SETS = {"op": "set-attribute", "args": ["/extra/a", "{inventory[hostname]}"]}
CALLS = {"op": "api-call", "args": {"url": "http://cmdb.example.org/x"}}
MACHINE = trial_machines.imagined_machine(
    {"driver": "fake-hardware", "inspect_interface": "agent", "extra": {"kept": [1]}})


def tried(*many: dict[str, Any], traces: bool, **options: Any) -> Result:
    rule_set = rules.RuleSet(map(world.compiled, many), http_get=world.WEB.get)
    return trials.try_rules(TrialSetting(Pipeline(options.pop("hooks", ()))), MACHINE,
                            InspectionData({"hostname": "x"}, {}), RulesToTry(rule_set), traces=traces, **options)


@walking("actions", [[SETS], [SETS, CALLS], [CALLS, {"op": "fail", "args": ["no"]}],
                                     [{"op": "log", "args": ["x"]}]])
def test_a_trial_shows_the_same_with_traces_and_without(actions: list[Any]) -> None:
    with_traces, without = (tried({"actions": actions}, traces=traces) for traces in (True, False))

    assert with_traces.shown.pop("steps")
    del without.shown["steps"]
    assert without.shown == with_traces.shown
    assert bool(without.shown["would"]) is (CALLS in actions)
    assert (without.outcome, without.is_changed) == (with_traces.outcome, with_traces.is_changed)


def test_a_trial_leaves_the_machine_as_it_was() -> None:
    class Writes(InspectionHook):
        def __call__(self, task: Task, inventory: dict[str, Any], plugin_data: dict[str, Any]) -> None:
            task.node.extra["kept"].append(2)

    first, second = (tried(traces=True, hooks=[("writes", Writes())]) for _ in range(2))

    appended = {"op": "add", "path": "/extra/kept/-", "value": 2}
    assert first.shown["node"] == second.shown["node"] == {"patch": [appended]}
