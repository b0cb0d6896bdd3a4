"""``fake-hardware``: machines that exist only in the database, for tests, demonstrations and unmanaged inspection."""

from __future__ import annotations

from ironic_rules.hardware.base import HardwareType


class FakeHardware(HardwareType):
    supported_bios_interfaces = ("fake", "no-bios")
    supported_boot_interfaces = ("fake",)
    supported_console_interfaces = ("fake", "no-console")
    supported_deploy_interfaces = ("fake", "custom-agent")
    supported_firmware_interfaces = ("fake", "no-firmware")
    supported_inspect_interfaces = ("agent", "no-inspect")
    supported_management_interfaces = ("fake", "noop")
    supported_network_interfaces = ("noop",)
    supported_power_interfaces = ("fake",)
    supported_raid_interfaces = ("fake", "no-raid")
    supported_rescue_interfaces = ("fake", "no-rescue")
    supported_storage_interfaces = ("noop", "fake")
    supported_vendor_interfaces = ("fake", "no-vendor")
