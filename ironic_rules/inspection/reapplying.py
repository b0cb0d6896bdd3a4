"""The nodes on which hooks and rules may be re-run, over the data of an inspection that has ended."""

from __future__ import annotations

import orjson

from ironic_rules.exceptions import Conflict, Invalid, IronicRulesError
from ironic_rules.models import states
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.nodes import Node
from ironic_rules.models.task import Task

_STATES = frozenset({states.ENROLL, states.MANAGEABLE, states.AVAILABLE, states.INSPECTFAIL})


def is_deployed(node: Node) -> bool:
    """Return whether a node has an instance: then only rules may change it."""
    return node.instance_uuid is not None or node.provision_state == states.ACTIVE


def check(node: Node, *, allow_deployed: bool) -> None:
    """Check that hooks and rules may run again on a node, and change it.

    :raises Invalid: 400, by its provision state
    :raises Conflict: 409, it has an instance
    """
    deployed = is_deployed(node)
    if node.provision_state not in _STATES and node.provision_state != states.ACTIVE:
        raise Invalid(
            f"Hooks and rules cannot run again on node {node.uuid} in state \"{node.provision_state}\", only in "
            "enroll, manageable, available and inspect failed, and in active with allow_deployed.")
    if deployed and not allow_deployed:
        raise Conflict(f"Node {node.uuid} has an instance. Without allow_deployed, only a dry run is possible.")


def check_ports(task: Task) -> None:
    """Check that rules have left the ports of a node that has an instance.

    :raises IronicRulesError: they have not
    """
    if (changes := task.port_changes()).created or changes.deleted:
        raise IronicRulesError(f"A rule adds or removes a port of node {task.node.uuid}, which has an instance.")


def changes(task: Task) -> bool:
    """Return whether anything of the node or its ports has changed."""
    return bool(task.node.changes()) or task.node.trait_changes() is not None or bool(task.port_changes())


def are_equal(first: JSONObject, second: JSONObject | None) -> bool:
    """Return whether the plug-in data of two runs are the same."""
    return orjson.dumps(first, option=orjson.OPT_SORT_KEYS) == orjson.dumps(second, option=orjson.OPT_SORT_KEYS)
