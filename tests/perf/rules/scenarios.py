"""The rules and the machine that both engines get: the same data, as JSON."""

from __future__ import annotations

import uuid
from typing import Any

from tests.perf import loads

#: The measured scenarios, and the meaning of each name.
KINDS = {
    "nomatch": "one condition, false",
    "nomatch5": "five conditions, the last one false",
    "match_set": "one condition, true, and one attribute set; nothing is saved",
    "match_set_db": "the same, and the node is saved",
    "loop_regex": "a regular expression over the names of 8 interfaces, false for all; a different one in each rule",
    "loop_match": "the same, true for the last, and one attribute set; nothing is saved",
}

_MAKER = "{inventory[system_vendor][manufacturer]}"
_IS_DELL = {"op": "eq", "args": {"values": [_MAKER, "Dell Inc."]}}
_NAMES = [f"{{inventory[interfaces][{number}][name]}}" for number in range(8)]


def inventory() -> dict[str, Any]:
    """Return the inventory of a 40-core server with 8 NICs and 12 disks."""
    found: dict[str, Any] = loads.inventory(1)["inventory"]
    return found


def rules(kind: str, count: int) -> list[dict[str, Any]]:
    """Return ``count`` rules of a kind, as they are stored."""
    return [
        {"uuid": str(uuid.uuid4()), "description": f"bench {number}", "priority": number % 100, "phase": "main",
         "sensitive": False, "conditions": _conditions(kind, number), "actions": _actions(number)}
        for number in range(count)
    ]


def hits(kind: str, count: int) -> int:
    """Return how many attributes ``count`` rules of a kind set."""
    return count if kind in ("match_set", "match_set_db", "loop_match") else 0


def _actions(number: int) -> list[dict[str, Any]]:
    return [{"op": "set-attribute",
             "args": {"path": f"/extra/k{number}", "value": "{inventory[cpu][model_name]}"}}]


def _conditions(kind: str, number: int) -> list[dict[str, Any]]:
    other_maker = {"op": "eq", "args": {"values": [_MAKER, f"NoSuch {number}"]}}
    if kind == "nomatch":
        return [other_maker]
    if kind == "nomatch5":
        return [
            _IS_DELL,
            {"op": "!is-empty", "args": {"value": "{inventory[system_vendor][serial_number]}"}},
            {"op": "in-net", "args": {"address": "{inventory[bmc_address]}", "subnet": "10.0.0.0/8"}},
            {"op": "contains", "args": {"value": "{inventory[cpu][model_name]}", "regex": "Xeon"}},
            other_maker,
        ]
    if kind in ("match_set", "match_set_db"):
        return [_IS_DELL]
    regex = f"ib[0-9]+x{number}" if kind == "loop_regex" else "ens4f1"
    return [{"op": "matches", "loop": _NAMES, "multiple": "any", "args": {"value": "{item}", "regex": regex}}]
