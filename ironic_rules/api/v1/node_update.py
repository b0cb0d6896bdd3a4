"""Validation of new nodes and of PATCHes of nodes: without side effects; only reads the objects that they refer to."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from ironic_rules import policy
from ironic_rules.api import patch, schema, schemas, versions
from ironic_rules.api.authorization import target
from ironic_rules.api.request import Request
from ironic_rules.api.v1 import node_access
from ironic_rules.db import collection, nodes
from ironic_rules.exceptions import Conflict, Invalid, NodeNotFound, Problem, no_valid_host, node_associated
from ironic_rules.hardware import selection
from ironic_rules.models import disk_hints, states
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.nodes import CHOOSES_INTERFACES, INTERFACE_FIELDS, NODE, Node
from ironic_rules.policies import nodes as policies
from ironic_rules.text import pointer_token

#: A node with a target state can be changed only in these (and in stable states, which have no target).
UPDATE_ALLOWED = frozenset({
    states.DEPLOYFAIL, states.INSPECTING, states.INSPECTFAIL, states.INSPECTWAIT, states.CLEANFAIL, states.ERROR,
    states.VERIFYING, states.ADOPTFAIL, states.RESCUEFAIL, states.UNRESCUEFAIL, states.SERVICEHOLD, states.SERVICEFAIL,
})
#: The resource class can be changed only in these states: a deployed node depends on it.
UNUSED = (states.ENROLL, states.INSPECTING, states.INSPECTWAIT, states.MANAGEABLE, states.AVAILABLE)
#: The driver and interfaces can be changed only in these, or in maintenance. Unlike in Ironic, not while waiting for a
#: ramdisk: its machine runs, with media inserted, and only the interfaces that started it can stop it.
SWITCHABLE = tuple(state for state in UNUSED if state != states.INSPECTWAIT)

#: Fields that a patch may only write, not read (``test``, ``copy``, ``move``): they are masked in replies.
_SECRET = frozenset({"driver_info", "instance_info"})
_PATCHED = schema.Object(schemas.NODE_FIELDS)
#: The flags whose policy depends on the new value: that of true (and null, if it is not false), and that of false.
_BY_VALUE = {"maintenance": (policies.SET_MAINTENANCE, policies.CLEAR_MAINTENANCE),
             "automated_clean": (policies.UPDATE, policies.DISABLE_CLEANING)}


def new_node(request: Request, conn: sa.Connection, body: JSONObject) -> JSONObject:
    """Return the values of the node to be created by a POST.

    :param body: valid against ``schemas.CREATE``
    :raises NotAcceptable: 406;  Invalid: 400;  no_valid_host: 503
    """
    values = {name: value for name, value in body.items() if value is not None}
    versions.refuse_fields(NODE, (name for name, value in values.items() if value != ""), request.version)
    patch.refuse_masks(values)
    if request.version < versions.ANY_NAME:
        schemas.check_host_name(values.get("name"))
    _resolve(request, conn, values, values.get("owner"))
    for name in INTERFACE_FIELDS:
        values.setdefault(name, None)
    values.update(_choose_interfaces(request, conn, values.get("conductor_group", ""), values["driver"], values))
    _check_disk_hints(values["deploy_interface"], values, {})
    values["provision_state"] = versions.initial_state(request.version)
    return values


_WITH_HINTS = ("properties", "instance_info")


def _check_disk_hints(deploy_interface: str | None, values: JSONObject, stored: JSONObject) -> None:
    """Refuse hints for the root disk that an inspection can use, but not the agent that deploys the node.

    :param values: the fields that may have hints
    :param stored: those that are stored, which are not refused
    :raises Invalid: 400
    """
    if deploy_interface not in disk_hints.OF_AGENT:
        return
    hints = {name: (values.get(name) or {}).get("root_device") for name in _WITH_HINTS}
    problems = [Problem("", reason) for name, hint in hints.items()
                if hint != (stored.get(name) or {}).get("root_device")
                and (reason := disk_hints.agent_problem(hint, f"/{name}/root_device"))]
    if problems:
        raise Invalid(problems=problems)


class NodeUpdate:
    """A PATCH: checked once, then applied to the node, again after each conflict."""

    def __init__(self, request: Request, operations: Sequence[patch.PatchOperation], *, reset_interfaces: bool) -> None:
        """Check what does not depend on the node.

        :raises Invalid: 400, a field that must not be patched;  NotAcceptable: 406, one that is too new
        """
        self._request, self._operations = request, operations
        self.policies = _policies(operations)
        self._changes_owner = any("owner" in (operation.path[0], *operation.source[:1]) for operation in operations)
        self._reset = reset_interfaces
        named = patch.touched(operations) | {operation.path[0] for operation in operations}
        _check_patchable(operations)
        versions.refuse_fields(NODE, named, request.version)
        if reset_interfaces and "driver" not in named:
            raise Invalid("The reset_interfaces parameter can only be used when changing the node's driver.")
        #: As in Ironic, ``instance_uuid`` of a node in maintenance can be removed in every state.
        self._unassociates = [(o.op, o.path) for o in operations] == [("remove", ("instance_uuid",))]

    def check_owner(self, row: Node) -> None:
        """Check that the owner of the node may change.

        :raises Conflict: 409, the node is deployed, and the caller may not change the owner of such nodes
        """
        if self._changes_owner and row.provision_state == states.ACTIVE and not policy.allows(
                self._request.conf, policies.UPDATE_OWNER_PROVISIONED, self._request.context, target(row)):
            raise Conflict(f'Cannot update the owner of node {row.uuid} while it is in state "{row.provision_state}".')

    def changes(self, conn: sa.Connection, row: Node) -> JSONObject:
        """Return the columns that change on the node ``row``, with their new values.

        :raises Invalid: 400;  Conflict: 409, not in the node's state;  node_associated: 409
        """
        if not (row.maintenance and self._unassociates):
            _check_state(row, self._request.version)
        values = self._patched(row)
        _resolve(self._request, conn, values, values.get("owner", row.owner))
        if values.get("parent_node"):
            _check_parent(conn, row, values["parent_node"])
        changes = {name: value for name, value in values.items() if patch.differs(getattr(row, name), value)}
        _check_changes(row, changes)
        if changes.get("chassis_uuid", "") is None and self._request.version < versions.UNSET_CHASSIS:
            raise versions.too_new("Removing chassis_uuid", versions.UNSET_CHASSIS)
        if changes.get("maintenance") is False:
            changes |= {"maintenance_reason": None, "fault": None}
        if self._reset or CHOOSES_INTERFACES & changes.keys():
            changes |= self._interfaces(conn, row, changes)
        deploy_interface = changes.get("deploy_interface", row.deploy_interface)
        stored = {name: getattr(row, name) for name in _WITH_HINTS}
        _check_disk_hints(deploy_interface, stored | changes, {} if "deploy_interface" in changes else stored)
        return changes

    def _patched(self, row: Node) -> JSONObject:
        document = {name: getattr(row, name) for name in NODE.patchable}
        result = patch.apply(document, self._operations, defaults=NODE.defaults(), required=NODE.required)
        patch.refuse_masks(result, document)
        values = _PATCHED.load({name: result[name] for name in patch.touched(self._operations)})
        defaults = NODE.defaults()
        values = {name: defaults.get(name) if value is None else value for name, value in values.items()}
        if self._request.version < versions.ANY_NAME:
            schemas.check_host_name(values.get("name"))
        return values

    def _interfaces(self, conn: sa.Connection, row: Node, changes: JSONObject) -> JSONObject:
        reset = self._reset and "driver" in changes
        requested = {name: changes.get(name) if reset or name in changes else getattr(row, name)
                     for name in INTERFACE_FIELDS}
        chosen = _choose_interfaces(
            self._request, conn, changes.get("conductor_group", row.conductor_group),
            changes.get("driver", row.driver), requested)
        return {name: value for name, value in chosen.items() if value != getattr(row, name) or name in changes}


def _resolve(request: Request, conn: sa.Connection, values: JSONObject, owner: str | None) -> None:
    """Replace what fields name by what the database has.

    :param owner: that of the node
    """
    if values.get("chassis_uuid"):
        with node_access.named_by("/chassis_uuid"):
            # Not deleted before the node refers to it.
            values["chassis_uuid"] = collection.CHASSIS.get(conn, values["chassis_uuid"], shared=True).uuid
    if values.get("parent_node"):
        with node_access.named_by("/parent_node"):
            # Not deleted before this refers to it, nor moved below the node.
            parent = node_access.find(request, conn, values["parent_node"], for_update=True)
            if parent.owner != owner:
                # As in Ironic, which also does not tell whether that node exists.
                raise NodeNotFound(node=values["parent_node"])
            values["parent_node"] = parent.uuid
    if "conductor_group" in values:
        values["conductor_group"] = values["conductor_group"].lower()


def _check_parent(conn: sa.Connection, row: Node, parent: str) -> None:
    """Check that a node does not become its own parent, or that of one above it: no list would show either.

    :raises Invalid: 400
    """
    above: str | None = parent
    seen = set()
    while above is not None and above not in seen:
        if above == row.uuid:
            raise Invalid(problems=[Problem("/parent_node", "is the node itself, or one of the nodes below it")])
        seen.add(above)
        above = nodes.parent_of(conn, above)


def _policies(operations: Sequence[patch.PatchOperation]) -> tuple[str, ...]:
    """Return the policies of what is to change."""
    rules = {name for operation in operations if operation.op != "test"
             # A field that moves away changes, too.
             for path in (operation.path, *([operation.source] if operation.op == "move" else []))
             for name in _policies_of(operation, path)}
    return tuple(sorted(rules or {policies.UPDATE}))


def _policies_of(operation: patch.PatchOperation, path: tuple[str, ...]) -> set[str]:
    """Return the policies of what an operation does to the field at ``path``."""
    name = path[0]
    if name not in _BY_VALUE:
        return {policies.UPDATE_FIELD.get(name, policies.UPDATE)}
    of_true, of_false = _BY_VALUE[name]
    return {of_false if value is False else of_true for value in _possible(operation, name)}


def _possible(operation: patch.PatchOperation, name: str) -> tuple[bool | None, ...]:
    """Return what a flag may be after an operation."""
    if operation.op in ("copy", "move"):
        return True, False
    value = None if operation.op == "remove" else operation.value
    if value is None:
        return (NODE.defaults().get(name),)
    try:
        return (schema.as_bool(value),)
    except ValueError:
        return (True,)  # refused later


def _check_patchable(operations: Sequence[patch.PatchOperation]) -> None:
    problems = []
    for index, operation in enumerate(operations):
        for path in filter(None, (operation.path, operation.source)):
            where = f"/{index}/path"
            if path[0] == "traits":
                problems.append(Problem(where, "traits cannot be patched; use /v1/nodes/{node}/traits"))
            elif path[0] not in NODE.patchable:
                problems.append(Problem(where, f"Cannot patch /{pointer_token(path[0])}. Only the following can be "
                                               f"updated: {', '.join(sorted(NODE.patchable))}"))
        if (operation.op == "test" and operation.path[0] in _SECRET) or _SECRET.intersection(operation.source[:1]):
            problems.append(Problem(f"/{index}/op", f"{operation.op} cannot read fields that may hold secrets"))
    if problems:
        raise Invalid(problems=problems)


def _check_state(row: Node, minor: int) -> None:
    if row.target_provision_state and row.provision_state not in UPDATE_ALLOWED:
        raise Conflict(f"Node {row.uuid} cannot be updated while a state transition is in progress.")
    if row.provision_state == states.INSPECTING and minor >= versions.INSPECT_WAIT:
        raise Conflict(f'Cannot update node "{row.uuid}" while it is in state "{row.provision_state}".')


def _check_changes(row: Node, changes: JSONObject) -> None:
    """Check for changes that the node's state forbids, and fields that depend on others; the latter are completed."""
    if changes.get("instance_uuid") and row.instance_uuid:
        raise node_associated(node=row.uuid, instance=row.instance_uuid)
    if "instance_uuid" in changes and row.allocation_uuid is not None and not row.maintenance:
        raise Conflict(f"Node {row.uuid} has an allocation: its instance_uuid can be removed in maintenance only; "
                       "delete the allocation instead.")
    for name in changes:
        of_driver = name == "driver" or name in INTERFACE_FIELDS
        fixed = not row.maintenance if of_driver else name == "resource_class" and row.resource_class is not None
        allowed, exception = (SWITCHABLE, ", or in maintenance") if of_driver else (UNUSED, "")
        if fixed and row.provision_state not in allowed:
            raise Conflict(f'Node {row.uuid} cannot have {name} updated unless it is in one of the states '
                           f'{", ".join(allowed)}{exception}. Its state is "{row.provision_state}".')
    # Only the interface that has started a console can stop it. no-console can do neither: a node that has got it while
    # its console was enabled, by an earlier version, may be given another one.
    names = {"driver", "console_interface"} & changes.keys()
    if names and row.console_enabled and row.console_interface != "no-console":
        raise Conflict(f"Node {row.uuid} cannot update {' and '.join(sorted(names))} while the console is enabled; "
                       "stop it first.")
    if changes.get("protected") and row.provision_state not in (states.ACTIVE, states.RESCUE):
        raise Conflict(f'Node {row.uuid} can be protected only in the states active and rescue. '
                       f'Its state is "{row.provision_state}".')
    if changes.get("retired") and row.provision_state == states.AVAILABLE:
        raise Conflict(f'Node {row.uuid} cannot be retired in state "available"; move it to "manageable" first.')
    for flag in ("protected", "retired"):
        reason = f"{flag}_reason"
        if changes.get(flag, getattr(row, flag)) is False:
            if changes.get(reason):
                raise Invalid(problems=[Problem(f"/{reason}", f"can only be set when {flag} is true")])
            if getattr(row, reason) is not None:
                changes[reason] = None


def _choose_interfaces(request: Request, conn: sa.Connection, group: str, driver: str,
                       requested: JSONObject) -> dict[str, str]:
    """Return every ``*_interface`` of a node: the requested one, else the default of its driver in its group.

    :raises no_valid_host: 503, no conductor is alive
    :raises DriverNotFound, InterfaceNotFound: 400, no conductor of the group supports it
    """
    offered = request.offered_steps.interfaces(conn)
    if not offered:
        raise no_valid_host()
    return selection.choose_interfaces(selection.of_group(offered, group, driver), driver, requested)
