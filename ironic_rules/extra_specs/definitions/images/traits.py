"""Traits that an image needs: ``trait:NAME``."""

from __future__ import annotations

from ironic_rules.extra_specs.definitions.traits import standard_traits
from ironic_rules.extra_specs.validators import ExtraSpecValidator

_REQUIRED = {"type": str, "description": "An image can only require a trait.", "enum": ["required"]}

_CUSTOM = {"name": "trait", "description": "The name of the trait after ``CUSTOM_``.", "pattern": "[A-Z0-9_]+"}
_STANDARD = {"name": "trait", "description": "The name of a trait of os-traits.", "enum": standard_traits}

PROPERTIES = [
    ExtraSpecValidator("trait:CUSTOM_{trait}", "Require a custom trait of the host, beside those of the flavor.",
                       _REQUIRED, [_CUSTOM], see_also="trait{group}:CUSTOM_{trait}"),
    ExtraSpecValidator("trait:{trait}", "Require a standard trait of the host, beside those of the flavor.",
                       _REQUIRED, [_STANDARD], see_also="trait{group}:{trait}"),
]
