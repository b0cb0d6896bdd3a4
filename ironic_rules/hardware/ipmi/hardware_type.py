"""``ipmi``: machines whose BMC supports IPMI."""

from __future__ import annotations

from ironic_rules.hardware.base import HardwareType


class IPMIHardware(HardwareType):
    supported_boot_interfaces = ("ipxe", "fake")
    supported_deploy_interfaces = ("direct", "ramdisk", "custom-agent")
    supported_management_interfaces = ("ipmitool", "noop")
    supported_power_interfaces = ("ipmitool",)
