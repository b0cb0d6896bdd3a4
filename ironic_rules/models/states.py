"""Provision and power states of a node, and the transitions between them.

The names and the transitions are Ironic's (https://docs.openstack.org/ironic, "Bare Metal State Machine").
A transition is a row of a table, ``(state, event) -> (next state, target state)``; nothing here has side effects. The
API and the conductors use the same functions to find where an event, or the verb of a user, leads a node.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from oslo_utils import strutils

from ironic_rules.exceptions import Invalid, NodeLocked, invalid_state, node_protected

if TYPE_CHECKING:
    from ironic_rules.models.nodes import Node

POWER_ON = "power on"
POWER_OFF = "power off"
REBOOT = "rebooting"
SOFT_REBOOT = "soft rebooting"
SOFT_POWER_OFF = "soft power off"
OFF_TARGETS = frozenset({POWER_OFF, SOFT_POWER_OFF})
POWER_TARGETS = frozenset({POWER_ON, REBOOT, SOFT_REBOOT}) | OFF_TARGETS

ENROLL = "enroll"
VERIFYING = "verifying"
MANAGEABLE = "manageable"
AVAILABLE = "available"
ACTIVE = "active"
DEPLOYING = "deploying"
DEPLOYWAIT = "wait call-back"
DEPLOYFAIL = "deploy failed"
DEPLOYHOLD = "deploy hold"
DELETING = "deleting"
DELETED = "deleted"
ERROR = "error"
REBUILD = "rebuild"
CLEANING = "cleaning"
CLEANWAIT = "clean wait"
CLEANFAIL = "clean failed"
CLEANHOLD = "clean hold"
INSPECTING = "inspecting"
INSPECTWAIT = "inspect wait"
INSPECTFAIL = "inspect failed"
ADOPTING = "adopting"
ADOPTFAIL = "adopt failed"
RESCUE = "rescue"
RESCUING = "rescuing"
RESCUEWAIT = "rescue wait"
RESCUEFAIL = "rescue failed"
UNRESCUING = "unrescuing"
UNRESCUEFAIL = "unrescue failed"
SERVICING = "servicing"
SERVICEWAIT = "service wait"
SERVICEFAIL = "service failed"
SERVICEHOLD = "service hold"

ALL = frozenset(
    value for name, value in list(globals().items())
    if name.isupper() and isinstance(value, str) and not name.startswith(("POWER_", "SOFT_", "REBOOT")))

#: States in which a conductor works on the node and holds its lock; if the conductor fails, another one resumes.
TRANSIENT = frozenset({VERIFYING, DEPLOYING, DELETING, CLEANING, INSPECTING, ADOPTING, RESCUING, UNRESCUING, SERVICING})
#: States in which the node waits for its ramdisk, without a lock.
WAITING = frozenset({DEPLOYWAIT, CLEANWAIT, INSPECTWAIT, RESCUEWAIT, SERVICEWAIT})
#: States in which a procedure is held until ``unhold``; its ramdisk, if any, runs on.
HOLDING = frozenset({DEPLOYHOLD, CLEANHOLD, SERVICEHOLD})
#: States in which a node may be deleted through the API.
DELETE_ALLOWED = frozenset({MANAGEABLE, AVAILABLE, ENROLL, CLEANFAIL, ADOPTFAIL, INSPECTFAIL, DEPLOYFAIL, ERROR})
#: States in which the ramdisk may look up its node (``[api]restrict_lookup``).
LOOKUP_ALLOWED = frozenset({
    DEPLOYING, DEPLOYWAIT, CLEANING, CLEANWAIT, INSPECTING, INSPECTWAIT, RESCUING, RESCUEWAIT, SERVICING, SERVICEWAIT,
})
#: States in which a ramdisk that runs on may wait for the next operation (Ironic's fast track).
FAST_TRACK = frozenset({ENROLL, MANAGEABLE, AVAILABLE})

#: Targets of ``PUT /v1/nodes/{node}/states/provision`` -> first API minor version that supports them.
VERB_VERSIONS: dict[str, int] = {
    "active": 1, "deleted": 1, "rebuild": 1, "manage": 4, "provide": 4, "inspect": 6, "abort": 13, "clean": 15,
    "adopt": 17, "rescue": 38, "unrescue": 38, "deploy": 73, "undeploy": 73, "unhold": 85, "service": 87,
}
VERB_ALIASES = {"deploy": "active", "undeploy": "deleted"}


class Transition(NamedTuple):
    """The result of an event: the new ``state``, and its ``target`` (None = the state is stable)."""

    state: str
    target: str | None


def _table() -> dict[tuple[str, str], Transition]:
    rows: dict[tuple[str, str], Transition] = {}

    def on(event: str, sources: tuple[str, ...], state: str, target: str | None = None) -> None:
        for source in sources:
            rows[(source, event)] = Transition(state, target)

    on("manage", (ENROLL,), VERIFYING, MANAGEABLE)
    on("manage", (AVAILABLE, CLEANFAIL, INSPECTFAIL, ADOPTFAIL), MANAGEABLE)
    on("provide", (MANAGEABLE,), CLEANING, AVAILABLE)
    on("inspect", (MANAGEABLE, INSPECTFAIL, AVAILABLE), INSPECTING, MANAGEABLE)
    # A discovered node is inspected before anyone manages it, and returns to its initial state afterwards.
    on("discovered", (ENROLL,), INSPECTING, ENROLL)
    on("active", (AVAILABLE, DEPLOYFAIL), DEPLOYING, ACTIVE)
    on("rebuild", (ACTIVE, DEPLOYFAIL, ERROR), DEPLOYING, ACTIVE)
    on("deleted", (ACTIVE, DEPLOYFAIL, DEPLOYWAIT, DEPLOYHOLD, ERROR, RESCUE, RESCUEFAIL, RESCUEWAIT, UNRESCUEFAIL,
                   SERVICEFAIL, SERVICEWAIT), DELETING, AVAILABLE)
    on("clean", (MANAGEABLE, CLEANFAIL), CLEANING, MANAGEABLE)
    on("adopt", (MANAGEABLE, ADOPTFAIL), ADOPTING, ACTIVE)
    on("service", (ACTIVE, SERVICEFAIL), SERVICING, ACTIVE)
    on("rescue", (ACTIVE, RESCUE, RESCUEFAIL, UNRESCUEFAIL), RESCUING, RESCUE)
    on("unrescue", (RESCUE, RESCUEFAIL, UNRESCUEFAIL), UNRESCUING, ACTIVE)
    on("abort", (INSPECTWAIT,), INSPECTFAIL, MANAGEABLE)
    on("abort", (CLEANWAIT, CLEANHOLD), CLEANFAIL, MANAGEABLE)
    on("abort", (DEPLOYWAIT, DEPLOYHOLD), DEPLOYFAIL, ACTIVE)
    on("abort", (RESCUEWAIT,), RESCUEFAIL, RESCUE)
    on("abort", (SERVICEWAIT, SERVICEHOLD), SERVICEFAIL, ACTIVE)
    on("unhold", (CLEANHOLD,), CLEANING, AVAILABLE)
    on("unhold", (DEPLOYHOLD,), DEPLOYING, ACTIVE)
    on("unhold", (SERVICEHOLD,), SERVICING, ACTIVE)

    # One step is done, and there are more.
    on("next", (DEPLOYING,), DEPLOYING, ACTIVE)
    on("next", (CLEANING,), CLEANING, AVAILABLE)
    on("next", (SERVICING,), SERVICING, ACTIVE)
    on("hold", (DEPLOYING,), DEPLOYHOLD, ACTIVE)
    on("hold", (CLEANING,), CLEANHOLD, AVAILABLE)
    on("hold", (SERVICING,), SERVICEHOLD, ACTIVE)
    on("done", (VERIFYING, INSPECTING), MANAGEABLE)
    on("done", (DEPLOYING, ADOPTING, UNRESCUING, SERVICING), ACTIVE)
    on("done", (CLEANING,), AVAILABLE)
    on("done", (DELETING,), CLEANING, AVAILABLE)
    on("done", (RESCUING,), RESCUE)
    on("manage-done", (CLEANING,), MANAGEABLE)
    on("enroll-done", (INSPECTING,), ENROLL)
    on("wait", (INSPECTING,), INSPECTWAIT, MANAGEABLE)
    on("wait", (DEPLOYING,), DEPLOYWAIT, ACTIVE)
    on("wait", (CLEANING,), CLEANWAIT, AVAILABLE)
    on("wait", (RESCUING,), RESCUEWAIT, RESCUE)
    on("wait", (SERVICING,), SERVICEWAIT, ACTIVE)
    on("resume", (INSPECTWAIT,), INSPECTING, MANAGEABLE)
    on("resume", (DEPLOYWAIT,), DEPLOYING, ACTIVE)
    on("resume", (CLEANWAIT,), CLEANING, AVAILABLE)
    on("resume", (RESCUEWAIT,), RESCUING, RESCUE)
    on("resume", (SERVICEWAIT,), SERVICING, ACTIVE)
    on("fail", (VERIFYING,), ENROLL)
    on("fail", (INSPECTING, INSPECTWAIT), INSPECTFAIL, MANAGEABLE)
    on("fail", (DEPLOYING, DEPLOYWAIT), DEPLOYFAIL, ACTIVE)
    on("fail", (DELETING,), ERROR, AVAILABLE)
    on("fail", (CLEANING, CLEANWAIT), CLEANFAIL, AVAILABLE)
    on("fail", (ADOPTING,), ADOPTFAIL, ACTIVE)
    on("fail", (RESCUING, RESCUEWAIT), RESCUEFAIL, RESCUE)
    on("fail", (UNRESCUING,), UNRESCUEFAIL, ACTIVE)
    on("fail", (SERVICING, SERVICEWAIT), SERVICEFAIL, ACTIVE)
    return rows


TRANSITIONS = _table()


#: Key of ``driver_info``: whether the ramdisk runs on between operations.
FAST_TRACK_KEY = "fast_track"


def is_fast_track(driver_info: Mapping[str, object], default: bool) -> bool:
    """Return whether a node's ramdisk runs on between operations.

    :param default: ``[deploy]fast_track``, also if the node's own value is no boolean, which ``validate`` reports
    """
    return strutils.bool_from_string(driver_info.get(FAST_TRACK_KEY), default=default)


def transition(state: str, event: str) -> Transition | None:
    """Return where ``event`` leads from ``state``, or None if it is not possible there."""
    return TRANSITIONS.get((state, event))


_DEPLOYS = ("active", "rebuild")
_REFUSED_IN_MAINTENANCE = ("clean", "rescue", "unrescue", "service")
_REFUSED_WHEN_PROTECTED = ("deleted", "rebuild")


def after_event(node: Node, event: str) -> Transition | None:
    """Return where ``event`` leads the node, None if nowhere.

    Manual cleaning keeps its target, manageable, and a discovered node that waits for more data its target, enroll.
    """
    successor = transition(node.provision_state, event)
    if node.target_provision_state == ENROLL and successor is not None and event == "wait":
        return successor._replace(target=ENROLL)
    manual = (node.target_provision_state == MANAGEABLE and node.provision_state in (CLEANING, CLEANWAIT, CLEANHOLD))
    if manual and successor is not None and successor.target == AVAILABLE:
        return successor._replace(target=MANAGEABLE)
    return successor


def after_verb(node: Node, verb: str, *, requested: str | None = None, holder: str | None = None) -> Transition:
    """Return where a verb of ``states/provision`` leads the node, if it is allowed now. In Ironic's order.

    :param requested: the word in the request, for errors; an alias of the verb
    :param holder: host of the conductor that calls this with the node's lock
    :raises Invalid: 400, the node is in maintenance, or retired;  node_protected: 403
    :raises invalid_state: 400, not from the node's state;  NodeLocked: 409, which may change that state
    """
    requested = requested or verb
    if node.maintenance and verb in _DEPLOYS:
        raise _in_maintenance(node, "provisioning")
    if node.protected and verb in _REFUSED_WHEN_PROTECTED:
        raise node_protected(node=node.uuid, action=requested)
    successor = after_event(node, verb) if verb in VERB_VERSIONS else None
    if successor is None:
        if node.reservation not in (None, holder):
            raise NodeLocked(node=node.uuid, host=node.reservation)
        raise invalid_state(action=requested, node=node.uuid, state=node.provision_state)
    if node.maintenance and verb in _REFUSED_IN_MAINTENANCE:
        raise _in_maintenance(node, verb)
    if node.retired and verb == "provide":
        raise Invalid(f"The provide operation can't be performed on node {node.uuid} because it is retired.")
    return successor


def _in_maintenance(node: Node, operation: str) -> Invalid:
    return Invalid(f"The {operation} operation can't be performed on node {node.uuid} because it's in maintenance "
                   "mode.")
