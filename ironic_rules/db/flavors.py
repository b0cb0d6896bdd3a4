"""Flavors and their extra specs, and the number of nodes that a flavor may select.

Writers of extra specs lock the row of their flavor first, so none are lost. The database counts the nodes: there may be
10,000 of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
import sqlalchemy as sa
from oslo_utils import uuidutils
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from ironic_rules.db import clock
from ironic_rules.db.errors import duplicates
from ironic_rules.db.paging import Page, paginate
from ironic_rules.db.projection import Row
from ironic_rules.db.tables import flavor_extra_specs, flavors, node_traits, nodes
from ironic_rules.exceptions import (
    Invalid,
    MarkerNotFound,
    Problem,
    duplicate_flavor_name,
    extra_spec_not_found,
    flavor_already_exists,
    flavor_not_found,
)
from ironic_rules.models import states
from ironic_rules.models.flavors import Flavor
from ironic_rules.text import is_storable, printable

_OWN = flavors.c
_SPECS = flavor_extra_specs.c
# Integers in the statement itself: a thousand parameters take longer than the query.
_IS_ASKED = _SPECS.flavor_id.in_(sa.bindparam("ids", type_=sa.Integer, expanding=True, literal_execute=True))
_SPECS_OF = sa.select(_SPECS.flavor_id, _SPECS.key, _SPECS.value).where(_IS_ASKED)
# A row per flavor in place of one per extra spec: sqlite3 makes Python objects of each row.
_SPECS_OF_SQLITE = sa.select(_SPECS.flavor_id, sa.func.json_group_object(_SPECS.key, _SPECS.value)).where(
    _IS_ASKED).group_by(_SPECS.flavor_id)


def get(conn: sa.Connection, ident: str, *, or_name: bool = False) -> Flavor:
    """Return the flavor with the identifier ``ident``, with its extra specs.

    :param or_name: or with this name, if no flavor has that identifier
    :raises flavor_not_found: 404
    """
    row = _row(conn, ident, or_name=or_name)
    return _flavor(row, extra_specs_of(conn, [row.id])[row.id])


def get_id(conn: sa.Connection, ident: str, *, or_name: bool = False) -> int:
    """Return the database id of a flavor; otherwise as :func:`get`."""
    flavor_id: int = _row(conn, ident, or_name=or_name).id
    return flavor_id


def list_flavors(conn: sa.Connection, page: Page, *, is_public: bool | None = None, min_ram: int = 0,
                 min_disk: int = 0, with_specs: bool = True) -> list[Flavor]:
    """Return at most ``page.limit`` flavors; the marker is the identifier of a flavor.

    :param is_public: only those that are, or are not; None: all
    :param min_ram: of at least so many MiB;  min_disk: of at least so many GiB
    :param with_specs: read their extra specs, too
    :raises MarkerNotFound: 404;  Invalid: 400, the sort key is invalid
    """
    query = sa.select(flavors)
    if is_public is not None:
        query = query.where(_OWN.is_public == is_public)
    # PostgreSQL refuses a number that the type of the column cannot have.
    if min_ram:
        query = query.where(_OWN.memory_mb >= sa.literal(min_ram, sa.BigInteger))
    if min_disk:
        query = query.where(_OWN.root_gb >= sa.literal(min_disk, sa.BigInteger))
    rows = conn.execute(paginate(query, flavors, page, _marker(conn, page))).all()
    specs = extra_specs_of(conn, [row.id for row in rows]) if with_specs else {}
    return [_flavor(row, specs.get(row.id, {})) for row in rows]


def extra_specs_of(conn: sa.Connection, ids: Collection[int]) -> dict[int, dict[str, str]]:
    """Return the extra specs of each of ``ids``, sorted by their keys, in one query."""
    specs_of: dict[int, dict[str, str]] = {flavor_id: {} for flavor_id in ids}
    if specs_of and conn.dialect.name == "sqlite":
        rows = conn.execute(_SPECS_OF_SQLITE, {"ids": list(specs_of)}).all()
        specs_of |= {row[0]: orjson.loads(row[1]) for row in rows}
    elif specs_of:
        for flavor_id, key, value in conn.execute(_SPECS_OF, {"ids": list(specs_of)}).all():
            specs_of[flavor_id][key] = value
    return {flavor_id: dict(sorted(specs.items())) for flavor_id, specs in specs_of.items()}


def create(conn: sa.Connection, values: Mapping[str, Any]) -> Flavor:
    """Store a new flavor and return it; ``flavorid`` is a new UUID by default.

    :raises flavor_already_exists, duplicate_flavor_name: 409
    """
    row = {"flavorid": uuidutils.generate_uuid(), "created_at": clock.now(), **values}
    with duplicates(flavorid=lambda _: flavor_already_exists(flavor=row["flavorid"]),
                    name=lambda _: duplicate_flavor_name(name=row["name"])):
        conn.execute(sa.insert(flavors).values(row))
    return get(conn, row["flavorid"])


def describe(conn: sa.Connection, ident: str, description: str | None) -> Flavor:
    """Set the description of a flavor and return it.

    :raises flavor_not_found: 404
    """
    statement = sa.update(flavors).where(_called(_OWN.flavorid, ident))
    if not conn.execute(statement.values(description=description, updated_at=clock.now())).rowcount:
        raise flavor_not_found(flavor=printable(ident, 255))
    return get(conn, ident)


def destroy(conn: sa.Connection, flavor_id: int) -> bool:
    """Delete a flavor with its extra specs; return whether there was one."""
    return bool(conn.execute(sa.delete(flavors).where(_OWN.id == flavor_id)).rowcount)


def lock(conn: sa.Connection, ident: str, *, or_name: bool = False) -> Flavor:
    """Return a flavor whose row is locked until the transaction ends, with the extra specs that it has now.

    Must come first in the transaction: what is read before may be outdated.

    :raises flavor_not_found: 404
    """
    flavor_id = get_id(conn, ident, or_name=or_name)
    if not conn.execute(sa.update(flavors).where(_OWN.id == flavor_id).values(updated_at=clock.now())).rowcount:
        raise flavor_not_found(flavor=printable(ident, 255))
    row = conn.execute(sa.select(flavors).where(_OWN.id == flavor_id)).one()
    return _flavor(row, extra_specs_of(conn, [flavor_id])[flavor_id])


def write_specs(conn: sa.Connection, flavor: Flavor, specs: Mapping[str, str], most: int) -> dict[str, str]:
    """Write extra specs of a flavor, which is locked, beside those that it has; return all of them.

    :param most: number of extra specs that it may have
    :raises Invalid: 400, it would have more
    """
    together = {**flavor.extra_specs, **specs}
    if len(together) > most:
        raise Invalid(problems=[Problem("/extra_specs", (
            f"the flavor would have {len(together)} extra specs; at most {most} are allowed "
            "([api]max_flavor_extra_specs)"))])
    changed = {key: value for key, value in specs.items() if flavor.extra_specs.get(key) != value}
    replaced = changed.keys() & flavor.extra_specs.keys()
    if replaced:
        conn.execute(_delete_specs(flavor.id, replaced))
    if changed:
        conn.execute(sa.insert(flavor_extra_specs), [
            {"flavor_id": flavor.id, "key": key, "value": value} for key, value in changed.items()])
    return dict(sorted(together.items()))


def remove_spec(conn: sa.Connection, flavor: Flavor, key: str) -> None:
    """Remove an extra spec of a flavor, which is locked.

    :raises extra_spec_not_found: 404
    """
    if not is_storable(key) or not conn.execute(_delete_specs(flavor.id, [key])).rowcount:
        raise extra_spec_not_found(flavor=flavor.flavorid, key=printable(key, 255))


def _delete_specs(flavor_id: int, keys: Collection[str]) -> sa.Delete:
    return sa.delete(flavor_extra_specs).where(_SPECS.flavor_id == flavor_id, _SPECS.key.in_(list(keys)))


def _called(column: sa.Column[Any], ident: str) -> sa.ColumnElement[bool]:
    # PostgreSQL refuses the whole query for a character that it cannot store.
    return column == ident if is_storable(ident) else sa.false()


def _row(conn: sa.Connection, ident: str, *, or_name: bool) -> Row:
    condition = _called(_OWN.flavorid, ident)
    if or_name:
        condition = sa.or_(condition, _called(_OWN.name, ident))
    rows = conn.execute(sa.select(flavors).where(condition)).all()
    if not rows:
        raise flavor_not_found(flavor=printable(ident, 255))
    # One may have as its name what is the identifier of another one.
    return next((row for row in rows if row.flavorid == ident), rows[0])


def _flavor(row: Row, specs: Mapping[str, str]) -> Flavor:
    # The attributes of a flavor are the columns, in their order.
    return Flavor(*row, extra_specs=specs)


def _marker(conn: sa.Connection, page: Page) -> Row | None:
    if page.marker is None:
        return None
    query = sa.select(_OWN[page.sort_key].label("value"), _OWN.id.label("unique"))
    row = conn.execute(query.where(_called(_OWN.flavorid, page.marker))).one_or_none()
    if row is None:
        raise MarkerNotFound(marker=printable(page.marker, 255))
    return row


_NODES = nodes.c
#: The reason why Nova does not use a node; NULL if there is none.
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


#: Values of a node that distinguish it for Nova's scheduler.
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
          facts: Sequence[str] = ()) -> Iterator[Alike]:
    """Yield the nodes of these resource classes in groups, by one query.

    :param traits: which distinguish nodes
    :param most_ids: number of ids of each group
    :param facts: what else distinguishes them, by its name in ``Alike.told``
    """
    if not classes:
        return
    has = [sa.exists().where(node_traits.c.node_id == _NODES.id, node_traits.c.trait == trait) for trait in traits]
    keys = [_STATE.label("state"), *(condition.label(f"t{place}") for place, condition in enumerate(has)),
            *(_TOLD[name].label(name) for name in facts)]
    inner = sa.select(_NODES.id, *keys).where(_NODES.resource_class.in_(list(classes))).subquery()
    grouped = [column for column in inner.c if column.name != "id"]
    query = sa.select(*grouped, sa.func.count(), sa.func.aggregate_strings(sa.cast(inner.c.id, sa.String(20)), ","))
    for row in conn.execute(query.group_by(*grouped)).all():
        held = row[1:1 + len(traits)]
        # The text has the ids of all of them, thousands; where a server cuts it off, it is longer than this.
        ids = sorted(map(int, row[-1].split(",", most_ids)[:most_ids]))
        yield Alike(row[0], frozenset(trait for trait, has_it in zip(traits, held, strict=True) if has_it),
                    dict(zip(facts, row[1 + len(traits):-2], strict=True)), row[-2], ids)


def facts_of_nodes(conn: sa.Connection, classes: Collection[str], facts: Sequence[str]) -> list[dict[str, str | None]]:
    """Return how nodes with these resource classes differ in what Nova's scheduler is told of them."""
    if not classes or not facts:
        return []
    query = sa.select(*(_TOLD[name].label(name) for name in facts)).distinct()
    return [dict(row._mapping) for row in conn.execute(query.where(_NODES.resource_class.in_(list(classes)))).all()]


def trait_holders(conn: sa.Connection, traits: Collection[str]) -> dict[str, int]:
    """Return the number of nodes that have each of ``traits``, 0 included."""
    counts = dict.fromkeys(traits, 0)
    if counts:
        query = sa.select(node_traits.c.trait, sa.func.count()).where(node_traits.c.trait.in_(list(counts)))
        counts.update({row[0]: row[1] for row in conn.execute(query.group_by(node_traits.c.trait)).all()})
    return counts


def nodes_by_id(conn: sa.Connection, ids: Collection[int], columns: Collection[str]) -> dict[int, Row]:
    """Return some columns of nodes by their ids."""
    if not ids:
        return {}
    selected = [_NODES[name] for name in ("id", *columns)]
    return {row.id: row for row in conn.execute(sa.select(*selected).where(_NODES.id.in_(list(ids)))).all()}
