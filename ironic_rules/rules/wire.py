"""Convert a rule from the form that clients send to the form that is stored."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ironic_rules.models.inspection_rules import RULE, WRITABLE
from ironic_rules.models.json_values import JSONObject

_INTEGER = re.compile(r"[+-]?[0-9]{1,9}")
#: Words for true and false, in lower case.
BOOLEANS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}


def from_wire(body: Mapping[str, Any]) -> JSONObject:
    """Return the rule with defaults for missing fields, and with the notations of existing clients converted.

    ``openstack baremetal`` sends the priority and ``sensitive`` as strings and null for conditions that were not given.
    Values that cannot be converted are unchanged, so that ``validate`` refuses them.
    """
    rule = {**{name: RULE[name].initial() for name in WRITABLE if name not in ("uuid", "actions")}, **body}
    priority = rule["priority"]
    if isinstance(priority, str) and _INTEGER.fullmatch(priority):
        rule["priority"] = int(priority)
    sensitive = rule["sensitive"]
    if sensitive is None:
        rule["sensitive"] = False
    elif isinstance(sensitive, str):
        rule["sensitive"] = BOOLEANS.get(sensitive.lower(), sensitive)
    if rule["conditions"] is None:
        rule["conditions"] = []
    uuid = rule.get("uuid")
    if isinstance(uuid, str):
        rule["uuid"] = uuid.lower()
    elif uuid is None:
        rule.pop("uuid", None)
    return rule
