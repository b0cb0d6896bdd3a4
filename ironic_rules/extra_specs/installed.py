"""The registries of this installation: what this package defines, and what plug-ins add."""

from __future__ import annotations

import functools

from ironic_rules.extra_specs import definitions, plugins
from ironic_rules.extra_specs.registry import Registry


@functools.cache
def extra_specs() -> Registry:
    """Return all extra specs of flavors, built once; ``warnings`` has the problems of plug-ins."""
    registry = built_in()
    plugins.add_to(registry)
    return registry


@functools.cache
def image_properties() -> Registry:
    """Return all properties of images, built once."""
    return Registry("image property", definitions.image_properties())


def built_in() -> Registry:
    """Return a new registry of the extra specs that this package defines."""
    return Registry("extra spec", definitions.extra_specs())
