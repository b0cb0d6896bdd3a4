"""Built-in rules in the API: listed after the stored ones, and read-only."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

import orjson

from ironic_rules.api import etags
from ironic_rules.api.request import Request
from ironic_rules.db import inspection_rules
from ironic_rules.db.inspection_rules import RulePlace
from ironic_rules.db.paging import Page
from ironic_rules.exceptions import Invalid
from ironic_rules.models.documents import JSON
from ironic_rules.models.rules import Rule

#: Makes the tags of rules unpredictable whose conditions and actions the client does not see.
_KEY = secrets.token_bytes(32)


def find(request: Request, uuid: str | None) -> Rule | None:
    """Return the built-in rule with that UUID, None if there is none."""
    built_in: tuple[Rule, ...] = request.rules.built_in
    return next((rule for rule in built_in if rule.uuid == uuid), None)


def tag(rule: Rule, *, details: bool = True) -> str:
    """Return the entity tag of a built-in rule, which depends on its content only, not on its file.

    That of a sensitive rule differs in every process, so that a client cannot verify a guess at its content.

    :param details: whether the client sees conditions and actions; otherwise, the tag is as that of a sensitive rule
    """
    content = orjson.dumps({**rule.said(), "built_in": True}, option=orjson.OPT_SORT_KEYS)
    return etags.tag(content, _KEY) if rule.sensitive or not details else etags.tag(content)


def refuse(request: Request, uuid: str) -> None:
    """Check that the rule with that UUID may be changed.

    :raises Invalid: 400, it is built-in
    """
    if find(request, uuid) is not None:
        raise Invalid(f"Inspection rule {uuid} is built-in: it can only be changed where the service reads it.")


def page(request: Request, filters: Mapping[str, Any], asked: Page, taken: int) -> list[Rule]:
    """Return the built-in rules of a page that already has ``taken`` stored rules: they come after those.

    :param filters: as for ``rule_filters.conditions``
    """
    found = [rule for rule in request.rules.built_in if inspection_rules.matches_filters(rule, filters)]
    if asked.sort_key not in ("id", "created_at", "updated_at"):
        found.sort(key=lambda rule: _order(getattr(rule, asked.sort_key)))
    if asked.sort_dir == "desc":
        found.reverse()
    places = [index for index, rule in enumerate(found) if rule.uuid == asked.marker]
    return found[places[0] + 1 if places else 0:][:asked.limit - taken]


def after(request: Request, filters: Mapping[str, Any], place: RulePlace | None, *, ascending: bool) -> list[Rule]:
    """Return the built-in rules beyond ``place`` in the order in which rules run.

    :param filters: as for ``rule_filters.conditions``
    :param place: None: all of them
    """
    found = [rule for rule in request.rules.built_in if inspection_rules.matches_filters(rule, filters) and (
        place is None
        or (inspection_rules.place_of(rule) > place if ascending else inspection_rules.place_of(rule) < place))]
    return sorted(found, key=inspection_rules.place_of, reverse=not ascending)


def _order(value: JSON) -> tuple[bool, Any]:
    return value is not None, value if isinstance(value, (int, str)) else 0
