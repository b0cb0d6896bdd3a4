"""A rule as clients send it -> a rule as it is stored."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_INTEGER = re.compile(r"[+-]?[0-9]{1,9}")
_BOOLEANS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
_DEFAULTS: dict[str, Any] = {
    "description": None, "priority": 0, "phase": "main", "scope": None, "sensitive": False, "conditions": [],
}


def from_wire(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the rule with defaults for what is absent and the spellings of real clients understood.

    ``openstack baremetal`` sends the priority and ``sensitive`` as strings and null for conditions that were not given.
    What can not be understood is left as it is, for ``validate`` to refuse.
    """
    rule = {**_DEFAULTS, "conditions": [], **body}
    priority = rule["priority"]
    if isinstance(priority, str) and _INTEGER.fullmatch(priority):
        rule["priority"] = int(priority)
    sensitive = rule["sensitive"]
    if sensitive is None:
        rule["sensitive"] = False
    elif isinstance(sensitive, str):
        rule["sensitive"] = _BOOLEANS.get(sensitive.lower(), sensitive)
    if rule["conditions"] is None:
        rule["conditions"] = []
    uuid = rule.get("uuid")
    if isinstance(uuid, str):
        rule["uuid"] = uuid.lower()
    elif uuid is None:
        rule.pop("uuid", None)
    return rule
