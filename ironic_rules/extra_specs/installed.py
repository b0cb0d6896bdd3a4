"""The registries of this installation: what this package defines, and what plug-ins add."""

from __future__ import annotations

import functools

from ironic_rules.extra_specs.registry import SpecRegistry


@functools.cache
def extra_specs() -> SpecRegistry:
    """Return all extra specs of flavors, built once; ``warnings`` has the problems of plug-ins."""
    # Reading entry points takes as long as everything else here together, and many programs never get here.
    from ironic_rules.extra_specs import plugins

    registry = built_in()
    plugins.add_to(registry)
    return registry


@functools.cache
def image_properties() -> SpecRegistry:
    """Return all properties of images, built once."""
    from ironic_rules.extra_specs import definitions

    return SpecRegistry("image property", definitions.image_properties())


def built_in() -> SpecRegistry:
    """Return a new registry of the extra specs that this package defines."""
    from ironic_rules.extra_specs import definitions

    return SpecRegistry("extra spec", definitions.extra_specs())
