"""Extra specs of other packages, by entry point."""

from __future__ import annotations

from ironic_rules.extra_specs.registry import Registry

#: An entry point is a list of validators.
LISTS = "nova.extra_spec_validators"
#: An entry point is an object whose ``register()`` returns them: a module, for Nova.
NOVA = "nova.api.extra_spec_validators"


def add_to(registry: Registry) -> None:
    """Add the extra specs that installed packages define; what is wrong with them becomes ``registry.warnings``."""
