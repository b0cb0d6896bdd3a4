"""What only VMware's driver knows: ``vmware:NAME``."""

from __future__ import annotations

from ironic_rules.extra_specs.validators import ExtraSpecValidator

EXTRA_SPECS = [
    ExtraSpecValidator(
        name="vmware:hw_version",
        description="The version of the virtual hardware, which decides on which hosts the instance can run.",
        value={"type": str, "description": "The version, such as ``vmx-19``."},
        drivers=["vmware"],
    ),
    ExtraSpecValidator(
        name="vmware:storage_policy",
        description="The storage policy of the instance's disks, where the cloud has such policies.",
        value={"type": str, "description": "The name of the policy."},
        drivers=["vmware"],
    ),
]
