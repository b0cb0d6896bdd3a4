"""The comparison of a legacy rule and its inspection rule: the result of each on a node with the same data."""

from __future__ import annotations

from collections.abc import Sequence

from ironic_rules import legacy
from ironic_rules.inspection import trial_machines, trials
from ironic_rules.inspection.hooks import loader
from ironic_rules.inspection.pipeline import Pipeline
from ironic_rules.inspection.trials import Result, RulesToTry, TrialSetting
from ironic_rules.models import documents, secrets
from ironic_rules.models.documents import JSONObject, same
from ironic_rules.models.inventories import InspectionData
from ironic_rules.models.rules import LegacyRule
from ironic_rules.rules import Rule, RuleSet
from ironic_rules.rules import compile as compile_rule
from ironic_rules.rules.rule_fields import from_wire

_UUID = "00000000-0000-4000-8000-000000000001"
_EMPTY = trial_machines.imagined_machine({"uuid": _UUID, "driver": "fake-hardware", "inspect_interface": "agent"})


class NotComparable(Exception):
    """The rules cannot be run on the data; the text says why."""


def report_of(body: object) -> InspectionData:
    """Return the data of a machine.

    :param body: what a ramdisk sends to ``/v1/continue_inspection``, or what ``openstack baremetal node inventory
        save`` and ``openstack baremetal introspection data save`` write
    :raises NotComparable: it has no inventory
    """
    if not isinstance(body, dict) or not isinstance(body.get("inventory"), dict):
        raise NotComparable("it has no inventory")
    rest = {name: value for name, value in body.items() if name != "inventory"}
    stored = rest.get("plugin_data")
    plugin_data = stored if rest.keys() == {"plugin_data"} and isinstance(stored, dict) else rest
    return InspectionData(body["inventory"], plugin_data)


class ComparedRules:
    """A legacy rule and its inspection rule, compiled once for all machines.

    :param rule: a valid legacy rule
    :param new: its inspection rule, as a client sends it
    """

    def __init__(self, rule: LegacyRule, new: JSONObject) -> None:
        old_rule = legacy.compile_rule(LegacyRule.of({**rule.said(), "uuid": rule.uuid or _UUID}))
        new_rule = compile_rule(Rule.of({**from_wire(new), "uuid": new.get("uuid") or _UUID}))
        self.old = RulesToTry(RuleSet(), legacy.LegacyRuleSet([old_rule]))
        self.new = RulesToTry(RuleSet([new_rule]))


class Comparison:
    """Runs rules on an empty node after hooks that process its report. Nothing is stored.

    :param hooks: names of the hooks that the service has enabled, in order
    :raises ConfigurationError: there is no such hook, or one depends on another that is not there
    """

    def __init__(self, hooks: Sequence[str]) -> None:
        self._setting = TrialSetting(Pipeline(loader.load(hooks)))

    def check(self, report: InspectionData) -> None:
        """Check that rules can be compared with the data of a machine.

        :raises NotComparable: the hooks fail for it
        """
        if error := self._left(RulesToTry(RuleSet()), report).error:
            raise NotComparable(f"the inspection fails before any rule: {error}")

    def differences(self, rules: ComparedRules, report: InspectionData) -> list[str]:
        """Return how the node that the inspection rule leaves differs from that of the legacy rule: full sentences."""
        old, new = (self._left(compared, report) for compared in (rules.old, rules.new))
        if old.error and new.error:
            return []
        if old.error:
            return [f"Only the legacy rule fails the inspection: {old.error}"]
        if new.error:
            return [f"Only the inspection rule fails the inspection: {new.error}"]
        before, after = _state(old), _state(new)
        return [f"{place} is {_shown(after, place)} instead of {_shown(before, place)}."
                for place in sorted(before.keys() | after.keys())
                if place not in before or place not in after or not same(before[place], after[place])]

    def _left(self, rules: RulesToTry, report: InspectionData) -> Result:
        return trials.try_rules(self._setting, _EMPTY, report, rules, traces=False)


def _state(result: Result) -> JSONObject:
    """Return all values of the node that differ from those of an empty one, by path; of objects their members."""
    state: JSONObject = {}
    for name, value in result.final["node"].items():
        state.update(_flat((name,), value) if isinstance(value, dict) else {f"/{name}": value})
    return state | ({"/traits": result.final["traits"]} if result.final["traits"] else {})


def _flat(path: tuple[str, ...], value: JSONObject) -> JSONObject:
    return {documents.format_pointer((*path, name)): member for name, member in value.items()}


def _shown(state: JSONObject, place: str) -> str:
    if place not in state:
        return "missing"
    return secrets.MASK if any(map(secrets.is_secret_key, documents.parse_pointer(place))) else repr(state[place])
