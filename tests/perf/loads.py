"""The loads: machines, rules and nodes as both services support them."""

from __future__ import annotations

import http.client
import itertools
import time
from typing import Any

from tests.perf.client import Client, Timing, run

_numbers = itertools.count(1)


def mac(number: int, nic: int = 0) -> str:
    """Return a locally administered address, unique for machine and NIC."""
    return f"52:{nic:02x}:{number >> 24 & 255:02x}:{number >> 16 & 255:02x}:{number >> 8 & 255:02x}:{number & 255:02x}"


def bmc(number: int) -> str:
    """Return the machine's BMC address."""
    return f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"


def inventory(number: int) -> dict[str, Any]:
    """Return the report of the ramdisk of a 40-core server with 8 NICs and 12 disks."""
    nics = [
        {"name": f"ens{nic // 2 + 1}f{nic % 2}", "mac_address": mac(number, nic),
         "ipv4_address": f"172.16.{number >> 8 & 255}.{number & 255}" if nic == 0 else None, "ipv6_address": None,
         "has_carrier": nic < 4, "lldp": [[1, "04112233aabbcc"], [2, "07373334"], [3, "003c"]], "vendor": "0x8086",
         "product": "0x1572", "client_id": None, "biosdevname": f"em{nic + 1}", "speed_mbps": 25000,
         "pci_address": f"0000:3b:00.{nic}", "driver": "i40e"}
        for nic in range(8)]
    disks = [
        {"name": f"/dev/sd{'abcdefghijkl'[disk]}", "model": "MZ7KH3T8HALS0D3", "size": 3840755982336,
         "rotational": disk > 1,
         "wwn": f"0x5002538e0{disk:07x}", "serial": f"S47RNA0M{disk:06d}", "vendor": "SAMSUNG",
         "wwn_with_extension": f"0x5002538e0{disk:07x}", "wwn_vendor_extension": None, "hctl": f"0:0:{disk}:0",
         "by_path": f"/dev/disk/by-path/pci-0000:18:00.0-sas-phy{disk}-lun-0", "logical_sectors": 512,
         "physical_sectors": 4096}
        for disk in range(12)]
    return {
        "inventory": {
            "interfaces": nics, "disks": disks,
            "cpu": {"model_name": "Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz", "frequency": "3700.0000", "count": 40,
                    "architecture": "x86_64", "flags": ["fpu", "vmx", "aes", "avx2", "avx512f", "pdpe1gb"]},
            "memory": {"total": 405233537024, "physical_mb": 393216},
            "system_vendor": {"product_name": "PowerEdge R740xd", "serial_number": f"SN{number:06d}",
                              "manufacturer": "Dell Inc."},
            "boot": {"current_boot_mode": "uefi", "pxe_interface": mac(number)},
            "hostname": "localhost.localdomain", "bmc_address": bmc(number), "bmc_v6address": None},
        "configuration": {"collectors": ["default"]},
    }


def rule(number: int, matches: bool) -> dict[str, Any]:
    """Return a rule that sets one attribute when it matches."""
    vendor = "Dell Inc." if matches else f"NoSuch {number}"
    return {
        "description": f"bench {number}", "priority": number % 1000,
        "conditions": [
            {"op": "eq", "args": {"values": ["{inventory[system_vendor][manufacturer]}", vendor]}},
            {"op": "contains", "args": {"value": "{inventory[cpu][model_name]}", "regex": "Xeon"}}],
        "actions": [{"op": "set-attribute", "args": {
            "path": f"/extra/bench{number}", "value": "{inventory[system_vendor][serial_number]}"}}],
    }


def create_rules(endpoint: str, count: int, matches: bool = False, **fields: Any) -> Timing:
    """Create rules one after the other."""
    return run(endpoint, count, 1, lambda client, number: client.request(
        "POST", "/v1/inspection_rules", {**rule(number, matches), **fields}))


def delete_all(endpoint: str, collection: str) -> None:
    """Delete every item of a collection."""
    while True:
        with Client(endpoint) as client:
            found = [item["uuid"] for item in client.json("GET", f"/v1/{collection}?limit=500&fields=uuid")[collection]]
        if not found:
            return

        def delete(own: Client, number: int, found: list[str] = found) -> None:
            if own.request("DELETE", f"/v1/{collection}/{found[number]}", ok=(204, 404, 409)) and collection == "nodes":
                own.request("PUT", f"/v1/nodes/{found[number]}/maintenance", {}, ok=(202, 404))
                own.request("DELETE", f"/v1/nodes/{found[number]}", ok=(204, 404))

        run(endpoint, len(found), 2, delete)


