"""What a legacy rule and its inspection rule do to a node with the same data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ironic_rules import legacy
from ironic_rules.exceptions import IronicRulesError, RuleFailed
from ironic_rules.inspection import legacy_data
from ironic_rules.inspection.hooks import loader
from ironic_rules.inspection.pipeline import Pipeline
from ironic_rules.models import pointer, secrets
from ironic_rules.models.draft import NodeDraft
from ironic_rules.models.fields import Type
from ironic_rules.models.json_values import JSONObject, clone, same
from ironic_rules.models.legacy_rules import LegacyRule
from ironic_rules.models.nodes import NODE
from ironic_rules.models.task import Task
from ironic_rules.rules import Facts, Rule, RuleSet
from ironic_rules.rules import compile as compile_rule
from ironic_rules.rules.wire import from_wire

_UUID = "00000000-0000-4000-8000-000000000001"
_NODE: Mapping[str, Any] = {
    **{name: None if entry.type is Type.TIME else entry.empty() for name, entry in NODE.items()},
    "id": 1, "uuid": _UUID, "driver": "fake-hardware", "inspect_interface": "agent",
    "provision_state": "inspecting",
}


@dataclass(frozen=True, slots=True)
class Report:
    """The data of a machine.

    :ivar inventory: as the ramdisk has sent it; ``plugin_data``: what it has sent besides
    """

    inventory: JSONObject
    plugin_data: JSONObject


class NotComparable(Exception):
    """The rules cannot be run on the data; the text says why."""


def report_of(body: Any) -> Report:
    """Return the data of a machine.

    :param body: what a ramdisk sends to ``/v1/continue_inspection``, or what ``openstack baremetal node inventory
        save`` and ``openstack baremetal introspection data save`` write
    :raises NotComparable: it has no inventory
    """
    if not isinstance(body, dict) or not isinstance(body.get("inventory"), dict):
        raise NotComparable("it has no inventory")
    rest = {name: value for name, value in body.items() if name != "inventory"}
    stored = rest.get("plugin_data")
    return Report(body["inventory"], stored if rest.keys() == {"plugin_data"} and isinstance(stored, dict) else rest)


@dataclass(frozen=True, slots=True)
class Processed:
    """A report after the hooks: what both kinds of rules read, and the node so far."""

    task: Task
    inventory: JSONObject
    plugin_data: JSONObject
    data: JSONObject


class Hooks:
    """Hooks that process reports for an empty node. Nothing is stored.

    :param hooks: names of the hooks that the service has enabled, in order
    :raises ConfigurationError: there is no such hook, or one depends on another that is not there
    """

    def __init__(self, hooks: Sequence[str]) -> None:
        self._pipeline = Pipeline(loader.load(hooks))

    def process(self, report: Report) -> Processed:
        """Return a report after the hooks.

        :raises NotComparable: the hooks fail for the report
        """
        task = Task(NodeDraft(dict(_NODE)))
        task.begin_inspection((), lambda: None)
        try:
            plugin_data = self._pipeline.run(task, report.inventory, report.plugin_data).plugin_data
        except IronicRulesError as exc:
            raise NotComparable(f"the inspection fails before any rule: {exc}") from exc
        return Processed(task, report.inventory, plugin_data,
                         legacy_data.processed(task, report.inventory, plugin_data))


def differences(rule: LegacyRule, new: JSONObject, machine: Processed) -> list[str]:
    """Return how the node that the inspection rule leaves differs from that of the legacy rule: full sentences.

    :param rule: a valid legacy rule
    :param new: its inspection rule, as a client sends it
    """
    before, after = _of_legacy(rule, machine), _of_new(new, machine)
    if isinstance(before, str) and isinstance(after, str):
        return []
    if isinstance(before, str):
        return [f"Only the legacy rule fails the inspection: {before}"]
    if isinstance(after, str):
        return [f"Only the inspection rule fails the inspection: {after}"]
    return [f"{place} is {_shown(after, place)} instead of {_shown(before, place)}."
            for place in sorted(before.keys() | after.keys())
            if place not in before or place not in after or not same(before[place], after[place])]


def _of_legacy(rule: LegacyRule, machine: Processed) -> dict[str, Any] | str:
    task = machine.task.copy()
    compiled = legacy.compile_rule(LegacyRule.of({**rule.said(), "uuid": rule.uuid or _UUID}))
    outcome = legacy.LegacyRuleSet([compiled]).run(task, lambda: machine.data)
    return _state(task) if outcome.failure is None else str(outcome.failure.error)


def _of_new(new: JSONObject, machine: Processed) -> dict[str, Any] | str:
    task = machine.task.copy()
    compiled = compile_rule(Rule.of({**from_wire(new), "uuid": new.get("uuid") or _UUID}))
    try:
        RuleSet([compiled]).run("main", Facts(task, machine.inventory, clone(machine.plugin_data)))
    except RuleFailed as exc:
        return str(exc)
    return _state(task)


def _state(task: Task) -> dict[str, Any]:
    """Return all values of the node that differ from those of an empty one, by path; of objects their members."""
    found: dict[str, Any] = {}
    for name, value in task.node.changes().items():
        found.update(_flat((name,), value) if isinstance(value, dict) else {f"/{name}": value})
    traits = task.node.trait_changes()
    return found if traits is None else {**found, "/traits": sorted(traits)}


def _flat(path: tuple[str, ...], value: dict[str, Any]) -> dict[str, Any]:
    return {pointer.format((*path, name)): member for name, member in value.items()}


def _shown(state: dict[str, Any], place: str) -> str:
    if place not in state:
        return "missing"
    return secrets.MASK if any(map(secrets.is_secret_key, pointer.parse(place))) else repr(state[place])
