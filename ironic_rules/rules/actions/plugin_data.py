"""Actions on plugin data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ironic_rules.models.task import Task
from ironic_rules.rules import paths
from ironic_rules.rules.actions import fields
from ironic_rules.rules.actions.registry import ACTIONS
from ironic_rules.rules.base import ActiveRule, InspectionRuleActionBase
from ironic_rules.rules.kinds import DataPath, Flag


@ACTIONS.add("set-plugin-data")
class SetPluginData(InspectionRuleActionBase):
    """Set a value in the plugin data.

    :param path: ``a.b`` or ``/a/b``; missing objects in the path are created
    :param value: anything

    .. rule:: {op: set-plugin-data, args: {path: site.rack, value: "{inventory[hostname]}"}}
    """

    formatted_params = ["path", "value"]
    supports_early = True
    touches = frozenset({"plugin_data"})
    data_path = "path"

    def __call__(self, task: Task | None, rule: ActiveRule, path: DataPath, value: Any) -> None:
        paths.write(rule.plugin_data, path, value)

    def call_early(self, rule: ActiveRule, path: str, value: Any) -> None:  # type: ignore[override]
        self(None, rule, path, value)

    def problems(self, literals: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
        return fields.data_problem(literals)


@ACTIONS.add("extend-plugin-data")
class ExtendPluginData(InspectionRuleActionBase):
    """Append to a list in the plugin data, which is created if missing.

    :param path: ``a.b`` or ``/a/b``
    :param value: the new element
    :param unique: do nothing if the list already has the value

    .. rule:: {op: extend-plugin-data, args: {path: site.hosts, value: "{inventory[hostname]}", unique: true}}
    """

    formatted_params = ["path", "value", "unique"]
    supports_early = True
    touches = frozenset({"plugin_data"})
    data_path = "path"

    def __call__(self, task: Task | None, rule: ActiveRule, path: DataPath, value: Any, unique: Flag = False) -> None:
        paths.extend(rule.plugin_data, path, value, unique)

    def call_early(self, rule: ActiveRule, path: str, value: Any,  # type: ignore[override]
                   unique: bool = False) -> None:
        self(None, rule, path, value, unique)

    def problems(self, literals: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
        return fields.data_problem(literals)


@ACTIONS.add("unset-plugin-data")
class UnsetPluginData(InspectionRuleActionBase):
    """Remove a value from the plugin data. A missing one is not an error.

    :param path: ``a.b`` or ``/a/b``

    .. rule:: {op: unset-plugin-data, args: {path: site.rack}}
    """

    formatted_params = ["path"]
    supports_early = True
    touches = frozenset({"plugin_data"})
    data_path = "path"

    def __call__(self, task: Task | None, rule: ActiveRule, path: DataPath) -> None:
        paths.unset(rule.plugin_data, path)

    def call_early(self, rule: ActiveRule, path: str) -> None:  # type: ignore[override]
        self(None, rule, path)
