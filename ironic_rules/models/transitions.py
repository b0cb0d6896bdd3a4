"""Transitions of a node: the states that events lead to, and the events that a user may request now.

The API and the conductors use the same functions.
"""

from __future__ import annotations

from ironic_rules.exceptions import Invalid, InvalidState, NodeLocked, NodeProtected
from ironic_rules.models import states
from ironic_rules.models.nodes import Node
from ironic_rules.models.states import Transition

_DEPLOYS = ("active", "rebuild")
_REFUSED_IN_MAINTENANCE = ("clean", "rescue", "unrescue", "service")
_REFUSED_WHEN_PROTECTED = ("deleted", "rebuild")


def of_event(node: Node, event: str) -> Transition | None:
    """Return where ``event`` leads the node, None if nowhere.

    Manual cleaning keeps its target, manageable, and a discovered node that waits for more data its target, enroll.
    """
    transition = states.transition(node.provision_state, event)
    if node.target_provision_state == states.ENROLL and transition is not None and event == "wait":
        return transition._replace(target=states.ENROLL)
    manual = (node.target_provision_state == states.MANAGEABLE
              and node.provision_state in (states.CLEANING, states.CLEANWAIT, states.CLEANHOLD))
    if manual and transition is not None and transition.target == states.AVAILABLE:
        return transition._replace(target=states.MANAGEABLE)
    return transition


def of_verb(node: Node, verb: str, *, requested: str | None = None, holder: str | None = None) -> Transition:
    """Return where a verb of ``states/provision`` leads the node, if it is allowed now. In Ironic's order.

    :param requested: the word in the request, for errors; an alias of the verb
    :param holder: host of the conductor that calls this with the node's lock
    :raises Invalid: 400, the node is in maintenance, or retired;  NodeProtected: 403
    :raises InvalidState: 400, not from the node's state;  NodeLocked: 409, which may change that state
    """
    requested = requested or verb
    if node.maintenance and verb in _DEPLOYS:
        raise _in_maintenance(node, "provisioning")
    if node.protected and verb in _REFUSED_WHEN_PROTECTED:
        raise NodeProtected(node=node.uuid, action=requested)
    transition = of_event(node, verb) if verb in states.VERB_VERSIONS else None
    if transition is None:
        if node.reservation not in (None, holder):
            raise NodeLocked(node=node.uuid, host=node.reservation)
        raise InvalidState(action=requested, node=node.uuid, state=node.provision_state)
    if node.maintenance and verb in _REFUSED_IN_MAINTENANCE:
        raise _in_maintenance(node, verb)
    if node.retired and verb == "provide":
        raise Invalid(f"The provide operation can't be performed on node {node.uuid} because it is retired.")
    return transition


def _in_maintenance(node: Node, operation: str) -> Invalid:
    return Invalid(f"The {operation} operation can't be performed on node {node.uuid} because it's in maintenance "
                   "mode.")
