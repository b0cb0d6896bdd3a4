"""What older releases of Nova had, so that an old flavor gets an answer."""

from __future__ import annotations

from ironic_rules.extra_specs.validators import ExtraSpecValidator

_TEXT = {"type": str, "description": "Any; it has no effect."}
_POWERVM = "Nova 26.0.0"
_HYPER_V = "Nova 29.0.0"
_LONG_AGO = "a release of Nova before 21.0.0"


def _hyper_v(name: str, what: str) -> ExtraSpecValidator:
    return ExtraSpecValidator(f"os:{name}", f"{what} of instances on Hyper-V with RemoteFX.", _TEXT, removed=_HYPER_V,
                              advice="It was for Hyper-V, whose driver was removed as well; nothing takes its place.")


EXTRA_SPECS = [
    ExtraSpecValidator(
        name="powervm:{name}",
        description="The partition of an instance on PowerVM.",
        parameters=[{"name": "name", "description": "A property of the partition.", "pattern": "[a-z_]+"}],
        value=_TEXT,
        removed=_POWERVM,
        advice="It was for PowerVM, whose driver was removed as well; nothing takes its place.",
        drivers=["powervm"],
    ),
    ExtraSpecValidator(
        name="hw_watchdog_action",
        description="What happens when the guest does not answer its watchdog any more.",
        value=_TEXT,
        removed=_LONG_AGO,
        replaced_by="hw:watchdog_action",
        drivers=["libvirt"],
        see_also="hw_watchdog_action",
    ),
    _hyper_v("monitors", "The number of monitors"),
    _hyper_v("resolution", "The resolution of the monitors"),
    _hyper_v("vram", "The video memory"),
    ExtraSpecValidator(
        name="baremetal:{image}_id",
        description="The image with which a bare-metal node was deployed.",
        parameters=[{"name": "image", "description": "Which image.", "pattern": "deploy_kernel|deploy_ramdisk"}],
        value=_TEXT,
        removed=_LONG_AGO,
        advice="Set driver_info/deploy_kernel and driver_info/deploy_ramdisk of the nodes instead.",
        drivers=["ironic"],
    ),
]
