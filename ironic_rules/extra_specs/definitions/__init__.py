"""The extra specs and image properties that exist, by namespace."""

from __future__ import annotations

from collections.abc import Iterator

from ironic_rules.extra_specs.definitions import compute, images, scheduling
from ironic_rules.extra_specs.validators import ExtraSpecValidator

_EXTRA_SPECS = (
    compute.ACCEL_SPECS, scheduling.AGGREGATES_SPECS, scheduling.CAPABILITIES_SPECS, compute.HW_SPECS,
    compute.HW_RNG_SPECS,
    compute.HW_VIDEO_SPECS, scheduling.NO_NAMESPACE_SPECS, compute.OS_SPECS, compute.PCI_PASSTHROUGH_SPECS,
    scheduling.QUOTA_SPECS, scheduling.REMOVED_SPECS, scheduling.RESOURCES_SPECS, scheduling.TRAITS_SPECS,
    compute.VMWARE_SPECS)


def extra_specs() -> Iterator[ExtraSpecValidator]:
    """Yield the extra specs of flavors."""
    for specs in _EXTRA_SPECS:
        yield from specs


def image_properties() -> Iterator[ExtraSpecValidator]:
    """Yield the properties of images."""
    yield from images.PROPERTIES
