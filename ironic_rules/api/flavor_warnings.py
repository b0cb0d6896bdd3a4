"""What keeps instances of a flavor from nodes, as far as few and small queries can tell."""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa

from ironic_rules.exceptions import Problem
from ironic_rules.models.flavors import Flavor


def of(conn: sa.Connection, flavor: Flavor, specs: Mapping[str, str]) -> list[Problem]:
    """Return the warnings about a flavor that has these extra specs."""
    return []
