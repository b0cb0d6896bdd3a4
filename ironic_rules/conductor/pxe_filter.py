"""Notifying the PXE filters, after the commit, which addresses are to be allowed or denied."""

from __future__ import annotations

from collections.abc import Collection

from ironic_rules.conductor.conductor import Conductor
from ironic_rules.context import RequestContext
from ironic_rules.models import states
from ironic_rules.models.task import Task

_ON_INSPECTION = frozenset({states.INSPECTWAIT, states.INSPECTING})


def follow(conductor: Conductor, context: RequestContext, task: Task, before: str, after: str) -> None:
    """Notify the filters when a change of the provision state allows or denies the addresses of the task's ports.

    Nothing is sent if neither the new state nor changed ports make a difference.
    """
    was, is_now = before in _ON_INSPECTION, after in _ON_INSPECTION
    if not (was or is_now):
        return
    addresses = sorted({port.address for port in task.ports})
    if is_now and _is_served(conductor, task):
        if not was or _ports_changed(task):
            conductor.pxe_filter.update_pxe_filters(context, allow=addresses)
    elif was and not is_now:
        conductor.pxe_filter.update_pxe_filters(context, deny=addresses)


def look(conductor: Conductor, context: RequestContext) -> None:
    """Tell the filters to read the database: inspection of a node has begun whose ports the caller does not know."""
    conductor.pxe_filter.update_pxe_filters(context)


def _is_served(conductor: Conductor, task: Task) -> bool:
    supported: Collection[str] = conductor.conf.pxe_filter.supported_inspect_interfaces
    return task.node.inspect_interface in supported


def _ports_changed(task: Task) -> bool:
    changes = task.port_changes()
    return bool(changes.created or changes.deleted or any("address" in port for port in changes.updated.values()))
