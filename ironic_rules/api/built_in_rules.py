"""Built-in rules in the API: shown beside the stored ones, and never changed."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

import orjson
import pecan

from ironic_rules.api import etags
from ironic_rules.db.paging import Page
from ironic_rules.exceptions import Invalid

#: Makes the tags of sensitive rules unpredictable.
_KEY = secrets.token_bytes(32)


class BuiltIn:
    """One built-in rule, as a row of the rules table looks that was read with ``raw_json``."""

    def __init__(self, rule: Mapping[str, Any]) -> None:
        self.rule = rule
        self.uuid: str = rule["uuid"]

    def __getattr__(self, name: str) -> Any:
        value = self.rule.get(name)
        return orjson.dumps(value).decode() if isinstance(value, list) else value


def find(uuid: str | None) -> BuiltIn | None:
    """Return the built-in rule with that UUID, None if there is none."""
    for rule in pecan.request.rules.built_in:
        if rule["uuid"] == uuid:
            return BuiltIn(rule)
    return None


def tag(rule: Mapping[str, Any]) -> str:
    """Return the entity tag of a built-in rule: it follows from what the rule says, wherever it stands.

    That of a sensitive rule is another one in every process: who can guess at it must not be able to check.
    """
    said = {name: value for name, value in rule.items() if name != "position"}
    content = orjson.dumps(said, option=orjson.OPT_SORT_KEYS)
    return etags.tag(content, _KEY) if rule["sensitive"] else etags.tag(content)


def refuse(uuid: str) -> None:
    """Check that the rule with that UUID may be changed.

    :raises Invalid: 400, it is built-in
    """
    if find(uuid) is not None:
        raise Invalid(f"Inspection rule {uuid} is built-in: it can only be changed where the service reads it.")


def page(filters: Mapping[str, Any], asked: Page, taken: int) -> list[BuiltIn]:
    """Return the built-in rules of a page that has ``taken`` stored ones already: they come after those.

    :param filters: what the request asks of ``phase``, ``scope`` and ``priority``
    """
    found = [BuiltIn(rule) for rule in pecan.request.rules.built_in
             if all(rule.get(name) == value for name, value in filters.items())]
    if asked.sort_key not in ("id", "created_at", "updated_at"):
        found.sort(key=lambda rule: _order(getattr(rule, asked.sort_key)))
    if asked.sort_dir == "desc":
        found.reverse()
    places = [index for index, rule in enumerate(found) if rule.uuid == asked.marker]
    return found[places[0] + 1 if places else 0:][:asked.limit - taken]


def _order(value: Any) -> tuple[bool, Any]:
    return value is not None, value if isinstance(value, (int, str)) else 0
