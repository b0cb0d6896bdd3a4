"""Bodies of ``/v1/inspection_rules``.

The rule is checked by the rule engine, which reports every problem at once; the schema only requires an object.
"""

from __future__ import annotations

from typing import Any

from ironic_rules.api import schema
from ironic_rules.models.documents import JSON
from ironic_rules.models.rules import RULE
from ironic_rules.rules import rule_fields, rule_schema

#: Maximum number of rules of one request; the size of its body is limited as well.
MAX_RULES = 100_000


class Rule(schema.Map):
    """A rule."""

    #: What the rule engine accepts, for those who want to know before they send it.
    json_schema = staticmethod(rule_schema)


class RuleOfSet(schema.Anything):
    """A rule, as for ``POST``."""


class Bundle(schema.Schema):
    """A name."""

    def convert(self, value: JSON, where: str, problems: schema.Problems) -> Any:
        if reason := rule_fields.name_problem(value):
            raise ValueError(reason)
        return value


CREATE = Rule()
#: Each rule is checked like that of a POST; all problems of all rules are reported together.
APPLY = schema.Object(
    {"rules": schema.List(RuleOfSet(nullable=True), max_items=MAX_RULES), "prune": schema.Boolean(),
     "dry_run": schema.Boolean(), "bundle": Bundle(nullable=True)}, required=("rules",))
#: Rules are checked like those of a POST; the report is checked as that of a ramdisk.
DRY_RUN = schema.Object({
    "node": schema.Text(max_length=255, min_length=1), "nodes": schema.Map(),
    "version": schema.Integer(1, 2**63 - 1), "report": schema.Map(),
    "imagined": schema.Boolean(), "rules": schema.List(RuleOfSet(nullable=True), max_items=MAX_RULES),
    "as_if": schema.List(RuleOfSet(nullable=True), max_items=MAX_RULES), "compare": schema.Boolean()})
ROLLBACK = schema.Object({"dry_run": schema.Boolean()}, nullable=True)
#: Every field that a PATCH may write; the rest can be read by a patch.
PATCHABLE = RULE.where(lambda entry: entry.patch)
