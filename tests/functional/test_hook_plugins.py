"""Hooks of other packages, the LLDP hooks on a recorded report, and invalid lists of hooks, in the real service."""

from __future__ import annotations

import json
import shutil
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from ironic_rules import samples
from tests.functional import plugins
from tests.functional.processes import Process, standalone, wait_for

pytestmark = pytest.mark.slow


NODE = "4a1f3d52-7f5c-4e0e-9d0b-6d1f52c0ab31"


def send(method: str, url: str, body: Any = None) -> Any:
    """Send a request and return the JSON of the answer, None if it is empty."""
    headers = {"X-OpenStack-Ironic-API-Version": "1.96", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data, headers, method=method), timeout=60) as response:
        return json.loads(response.read() or "null")


def get(url: str) -> Any:
    return send("GET", url)


def enrol(url: str) -> None:
    """Create a node for the sample report of a Dell R660, ready to be inspected."""
    send("POST", url + "/v1/nodes", {"uuid": NODE, "driver": "fake-hardware", "inspect_interface": "agent"})
    send("POST", url + "/v1/ports", {"node_uuid": NODE, "address": "b0:7b:25:e4:52:10"})
    ask_for(url, "manage", "manageable")


def ask_for(url: str, target: str, state: str) -> None:
    send("PUT", f"{url}/v1/nodes/{NODE}/states/provision", {"target": target})
    wait_for_state(url, state)


def wait_for_state(url: str, state: str) -> None:
    wait_for(state, lambda: get(f"{url}/v1/nodes/{NODE}")["provision_state"] == state)


