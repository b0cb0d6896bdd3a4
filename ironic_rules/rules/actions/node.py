"""Actions on the fields of the node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ironic_rules.models.draft import NodeDraft
from ironic_rules.models.task import Task
from ironic_rules.rules.actions import fields
from ironic_rules.rules.actions.registry import ACTIONS
from ironic_rules.rules.base import ActiveRule, InspectionRuleActionBase
from ironic_rules.rules.kinds import TRAIT, Flag, NodeDelPath, NodePath


@ACTIONS.add("set-attribute")
class SetAttribute(InspectionRuleActionBase):
    """Set ``path`` of the node to ``value``.

    :param path: JSON pointer below the node, e.g. ``/properties/cpu_arch``; missing objects in the path are created
    :param value: any value that the field accepts

    .. rule:: {op: set-attribute, args: {path: /extra/model, value: "{inventory[cpu][model_name]}"}}
    """

    formatted_params = ["path", "value"]
    touches = frozenset({"node"})
    node_path = "path"

    def __call__(self, task: Task, rule: ActiveRule, path: NodePath, value: Any) -> None:
        task.node.write(path, value)

    def problems(self, literals: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
        tokens = fields.tokens_of(literals)
        if tokens[:1] != ("traits",) or len(tokens) == 1:
            return fields.field_problem(NodeDraft, literals)
        if tokens[1:] != ("-",):
            return [("path", "write /traits (a list) or /traits/- (one more)")]
        return _trait_problem(literals)


@ACTIONS.add("extend-attribute")
class ExtendAttribute(InspectionRuleActionBase):
    """Append to a list of the node, which is created if missing.

    :param path: JSON pointer below the node, e.g. ``/extra/disks``
    :param value: the new element
    :param unique: do nothing if the list already has the value

    .. rule:: {op: extend-attribute, args: {path: /extra/hosts, value: "{inventory[hostname]}", unique: true}}
    """

    formatted_params = ["path", "value", "unique"]
    touches = frozenset({"node"})
    node_path = "path"

    def __call__(self, task: Task, rule: ActiveRule, path: NodePath, value: Any, unique: Flag = False) -> None:
        task.node.extend(path, value, unique)

    def problems(self, literals: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
        tokens = fields.tokens_of(literals)
        if tokens[:1] != ("traits",):
            return fields.list_problem(literals)
        return _trait_problem(literals) if len(tokens) == 1 else [("path", "a trait has no parts")]


@ACTIONS.add("del-attribute")
class DelAttribute(InspectionRuleActionBase):
    """Unset ``path`` of the node; a field gets its default. A missing key below a field is not an error.

    :param path: JSON pointer below the node, e.g. ``/extra/old``

    .. rule:: {op: del-attribute, args: {path: /properties/capabilities}}
    """

    formatted_params = ["path"]
    touches = frozenset({"node"})
    node_path = "path"

    def __call__(self, task: Task, rule: ActiveRule, path: NodeDelPath) -> None:
        task.node.delete(path)


def _trait_problem(literals: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    if "value" in literals and (reason := TRAIT.literal_problem(literals["value"])):
        yield "value", reason
