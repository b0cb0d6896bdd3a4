"""Nodes in replies: as JSON, for the version of the request and for its caller."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import sqlalchemy as sa

from ironic_rules.api.request import Request
from ironic_rules.api.views import nodes as views
from ironic_rules.db import conductors, node_sets
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.nodes import Node


def hosts_by_group(request: Request, conn: sa.Connection) -> dict[str, list[str]]:
    """Return the host names of the live conductors by their group."""
    groups: dict[str, list[str]] = {}
    for row in conductors.living_hosts(conn, request.conf.conductor.heartbeat_timeout):
        groups.setdefault(row.conductor_group, []).append(row.hostname)
    return groups


def turns_of(request: Request, conn: sa.Connection, host: str) -> dict[str, tuple[int, int]]:
    """Return, by group, the position of a live conductor among those of the group, and their number.

    A node that is not locked shows the conductor whose position is the node's id modulo their number.
    """
    return {group: (hosts.index(host), len(hosts)) for group,
            hosts in hosts_by_group(request, conn).items() if host in hosts}


def show_nodes(request: Request, conn: sa.Connection, rows: Sequence[Any],
               fields: tuple[str, ...] | None) -> Iterator[JSONObject]:
    """Yield nodes as JSON, with ``fields`` (None: all that the request's version supports)."""
    view = views.view(request.version, fields)
    shown = view.render(
        rows, request.base,
        node_sets.list_traits(conn, [row.id for row in rows]) if view.traits else {},
        hosts_by_group(request, conn) if view.conductor else {})
    confinement = request.confinement
    for row, node in zip(rows, shown, strict=True):
        if confinement is not None:
            confinement.hide(row, node)
        yield node


def show_node(request: Request, conn: sa.Connection, row: Node, fields: tuple[str, ...] | None = None) -> JSONObject:
    """Return what :func:`show_nodes` yields for one node."""
    return next(show_nodes(request, conn, [row], fields))


def show_states(request: Request, row: Node) -> JSONObject:
    """Return the states of a node as JSON."""
    shown = views.states(row, request.version)
    if request.confinement is not None:
        request.confinement.hide(row, shown)
    return shown


def node_columns(request: Request, fields: tuple[str, ...] | None) -> tuple[str, ...]:
    """Return the columns of the rows that :func:`show_nodes` needs."""
    columns: tuple[str, ...] = views.view(request.version, fields).columns
    return columns if request.confinement is None else tuple(dict.fromkeys((*columns, "owner", "lessee", "fault")))
