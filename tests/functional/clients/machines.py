"""Machines to be inspected: what their ramdisks send, and when. And the API without a client library."""

from __future__ import annotations

from typing import Any

import httpx

from ironic_rules import samples
from ironic_rules.api import versions
from ironic_rules.models import states
from ironic_rules.simulator.inventories import Sample, SimulatedMachine, vary
from tests.functional.processes import wait_for

SAMPLE = Sample("dell-r660", samples.inventory("dell-r660"))


def machine(index: int) -> SimulatedMachine:
    """Return a machine that shares no address with those of other indexes."""
    return vary(SAMPLE, "clients", index)


def call(endpoint: str, method: str, path: str, body: Any = None) -> Any:
    """Return the JSON of a reply; a status of 400 or more is an error."""
    response = httpx.request(method, f"{endpoint}/v1/{path}", json=body,
                             headers={versions.HEADER: versions.MAX_STRING})
    response.raise_for_status()
    return response.json() if response.content else None


def enrol(endpoint: str, name: str, booted: SimulatedMachine) -> None:
    """Create the machine's node and the port that identifies the ramdisk."""
    call(endpoint, "POST", "nodes", {
        "uuid": booted.uuid, "name": name, "driver": "fake-hardware", "inspect_interface": "agent",
        "driver_info": {"ipmi_address": booted.bmc_address}})
    call(endpoint, "POST", "ports", {"node_uuid": booted.uuid, "address": booted.pxe_mac})


def node(endpoint: str, ident: str) -> dict[str, Any]:
    """Return a node."""
    return dict(call(endpoint, "GET", f"nodes/{ident}"))


def wait_for_state(endpoint: str, ident: str, state: str) -> dict[str, Any]:
    """Wait until the node is in ``state``; return it."""

    def look() -> dict[str, Any] | None:
        found = node(endpoint, ident)
        return found if found["provision_state"] == state else None

    found = wait_for(f"node {ident} to be {state}", look)
    assert found is not None
    return found


def start_inspection(endpoint: str, ident: str) -> None:
    """Create a node and start its inspection, so that it waits for its ramdisk."""
    call(endpoint, "PUT", f"nodes/{ident}/states/provision", {"target": "manage"})
    wait_for_state(endpoint, ident, states.MANAGEABLE)
    call(endpoint, "PUT", f"nodes/{ident}/states/provision", {"target": "inspect"})
    wait_for_state(endpoint, ident, states.INSPECTWAIT)


def boot(endpoint: str, ident: str, booted: SimulatedMachine) -> None:
    """Let the machine's ramdisk report as soon as the node waits for it."""
    wait_for_state(endpoint, ident, states.INSPECTWAIT)
    httpx.post(f"{endpoint}/v1/continue_inspection", content=booted.content,
               headers={"Content-Type": "application/json"}).raise_for_status()
