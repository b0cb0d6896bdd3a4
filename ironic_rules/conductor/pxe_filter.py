"""Notifying the PXE filters, after the commit, which addresses are to be allowed or denied."""

from __future__ import annotations

from collections.abc import Collection

from oslo_log import log as logging

from ironic_rules.conductor.conductor import Conductor
from ironic_rules.context import RequestContext
from ironic_rules.db import pxe_filter as records
from ironic_rules.models import addresses as addresses_models
from ironic_rules.models.task import Task

LOG = logging.getLogger(__name__)

_ON_INSPECTION = frozenset(records.STATES)
_ON_RAMDISK = frozenset(records.RAMDISK_STATES)
#: Seconds for which a machine is not started because the filter does not serve it yet.
_PATIENCE_S = 10.0
#: Seconds within which several filters say whether they serve a machine that was waited for too long.
_ANSWERS_S = 0.5


def follow(conductor: Conductor, context: RequestContext, task: Task, before: str, after: str) -> None:
    """Notify the filters when a change of the provision state allows or denies the addresses of the task's ports.

    Nothing is sent if neither the new state nor changed ports make a difference.
    """
    was, is_now = before in _ON_INSPECTION, after in _ON_INSPECTION
    if not (was or is_now):
        if _is_other_procedure(conductor, before) != _is_other_procedure(conductor, after):
            conductor.pxe_filter.update_pxe_filters(context)
        return
    addresses = sorted({port.address for port in task.ports})
    if is_now and _is_served(conductor, task):
        if not was or _ports_changed(task):
            conductor.pxe_filter.update_pxe_filters(context, allow=addresses)
    elif was and not is_now:
        conductor.pxe_filter.update_pxe_filters(context, deny=addresses)


def await_served(conductor: Conductor, context: RequestContext, task: Task) -> None:
    """Wait until a filter serves the machine, which is about to boot its ramdisk.

    The filter may not know ports that the task has just created. Firmware gives up DHCP after half a minute.
    """
    state = task.node.provision_state
    inspects = state in _ON_INSPECTION and _is_served(conductor, task)
    if not (inspects or _is_other_procedure(conductor, state)):
        return
    addresses = [port.address for port in task.ports if addresses_models.is_mac(port.address)]
    if inspects and _ports_changed(task):
        conductor.pxe_filter.update_pxe_filters(context, allow=addresses)
    if missing := conductor.pxe_filter.await_served(context, addresses, _PATIENCE_S):
        LOG.warning("Node %s boots its ramdisk, but after %g seconds the DHCP server does not serve %s: see the lines "
                    "of the PXE filter, and ironic-pxe-filter --status",
                    task.node.uuid, _PATIENCE_S, ", ".join(missing))


def not_served(conductor: Conductor, task: Task) -> list[str] | None:
    """Return the addresses of a waiting node that no filter serves; None if none answers, or is to serve the node."""
    state = task.node.provision_state
    if not ((state in _ON_INSPECTION and _is_served(conductor, task)) or _is_other_procedure(conductor, state)):
        return None
    addresses = [port.address for port in task.ports if addresses_models.is_mac(port.address)]
    return conductor.pxe_filter.await_served(task.context, addresses, _ANSWERS_S)


def _is_other_procedure(conductor: Conductor, state: str) -> bool:
    return bool(conductor.conf.pxe_filter.allow_all_ramdisks) and state in _ON_RAMDISK


def look(conductor: Conductor, context: RequestContext) -> None:
    """Tell the filters to read the database: inspection of a node has begun whose ports the caller does not know."""
    conductor.pxe_filter.update_pxe_filters(context)


def _is_served(conductor: Conductor, task: Task) -> bool:
    supported: Collection[str] = conductor.conf.pxe_filter.supported_inspect_interfaces
    return task.node.inspect_interface in supported


def _ports_changed(task: Task) -> bool:
    changes = task.port_changes()
    return bool(changes.created or changes.deleted or any("address" in port for port in changes.updated.values()))
