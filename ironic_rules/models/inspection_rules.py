"""Inspection rules: their fields (document 000). The package ``rules`` implements conditions and actions."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

from ironic_rules.models.fields import Fields, Filter, Text, Type, field, record
from ironic_rules.models.json_values import JSONObject

PHASES = ("early", "preprocess", "main")
#: The highest priority of a rule that users create; a built-in rule can have any integer.
MAX_PRIORITY = 9999
#: The highest number of nodes of ``max_nodes``: that of the column.
MAX_NODES = 2**31 - 1


@record
class Rule:
    """A rule as it is stored, or as it is in the operator's files (``built_in``).

    ``uuid`` is empty for a rule that is not stored yet. ``position`` is the order of creation; ``revision`` is that of
    the rule set at the last change of this rule. ``ops`` and ``writes`` are what lists are searched for; see
    ``rule_search``. ``name`` is unique within ``bundle``; rules without a bundle form one group. ``max_nodes`` is the
    number of distinct nodes on which the rule runs; None: no limit. ``nodes_counted`` is how many of them there are; 0
    without a limit.
    """

    position: int = field(shown=False, default=0)
    revision: int = field(shown=False, default=0)
    ops: str | None = field(shown=False, default=None)
    writes: str | None = field(shown=False, default=None)

    uuid: str = field(create=True, summary=True, default="")
    created_at: datetime.datetime | None = field(default=None)
    updated_at: datetime.datetime | None = field(default=None)
    name: str | None = field(patch=True, summary=True, filter=1, min_length=1, default=None)
    bundle: str | None = field(patch=True, summary=True, filter=1, min_length=1, default=None)
    description: str | None = field(patch=True, summary=True, default=None)
    enabled: bool = field(patch=True, summary=True, filter=1, default=True)
    priority: int = field(patch=True, summary=True, filter=1, default=0)
    phase: str = field(patch=True, summary=True, filter=1, choices=PHASES, default="main")
    scope: str | None = field(patch=True, summary=True, filter=1, default=None)
    max_nodes: int | None = field(patch=True, default=None)
    nodes_counted: int = field(default=0)
    sensitive: bool = field(patch=True, summary=True, filter=1, default=False)
    built_in: bool = field(column=False, summary=True, default=False)
    conditions: list[JSONObject] = field(patch=True, default_factory=list)
    actions: list[JSONObject] = field(patch=True, required=True, default_factory=list)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Rule:
        """Return the rule with these fields; null stands for the default, where a field cannot be null."""
        return cls(**{name: value for name, value in values.items()
                      if value is not None or name not in RULE or RULE[name].nullable})

    def said(self) -> JSONObject:
        """Return what a user has specified of the rule: the fields that can be written."""
        return {name: getattr(self, name) for name in WRITABLE if name != "uuid" or self.uuid}


RULE = Fields.of(Rule, made={"links": 1, "valid": 1, "problems": 1}, filters=(
    Filter("built_in", Type.BOOLEAN), Filter("valid", Type.BOOLEAN), Filter("description"), Filter("op"),
    Filter("writes", text=Text.POINTER)))
#: Fields of a list without ``detail`` and ``fields``.
SUMMARY = (*RULE.summary, "valid")
#: Fields that a user may set when a rule is created: the UUID, and those that PATCH may write.
WRITABLE = RULE.where(lambda entry: entry.create)
#: Fields of a sensitive rule that are never shown.
SEALED = ("conditions", "actions")
