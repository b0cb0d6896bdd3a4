"""Nodes as JSON."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence

from ironic_rules.api import versions
from ironic_rules.api.views.rows import RowView
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.nodes import NODE, SUB_RESOURCES, Node


class NodeView(RowView):
    """The representation of nodes in one version of the API with one set of fields.

    :ivar traits: whether the nodes' traits are needed;  conductor: whether their conductors are needed
    """

    def __init__(self, minor: int, fields: tuple[str, ...] | None) -> None:
        names = NODE.shown - NODE.hidden(minor)
        if fields is not None:
            names &= set(fields)
        self._minor = minor
        self._state = "provision_state" in names and minor < versions.INSPECT_WAIT
        self.traits = "traits" in names
        self.conductor = "conductor" in names
        super().__init__(
            NODE, "nodes", names,
            sub_resources=tuple(name for name in SUB_RESOURCES if name in names),
            needed=(*(["id"] if self.traits or self.conductor else []),
                    *(["reservation", "conductor_group"] if self.conductor else [])))

    def render(self, rows: Sequence[object], url: str, traits: Mapping[int, list[str]],
               conductors: Mapping[str, Sequence[str]]) -> Iterator[JSONObject]:
        """Yield the JSON objects of ``rows``.

        :param traits: by node id;  conductors: hosts of the live conductors, by group
        """
        for row, node in self.objects(rows, url):
            if self._state:
                node["provision_state"] = versions.visible_state(node["provision_state"], self._minor)
            if self.traits:
                node["traits"] = traits[row.id]
            if self.conductor:
                node["conductor"] = _conductor(row.id, row.reservation, row.conductor_group, conductors)
            yield node


def _conductor(node_id: int, reservation: str | None, group: str,
               conductors: Mapping[str, Sequence[str]]) -> str | None:
    hosts = conductors.get(group)
    return reservation or (hosts[node_id % len(hosts)] if hosts else None)


@functools.lru_cache(maxsize=256)
def view(minor: int, fields: tuple[str, ...] | None) -> NodeView:
    """Return the view of version ``minor`` with ``fields`` (None: all)."""
    return NodeView(minor, fields)


def default_fields(minor: int) -> tuple[str, ...]:
    """Return the fields of a list without ``fields`` and ``detail``."""
    hidden = NODE.hidden(minor)
    return tuple(name for name in NODE.summary if name not in hidden)


_STATES = NODE.where(lambda entry: entry.state)


def states(node: Node, minor: int) -> JSONObject:
    """Return the body of ``GET /v1/nodes/{node}/states``."""
    hidden = NODE.hidden(minor)
    shown = {name: getattr(node, name) for name in _STATES if name not in hidden}
    shown["provision_state"] = versions.visible_state(node.provision_state, minor)
    return shown
