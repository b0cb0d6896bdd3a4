"""The service as one process, with real hardware types, and how tests use it."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

from ironic_rules import samples
from ironic_rules.models import states
from ironic_rules.steps import procedures
from tests.functional.agents import Agent
from tests.functional.processes import Process, standalone, wait_for

#: The options that an operator sets for both hardware types; the file begins in the section ``[inspector]``.
CONFIG = """\
require_managed_boot = true
callback_endpoint_override = http://127.0.0.1:{port}
extra_kernel_params = ipa-debug=1 nofb
[DEFAULT]
enabled_hardware_types = redfish,ipmi
enabled_bios_interfaces = redfish,no-bios
enabled_boot_interfaces = redfish-virtual-media,ipxe,fake
enabled_deploy_interfaces = direct,ramdisk,fake,custom-agent
enabled_firmware_interfaces = redfish,no-firmware
enabled_inspect_interfaces = agent,redfish,no-inspect
enabled_management_interfaces = redfish,ipmitool,noop
enabled_power_interfaces = redfish,ipmitool
enabled_raid_interfaces = redfish,no-raid
enabled_vendor_interfaces = redfish,no-vendor
[conductor]
power_state_change_timeout = 20
automated_clean = false
[redfish]
request_timeout = {request_timeout_s}
connection_attempts = 1
[ipmi]
command_retry_timeout = 2
min_command_interval = 0
[inspection_rules]
supported_interfaces = ^(agent|redfish)$
[deploy]
http_url = {web}
http_root = {root}
deploy_iso = {web}/ipa.iso
deploy_kernel = {web}/ipa.kernel
deploy_ramdisk = {web}/ipa.initramfs
image_url_denied_networks =
agent_power_off_timeout = 0
"""


class Service:
    """The operations of tests on the service."""

    def __init__(self, process: Process, url: str) -> None:
        self.process = process
        self.url = url
        self.http = httpx.Client(base_url=url, headers={"X-OpenStack-Ironic-API-Version": "1.96"}, trust_env=False,
                                 timeout=60)

    def enroll(self, driver: str, driver_info: dict[str, Any], macs: tuple[str, ...] = (), **fields: Any) -> str:
        """Create a node and its ports; return the node's UUID."""
        reply = self.http.post("/v1/nodes", json={"driver": driver, "driver_info": driver_info, **fields})
        assert reply.status_code == 201, reply.text
        node: str = reply.json()["uuid"]
        for address in macs:
            assert self.http.post("/v1/ports", json={"node_uuid": node, "address": address}).status_code == 201
        return node

    def show(self, node: str) -> dict[str, Any]:
        return dict(self.http.get(f"/v1/nodes/{node}").json())

    def provision(self, node: str, target: str) -> dict[str, Any]:
        """Request a provision state and return the node when it is in a stable state again."""
        reply = self.http.put(f"/v1/nodes/{node}/states/provision", json={"target": target})
        assert reply.status_code == 202, reply.text
        return self.at_rest(node)

    def deploy(self, node: str, ramdisk: Agent) -> dict[str, Any]:
        """Deploy the node, with heartbeats of its ramdisk, and return it when it no longer waits for them."""
        shown = self.provision(node, "active")
        token = None
        while shown["provision_state"] == states.DEPLOYWAIT:
            poll = procedures.pending_poll(shown["driver_internal_info"])
            if poll is not None and not poll.ended:
                # It waits for its BMC, which is polled.
                wait_for(f"the end of a step of node {node}", functools.partial(self._has_left, shown))
                shown = self.at_rest(node)
                continue
            token = token or self.http.get(f"/v1/lookup?node_uuid={node}").json()["config"]["agent_token"]
            reply = self.http.post(f"/v1/heartbeat/{node}", json={"callback_url": ramdisk.url, "agent_token": token})
            if reply.status_code == 404:  # the step has booted the ramdisk again
                token = None
                ramdisk.restart()
                continue
            assert reply.status_code in (202, 409), reply.text  # an agent repeats its heartbeat
            shown = self.at_rest(node)
            ramdisk.end()
        return shown

    def _has_left(self, before: dict[str, Any]) -> bool:
        now = self.show(before["uuid"])
        return bool(now["driver_internal_info"] != before["driver_internal_info"])

    def power(self, node: str, target: str) -> dict[str, Any]:
        """Request a power state and return the node when it is in a stable state again."""
        reply = self.http.put(f"/v1/nodes/{node}/states/power", json={"target": target})
        assert reply.status_code == 202, reply.text
        return self.at_rest(node)

    def at_rest(self, node: str) -> dict[str, Any]:
        def rests() -> dict[str, Any] | None:
            shown = self.show(node)
            return shown if shown["reservation"] is None and shown["provision_state"] not in states.TRANSIENT else None

        return wait_for(f"a stable state of node {node}", rests)

    def ports(self, node: str) -> dict[str, bool]:
        """Return ``pxe_enabled`` by MAC address."""
        found = self.http.get(f"/v1/ports?node={node}&fields=address,pxe_enabled").json()["ports"]
        return {port["address"]: port["pxe_enabled"] for port in found}


def ramdisk_body(*macs: str) -> dict[str, Any]:
    """Return the report of a ramdisk on a machine with these network interfaces."""
    body = samples.inventory(samples.inventory_names()[0])
    body.pop("error", None)
    body["inventory"]["interfaces"] = [{"name": f"eth{number}", "mac_address": mac} for number, mac in enumerate(macs)]
    for key in ("bmc_address", "bmc_v6address"):
        body["inventory"].pop(key, None)
    return body


@contextlib.contextmanager
def service(folder: Path, web: str, port: int, request_timeout_s: int = 5) -> Iterator[Service]:
    """Run the service; it publishes files in ``folder/web``, which ``web`` serves."""
    config = CONFIG.format(web=web, root=folder / "web", port=port, request_timeout_s=request_timeout_s)
    with standalone(folder, config=config, port=port) as (process, url):
        running = Service(process, url)
        try:
            yield running
        finally:
            running.http.close()
