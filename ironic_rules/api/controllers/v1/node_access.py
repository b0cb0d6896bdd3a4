"""Shared code of the controllers of nodes, ports and port groups: finding, locking and showing nodes."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson
import pecan
import sqlalchemy as sa
from oslo_utils import uuidutils

from ironic_rules import policy
from ironic_rules.api import links, pagination, versions
from ironic_rules.api.confinement import target
from ironic_rules.api.views import nodes as views
from ironic_rules.db import chassis, conductors, nodes, traits
from ironic_rules.exceptions import (
    Invalid,
    InvalidParameterValue,
    NodeLocked,
    NodeNotFound,
    NotFound,
    NoValidHost,
    Problem,
)
from ironic_rules.hardware import selection
from ironic_rules.models.nodes import NODE, Node

_NAME = re.compile(r"[A-Za-z0-9\-._~]{1,255}")


def check_ident(ident: str, kind: str = "node") -> str:
    """Return ``ident`` if it can be a UUID or a name.

    :raises InvalidParameterValue: 400
    """
    if not uuidutils.is_uuid_like(ident) and not _NAME.fullmatch(ident):
        raise InvalidParameterValue(f"Expected the UUID or the name of a {kind}.")
    return ident


def _node_ident(ident: str) -> str:
    check_ident(ident)
    if pecan.request.version < versions.NAME and not uuidutils.is_uuid_like(ident):
        # Nodes have no names in these versions, so none has this name.
        raise NodeNotFound(node=ident)
    return ident


def find(conn: sa.Connection, ident: str, *, for_update: bool = False) -> Node:
    """Return the node that a URL names.

    :param for_update: lock its row until the transaction ends, whatever a conductor does with the node
    :raises NodeNotFound: 404;  InvalidParameterValue: 400
    """
    return _accessible(nodes.get(conn, _node_ident(ident), for_update=for_update), ident)


def _accessible(row: Node, ident: str | int, policies: tuple[str, ...] = ()) -> Node:
    """Return ``row`` if the caller has access to it: the one place where access to a node is decided."""
    confinement = pecan.request.confinement
    if confinement is not None:
        confinement.check_node(row, NodeNotFound(node=ident), policies)
    else:
        for name in policies:
            policy.authorize(pecan.request.conf, name, pecan.request.context, target(row))
    return row


def check_access(conn: sa.Connection, node_id: int, missing: NotFound) -> None:
    """Check the access to what belongs to a node.

    :raises NotFound: 404, ``missing``: the caller may not see the node;  Forbidden: 403
    """
    confinement = pecan.request.confinement
    if confinement is not None:
        confinement.check_node(nodes.get_by_id(conn, node_id), missing)


def confine(wanted: dict[str, Any]) -> None:
    """Add the filter ``project`` to those of a list, if the caller is confined to one.

    :raises Forbidden: 403, the request names another project
    """
    if pecan.request.confinement is not None:
        pecan.request.confinement.confine(wanted)


def filters(query: Mapping[str, Any]) -> dict[str, Any]:
    """Return the filters of a request for a list of nodes; :func:`resolve` makes conditions of them.

    :raises NotAcceptable: 406, one that the version does not support
    :raises Forbidden: 403, another project than that of the caller
    """
    wanted = pagination.filters(query)
    versions.refuse_filters(NODE, wanted, pecan.request.version)
    if "parent_node" not in wanted:
        # As in Ironic: child nodes are listed only on request.
        wanted.setdefault("include_children", False)
    confine(wanted)
    return wanted


def resolve(conn: sa.Connection, wanted: dict[str, Any]) -> None:
    """Replace what filters name by what the database has.

    :raises NodeNotFound, ChassisNotFound: 404;  InvalidParameterValue: 400
    """
    if "parent_node" in wanted:
        wanted["parent_node"] = find(conn, wanted["parent_node"]).uuid
    if "chassis_uuid" in wanted:
        wanted["chassis_uuid"] = chassis.CHASSIS.get(conn, wanted["chassis_uuid"]).uuid
    if "conductor" in wanted:
        wanted["conductor"] = wanted["conductor"], turns_of(conn, wanted["conductor"])
    if "failure" in wanted:
        wanted["failure"] = pecan.request.node_failures.find(conn, wanted["failure"])


def hold(conn: sa.Connection, ident: str, policies: tuple[str, ...] = ()) -> Node:
    """Return the node that a URL names, and lock its row until the transaction ends.

    The objects of a node (traits, ports, ...) change only while its row is locked, so that they never change while a
    conductor has reserved the node. Must come first in the transaction: what is read before may be outdated.

    :param policies: those that depend on what is to change; callers who are confined must pass them in the place of
        that of the route
    :raises NodeNotFound: 404;  InvalidParameterValue: 400;  NodeLocked: 409;  Forbidden: 403
    """
    return _unlocked(_accessible(nodes.get(conn, _node_ident(ident), for_update=True), ident, policies))


def hold_by_id(conn: sa.Connection, node_id: int) -> Node:
    """Return the node with this database id; otherwise as :func:`hold`."""
    return _unlocked(_accessible(nodes.get_by_id(conn, node_id, for_update=True), node_id))


@contextlib.contextmanager
def named_by(where: str) -> Iterator[None]:
    """Turn NotFound into an error about the body, which names the missing resource at the pointer ``where``.

    :raises Invalid: 400, in place of NotFound
    """
    try:
        yield
    except NotFound as error:
        raise Invalid(problems=[Problem(where, str(error))]) from error


def _unlocked(node: Node) -> Node:
    if node.reservation is not None:
        raise NodeLocked(node=node.uuid, host=node.reservation)
    return node


def differs(old: Any, new: Any) -> bool:
    """Return whether two values differ as JSON: ``true`` is not ``1``, and ``1`` not ``1.0``."""
    if isinstance(old, (dict, list)) and isinstance(new, (dict, list)):
        return orjson.dumps(old, option=orjson.OPT_SORT_KEYS) != orjson.dumps(new, option=orjson.OPT_SORT_KEYS)
    return bool(old != new)


def hosts_by_group(conn: sa.Connection) -> dict[str, list[str]]:
    """Return the host names of the live conductors by their group."""
    groups: dict[str, list[str]] = {}
    for row in conductors.living_hosts(conn, pecan.request.conf.conductor.heartbeat_timeout):
        groups.setdefault(row.conductor_group, []).append(row.hostname)
    return groups


def turns_of(conn: sa.Connection, host: str) -> dict[str, tuple[int, int]]:
    """Return, by group, the position of a live conductor among those of the group, and their number.

    A node that is not locked shows the conductor whose position is the node's id modulo their number.
    """
    return {group: (hosts.index(host), len(hosts)) for group, hosts in hosts_by_group(conn).items() if host in hosts}


def choose_interfaces(conn: sa.Connection, group: str, driver: str, requested: dict[str, Any]) -> dict[str, str]:
    """Return every ``*_interface`` of a node: the requested one, else the default of its driver in its group.

    :raises NoValidHost: 503, no conductor is alive
    :raises DriverNotFound, InterfaceNotFound: 400, no conductor of the group supports it
    """
    offered = pecan.request.offered_steps.interfaces(conn)
    if not offered:
        raise NoValidHost
    return selection.choose_interfaces(selection.of_group(offered, group, driver), driver, requested)


def show(conn: sa.Connection, rows: Sequence[Any], fields: tuple[str, ...] | None) -> Iterator[dict[str, Any]]:
    """Yield nodes as JSON, with ``fields`` (None: all that the request's version supports)."""
    view = views.view(pecan.request.version, fields)
    shown = view.render(
        rows, links.base(),
        traits.list_for(conn, [row.id for row in rows]) if view.traits else {},
        hosts_by_group(conn) if view.conductor else {})
    confinement = pecan.request.confinement
    for row, node in zip(rows, shown, strict=True):
        if confinement is not None:
            confinement.hide(row, node)
        yield node


def show_one(conn: sa.Connection, row: Node, fields: tuple[str, ...] | None = None) -> dict[str, Any]:
    """Return what :func:`show` yields for one node."""
    return next(show(conn, [row], fields))


def show_states(row: Node) -> dict[str, Any]:
    """Return the states of a node as JSON."""
    shown = views.states(row, pecan.request.version)
    if pecan.request.confinement is not None:
        pecan.request.confinement.hide(row, shown)
    return shown


def columns(fields: tuple[str, ...] | None) -> tuple[str, ...]:
    """Return the columns of the rows that :func:`show` needs."""
    found: tuple[str, ...] = views.view(pecan.request.version, fields).columns
    return found if pecan.request.confinement is None else tuple(dict.fromkeys((*found, "owner", "lessee", "fault")))
