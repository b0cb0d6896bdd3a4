"""Body of ``/v1/continue_inspection``: any object. ``inspection.payload`` knows what belongs inside."""

from __future__ import annotations

from ironic_rules.api import schema

BODY = schema.Map()
