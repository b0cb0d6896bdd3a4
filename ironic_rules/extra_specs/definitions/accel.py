"""Accelerators: ``accel:NAME``."""

from __future__ import annotations

from ironic_rules.extra_specs.validators import ExtraSpecValidator

EXTRA_SPECS = [
    ExtraSpecValidator(
        name="accel:device_profile",
        description="Accelerators for the instance, as a device profile of the accelerator service describes them.",
        value={"type": str, "description": "The name of a device profile."},
        drivers=["libvirt"],
    ),
]
