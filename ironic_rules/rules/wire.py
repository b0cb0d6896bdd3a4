"""Convert a rule from the form that clients send to the form that is stored."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ironic_rules.models.fields import Type
from ironic_rules.models.inspection_rules import RULE, WRITABLE
from ironic_rules.models.json_values import JSONObject

_INTEGER = re.compile(r"[+-]?[0-9]{1,9}")
#: Words for true and false, in lower case.
BOOLEANS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
_INTEGERS = RULE.where(lambda entry: entry.create and entry.type is Type.INTEGER)
_FLAGS = RULE.where(lambda entry: entry.create and entry.type is Type.BOOLEAN)


def from_wire(body: Mapping[str, Any], *, default_scope: str | None = None) -> JSONObject:
    """Return the rule with defaults for missing fields, and with the notations of existing clients converted.

    ``openstack baremetal`` sends integers and Booleans as strings and null for conditions that were not given.
    Values that cannot be converted are unchanged, so that ``validate`` refuses them.

    :param default_scope: the scope of a rule that does not set one, except of one of phase early, which can have none
    """
    rule = {**{name: RULE[name].initial() for name in WRITABLE if name not in ("uuid", "actions")}, **body}
    if "scope" not in body and rule["phase"] != "early":
        rule["scope"] = default_scope
    for name in _INTEGERS:
        if isinstance(rule[name], str) and _INTEGER.fullmatch(rule[name]):
            rule[name] = int(rule[name])
    for name in _FLAGS:
        if rule[name] is None:
            rule[name] = RULE[name].default
        elif isinstance(rule[name], str):
            rule[name] = BOOLEANS.get(rule[name].lower(), rule[name])
    if rule["conditions"] is None:
        rule["conditions"] = []
    uuid = rule.get("uuid")
    if isinstance(uuid, str):
        rule["uuid"] = uuid.lower()
    elif uuid is None:
        rule.pop("uuid", None)
    return rule
