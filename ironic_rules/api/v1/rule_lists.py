"""Pages of the list of rules: stored ones, and after them the built-in ones, which are read-only.

A stored rule may no longer be valid, after a limit was lowered or a plug-in was removed; its problems are shown.
Conditions and actions of rules may have passwords: a policy of their own decides who sees them.
"""

from __future__ import annotations

import operator
import secrets
import threading
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import orjson
import sqlalchemy as sa

from ironic_rules import policy
from ironic_rules.api import etags
from ironic_rules.api.request import Request
from ironic_rules.api.views import rules
from ironic_rules.db import inspection_rules
from ironic_rules.db.inspection_rules import RulePlace
from ironic_rules.db.paging import Page
from ironic_rules.db.projection import Row
from ironic_rules.exceptions import Invalid, Problem
from ironic_rules.inspection.rule_sets import RuleSettings
from ironic_rules.models.documents import JSON, JSONObject
from ironic_rules.models.rules import SEALED, Rule

Problems = tuple[Problem, ...]
#: A rule at one of its revisions.
Version = tuple[str, int]

#: Maximum number of versions of rules whose problems are remembered.
_MAX_KNOWN = 50_000
#: All that is told of a sensitive rule.
_SEALED = (Problem("", "the rule is no longer valid"),)


class RuleProblems:
    """Remembers the problems of each version of a rule. One per process; thread-safe."""

    def __init__(self, settings: RuleSettings) -> None:
        self._settings = settings
        self._known: dict[Version, Problems] = {}
        self._lock = threading.Lock()

    def invalid(self, rules: Iterable[Rule]) -> dict[str, Problems]:
        """Return the problems of those of the stored rules that are invalid, by UUID."""
        result = {}
        for rule in rules:
            version = rule.uuid, rule.revision
            problems = self._known.get(version)
            if problems is None:
                problems = self._settings.compile(rule).problems
                self._remember({version: _SEALED if problems and rule.sensitive else problems})
            if problems:
                # An old version of a rule that became sensitive later is remembered as it was.
                result[rule.uuid] = _SEALED if rule.sensitive else problems
        return result

    def passed(self, versions: Iterable[Version]) -> None:
        """Remember that these versions, which were just written, are valid."""
        self._remember(dict.fromkeys(versions, ()))

    def of_versions(self, conn: sa.Connection, versions: Iterable[Version]) -> dict[str, Problems]:
        """Return the problems of those of the stored rules that are invalid; only unknown versions are read."""
        known_problems = self._known
        of_rules: dict[str, Problems] = {}
        unknown = []
        for version in versions:
            problems = known_problems.get(version)
            if problems is None:
                unknown.append(version[0])
            elif problems:
                of_rules[version[0]] = problems
        return of_rules | self.invalid(inspection_rules.some_rules(conn, unknown)) if unknown else of_rules

    def of_all(self, conn: sa.Connection) -> dict[str, Problems]:
        """Return the problems of all stored rules that are invalid."""
        return self.of_versions(conn, inspection_rules.versions(conn))

    def _remember(self, more: Mapping[Version, Problems]) -> None:
        with self._lock:
            if len(self._known) + len(more) > _MAX_KNOWN:
                self._known = {}
            self._known.update(more)


#: Makes the tags of rules unpredictable whose conditions and actions the client does not see.
_KEY = secrets.token_bytes(32)


def find_built_in(request: Request, uuid: str | None) -> Rule | None:
    """Return the built-in rule with that UUID, None if there is none."""
    built_in: tuple[Rule, ...] = request.rules.built_in
    return next((rule for rule in built_in if rule.uuid == uuid), None)


def tag_of_built_in(rule: Rule, *, details: bool = True) -> str:
    """Return the entity tag of a built-in rule, which depends on its content only, not on its file.

    The tag of a sensitive rule differs in every process, so that a client cannot verify a guess at its content.

    :param details: whether the client sees conditions and actions; otherwise, the tag is as that of a sensitive rule
    """
    content = orjson.dumps({**rule.said(), "built_in": True}, option=orjson.OPT_SORT_KEYS)
    return etags.tag(content, _KEY) if rule.sensitive or not details else etags.tag(content)


def refuse_built_in(request: Request, uuid: str) -> None:
    """Check that the rule with that UUID may be changed.

    :raises Invalid: 400, it is built-in
    """
    if find_built_in(request, uuid) is not None:
        raise Invalid(f"Inspection rule {uuid} is built-in: it can only be changed where the service reads it.")


def page_of_built_in(request: Request, filters: Mapping[str, object], page: Page, count: int) -> list[Rule]:
    """Return the built-in rules of a page that already has ``count`` stored rules: they come after those.

    :param filters: as for ``inspection_rules.filter_conditions``
    """
    matching = [rule for rule in request.rules.built_in if inspection_rules.matches_filters(rule, filters)]
    if page.sort_key not in ("id", "created_at", "updated_at"):
        matching.sort(key=lambda rule: _order(getattr(rule, page.sort_key)))
    if page.sort_dir == "desc":
        matching.reverse()
    places = [index for index, rule in enumerate(matching) if rule.uuid == page.marker]
    return matching[places[0] + 1 if places else 0:][:page.limit - count]


