"""``redfish``: machines whose BMC supports Redfish."""

from __future__ import annotations

from ironic_rules.hardware.base import HardwareType


class RedfishHardware(HardwareType):
    supported_bios_interfaces = ("redfish", "no-bios")
    supported_boot_interfaces = ("redfish-virtual-media", "ipxe", "fake")
    supported_deploy_interfaces = ("direct", "ramdisk", "custom-agent")
    supported_firmware_interfaces = ("redfish", "no-firmware")
    supported_inspect_interfaces = ("agent", "redfish", "no-inspect")
    supported_management_interfaces = ("redfish",)
    supported_power_interfaces = ("redfish",)
    supported_raid_interfaces = ("redfish", "no-raid")
    supported_vendor_interfaces = ("redfish", "no-vendor")
