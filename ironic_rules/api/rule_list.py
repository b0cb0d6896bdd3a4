"""Pages of the list of rules, stored and built-in."""

from __future__ import annotations

import operator
from collections.abc import Collection, Mapping
from typing import Any

import sqlalchemy as sa

from ironic_rules.api import built_in_rules
from ironic_rules.api.request import Request
from ironic_rules.api.rule_problems import Problems
from ironic_rules.api.views import inspection_rules as views
from ironic_rules.db import inspection_rules
from ironic_rules.db.paging import Page
from ironic_rules.db.projection import Row
from ironic_rules.models.rules import Rule

#: Sort key of the order in which rules run: phase, priority descending, creation, the built-in rules in their places.
EXECUTION = "execution"


def page(request: Request, conn: sa.Connection, asked: Page, filters: Mapping[str, Any],
         fields: Collection[str]) -> list[Row | Rule]:
    """Return the rules of a page: rows with at least ``views.columns(fields)``, and built-in rules.

    :param filters: the request's
    :raises MarkerNotFound: 404
    """
    wanted, kind = _wanted(request, conn, filters)
    if asked.sort_key == EXECUTION:
        return _in_order(request, conn, asked, wanted, fields, kind)
    found: list[Row | Rule] = []
    if kind is not True and built_in_rules.find(request, asked.marker) is None:
        found += inspection_rules.list_rules(conn, wanted, asked, views.columns(fields), raw_json=True)
    if kind is not False:
        found += built_in_rules.page(request, wanted, asked, len(found))
    return found


def _wanted(request: Request, conn: sa.Connection, filters: Mapping[str, Any]) -> tuple[dict[str, Any], bool | None]:
    """Return the filters of stored rules, and whether built-in rules are wanted: None: both."""
    wanted = dict(filters)
    kind, valid = wanted.pop("built_in", None), wanted.pop("valid", None)
    if valid is not None:
        wanted["uuid_not_in" if valid else "uuid_in"] = request.rule_problems.of_all(conn).keys()
    return wanted, kind


def problems(request: Request, conn: sa.Connection, rows: Collection[Row | Rule],
             fields: Collection[str]) -> Mapping[str, Problems]:
    """Return the problems of the invalid ones of ``rows``, if ``fields`` show them; built-in rules are valid."""
    stored = [row for row in rows if not isinstance(row, Rule)] if views.show_validity(fields) else []
    if not stored:
        return {}
    # By position: by name it takes three times as long.
    names = stored[0]._fields
    found: Mapping[str, Problems] = request.rule_problems.of_versions(
        conn, map(operator.itemgetter(names.index("uuid"), names.index("revision")), stored))
    return found


def _in_order(request: Request, conn: sa.Connection, asked: Page, wanted: Mapping[str, Any], fields: Collection[str],
              kind: bool | None) -> list[Row | Rule]:
    marker = built_in_rules.find(request, asked.marker)
    after = None if marker is None else inspection_rules.place_of(marker)
    if asked.marker is not None and after is None:
        after = inspection_rules.place_of_marker(conn, asked.marker)
    found: list[Row | Rule] = []
    if kind is not True:
        columns = views.columns(fields)
        columns += tuple(name for name in inspection_rules.RulePlace._fields if name not in columns)
        found += inspection_rules.list_in_order(conn, wanted, asked, columns, after)
    if kind is not False:
        found += built_in_rules.after(request, wanted, after, ascending=asked.sort_dir == "asc")
        found.sort(key=inspection_rules.place_of, reverse=asked.sort_dir == "desc")
    return found[:asked.limit]
