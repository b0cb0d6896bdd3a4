"""Which nodes hooks and rules may run on again, over the data of an inspection that has ended."""

from __future__ import annotations

from ironic_rules.exceptions import InvalidState, NodeAssociated
from ironic_rules.models import states
from ironic_rules.models.nodes import Node

_STATES = frozenset({states.ENROLL, states.MANAGEABLE, states.AVAILABLE, states.INSPECTFAIL})


def is_deployed(node: Node) -> bool:
    """Return whether a node has an instance: then only rules may change it."""
    return node.instance_uuid is not None or node.provision_state == states.ACTIVE


def check(node: Node, *, allow_deployed: bool) -> None:
    """Check that hooks and rules may run again on a node, and change it.

    :raises InvalidState: 400, by its provision state
    :raises NodeAssociated: 409, it has an instance
    """
    deployed = is_deployed(node)
    if node.provision_state not in _STATES and node.provision_state != states.ACTIVE:
        raise InvalidState(
            f"Hooks and rules cannot run again on node {node.uuid} in state \"{node.provision_state}\", only in "
            "enroll, manageable, available and inspect failed, and in active with allow_deployed.")
    if deployed and not allow_deployed:
        raise NodeAssociated(f"Node {node.uuid} has an instance. Without allow_deployed, only a dry run is possible.")