def inspect(url: str, report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Inspect the node with ``report`` and return its ports by address."""
    ask_for(url, "inspect", "inspect wait")
    send("POST", url + "/v1/continue_inspection", report)
    wait_for_state(url, "manageable")
    return {port["address"]: port for port in get(f"{url}/v1/ports?node={NODE}&detail=true")["ports"]}


@pytest.fixture(scope="module")
def installed() -> Path:
    """The sample package."""
    return plugins.installed("sample_hooks")


@pytest.fixture
def with_plugin(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the sample package available to processes that are started from here."""
    monkeypatch.setenv("PYTHONPATH", str(installed))


def failed_start(folder: Path, config: str) -> str:
    """Run the service, which must not start, and return its output."""
    file = folder / "bad.conf"
    file.write_text(config)
    process = Process("ironic_rules.cmd.standalone", ["--config-file", str(file), "--state-dir", str(folder / "s")],
                      folder, "bad")
    try:
        wait_for("the end of the process", lambda: not process.is_running())
        assert process.status == 2
        assert "Traceback" not in process.text()
        return process.text()
    finally:
        process.close()


def test_a_hook_of_another_package_works_from_its_installation_to_the_node(tmp_path, with_plugin):
    config = "hooks = $default_hooks,sample-rack\n"
    with standalone(tmp_path, "--demo", config=config) as (process, url):
        process.printed("Still serving")
        racks = {node["name"]: node["extra"].get("rack") for node in get(url + "/v1/nodes?fields=name,extra")["nodes"]}

    assert racks == {
        "demo-dell-r660": "192.0.2", "demo-hpe-dl380-gen11": "192.0.2", "demo-extra-hardware-r730": "192.0.2",
        "demo-vm-qemu-bios": "192.168.122", "demo-ipv6-only-bmc": None, "demo-ramdisk-error": None}
    assert "the rack is not known" in (tmp_path / "state" / "ironic-rules.log").read_text()


def test_m53_m55_m57_a_recorded_report_tells_where_the_machine_is_plugged_in(tmp_path):
    config = ("hooks = $default_hooks,parse-lldp,local-link-connection,physical-network\n"
              "physical_network_cidr_map = 192.0.2.0/24:management,198.51.100.0/24:tenant,2001:db8:42::/64:six\n")
    report = samples.inventory("dell-r660")
    with standalone(tmp_path, config=config) as (_, url):
        enrol(url)
        ports = inspect(url, report)
        data = get(f"{url}/v1/nodes/{NODE}/inventory")["plugin_data"]
        report["lldp_raw"]["ens2f0np0"][:2] = [[1, "043c2c30102003"], [2, "05457468312f3232"]]
        report["inventory"]["interfaces"][0]["ipv4_address"] = "198.51.100.62"
        replugged = inspect(url, report)

    assert {address: port["local_link_connection"] for address, port in ports.items()} == {
        "b0:7b:25:e4:52:10": {"switch_id": "3c:2c:30:10:20:01", "port_id": "Gi1/0/21", "switch_info": "mgmt-b7"},
        "b0:7b:25:e4:52:11": {},
        "b0:7b:25:e4:52:12": {"switch_id": "3c:2c:30:10:20:02", "port_id": "Eth1/21", "switch_info": "leaf-b7-1"},
        "b0:7b:25:e4:52:13": {"switch_id": "3c:2c:30:10:20:03", "port_id": "Eth1/21", "switch_info": "leaf-b7-2"},
    }
    assert {address: port["physical_network"] for address, port in ports.items()} == {
        "b0:7b:25:e4:52:10": "management", "b0:7b:25:e4:52:11": None, "b0:7b:25:e4:52:12": "tenant",
        "b0:7b:25:e4:52:13": None}
    assert sorted(data["parsed_lldp"]) == ["eno8303", "ens2f0np0", "ens2f1np1"]
    assert data["parsed_lldp"]["ens2f0np0"] == {
        "switch_chassis_id": "3c:2c:30:10:20:02", "switch_port_id": "Eth1/21", "switch_ttl": 120,
        "switch_port_description": "tenant port of rack b7", "switch_system_name": "leaf-b7-1",
        "switch_system_description": "SONiC 202405 on leaf-b7-1",
        "switch_capabilities_support": ["Bridge", "Router"], "switch_capabilities_enabled": ["Bridge", "Router"],
        "switch_port_untagged_vlan_id": 300, "switch_port_vlans": [{"id": 300, "name": "tenant"}],
        "switch_port_mtu": 9216,
    }
    assert replugged["b0:7b:25:e4:52:12"]["local_link_connection"] == {
        "switch_id": "3c:2c:30:10:20:03", "port_id": "Eth1/22", "switch_info": "leaf-b7-1"}
    assert replugged["b0:7b:25:e4:52:10"]["physical_network"] == "tenant"
    log = (tmp_path / "state" / "ironic-rules.log").read_text()
    assert "port_id was Eth1/21 and is Eth1/22" in log
    assert "physical_network was management and is tenant" in log


def test_machines_of_all_kinds_pass_the_lldp_hooks(tmp_path):
    config = "hooks = $default_hooks,parse-lldp,local-link-connection,physical-network\n"
    with standalone(tmp_path, "--demo", config=config) as (process, url):
        process.printed("Still serving")
        states = {node["name"]: node["provision_state"] for node in get(url + "/v1/nodes")["nodes"]}

    assert states.pop("demo-ramdisk-error") == "inspect failed"
    assert list(states.values()) == ["manageable"] * 5


def test_without_the_package_the_hook_is_unknown_and_the_service_does_not_start(tmp_path):
    text = failed_start(tmp_path, "[inspector]\nhooks = $default_hooks,sample-rack\n")

    assert "[inspector]hooks = $default_hooks,sample-rack: not installed: sample-rack; installed are " in text


@pytest.mark.parametrize("hooks", ["sample-rack", "sample-rack,$default_hooks"])
def test_a_hook_before_the_one_that_it_needs_stops_the_start(tmp_path, with_plugin, hooks):
    text = failed_start(tmp_path, f"[inspector]\nhooks = {hooks}\n")

    assert "[inspector]hooks: the hook 'sample-rack' needs 'validate-interfaces' before it." in text


def test_a_broken_hook_stops_the_start(tmp_path, installed, monkeypatch):
    broken = shutil.copytree(installed, tmp_path / "broken")
    (broken / "sample_inspection_hooks.py").write_text("import no_such_library\n")
    monkeypatch.setenv("PYTHONPATH", str(broken))

    text = failed_start(tmp_path, "[inspector]\nhooks = $default_hooks,sample-rack\n")

    assert "[inspector]hooks: 'sample-rack' cannot be loaded: ModuleNotFoundError" in text


def test_m57_a_bad_map_of_networks_stops_the_start(tmp_path):
    text = failed_start(tmp_path, "[inspector]\nhooks = $default_hooks,physical-network\n"
                                  "physical_network_cidr_map = 192.0.2.0/24:provider,10.0.0.0/99:rack\n")

    assert "[inspector]physical_network_cidr_map: '10.0.0.0/99:rack' is not CIDR:PHYSICAL_NETWORK" in text