def create_nodes(endpoint: str, count: int) -> Timing:
    """Create nodes that are not inspected."""
    first = next(_numbers) * 100_000
    return run(endpoint, count, 4, lambda client, number: client.request("POST", "/v1/nodes", {
        "driver": "fake-hardware", "name": f"list-{first + number}", "inspect_interface": "agent",
        "driver_info": {"ipmi_address": bmc(number)}, "properties": {"cpu_arch": "x86_64", "cpus": 40}}))


def repeat_get(endpoint: str, path: str, count: int, concurrency: int = 1) -> Timing:
    """Get the same resource repeatedly."""
    with Client(endpoint) as client:
        client.request("GET", path)
    return run(endpoint, count, concurrency, lambda client, _: client.request("GET", path))


def _enter_inspect_wait(client: Client, number: int, fields: dict[str, Any]) -> None:
    node = client.json("POST", "/v1/nodes", {
        "driver": "fake-hardware", "name": f"bench-{number}", "inspect_interface": "agent",
        "driver_info": {"ipmi_address": bmc(number)}, **fields})["uuid"]
    client.request("POST", "/v1/ports", {"node_uuid": node, "address": mac(number)})
    for target, state in (("manage", "manageable"), ("inspect", "inspect wait")):
        _until(lambda target=target: client.request(  # type: ignore[misc]
            "PUT", f"/v1/nodes/{node}/states/provision", {"target": target}, ok=(202, 409)) == b"")
        _until(lambda state=state: _has_reached(client, node, state))  # type: ignore[misc]


def _has_reached(client: Client, node: str, state: str) -> bool:
    now = client.json("GET", f"/v1/nodes/{node}?fields=provision_state,reservation,last_error")
    if now["provision_state"].endswith("failed"):
        raise RuntimeError(f"{now['provision_state']}: {now['last_error']}")
    return bool(now["provision_state"] == state and not now["reservation"])


def _until(probe: Any, timeout_s: float = 120.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not probe():
        if time.monotonic() > deadline:
            raise RuntimeError("waited too long")
        time.sleep(0.02)


def _count(client: Client, state: str, most: int | None = None) -> int:
    path = f"/v1/nodes?limit={most or 1000}&fields=uuid&provision_state=" + state.replace(" ", "%20")
    found = 0
    while True:
        page = client.json("GET", path)
        found += len(page["nodes"])
        if "next" not in page or found == most:
            return found
        path = "/v1/" + page["next"].partition("/v1/")[2]


def inspect(endpoint: str, count: int, concurrency: int) -> tuple[float, Timing]:
    """Bring ``count`` nodes to INSPECT WAIT, then let all ramdisks send their data.

    :returns: nodes per second from the first POST until every node is manageable, and the timing of the POSTs
    """
    return report_all(endpoint, enter_inspect_wait(endpoint, count), count, concurrency)


def enter_inspect_wait(endpoint: str, count: int, **fields: Any) -> int:
    """Bring ``count`` nodes to INSPECT WAIT; return the number of the first one."""
    first = next(_numbers) * 100_000
    run(endpoint, count, 4, lambda client, number: _enter_inspect_wait(client, first + number, fields))
    return first


def report_all(endpoint: str, first: int, count: int, concurrency: int) -> tuple[float, Timing]:
    """Let the ramdisks of the nodes from ``first`` on send their data; return the same as :func:`inspect`."""
    with Client(endpoint) as watcher:
        began = time.perf_counter()
        posts = run(endpoint, count, concurrency, lambda client, number: client.request(
            "POST", "/v1/continue_inspection", inventory(first + number)))
        # Only one node of each state is listed: answering the question should cost the service little.
        while _count(watcher, "inspecting", 1) or _count(watcher, "inspect wait", 1):
            time.sleep(0.05)
        taken = time.perf_counter() - began
        manageable = _count(watcher, "manageable")
    if manageable < count:
        raise RuntimeError(f"{manageable} of {count} nodes are manageable")
    return count / taken, posts


def first_answer(endpoint: str, timeout_s: float = 60.0) -> float:
    """Wait for the first answer of a service that was just started; return the seconds."""
    began = time.perf_counter()

    def probe() -> bool:
        try:
            with Client(endpoint) as client:
                client.request("GET", "/v1/nodes?limit=1")
        except (OSError, http.client.HTTPException, RuntimeError):
            return False
        return True

    _until(probe, timeout_s)
    return time.perf_counter() - began
