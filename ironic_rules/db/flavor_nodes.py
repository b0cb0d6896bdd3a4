"""The nodes that a flavor may select, counted by the database: there may be 10,000 of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
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


class _Property(FunctionElement[str]):
    """The JSON of what a node has in ``properties``: of a column as text, and the name."""

    inherit_cache = True
    type = sa.Text()


@compiles(_Property)
def _extracted(element: _Property, compiler: SQLCompiler, **kwargs: Any) -> str:
    column, name = (compiler.process(clause, **kwargs) for clause in element.clauses)
    return f"JSON_EXTRACT({column}, '$.{name}')"


@compiles(_Property, "sqlite")
def _quoted(element: _Property, compiler: SQLCompiler, **kwargs: Any) -> str:
    # SQLite extracts a text without its quotes, and JSON_QUOTE makes one of NULL.
    return f"NULLIF(JSON_QUOTE({_extracted(element, compiler, **kwargs)}), 'null')"


@compiles(_Property, "postgresql")
def _selected(element: _Property, compiler: SQLCompiler, **kwargs: Any) -> str:
    column, name = (compiler.process(clause, **kwargs) for clause in element.clauses)
    # PostgreSQL reads no JSON that has NUL anywhere; texts of firmware, which rules write into properties, can have it.
    return f"CAST(CAST(REPLACE({column}, '\\u0000', '\\ufffd') AS JSON) -> '{name}' AS TEXT)"


def _property(name: str) -> _Property:
    return _Property(sa.type_coerce(_NODES.properties, sa.Text), sa.literal_column(name))


#: What of a node distinguishes it for Nova's scheduler.
_TOLD: Mapping[str, sa.ColumnElement[Any]] = {
    "capabilities": _property("capabilities"), "cpu_arch": _property("cpu_arch"), "uuid": _NODES.uuid}


@dataclass(frozen=True, slots=True)
class Alike:
    """Nodes that are alike in what a flavor requires.

    :ivar state: what keeps Nova from them; None if nothing does
    :ivar traits: those of the given traits that they have
    :ivar told: what Nova's scheduler is told of them, as far as it was wanted: ``capabilities`` and ``cpu_arch`` as
        JSON, None if they have none, and ``uuid``
    :ivar count: number of the nodes
    :ivar ids: of some of them, sorted
    """

    state: str | None
    traits: frozenset[str]
    told: Mapping[str, str | None]
    count: int
    ids: Sequence[int]


def resource_classes(conn: sa.Connection) -> dict[str, int]:
    """Return the number of nodes by their resource class, without those that have none."""
    query = sa.select(_NODES.resource_class, sa.func.count()).where(_NODES.resource_class.is_not(None))
    return {row[0]: row[1] for row in conn.execute(query.group_by(_NODES.resource_class)).all()}


def alike(conn: sa.Connection, classes: Collection[str], traits: Sequence[str], most_ids: int,
          told: Sequence[str] = ()) -> Iterator[Alike]:
    """Yield the nodes of these resource classes in groups, by one query.

    :param traits: which distinguish nodes
    :param most_ids: number of ids of each group
    :param told: what else distinguishes them, by its name in ``Alike.told``
    """
    if not classes:
        return
    has = [sa.exists().where(node_traits.c.node_id == _NODES.id, node_traits.c.trait == trait) for trait in traits]
    keys = [_STATE.label("state"), *(found.label(f"t{place}") for place, found in enumerate(has)),
            *(_TOLD[name].label(name) for name in told)]
    inner = sa.select(_NODES.id, *keys).where(_NODES.resource_class.in_(list(classes))).subquery()
    grouped = [column for column in inner.c if column.name != "id"]
    query = sa.select(*grouped, sa.func.count(), sa.func.aggregate_strings(sa.cast(inner.c.id, sa.String(20)), ","))
    for row in conn.execute(query.group_by(*grouped)).all():
        held = row[1:1 + len(traits)]
        # The text has the ids of all of them, thousands; where a server cuts it off, it is longer than this.
        ids = sorted(map(int, row[-1].split(",", most_ids)[:most_ids]))
        yield Alike(row[0], frozenset(trait for trait, has_it in zip(traits, held, strict=True) if has_it),
                    dict(zip(told, row[1 + len(traits):-2], strict=True)), row[-2], ids)


def told_of(conn: sa.Connection, classes: Collection[str], told: Sequence[str]) -> list[dict[str, str | None]]:
    """Return how nodes with these resource classes differ in what Nova's scheduler is told of them."""
    if not classes or not told:
        return []
    query = sa.select(*(_TOLD[name].label(name) for name in told)).distinct()
    return [dict(row._mapping) for row in conn.execute(query.where(_NODES.resource_class.in_(list(classes)))).all()]


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
