"""Flavors and their extra specs. What writes extra specs locks the row of their flavor first, so none are lost."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import orjson
import sqlalchemy as sa
from oslo_utils import uuidutils

from ironic_rules.db import clock
from ironic_rules.db.errors import duplicates
from ironic_rules.db.paging import Page, paginate
from ironic_rules.db.projection import Row
from ironic_rules.db.tables import flavor_extra_specs, flavors
from ironic_rules.exceptions import (
    DuplicateFlavorName,
    ExtraSpecNotFound,
    FlavorAlreadyExists,
    FlavorNotFound,
    Invalid,
    MarkerNotFound,
    Problem,
)
from ironic_rules.models.flavors import Flavor
from ironic_rules.text import is_storable, printable

_OWN = flavors.c
_SPECS = flavor_extra_specs.c
# Integers in the statement itself: a thousand parameters take longer than the query.
_IS_ASKED = _SPECS.flavor_id.in_(sa.bindparam("ids", type_=sa.Integer, expanding=True, literal_execute=True))
_SPECS_OF = sa.select(_SPECS.flavor_id, _SPECS.key, _SPECS.value).where(_IS_ASKED)
# A row per flavor in place of one per extra spec takes a third of the time: sqlite3 makes Python objects of each.
_SPECS_OF_SQLITE = sa.select(_SPECS.flavor_id, sa.func.json_group_object(_SPECS.key, _SPECS.value)).where(
    _IS_ASKED).group_by(_SPECS.flavor_id)


def get(conn: sa.Connection, ident: str, *, or_name: bool = False) -> Flavor:
    """Return the flavor with the identifier ``ident``, with its extra specs.

    :param or_name: or with this name, if no flavor has that identifier
    :raises FlavorNotFound: 404
    """
    row = _row(conn, ident, or_name=or_name)
    return _flavor(row, extra_specs_of(conn, [row.id])[row.id])


def get_id(conn: sa.Connection, ident: str, *, or_name: bool = False) -> int:
    """Return the database id of a flavor; otherwise as :func:`get`."""
    found: int = _row(conn, ident, or_name=or_name).id
    return found


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
    found: dict[int, dict[str, str]] = {flavor_id: {} for flavor_id in ids}
    if found and conn.dialect.name == "sqlite":
        found |= {row[0]: orjson.loads(row[1]) for row in conn.execute(_SPECS_OF_SQLITE, {"ids": list(found)}).all()}
    elif found:
        for flavor_id, key, value in conn.execute(_SPECS_OF, {"ids": list(found)}).all():
            found[flavor_id][key] = value
    return {flavor_id: dict(sorted(specs.items())) for flavor_id, specs in found.items()}


def create(conn: sa.Connection, values: Mapping[str, Any]) -> Flavor:
    """Store a new flavor and return it; ``flavorid`` is a new UUID by default.

    :raises FlavorAlreadyExists, DuplicateFlavorName: 409
    """
    row = {"flavorid": uuidutils.generate_uuid(), "created_at": clock.now(), **values}
    with duplicates(flavorid=lambda _: FlavorAlreadyExists(flavor=row["flavorid"]),
                    name=lambda _: DuplicateFlavorName(name=row["name"])):
        conn.execute(sa.insert(flavors).values(row))
    return get(conn, row["flavorid"])


def describe(conn: sa.Connection, ident: str, description: str | None) -> Flavor:
    """Set the description of a flavor and return it.

    :raises FlavorNotFound: 404
    """
    statement = sa.update(flavors).where(_called(_OWN.flavorid, ident))
    if not conn.execute(statement.values(description=description, updated_at=clock.now())).rowcount:
        raise FlavorNotFound(flavor=printable(ident, 255))
    return get(conn, ident)


def destroy(conn: sa.Connection, flavor_id: int) -> bool:
    """Delete a flavor with its extra specs; return whether there was one."""
    return bool(conn.execute(sa.delete(flavors).where(_OWN.id == flavor_id)).rowcount)


def lock(conn: sa.Connection, ident: str, *, or_name: bool = False) -> Flavor:
    """Return a flavor whose row is locked until the transaction ends, with the extra specs that it has now.

    Must come first in the transaction: what is read before may be outdated.

    :raises FlavorNotFound: 404
    """
    flavor_id = get_id(conn, ident, or_name=or_name)
    if not conn.execute(sa.update(flavors).where(_OWN.id == flavor_id).values(updated_at=clock.now())).rowcount:
        raise FlavorNotFound(flavor=printable(ident, 255))
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

    :raises ExtraSpecNotFound: 404
    """
    if not is_storable(key) or not conn.execute(_delete_specs(flavor.id, [key])).rowcount:
        raise ExtraSpecNotFound(flavor=flavor.flavorid, key=printable(key, 255))


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
        raise FlavorNotFound(flavor=printable(ident, 255))
    # One may have as its name what is the identifier of another one.
    return next((row for row in rows if row.flavorid == ident), rows[0])


def _flavor(row: Row, specs: Mapping[str, str]) -> Flavor:
    # The attributes of a flavor are the columns, in their order.
    return Flavor(*row, extra_specs=specs)


def _marker(conn: sa.Connection, page: Page) -> Row | None:
    if page.marker is None:
        return None
    query = sa.select(_OWN[page.sort_key].label("value"), _OWN.id.label("unique"))
    found = conn.execute(query.where(_called(_OWN.flavorid, page.marker))).one_or_none()
    if found is None:
        raise MarkerNotFound(marker=printable(page.marker, 255))
    return found
