"""The work of a conductor in the transient states that have no module of their own.

A handler gets the task, changes its drafts, and returns the event that ends the state; see
:class:`~ironic_rules.conductor.conductor.StateWork`.
"""

from __future__ import annotations

import sqlalchemy as sa
from oslo_log import log

from ironic_rules.conductor import hardware_cache, state_machine
from ironic_rules.conductor.conductor import Conductor, StateResult
from ironic_rules.db import node_sets
from ironic_rules.exceptions import IronicRulesError
from ironic_rules.hardware import resolver
from ironic_rules.inspection import known_bmcs
from ironic_rules.models import addresses, secrets
from ironic_rules.models.internal_keys import VIFS_WITHOUT_PORT
from ironic_rules.models.task import Task
from ironic_rules.steps import procedures
from ironic_rules.steps.progress import Progress

LOG = log.getLogger(__name__)


def verify(conductor: Conductor, task: Task) -> StateResult:
    """VERIFYING: check that the BMC answers, read the power state, and store what the machine is known by.

    From then on, discovery knows the machine by its BMC, its serial number and UUID, even if it is never inspected.
    """
    power = conductor.hardware.interface(task.node, "power")
    power.validate(task)
    task.node.power_state = power.get_power_state(task)
    node_id, driver_info = task.node.id, dict(task.node.driver_info)
    bmc_addresses = resolver.addresses(driver_info)
    ids = _machine_ids(conductor, task)
    hardware_cache.refresh(conductor, task)

    def store(conn: sa.Connection) -> None:
        known_bmcs.resolved(conn, node_id, driver_info, bmc_addresses)
        if ids:
            node_sets.set_machine_ids(conn, node_id, ids)

    return StateResult("done", also=store)


def _machine_ids(conductor: Conductor, task: Task) -> set[str]:
    try:
        return conductor.hardware.interface(task.node, "management").machine_ids(task)
    except IronicRulesError as exc:
        # The node can be managed without them.
        LOG.warning("Serial number and UUID of node %s are unknown: %s", task.node.uuid, exc)
        return set()


def tear_down(conductor: Conductor, task: Task) -> StateResult:
    """DELETING: the deploy interface removes the instance, and so do the node and its ports; cleaning follows.

    The console of the instance ends with it. Unlike in Ironic, one that cannot be stopped does not keep the instance,
    and the next instance gets none by itself.
    """
    node_id = task.node.id
    problem = _stop_console(conductor, task) if task.node.console_enabled else None
    conductor.hardware.interface(task.node, "deploy").tear_down(task)
    for procedure in procedures.ALL:
        Progress(procedure, task.node).forget()
    task.node.instance_info = {}
    task.node.instance_uuid = None
    task.node.driver_internal_info.pop(VIFS_WITHOUT_PORT, None)
    return StateResult("done", history=problem, also=lambda conn: node_sets.detach_all_vifs(conn, node_id))


def _stop_console(conductor: Conductor, task: Task) -> str | None:
    """Return why the console could not be stopped, for the history: it remains enabled, so that it can be later."""
    reason = state_machine.failure_of(
        lambda: conductor.hardware.interface(task.node, "console").set_console(task, enabled=False), task)
    if reason is None:
        return None
    text = secrets.mask_text(f"The console could not be stopped, and remains enabled: {reason}")
    LOG.warning("Node %s: %s", task.node.uuid, text)
    return text


def adopt(conductor: Conductor, task: Task) -> StateResult:
    """ADOPTING: take over a running instance without changing it, if the BMC answers and is that of this machine."""
    task.node.power_state = conductor.hardware.interface(task.node, "power").get_power_state(task)
    _check_machine(conductor, task)
    hardware_cache.refresh(conductor, task)
    return StateResult("done")


def _check_machine(conductor: Conductor, task: Task) -> None:
    """Compare the MAC addresses that the BMC reports, if it does, with those of the node's ports.

    :raises IronicRulesError: they have none in common
    """
    try:
        reported = conductor.hardware.interface(task.node, "management").get_mac_addresses(task)
    except IronicRulesError as exc:
        LOG.info("The MAC addresses of node %s cannot be compared with those of its ports: %s", task.node.uuid, exc)
        return
    macs = {addresses.normalize_mac(address) for address in reported if addresses.is_mac(address)}
    own = {port.address for port in task.ports}
    if macs and own and not macs & own:
        raise IronicRulesError(f"The BMC belongs to another machine: it reports {', '.join(sorted(macs)[:10])}, and "
                               "none of these is the address of a port of the node.")
