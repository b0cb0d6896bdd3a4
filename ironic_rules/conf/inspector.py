"""``[inspector]``: inspection hooks, and how they handle ports."""

from __future__ import annotations

from typing import Any

from oslo_config import cfg, types

from ironic_rules.conf.value_types import HttpUrlType


class Spacing(types.Integer):
    """Whole GiB; true and false, as in Ironic, mean 1 and 0."""

    def __init__(self) -> None:
        super().__init__(min=0, max=1024, type_name="GiB")

    def __call__(self, value: Any) -> int | None:
        words = {"true": 1, "false": 0}
        try:
            number = super().__call__(words.get(str(value).lower(), value))
        except ValueError as exc:
            raise ValueError(f"a whole number of GiB from {self.min} to {self.max} is expected") from exc
        return None if number is None else int(number)


GROUP = cfg.OptGroup("inspector", title="Inspection", help="In-band inspection and its hooks.")
#: CPU flag to capability, as in Inspector
CPU_CAPABILITIES = {
    "vmx": "cpu_vt", "svm": "cpu_vt", "aes": "cpu_aes", "pse": "cpu_hugepages", "pdpe1gb": "cpu_hugepages_1g",
    "smx": "cpu_txt",
}
#: Alternative forms of hook names: the specifications use both.
HOOK_ALIASES = {"validate_interfaces": "validate-interfaces"}
OPTS: list[cfg.Opt] = [
    cfg.StrOpt("default_hooks", default="ramdisk-error,validate-interfaces,ports,architecture",
               help="Comma-separated inspection hooks that run by default."),
    cfg.StrOpt("hooks", default="$default_hooks",
               help="Comma-separated inspection hooks to run, in this order."),
    cfg.IntOpt("hook_timeout", default=60, min=0,
               help="Seconds that a hook may take, and as many for its preprocess. After that the inspection fails, "
                    "and the worker is written off and replaced. 0: no limit."),
    cfg.StrOpt("foreign_bmc", default="refuse",
               choices=[("refuse", "the report gets the 404 of a machine that is not found"),
                        ("warn", "accept the report and log a warning")],
               help="What happens with the report of a node, found by its MAC addresses or UUID, whose BMC has an "
                    "address that only other nodes are known to have, in any state. It is another machine, the BMC of "
                    "a chassis, or an address that another BMC had before."),
    cfg.StrOpt("add_ports", default="all",
               choices=[("all", "every valid interface"), ("active", "interfaces with an IP address"),
                        ("pxe", "the interface that the ramdisk booted from"), ("disabled", "none")],
               help="Interfaces for which ports of the node are created."),
    cfg.StrOpt("keep_ports", default="all",
               choices=[("all", "delete nothing"), ("present", "delete ports whose address is not in the inventory"),
                        ("added", "delete ports that add_ports does not select")],
               help="Existing ports that are kept."),
    cfg.BoolOpt("update_pxe_enabled", default=True,
                help="Update pxe_enabled of existing ports from the inventory."),
    cfg.BoolOpt("pre_create_ports", default=True,
                help="Before an in-band inspection, create ports for the MAC addresses that the BMC reports of enabled "
                     "interfaces, where the management interface can read them, so that the machine has its ports when "
                     "it boots the ramdisk. Independent of add_ports."),
    cfg.Opt("disk_partitioning_spacing", type=Spacing(), default=1,
            help="GiB by which local_gb is less than the size of the root disk, as space for partitioning. 0: none."),
    cfg.DictOpt("cpu_capabilities", default=CPU_CAPABILITIES,
                help="CPU flag to capability, for the hook cpu-capabilities."),
    cfg.MultiStrOpt("pci_device_alias", default=[],
                    help='Name of a PCI device, for the hook pci-devices: {"vendor_id": "1234", "product_id": "5678", '
                         '"name": "pci_dev1"}. The capability of that name is the number of such devices.'),
    cfg.ListOpt("physical_network_cidr_map", default=[],
                help="CIDR:PHYSICAL_NETWORK entries, for the hook physical-network, such as 192.0.2.0/24:provider or "
                     "2001:db8::/64:storage. If several match, the longest prefix is used."),
    cfg.StrOpt("known_accelerators",
               help="YAML file with the accelerators that the hook accelerators detects, instead of the list that is "
                    "part of this package."),
    cfg.BoolOpt("power_off", default=True,
                help="Power off a node after its inspection, unless it has disable_power_off."),
    cfg.Opt("callback_endpoint_override", type=HttpUrlType(),
            help="Root URL of the API that is passed to the ramdisk in a managed boot. Default: [api]public_endpoint."),
    cfg.StrOpt("extra_kernel_params", default="",
               help="Additional kernel parameters of a ramdisk that this service boots, separated by spaces."),
    cfg.BoolOpt("require_managed_boot", default=True,
                help="Require that the service itself boots the ramdisk. False: allow unmanaged boot, from a DHCP and "
                     "TFTP environment that this service does not control. Fake hardware needs unmanaged boot, and the "
                     "one-process service (ironic-rules) allows it by default."),
]


def hook_names(text: str) -> list[str]:
    """Return the names in a comma-separated list; empty ones are left out."""
    return [name for part in text.split(",") if (name := part.strip())]
