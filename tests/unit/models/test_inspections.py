"""The entries of the history of inspections, as they are read."""

from __future__ import annotations

from typing import Any

from ironic_rules.models import inspections


def entry(rule: str, *operations: dict[str, Any]) -> dict[str, Any]:
    return {"rule": rule, "sensitive": False, "changes": {"node": list(operations)}}


def add(path: str, value: Any) -> dict[str, Any]:
    return {"op": "add", "path": path, "value": value}


def test_short_entries_of_an_earlier_version_are_read_in_full_at_their_place() -> None:
    details = {
        "rules": [entry("first", add("/traits/-", "CUSTOM_A")), entry("last", add("/extra/i", [1]))],
        "together": [{"at": 1, "rules": [["b", "/extra/b", 0, "/extra/a", 1], ["c", "/properties/c~1d", 0]],
                      "values": ["three", None]}]}

    assert inspections.rules(details) == [
        details["rules"][0], entry("b", add("/extra/b", "three"), add("/extra/a", None)),
        entry("c", add("/properties/c~1d", "three")), details["rules"][1]]
