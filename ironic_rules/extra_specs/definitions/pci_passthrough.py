"""PCI devices of the host: ``pci_passthrough:NAME``."""

from __future__ import annotations

from ironic_rules.extra_specs.validators import ExtraSpecValidator

EXTRA_SPECS = [
    ExtraSpecValidator(
        name="pci_passthrough:alias",
        description="PCI devices of the host that the instance gets, by the aliases that Nova's configuration has for "
                    "them.",
        value={"type": str, "description": "Aliases with a number of devices each, such as ``gpu:2,nic:1``.",
               "pattern": r"[^:]+:[0-9]+(?:\s*,\s*[^:]+:[0-9]+)*"},
        drivers=["libvirt"],
    ),
]
