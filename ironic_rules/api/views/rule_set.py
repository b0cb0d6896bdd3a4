"""Changes and revisions of the rule set -> JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ironic_rules.api import links
from ironic_rules.api.rule_set import Result
from ironic_rules.api.views import inspection_rules as rule_views
from ironic_rules.db.projection import Row
from ironic_rules.exceptions import Problem
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.rules import RULE, SUMMARY, Rule
from ironic_rules.rules.comparison import Entry

#: Fields of the rules of a revision, with and without details: nodes are counted for the rule, not for its versions.
_OF_VERSION = {True: RULE.shown - {"nodes_counted"}, False: SUMMARY}


def result(made: Result, bundle: str | None, *, dry_run: bool) -> JSONObject:
    """Return what a request has changed, or would change: every rule in one of five lists; and the warnings."""
    compared = made.compared
    return {
        "revision": made.revision, "dry_run": dry_run, "bundle": bundle,
        "created": [_entry(entry, uuid) for entry, uuid in zip(compared.created, _uuids(made), strict=True)],
        "changed": [_entry(entry) | {"patch": entry.patch()} for entry in compared.changed],
        "replaced": _entries(compared.replaced),
        "unchanged": _entries(compared.unchanged),
        "removed": _entries(compared.removed),
        "warnings": rule_views.warnings(made.warnings),
    }


def revisions(base: str, rows: Iterable[Row]) -> list[JSONObject]:
    """Return revisions without their rules."""
    return [revision(base, row) for row in rows]


def revision(base: str, row: Row, rules: Iterable[Rule] | None = None,
             problems: Mapping[str, Sequence[Problem]] | None = None, *, details: bool = False) -> JSONObject:
    """Return one revision, with its rules if they are given.

    :param problems: of those that are invalid, by UUID
    :param details: whether conditions and actions are shown
    """
    shown: JSONObject = {name: getattr(row, name) for name in ("revision", "created_at", "user", "summary")}
    shown["links"] = links.resource(base, "inspection_rules", "revisions", str(row.revision))
    if rules is not None:
        shown["rules"] = [
            rule_views.rule(base, rule, _OF_VERSION[details], (problems or {}).get(rule.uuid, ())) for rule in rules]
    return shown


def _uuids(made: Result) -> Iterable[str | None]:
    """Return the UUIDs of created rules; in a dry run those that are already known."""
    if made.uuids:
        return made.uuids
    return [entry.version.uuid if entry.version else (entry.new or {}).get("uuid") for entry in made.compared.created]


def _entries(entries: Iterable[Entry]) -> list[JSONObject]:
    return [_entry(entry) for entry in entries]


def _entry(entry: Entry, uuid: str | None = None) -> JSONObject:
    """Return which rule it is: by its new name and description, if they are written, and its place in the request."""
    old, new = entry.old, entry.new
    pointer = None if entry.place is None else f"/rules/{entry.place}"
    if new is not None:
        return {"uuid": uuid if old is None else old.uuid, "name": new["name"], "description": new["description"],
                "pointer": pointer}
    assert old is not None
    return {"uuid": old.uuid, "name": old.name, "description": old.description, "pointer": pointer}
