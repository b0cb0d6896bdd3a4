"""Traits that a host must have, or must not have: ``trait:NAME``."""

from __future__ import annotations

import functools

from ironic_rules.extra_specs.validators import ExtraSpecValidator

GROUP = {
    "name": "group",
    "description": "The request group, which one provider has to satisfy as a whole; empty for the unnumbered group.",
    "pattern": "(?:[a-zA-Z0-9_-]{1,64})?",
}
_VALUE = {
    "type": str,
    "description": "Whether the host must have the trait, or must not.",
    "enum": ["required", "forbidden"],
}


@functools.cache
def standard_traits() -> frozenset[str]:
    """Return the names of standard traits."""
    # Most of the time that importing this package would take, and many programs need no trait.
    import os_traits
    return frozenset(os_traits.get_traits())


EXTRA_SPECS = [
    ExtraSpecValidator(
        name="trait{group}:CUSTOM_{trait}",
        description="Require or forbid a custom trait. The required traits of a bare-metal flavor also select deploy "
                    "templates: those whose name is one of them.",
        parameters=[GROUP,
                    {"name": "trait", "description": "The name of the trait after ``CUSTOM_``.",
                     "pattern": "[A-Z0-9_]+"}],
        value=_VALUE,
    ),
    ExtraSpecValidator(
        name="trait{group}:{trait}",
        description="Require or forbid a standard trait.",
        parameters=[GROUP,
                    {"name": "trait", "description": "The name of a trait of os-traits.", "enum": standard_traits}],
        value=_VALUE,
    ),
]
