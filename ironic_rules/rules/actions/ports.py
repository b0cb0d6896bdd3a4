"""Actions on the ports of the node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ironic_rules.models.draft import PortDraft
from ironic_rules.models.task import Task
from ironic_rules.rules.actions import fields
from ironic_rules.rules.actions.registry import ACTIONS
from ironic_rules.rules.base import ActiveRule, InspectionRuleActionBase
from ironic_rules.rules.errors import ActionError
from ironic_rules.rules.kinds import Flag, PortDelPath, PortId, PortPath


@ACTIONS.add("set-port-attribute")
class SetPortAttribute(InspectionRuleActionBase):
    """Set ``path`` of a port to ``value``.

    :param port_id: the port's UUID or MAC address, as any part of a report has it; the node must have that port
    :param path: JSON pointer below the port, e.g. ``/extra/switch``
    :param value: any value that the field accepts

    .. rule:: {op: set-port-attribute, args: {port_id: "{inventory[boot][pxe_interface]}", path: /extra/p, value: true}}
    """

    formatted_params = ["port_id", "path", "value"]
    touches = frozenset({"ports"})

    def __call__(self, task: Task, rule: ActiveRule, port_id: PortId, path: PortPath, value: Any) -> None:
        _port(task, port_id).write(path, value)

    def problems(self, literals: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
        return fields.field_problem(PortDraft, literals)


@ACTIONS.add("extend-port-attribute")
class ExtendPortAttribute(InspectionRuleActionBase):
    """Append to a list of a port, which is created if missing.

    :param port_id: the port's UUID or MAC address, as any part of a report has it; the node must have that port
    :param path: JSON pointer below the port, e.g. ``/extra/vlans``
    :param value: the new element
    :param unique: do nothing if the list already has the value

    .. rule:: {op: extend-port-attribute, args: {port_id: "{inventory[boot][pxe_interface]}", path: /extra/v, value: 7}}
    """

    formatted_params = ["port_id", "path", "value", "unique"]
    touches = frozenset({"ports"})

    def __call__(self, task: Task, rule: ActiveRule, port_id: PortId, path: PortPath, value: Any,
                 unique: Flag = False) -> None:
        _port(task, port_id).extend(path, value, unique)

    def problems(self, literals: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
        return fields.list_problem(literals)


@ACTIONS.add("del-port-attribute")
class DelPortAttribute(InspectionRuleActionBase):
    """Unset ``path`` of a port; a field gets its default. A missing key below a field is not an error.

    :param port_id: the port's UUID or MAC address, as any part of a report has it; the node must have that port
    :param path: JSON pointer below the port, e.g. ``/extra/old``

    .. rule:: {op: del-port-attribute, args: {port_id: "{inventory[boot][pxe_interface]}", path: /physical_network}}
    """

    formatted_params = ["port_id", "path"]
    touches = frozenset({"ports"})

    def __call__(self, task: Task, rule: ActiveRule, port_id: PortId, path: PortDelPath) -> None:
        _port(task, port_id).delete(path)


def _port(task: Task, port_id: str) -> PortDraft:
    port = task.find_port(port_id)
    if port is None:
        raise ActionError("the node has no port with this MAC address or UUID")
    return port
