"""``[inspector]``: inspection hooks, and how they handle ports."""

from __future__ import annotations

import re
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


class MACBeginning(types.String):
    """A MAC address, or the first octets of one; the value is in lower case with colons."""

    def __init__(self) -> None:
        super().__init__(type_name="MAC address or its first octets")

    def __call__(self, value: object) -> str:
        text = str(super().__call__(value)).lower().replace("-", ":")
        if _BEGINNING.fullmatch(text) is None:
            raise ValueError("a MAC address or its first octets are expected, such as be:3a:f2:b6:05:9f or 02:42")
        return text


_BEGINNING = re.compile(r"[0-9a-f]{2}(?::[0-9a-f]{2}){0,5}")
GROUP = cfg.OptGroup("inspector", title="Inspection", help="In-band inspection and its hooks.")
#: CPU flag to capability, as in Inspector
CPU_CAPABILITIES = {
    "vmx": "cpu_vt", "svm": "cpu_vt", "aes": "cpu_aes", "pse": "cpu_hugepages", "pdpe1gb": "cpu_hugepages_1g",
    "smx": "cpu_txt",
}
#: MAC addresses that many machines have, and where they were seen.
IGNORED_MACS = [
    "be:3a:f2:b6:05:9f",    # USB network interface of BMCs with AMI's MegaRAC, of several vendors (169.254.3.1)
    "b0:3a:f2:b6:05:9f",    # the same of Supermicro, X12 and H12
    "02:ba:7b:d5:c6:6f",    # Olimex A64 boards
    "00:01:02:03:04:05",    # adapters whose memory is empty
]
#: Alternative forms of hook names: the specifications use both.
HOOK_ALIASES = {"validate_interfaces": "validate-interfaces"}
OPTS: list[cfg.Opt] = [
    cfg.StrOpt("default_hooks", default="ramdisk-error,validate-interfaces,ports,architecture",
               help="Comma-separated inspection hooks that run by default."),
    cfg.StrOpt("hooks", default="$default_hooks",
               help="Comma-separated inspection hooks to run, in this order."),
    cfg.IntOpt("hook_timeout", default=60, min=0,
               help="Seconds that a hook may take, and as many for its preprocess. After that the inspection fails, "
                    "and another worker replaces this one. 0: no limit."),
    cfg.StrOpt("foreign_bmc", default="refuse",
               choices=[("refuse", "if one other node has the address, in any state, refuse the report unless two of "
                                   "these match: the UUID, the MAC addresses, the serial number or system UUID; the "
                                   "documentation has the weights"),
                        ("warn", "accept the report, even if one other node has the address"),
                        ("strict", "refuse the report, also if no node has the address, unless the BMC of the node is "
                                   "not known")],
               help="Reaction to the report of a node, found by MAC addresses or UUID, whose BMC has another "
                    "address than those of the node. With refuse and warn, the log contains a warning for an "
                    "accepted report. An address that no node has, or several have, is no reason to reject it: BMCs "
                    "have several addresses, and chassis one for all machines. A rejected report gets the 404 of an "
                    "unknown machine."),
    cfg.ListOpt("ignored_macs", default=IGNORED_MACS, item_type=MACBeginning(),
                help="MAC addresses that identify no machine, or beginnings of them in whole octets, such as 02:42. "
                     "No lookup uses them, and only operators create ports for them. The default contains addresses "
                     "of many machines: those of the host's side of USB network interfaces of BMCs, and of adapters "
                     "without their own address. Set the same list for all processes, and repeat the addresses that "
                     "you keep."),
    cfg.StrOpt("add_ports", default="all",
               choices=[("all", "every valid interface"), ("active", "interfaces with an IP address"),
                        ("pxe", "the interface that the ramdisk booted from"), ("disabled", "none")],
               help="Interfaces for which an inspection creates ports of the node."),
    cfg.StrOpt("keep_ports", default="all",
               choices=[("all", "delete nothing"), ("present", "delete ports whose address is not in the inventory"),
                        ("added", "delete ports that add_ports does not select")],
               help="Existing ports that an inspection keeps."),
    cfg.BoolOpt("update_pxe_enabled", default=True,
                help="Update pxe_enabled of existing ports from the inventory."),
    cfg.BoolOpt("pre_create_ports", default=True,
                help="Before an in-band inspection, create ports for the MAC addresses of enabled interfaces that "
                     "the management interface reads from the BMC. So the machine has its ports when it boots the "
                     "ramdisk. Independent of add_ports."),
    cfg.Opt("disk_partitioning_spacing", type=Spacing(), default=1,
            help="GiB by which local_gb is less than the size of the root disk, as space for partitioning. 0: none."),
    cfg.DictOpt("cpu_capabilities", default=CPU_CAPABILITIES,
                help="CPU flag to capability, for the hook cpu-capabilities."),
    cfg.MultiStrOpt("pci_device_alias", default=[],
                    help='Name of a PCI device, for the hook pci-devices: {"vendor_id": "1234", "product_id": "5678", '
                         '"name": "pci_dev1"}. The capability of that name is the number of such devices.'),
    cfg.ListOpt("physical_network_cidr_map", default=[],
                help="CIDR:PHYSICAL_NETWORK entries, for the hook physical-network, such as 192.0.2.0/24:provider "
                     "or 2001:db8::/64:storage. If several match, the longest prefix counts."),
    cfg.StrOpt("known_accelerators",
               help="YAML file with the accelerators that the hook accelerators detects, instead of the list that is "
                    "part of this package."),
    cfg.BoolOpt("power_off", default=True,
                help="Power off a node after its inspection, unless it has disable_power_off."),
    cfg.Opt("callback_endpoint_override", type=HttpUrlType(),
            help="Root URL of the API for the ramdisk in a managed boot. Default: [api]public_endpoint."),
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