def built_in_after(request: Request, filters: Mapping[str, object], place: RulePlace | None, *,
                   ascending: bool) -> list[Rule]:
    """Return the built-in rules beyond ``place`` in the order in which rules run.

    :param filters: as for ``inspection_rules.filter_conditions``
    :param place: None: all of them
    """
    matching = [rule for rule in request.rules.built_in if inspection_rules.matches_filters(rule, filters) and (
        place is None
        or (inspection_rules.place_of(rule) > place if ascending else inspection_rules.place_of(rule) < place))]
    return sorted(matching, key=inspection_rules.place_of, reverse=not ascending)


def _order(value: JSON) -> tuple[bool, Any]:
    return value is not None, value if isinstance(value, (int, str)) else 0


#: Sort key of the order in which rules run: phase, priority descending, creation, the built-in rules in their places.
EXECUTION = "execution"


def page_of_rules(request: Request, conn: sa.Connection, page: Page, filters: Mapping[str, object],
                  fields: Collection[str]) -> list[Row | Rule]:
    """Return the rules of a page: rows with at least ``views.columns(fields)``, and built-in rules.

    :param filters: the request's
    :raises MarkerNotFound: 404
    """
    selection, kind = _wanted(request, conn, filters)
    if page.sort_key == EXECUTION:
        return _in_order(request, conn, page, selection, fields, kind)
    rows: list[Row | Rule] = []
    if kind is not True and find_built_in(request, page.marker) is None:
        rows += inspection_rules.list_rules(conn, selection, page, rules.columns(fields), raw_json=True)
    if kind is not False:
        rows += page_of_built_in(request, selection, page, len(rows))
    return rows


def _wanted(request: Request, conn: sa.Connection, filters: Mapping[str, Any]) -> tuple[JSONObject, bool | None]:
    """Return the filters of stored rules, and whether built-in rules are wanted: None: both."""
    selection = dict(filters)
    kind, valid = selection.pop("built_in", None), selection.pop("valid", None)
    if valid is not None:
        selection["uuid_not_in" if valid else "uuid_in"] = request.rule_problems.of_all(conn).keys()
    return selection, kind


def problems(request: Request, conn: sa.Connection, rows: Collection[Row | Rule],
             fields: Collection[str]) -> Mapping[str, Problems]:
    """Return the problems of the invalid ones of ``rows``, if ``fields`` show them; built-in rules are valid."""
    stored = [row for row in rows if not isinstance(row, Rule)] if rules.show_validity(fields) else []
    if not stored:
        return {}
    # By position: access by name is slower.
    names = stored[0]._fields
    problems: Mapping[str, Problems] = request.rule_problems.of_versions(
        conn, map(operator.itemgetter(names.index("uuid"), names.index("revision")), stored))
    return problems


def _in_order(request: Request, conn: sa.Connection, page: Page, filters: Mapping[str, object], fields: Collection[str],
              kind: bool | None) -> list[Row | Rule]:
    marker = find_built_in(request, page.marker)
    after = None if marker is None else inspection_rules.place_of(marker)
    if page.marker is not None and after is None:
        after = inspection_rules.place_of_marker(conn, page.marker)
    rows: list[Row | Rule] = []
    if kind is not True:
        columns = rules.columns(fields)
        columns += tuple(name for name in inspection_rules.RulePlace._fields if name not in columns)
        rows += inspection_rules.list_in_order(conn, filters, page, columns, after)
    if kind is not False:
        rows += built_in_after(request, filters, after, ascending=page.sort_dir == "asc")
        rows.sort(key=inspection_rules.place_of, reverse=page.sort_dir == "desc")
    return rows[:page.limit]


#: Fields that show conditions and actions, or quote them.
DETAILS = frozenset({*SEALED, "problems"})
#: Filters of a list that compare with them.
_FILTERS = frozenset({"op", "writes"})


def are_shown(request: Request, name: str) -> bool:
    """Return whether the caller passes the policy ``name``, and sees conditions and actions."""
    return policy.allows(request.conf, name, request.context)


def fields(request: Request, query: Mapping[str, Any], name: str, every: Collection[str], summary: Collection[str], *,
           detail: bool) -> Collection[str]:
    """Return the fields of rules to show: those that the request names, else all of them or the summary.

    :param name: the policy of who sees conditions and actions; others get the summary
    :param detail: whether all fields are wanted
    :raises Forbidden: 403, a field or a filter that the request names needs the policy
    """
    requested: Collection[str] = query.get("fields") or ()
    if not DETAILS.isdisjoint(requested) or any(query.get(filter_name) is not None for filter_name in _FILTERS):
        policy.authorize(request.conf, name, request.context)
    return requested or (every if detail and are_shown(request, name) else summary)
