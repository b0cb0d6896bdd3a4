"""How rows are identified: by name, or by UUID, which clients may send in any form, in lower case with hyphens."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from oslo_utils import uuidutils

from ironic_rules.text import is_storable


def canonical(ident: str) -> str | None:
    """Return the UUID ``ident`` in canonical form, None if it is not a UUID (then it may be a name)."""
    return str(uuid.UUID(ident)) if uuidutils.is_uuid_like(ident) else None


def has_uuid(table: sa.Table, ident: str) -> sa.ColumnElement[bool]:
    """Return the condition for the row with the UUID ``ident``; it matches no row if that is not a UUID."""
    return table.c.uuid == canonical(ident)


def is_called(table: sa.Table, ident: str) -> sa.ColumnElement[bool]:
    """Return the condition for the row with the UUID or name ``ident``."""
    if canonical(ident) is not None:
        return has_uuid(table, ident)
    # PostgreSQL refuses the whole query for a character that it cannot store.
    return table.c.name == ident if is_storable(ident) else sa.false()


def assigned(values: Mapping[str, Any]) -> str:
    """Return the UUID in ``values`` in canonical form, a new random one if there is none."""
    given = values.get("uuid")
    return uuidutils.generate_uuid() if given is None else canonical(given) or given
