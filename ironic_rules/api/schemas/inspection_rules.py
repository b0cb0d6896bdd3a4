"""Bodies of ``/v1/inspection_rules``.

The rule itself is checked by the rule engine, which finds every problem at once; here only that it is an object.
"""

from __future__ import annotations

from ironic_rules.api import schema

CREATE = schema.Map()
