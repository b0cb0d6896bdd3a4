"""What the controllers of nodes, ports and port groups share: finding a node, changing it safely, and showing it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import orjson
import pecan
import sqlalchemy as sa
from oslo_utils import uuidutils

from ironic_rules.api import links, node_versions
from ironic_rules.api.views import nodes as views
from ironic_rules.db import conductors, nodes, traits
from ironic_rules.exceptions import (
    Invalid,
    InvalidParameterValue,
    NodeChanged,
    NodeLocked,
    NodeNotFound,
    NoValidHost,
    Problem,
)
from ironic_rules.hardware import selection

T = TypeVar("T")

#: A change that another request came in between of is tried so often.
ATTEMPTS = 5

_NAME = re.compile(r"[A-Za-z0-9\-._~]{1,255}")


def check_ident(ident: str, kind: str = "node") -> str:
    """Return ``ident`` if it can be a UUID or a name.

    :raises InvalidParameterValue: 400, also for names below 1.5, which knows UUIDs only
    """
    if uuidutils.is_uuid_like(ident):
        return ident
    if pecan.request.version < node_versions.NODE_NAMES:
        raise InvalidParameterValue(f"Expected the UUID of a {kind}; names need at least API version 1.5.")
    if not _NAME.fullmatch(ident):
        raise InvalidParameterValue(f"Expected the UUID or the name of a {kind}.")
    return ident


def find(conn: sa.Connection, ident: str) -> Any:
    """Return the node that a URL names.

    :raises NodeNotFound: 404;  InvalidParameterValue: 400
    """
    return nodes.get(conn, check_ident(ident))


def find_named(conn: sa.Connection, ident: str, where: str) -> Any:
    """Return the node that a body names at the JSON pointer ``where``.

    :raises Invalid: 400, there is none
    """
    try:
        return find(conn, ident)
    except NodeNotFound as error:
        raise Invalid(problems=[Problem(where, str(error))]) from error


def change(conn: sa.Connection, node: Any, values: dict[str, Any] | None = None) -> Any:
    """Write ``values`` to the node, or just keep it to this transaction, and return it.

    Whatever belongs to a node (traits, ports, ...) changes only together with it, so that a conductor that holds its
    lock never has the ground moved under its feet.

    :raises NodeLocked, NodeChanged: 409
    """
    if node.reservation is not None:
        raise NodeLocked(node=node.uuid, host=node.reservation)
    return nodes.update(conn, node.id, values or {}, revision=node.revision)


def write(work: Callable[[sa.Connection], T]) -> T:
    """Return ``work(connection)`` of one write transaction, tried again when another request came in between.

    :raises NodeChanged: 409, again and again
    """
    for _ in range(ATTEMPTS - 1):
        try:
            return pecan.request.db.write(work)  # type: ignore[no-any-return]
        except NodeChanged:
            continue
    return pecan.request.db.write(work)  # type: ignore[no-any-return]


def differs(old: Any, new: Any) -> bool:
    """Say whether two JSON values differ, as JSON: ``true`` is not ``1``, and ``1`` not ``1.0``."""
    if isinstance(old, dict) and isinstance(new, dict):
        return orjson.dumps(old, option=orjson.OPT_SORT_KEYS) != orjson.dumps(new, option=orjson.OPT_SORT_KEYS)
    return bool(old != new)


def hosts_by_group(conn: sa.Connection) -> dict[str, list[str]]:
    """Return the host names of the living conductors by their group."""
    groups: dict[str, list[str]] = {}
    for row in conductors.alive(conn, pecan.request.conf.conductor.heartbeat_timeout):
        groups.setdefault(row.conductor_group, []).append(row.hostname)
    return groups


def choose_interfaces(conn: sa.Connection, group: str, driver: str, requested: dict[str, Any]) -> dict[str, str]:
    """Return every ``*_interface`` of a node: what is requested, else the default of its driver in its group.

    :raises NoValidHost: 503, no conductor is alive
    :raises DriverNotFound, InterfaceNotFound: 400, no conductor of the group offers it
    """
    alive = conductors.alive(conn, pecan.request.conf.conductor.heartbeat_timeout)
    if not alive:
        raise NoValidHost
    offered = selection.union(row.hardware_types for row in alive if row.conductor_group == group)
    return selection.choose_interfaces(offered, driver, requested)


def show(conn: sa.Connection, rows: Sequence[Any], fields: tuple[str, ...] | None) -> list[dict[str, Any]]:
    """Return nodes as JSON, with ``fields`` (None: all that the request's version knows)."""
    view = views.view(pecan.request.version, fields)
    return view.render(
        rows, links.base(),
        traits.list_for(conn, [row.id for row in rows]) if view.traits else {},
        hosts_by_group(conn) if view.conductor else {})
