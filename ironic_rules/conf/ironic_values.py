"""Values that configuration files of Ironic contain and this service does not offer, with what to set instead."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

_VENDOR = "Hardware types of vendors are not offered; BMCs of this vendor support Redfish or IPMI: use redfish or ipmi."
_REDFISH = "Interfaces of vendors are not offered: use redfish."
_NETWORK = "Ports are not moved between networks: use noop."
_DEPLOY = "Images are written by the agent: use direct, or custom-agent with steps of your own."
_CONSOLE = "Consoles are not offered: use no-console."

#: (group, option) -> value -> advice
VALUES: dict[tuple[str, str], dict[str, str]] = {
    ("inventory", "data_backend"): {
        "swift": "The object store of Ironic is not offered: use database, which holds inventories of any size."},
    ("redfish", "auth_type"): {
        "digest": "HTTP digest is not offered: use auto, session or basic, whichever the BMC has."},
    ("DEFAULT", "auth_strategy"): {
        "none": "Use noauth, on 127.0.0.1 only, or http_basic."},
    ("DEFAULT", "enabled_hardware_types"): {
        **dict.fromkeys(("idrac", "ilo", "ilo5", "irmc", "xclarity", "ibmc", "intel-ipmi"), _VENDOR),
        "snmp": "Power distribution units are not controlled: power these machines by hand, with fake-hardware.",
        "manual-management": "Use fake-hardware, which reports power states without a machine."},
    ("DEFAULT", "enabled_inspect_interfaces"): {
        "inspector": "ironic-inspector is replaced by this service: use agent.",
        **dict.fromkeys(("idrac-redfish", "idrac", "ilo", "irmc"), "Use redfish (out of band) or agent (in band).")},
    ("DEFAULT", "enabled_boot_interfaces"): {
        **dict.fromkeys(("pxe", "http", "http-ipxe", "irmc-pxe", "ilo-pxe", "ilo-ipxe"),
                        "Machines load iPXE scripts: use ipxe, or redfish-virtual-media."),
        **dict.fromkeys(("idrac-redfish-virtual-media", "ilo-virtual-media", "irmc-virtual-media", "redfish-https",
                         "ilo-uefi-https"), "Use redfish-virtual-media.")},
    ("DEFAULT", "enabled_deploy_interfaces"): dict.fromkeys(
        ("ansible", "anaconda", "bootc", "autodetect"), _DEPLOY),
    ("DEFAULT", "enabled_network_interfaces"): dict.fromkeys(("flat", "neutron", "ironic-networking"), _NETWORK),
    ("DEFAULT", "enabled_console_interfaces"): dict.fromkeys(
        ("ipmitool-socat", "ipmitool-shellinabox", "ilo", "redfish-graphical", "fake-graphical"), _CONSOLE),
    ("DEFAULT", "enabled_storage_interfaces"): dict.fromkeys(
        ("cinder", "external"), "Remote volumes are not attached: use noop."),
    ("DEFAULT", "enabled_raid_interfaces"): {
        "agent": "Software RAID is not offered: use redfish or no-raid.",
        **dict.fromkeys(("idrac-redfish", "ilo5", "irmc"), _REDFISH)},
    ("DEFAULT", "enabled_bios_interfaces"): dict.fromkeys(("idrac-redfish", "ilo", "irmc"), _REDFISH),
    ("DEFAULT", "enabled_management_interfaces"): dict.fromkeys(("idrac-redfish", "ilo", "ilo5", "irmc"), _REDFISH),
    ("DEFAULT", "enabled_power_interfaces"): {
        **dict.fromkeys(("idrac-redfish", "ilo", "irmc"), _REDFISH),
        "snmp": "Power distribution units are not controlled: use fake."},
    ("DEFAULT", "enabled_vendor_interfaces"): dict.fromkeys(
        ("ipmitool", "redfish", "idrac-redfish", "ilo", "irmc"), "Vendor methods are not offered: use no-vendor."),
}


def advice(group: str, name: str, words: Iterable[str]) -> Iterator[str]:
    """Yield what to set instead of those ``words`` that are Ironic's, each text once."""
    known = VALUES.get((group, name), {})
    yield from dict.fromkeys(known[word] for word in words if word in known)
