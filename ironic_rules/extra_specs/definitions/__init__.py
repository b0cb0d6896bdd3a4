"""What extra specs and image properties there are: one module for each namespace."""

from __future__ import annotations

from collections.abc import Iterator

from ironic_rules.extra_specs.definitions import hw, resources, traits
from ironic_rules.extra_specs.validators import ExtraSpecValidator

_EXTRA_SPECS = (hw, resources, traits)


def extra_specs() -> Iterator[ExtraSpecValidator]:
    """Yield the extra specs of flavors."""
    for module in _EXTRA_SPECS:
        yield from module.EXTRA_SPECS


def image_properties() -> Iterator[ExtraSpecValidator]:
    """Yield the properties of images."""
    yield from ()
