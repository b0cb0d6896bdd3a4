"""Bodies of ``/v1/inspection_rules``.

The rule is checked by the rule engine, which reports every problem at once; the schema only requires an object.
"""

from __future__ import annotations

from ironic_rules.api import schema
from ironic_rules.models.inspection_rules import RULE
from ironic_rules.rules import rule_schema


class Rule(schema.Map):
    """A rule."""

    #: What the rule engine accepts, for those who want to know before they send it.
    json_schema = staticmethod(rule_schema)


CREATE = Rule()
#: Every field that a PATCH may write; the rest can be read by a patch.
PATCHABLE = RULE.where(lambda entry: entry.patch)
