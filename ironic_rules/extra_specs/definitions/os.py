"""The guest's operating system and its start: ``os:NAME``."""

from __future__ import annotations

from ironic_rules.extra_specs.validators import ExtraSpecValidator

EXTRA_SPECS = [
    ExtraSpecValidator(
        name="os:secure_boot",
        description="Whether the guest must boot with UEFI Secure Boot. It comes before what the image says. For bare "
                    "metal see ``capabilities:secure_boot``.",
        value={"type": str, "description": "Whether Secure Boot is on.", "enum": ["disabled", "required"]},
        drivers=["libvirt"],
        see_also="os_secure_boot",
    ),
]
