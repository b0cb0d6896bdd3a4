"""Bodies of ``/v1/rules``.

The rule is checked by the package ``legacy``, which reports every problem at once; the schema only requires an object.
"""

from __future__ import annotations

from ironic_rules.api import schema


class LegacyRule(schema.Map):
    """A rule in the form of ironic-inspector."""


RULE = LegacyRule()
