"""Runs parts of ironic-python-agent as a ramdisk does, on a machine whose hardware is read from a file.

It is a separate process, since the agent uses oslo.config's global configuration and caches what it finds. Only the
code that reads the hardware is replaced. Usage::

    python ipa_driver.py ACTION ENDPOINT < MACHINE     # JSON: a body of POST /v1/continue_inspection

ACTION is ``inspect``, ``inspect-broken`` (a collector fails) or ``lookup`` (then heartbeats); JSON is printed.
"""

from __future__ import annotations

import io
import json
import sys
from typing import Any

from ironic_python_agent import config, errors, hardware, inspector, utils
from ironic_python_agent.ironic_api_client import APIClient

ADVERTISED = ("192.0.2.9", 9999)


class Manager(hardware.HardwareManager):
    """Reports the hardware that an inventory describes, from which the agent creates the inventory again."""

    def __init__(self, inventory: dict[str, Any], *, broken: bool) -> None:
        self._inventory = inventory
        self._broken = broken

    def evaluate_hardware_support(self) -> int:
        return int(hardware.HardwareSupport.SERVICE_PROVIDER)

    def list_network_interfaces(self) -> list[hardware.NetworkInterface]:
        fields = ("ipv4_address", "ipv6_address", "has_carrier", "vendor", "product", "client_id", "biosdevname",
                  "speed_mbps", "pci_address")
        return [hardware.NetworkInterface(nic["name"], nic["mac_address"], **{name: nic.get(name) for name in fields})
                for nic in self._inventory["interfaces"]]

    def get_cpus(self) -> hardware.CPU:
        cpu = self._inventory["cpu"]
        return hardware.CPU(cpu["model_name"], cpu["frequency"], cpu["count"], cpu["architecture"], cpu["flags"])

    def list_block_devices(self, include_partitions: bool = False) -> list[hardware.BlockDevice]:
        return [hardware.BlockDevice(disk["name"], disk["model"], disk["size"], disk["rotational"], disk["wwn"])
                for disk in self._inventory["disks"]]

    def get_memory(self) -> hardware.Memory:
        return hardware.Memory(**self._inventory["memory"])

    def get_bmc_address(self) -> str | None:
        return self._inventory["bmc_address"]

    def get_bmc_v6address(self) -> str | None:
        return self._inventory["bmc_v6address"]

    def get_system_vendor_info(self) -> hardware.SystemVendorInfo:
        vendor = self._inventory["system_vendor"]
        return hardware.SystemVendorInfo(vendor["product_name"], vendor["serial_number"], vendor["manufacturer"],
                                         hardware.SystemFirmware(**vendor["firmware"]))

    def get_boot_info(self) -> hardware.BootInfo:
        return hardware.BootInfo(**self._inventory["boot"])

    def collect_lldp_data(self, interface_names: list[str] | None = None) -> dict[str, list[tuple[int, str]]]:
        if self._broken:
            raise errors.CommandExecutionError("lldp is broken")
        return {nic["name"]: [(1, "04001122334455"), (0, "")] for nic in self._inventory["interfaces"]}

    def get_usb_devices(self) -> list[hardware.USBInfo]:
        return [hardware.USBInfo("Hub", "Example", "/bus/usb/1")]


def inspect(endpoint: str) -> dict[str, Any]:
    """Collect and post as at boot.

    :returns: ``uuid`` (of its node, according to the agent) or ``error``, and ``replies`` of the service
    """
    replies: list[Any] = []
    post = inspector.call_inspector

    def recorded(*arguments: Any) -> Any:
        replies.append(post(*arguments))
        return replies[-1]

    inspector.call_inspector = recorded
    config.CONF.set_override("inspection_callback_url", f"{endpoint}/v1/continue_inspection")
    config.CONF.set_override("inspection_collectors", "default,lldp,usb-devices,logs")
    try:
        return {"uuid": inspector.inspect(), "replies": replies}
    except errors.InspectionError as error:
        return {"error": str(error), "replies": replies}


def lookup(endpoint: str) -> dict[str, Any]:
    """Look the node up, send heartbeats with its token and with a wrong one, look it up as a second ramdisk."""
    client = APIClient(endpoint)
    try:
        found = client.lookup_node(hardware.list_hardware_info(), timeout=0, starting_interval=1)
    except errors.LookupNodeError as error:
        return {"error": str(error)}
    uuid, client.agent_token = found["node"]["uuid"], found["config"]["agent_token"]
    client.heartbeat(uuid, ADVERTISED)
    stranger = APIClient(endpoint)
    second = stranger.lookup_node(hardware.list_hardware_info(), timeout=0, starting_interval=1, node_uuid=uuid)
    stranger.agent_token = "x" * 43
    try:
        stranger.heartbeat(uuid, ADVERTISED)
        refusal = None
    except errors.HeartbeatError as error:
        refusal = str(error)
    return {"found": found, "second_token": second["config"]["agent_token"], "refusal": refusal}


def main(action: str, endpoint: str) -> None:
    config.CONF([], project="ironic-python-agent", default_config_files=[], default_config_dirs=[])
    config.CONF.set_override("inspection_dhcp_wait_timeout", 0)
    manager = Manager(json.load(sys.stdin)["inventory"], broken=action == "inspect-broken")
    hardware._global_managers = [{"name": "Manager", "manager": manager, "support": 3}]
    # The agent would pack this computer's whole journal.
    utils.collect_system_logs = lambda **_: utils.gzip_and_b64encode(io_dict={"journal": io.BytesIO(b"booted\n")})
    json.dump(lookup(endpoint) if action == "lookup" else inspect(endpoint), sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
