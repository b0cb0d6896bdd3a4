"""Which rules gave a node its traits, from the history of its inspections."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ironic_rules.models.inspections import InspectionEntry
from ironic_rules.models.json_values import JSONObject

_ONE = re.compile(r"/traits/(?:-|[0-9]+)")


class Origin(NamedTuple):
    """The rule, by its UUID, and the inspection in which it gave a trait last."""

    rule: str
    inspection: InspectionEntry


def origins(inspections: Iterable[InspectionEntry]) -> dict[str, Origin]:
    """Return the origin of each trait that rules gave.

    :param inspections: the newest first
    """
    found: dict[str, Origin] = {}
    for entry in inspections:
        # Without the short entries of an earlier version: their rules write no traits.
        for rule in entry.details.get("rules") or ():
            for trait in _given(rule.get("changes") or {}):
                found.setdefault(trait, Origin(rule["rule"], entry))
    return found


def _given(changes: Mapping[str, Any]) -> Iterator[str]:
    patch: list[JSONObject] = [operation for operation in changes.get("node", ()) if _ONE.fullmatch(operation["path"])]
    added = [operation["value"] for operation in patch if operation["op"] == "add"]
    if all(operation["op"] != "replace" for operation in patch):
        yield from added
    elif len(added) == 1:
        # Of an older version, which replaced each trait behind a new one: the new one is the first that is written.
        yield next(operation["value"] for operation in patch if "value" in operation)
