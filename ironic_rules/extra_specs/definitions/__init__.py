"""What extra specs and image properties there are: one module for each namespace."""

from __future__ import annotations

from collections.abc import Iterator

from ironic_rules.extra_specs.definitions import (
    accel,
    aggregates,
    capabilities,
    hw,
    hw_rng,
    hw_video,
    images,
    no_namespace,
    os,
    pci_passthrough,
    quota,
    removed,
    resources,
    traits,
    vmware,
)
from ironic_rules.extra_specs.validators import ExtraSpecValidator

_MODULES = (accel, aggregates, capabilities, hw, hw_rng, hw_video, no_namespace, os, pci_passthrough, quota, removed,
            resources,
            traits, vmware)


def extra_specs() -> Iterator[ExtraSpecValidator]:
    """Yield the extra specs of flavors."""
    for module in _MODULES:
        yield from module.EXTRA_SPECS


def image_properties() -> Iterator[ExtraSpecValidator]:
    """Yield the properties of images."""
    yield from images.PROPERTIES
