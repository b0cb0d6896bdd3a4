"""The nodes that a flavor may select, counted by the database: there may be 10,000 of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from ironic_rules.db.projection import Row
from ironic_rules.db.tables import node_traits, nodes
from ironic_rules.models import states

_NODES = nodes.c
#: What keeps Nova from a node; NULL if nothing does.
_STATE = sa.case(
    (_NODES.maintenance, "maintenance"),
    (_NODES.instance_uuid.is_not(None), "instance"),
    (_NODES.provision_state != states.AVAILABLE, _NODES.provision_state),
    (_NODES.power_state.is_(None), "power state unknown"),
    (_NODES.power_state == "error", "power state error"),
    else_=sa.null())


class _Capabilities(FunctionElement[str]):
    """What is stored as ``properties/capabilities``: a text, or the JSON of a text or of an object."""

    inherit_cache = True
    type = sa.Text()


@compiles(_Capabilities)
def _extracted(element: _Capabilities, compiler: SQLCompiler, **kwargs: Any) -> str:
    return f"JSON_EXTRACT({compiler.process(element.clauses, **kwargs)}, '$.capabilities')"


@compiles(_Capabilities, "postgresql")
def _selected(element: _Capabilities, compiler: SQLCompiler, **kwargs: Any) -> str:
    # PostgreSQL reads no JSON that has NUL anywhere; texts of firmware, which rules write into properties, can have it.
    text = f"REPLACE({compiler.process(element.clauses, **kwargs)}, '\\u0000', '\\ufffd')"
    return f"CAST(CAST({text} AS JSON) -> 'capabilities' AS TEXT)"


_CAPABILITIES = _Capabilities(sa.type_coerce(_NODES.properties, sa.Text))


@dataclass(frozen=True, slots=True)
class Alike:
    """Nodes that are alike in what a flavor requires.

    :ivar state: what keeps Nova from them; None if nothing does
    :ivar traits: those of the given traits that they have
    :ivar capabilities: as stored; None if they have none, or if those were not read
    :ivar count: number of the nodes
    :ivar ids: of some of them, sorted
    """

    state: str | None
    traits: frozenset[str]
    capabilities: str | None
    count: int
    ids: Sequence[int]


def resource_classes(conn: sa.Connection) -> dict[str, int]:
    """Return the number of nodes by their resource class, without those that have none."""
    query = sa.select(_NODES.resource_class, sa.func.count()).where(_NODES.resource_class.is_not(None))
    return {row[0]: row[1] for row in conn.execute(query.group_by(_NODES.resource_class)).all()}


def alike(conn: sa.Connection, classes: Collection[str], traits: Sequence[str], most_ids: int, *,
          with_capabilities: bool) -> Iterator[Alike]:
    """Yield the nodes of these resource classes in groups, by one query.

    :param traits: which distinguish nodes
    :param most_ids: number of ids of each group
    :param with_capabilities: whether the capabilities distinguish nodes, too
    """
    if not classes:
        return
    has = [sa.exists().where(node_traits.c.node_id == _NODES.id, node_traits.c.trait == trait) for trait in traits]
    keys = [_STATE.label("state"), *(found.label(f"t{place}") for place, found in enumerate(has)),
            *([_CAPABILITIES.label("capabilities")] if with_capabilities else [])]
    inner = sa.select(_NODES.id, *keys).where(_NODES.resource_class.in_(list(classes))).subquery()
    grouped = [column for column in inner.c if column.name != "id"]
    query = sa.select(*grouped, sa.func.count(), sa.func.aggregate_strings(sa.cast(inner.c.id, sa.String(20)), ","))
    for row in conn.execute(query.group_by(*grouped)).all():
        held = row[1:1 + len(traits)]
        # The text has the ids of all of them, thousands; where a server cuts it off, it is longer than this.
        ids = sorted(map(int, row[-1].split(",", most_ids)[:most_ids]))
        yield Alike(row[0], frozenset(trait for trait, has_it in zip(traits, held, strict=True) if has_it),
                    row[1 + len(traits)] if with_capabilities else None, row[-2], ids)


def capabilities_of(conn: sa.Connection, classes: Collection[str]) -> Sequence[str]:
    """Return all different capabilities of nodes with these resource classes, as stored."""
    if not classes:
        return []
    return conn.scalars(sa.select(_CAPABILITIES).distinct().where(
        _NODES.resource_class.in_(list(classes)), _CAPABILITIES.is_not(None))).all()


def holders(conn: sa.Connection, traits: Collection[str]) -> dict[str, int]:
    """Return the number of nodes that have each of ``traits``, 0 included."""
    found = dict.fromkeys(traits, 0)
    if found:
        query = sa.select(node_traits.c.trait, sa.func.count()).where(node_traits.c.trait.in_(list(found)))
        found.update({row[0]: row[1] for row in conn.execute(query.group_by(node_traits.c.trait)).all()})
    return found


def by_id(conn: sa.Connection, ids: Collection[int], columns: Collection[str]) -> dict[int, Row]:
    """Return some columns of nodes by their ids."""
    if not ids:
        return {}
    wanted = [_NODES[name] for name in ("id", *columns)]
    return {row.id: row for row in conn.execute(sa.select(*wanted).where(_NODES.id.in_(list(ids)))).all()}
