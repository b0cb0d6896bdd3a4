"""How rows are named: by UUID, in one spelling (lower case, with hyphens) whatever a client sends, or by name."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from oslo_utils import uuidutils

from ironic_rules.text import is_storable


def canonical(ident: str) -> str | None:
    """Return the UUID that ``ident`` spells, None if it is no UUID (then it may be a name)."""
    return str(uuid.UUID(ident)) if uuidutils.is_uuid_like(ident) else None


def has_uuid(table: sa.Table, ident: str) -> sa.ColumnElement[bool]:
    """Return the condition for the row with the UUID ``ident``; no row for what is no UUID."""
    return table.c.uuid == canonical(ident)


def is_called(table: sa.Table, ident: str) -> sa.ColumnElement[bool]:
    """Return the condition for the row whose UUID or name ``ident`` is."""
    if canonical(ident) is not None:
        return has_uuid(table, ident)
    # PostgreSQL refuses the whole query for a character that it cannot store.
    return table.c.name == ident if is_storable(ident) else sa.false()


def assigned(values: Mapping[str, Any]) -> str:
    """Return the canonical UUID in ``values``, a new random one if it holds none."""
    given = values.get("uuid")
    return uuidutils.generate_uuid() if given is None else canonical(given) or given
