"""Extra specs without a namespace."""

from __future__ import annotations

from ironic_rules.extra_specs.validators import ExtraSpecValidator

EXTRA_SPECS = [
    ExtraSpecValidator(
        name="group_policy",
        description="Whether numbered groups of resources and traits must come from different providers "
                    "(``isolate``), or may come from one (``none``). Needed as soon as a flavor has more than one "
                    "such group.",
        value={"type": str, "description": "The policy.", "enum": ["isolate", "none"]},
        requires=["resources{group}:CUSTOM_{resource}"],
    ),
    ExtraSpecValidator(
        name="hide_hypervisor_id",
        description="Keeps the hypervisor's signature from the guest.",
        value={"type": bool, "description": "Whether it is hidden."},
        deprecated=True,
        replaced_by="hw:hide_hypervisor_id",
        drivers=["libvirt"],
        see_also="img_hide_hypervisor_id",
    ),
    ExtraSpecValidator(
        name="cpu_arch",
        description="The architecture of a bare-metal node, as flavors named it before there were resource classes.",
        value={"type": str, "description": "An architecture, such as ``x86_64``."},
        deprecated=True,
        replaced_by="capabilities:cpu_arch",
        advice="Where nodes of another architecture have another resource class, neither is needed.",
        drivers=["ironic"],
    ),
]
