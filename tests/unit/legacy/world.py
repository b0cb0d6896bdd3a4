"""A small world for legacy rules: nodes as drafts, and functions to inspect them several times."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ironic_rules import legacy
from ironic_rules.legacy import LegacyOutcome, LegacyRuleSet, Plugins
from ironic_rules.legacy.plugins import NONE
from ironic_rules.models.draft import NodeDraft, PortDraft
from ironic_rules.models.fields import Type
from ironic_rules.models.nodes import NODE
from ironic_rules.models.rules import LegacyRule, OwnedValue
from ironic_rules.models.task import Task

VECTORS = Path(__file__).parents[2] / "vectors" / "legacy"
PORT_UUID = "6a1f5b9e-0d5c-4a0e-9f59-0c1c39a6f0d1"
NODE_UUID = "1be26c0b-03f2-4d2e-ae87-c02d7f33c123"
BASE: dict[str, Any] = {
    **{name: None if entry.type is Type.TIME else entry.empty() for name, entry in NODE.items()},
    "id": 7, "uuid": NODE_UUID, "name": "node-7",
    "driver": "ipmi", "inspect_interface": "agent", "provision_state": "inspecting",
}


def rule(conditions: Sequence[Mapping[str, Any]] = (), actions: Sequence[Mapping[str, Any]] = (), *, number: int = 1,
         plugins: Plugins = NONE, **said: Any) -> LegacyRule:
    """Return a rule as it is stored, from what a user writes."""
    body = {"conditions": list(conditions), "actions": list(actions), **said}
    made = legacy.parse(body, plugins=plugins)
    values = {**made.said(), "uuid": made.uuid or f"00000000-0000-4000-8000-{number:012}", "position": number}
    return LegacyRule.of(values)


def rule_set(rules: Iterable[Mapping[str, Any]], *, plugins: Plugins = NONE) -> LegacyRuleSet:
    """Return the set of rules that a user writes."""
    return LegacyRuleSet(
        legacy.compile_rule(rule(**said, number=number, plugins=plugins), plugins=plugins)
        for number, said in enumerate(rules, 1))


class Machine:
    """A node that is stored, with what rules own on it.

    :param node: fields that differ from those of an empty node; ``traits`` too
    """

    def __init__(self, node: Mapping[str, Any] | None = None) -> None:
        said = copy.deepcopy(dict(node or {}))
        self.traits: list[str] = said.pop("traits", [])
        self.node = {**copy.deepcopy(BASE), **said}
        self.ports: list[dict[str, Any]] = [{
            "id": 1, "uuid": PORT_UUID, "node_id": 7, "address": "52:54:00:00:00:01", "extra": {},
            "local_link_connection": {}, "internal_info": {}, "physical_network": None, "pxe_enabled": True,
            "is_smartnic": False, "name": None}]
        self.owned: tuple[OwnedValue, ...] = ()
        #: whether the last inspection changed anything that is stored
        self.is_changed = False

    def task(self) -> Task:
        """Return the drafts of an inspection."""
        return Task(NodeDraft(copy.deepcopy(self.node), self.traits),
                    [PortDraft(copy.deepcopy(port)) for port in self.ports])

    def inspect(self, rules: LegacyRuleSet, data: Mapping[str, Any] | None = None, cleanup: str = "own", *,
                hooks: Mapping[str, Any] | None = None, explain: bool = False) -> LegacyOutcome:
        """Inspect the node and store what has changed, unless the inspection fails.

        :param hooks: what hooks write: values by path
        """
        task = self.task()
        for path, value in (hooks or {}).items():
            task.node.write(path, value)
        outcome = rules.run(task, lambda: data or {}, self.owned, cleanup, explain=explain)
        if outcome.failure is not None:
            self.is_changed = False
            return outcome
        changes, traits, ports = task.node.changes(), task.node.trait_changes(), task.port_changes()
        self.is_changed = bool(changes or traits is not None or ports or outcome.owned != self.owned)
        self.node.update(copy.deepcopy(changes))
        self.traits = self.traits if traits is None else traits
        for port in self.ports:
            port.update(ports.updated.get(port["id"], {}))
        self.owned = outcome.owned
        return outcome

    def state(self) -> dict[str, Any]:
        """Return all that rules can change."""
        return copy.deepcopy({**self.node, "traits": sorted(self.traits), "ports": self.ports})
