"""The hooks that run if the operator enables them, each in the whole service (M-49 to M-60)."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator
from typing import Any

import pytest

from ironic_rules.inspection.hook_settings import HookSettings
from ironic_rules.inspection.hooks import loader
from tests.functional.installations import running
from tests.functional.rows import hooks
from tests.functional.rows.conftest import finish, inspected, stored, waiting
from tests.functional.whole import Whole

NAMES = {point.name for point in importlib.metadata.distribution("ironic-rules").entry_points.select(
    group=loader.GROUP)}
OPTIONAL = ("parse-lldp,local-link-connection,physical-network,accelerators,boot-mode,cpu-capabilities,extra-hardware,"
            "memory,pci-devices,raid-device,root-device")
OPTIONS = f"""[inspector]
hooks = $default_hooks,{OPTIONAL}
physical_network_cidr_map = 192.0.2.0/24:rack,2001:db8::/32:six
pci_device_alias = {{"vendor_id": "10de", "product_id": "1eb8", "name": "t4"}}
"""
T4 = {"vendor_id": "10de", "product_id": "1eb8", "class": "030200", "revision": "a1", "bus": "0000:3b:00.0"}
OTHER = {**T4, "vendor_id": "8086", "product_id": "09a2", "bus": "0000:00:00.0"}
#: LLDP: chassis id (a MAC address), port id (interface name), system name
LLDP = [[1, "04d89ef3001102"], [2, "0565746865726e6574312f312f37"], [5, "6c6561662d61332d31"]]
GIB = 1024 ** 3


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Whole]:
    """The service with all hooks."""
    with running(tmp_path_factory.mktemp("hooks"), OPTIONS) as service:
        yield service


def capabilities(node: dict[str, Any]) -> dict[str, str]:
    found = node["properties"].get("capabilities", "")
    return dict(entry.split(":", 1) for entry in found.split(",") if entry)


def test_m_49_accelerators_become_a_property(whole):
    node = inspected(whole, plugin_data={"pci_devices": [T4, OTHER]})

    accelerator, = node["properties"]["accelerators"]
    assert (accelerator["vendor_id"], accelerator["device_id"], accelerator["type"], accelerator["pci_address"]) == (
        "10de", "1eb8", "GPU", "0000:3b:00.0")
    assert inspected(whole, plugin_data={"pci_devices": [OTHER]})["properties"]["accelerators"] == []


def test_m_49_what_is_an_accelerator_is_configured(tmp_path):
    file = tmp_path / "known.yaml"
    file.write_text('pci_devices: [{vendor_id: "8086", device_id: "09a2", type: FPGA}]\n')
    options = f"[inspector]\nhooks = $default_hooks,accelerators\nknown_accelerators = {file}\n"
    with running(tmp_path, options) as whole:
        node = inspected(whole, plugin_data={"pci_devices": [T4, OTHER]})

    assert node["properties"]["accelerators"] == [
        {"vendor_id": "8086", "device_id": "09a2", "type": "FPGA", "pci_address": "0000:00:00.0"}]


@pytest.mark.parametrize("mode", ["uefi", "bios"])
def test_m_50_the_boot_mode_becomes_a_capability(whole, mode):
    assert capabilities(inspected(whole, {"boot": {"current_boot_mode": mode}}))["boot_mode"] == mode


def test_m_51_cpu_flags_become_capabilities(whole):
    found = capabilities(inspected(whole, {"cpu": {"architecture": "x86_64", "flags": ["fpu", "vmx", "aes"]}}))

    assert {name: value for name, value in found.items() if name.startswith("cpu_")} == {
        "cpu_vt": "true", "cpu_aes": "true"}


def test_m_52_extra_hardware_becomes_nested_and_the_list_goes(whole):
    data = [["cpu", "logical", "number", "32"], ["disk", "sda", "size", "1199"], ["disk", "sda", "model", "H730"]]

    node = inspected(whole, plugin_data={"data": data})

    kept = stored(whole, node["uuid"])["plugin_data"]
    assert kept["extra"] == {"cpu": {"logical": {"number": 32}}, "disk": {"sda": {"size": 1199, "model": "H730"}}}
    assert "data" not in kept


def port_of(whole: Whole, uuid: str) -> dict[str, Any]:
    port, = whole.app.get(f"/v1/nodes/{uuid}/ports?detail=true").json["ports"]
    return dict(port)


def test_m_53_ports_learn_from_lldp_where_they_are_plugged_in(whole):
    uuid, body = waiting(whole)

    finish(whole, uuid, {**body, "lldp_raw": {"eth0": LLDP}})
    assert port_of(whole, uuid)["local_link_connection"] == {
        "switch_id": "d8:9e:f3:00:11:02", "port_id": "ethernet1/1/7", "switch_info": "leaf-a3-1"}

    # The cable is moved to another port: the stored data are updated.
    whole.inspect(uuid, {**body, "lldp_raw": {"eth0": [["1", "x"], LLDP[0], [2, "05457468312f3232"]]}})
    assert port_of(whole, uuid)["local_link_connection"]["port_id"] == "Eth1/22"

    # A switch whose address has the bit of multicast addresses.
    whole.inspect(uuid, {**body, "lldp_raw": {"eth0": [[1, "04db9ef3001102"], [2, "05457468312f3232"]]}})
    assert port_of(whole, uuid)["local_link_connection"]["switch_id"] == "db:9e:f3:00:11:02"


def test_m_54_memory_becomes_a_property(whole):
    assert inspected(whole, {"memory": {"total": 68719476736, "physical_mb": 65536}})["properties"][
        "memory_mb"] == 65536


def test_m_55_lldp_is_stored_in_a_readable_form_by_interface(whole):
    node = inspected(whole, plugin_data={"lldp_raw": {"eth0": LLDP}})

    assert stored(whole, node["uuid"])["plugin_data"]["parsed_lldp"] == {"eth0": {
        "switch_chassis_id": "d8:9e:f3:00:11:02", "switch_port_id": "ethernet1/1/7", "switch_system_name": "leaf-a3-1"}}


def test_m_56_pci_devices_are_counted_under_their_alias(whole):
    assert capabilities(inspected(whole, plugin_data={"pci_devices": [T4, OTHER, T4]}))["t4"] == "2"


def test_m_57_the_physical_network_comes_from_the_address(whole):
    uuid, body = waiting(whole)  # eth0 has 192.0.2.9
    finish(whole, uuid, body)
    assert port_of(whole, uuid)["physical_network"] == "rack"
    six, body = waiting(whole)
    body["inventory"]["interfaces"][0] |= {"ipv4_address": None, "ipv6_address": "2001:db8::9"}
    finish(whole, six, body)
    assert port_of(whole, six)["physical_network"] == "six"


def test_m_57_a_subclass_decides_by_something_else(whole):
    hook = hooks.BySpeed()
    hook.configure(HookSettings())
    uuid, body = waiting(whole)
    body["inventory"]["interfaces"][0] |= {"ipv4_address": "198.51.100.9", "speed_mbps": 25000}

    with hooks.added(whole, hook):
        assert finish(whole, uuid, body)["last_error"] is None

    assert port_of(whole, uuid)["physical_network"] == "fast"


def disks(*serials: str) -> dict[str, Any]:
    """Return an inventory's disks of 500, 501, ... GiB."""
    return {"disks": [{"name": f"/dev/sd{letter}", "size": (500 + number) * GIB, "serial": serial}
                      for number, (letter, serial) in enumerate(zip("abc", serials, strict=False))]}


def test_m_58_a_disk_that_is_new_since_the_last_inspection_becomes_the_root_device(whole):
    uuid, body = whole.enroll("manageable"), whole.machine()[1]
    body.pop("root_disk", None)

    def inspect(*serials: str) -> dict[str, Any]:
        return whole.inspect(uuid, {**body, "inventory": {**body["inventory"], **disks(*serials)}})

    first = inspect("one", "two")
    second = inspect("one", "two", "volume")

    # The comparison uses the old inventory; nothing is stored in the node's extra.
    assert ("root_device" in first["properties"], first["extra"], second["extra"]) == (False, {}, {})
    assert second["properties"]["root_device"] == {"serial": "volume"}
    assert second["properties"]["local_gb"] == 501


def test_m_59_hints_choose_the_root_disk_whose_size_becomes_local_gb(whole):
    def inspect(**properties: Any) -> tuple[Any, str]:
        uuid, body = waiting(whole, properties=properties)
        body.pop("root_disk", None)
        body["inventory"] |= disks("one", "two")
        node = finish(whole, uuid, body)
        return node["properties"]["local_gb"], stored(whole, uuid)["plugin_data"]["root_disk"]["serial"]

    assert inspect(root_device={"serial": "two"}) == (500, "two")
    assert inspect(root_device={"size": ">= 501"}) == (500, "two")
    assert inspect() == (499, "one")


def test_m_59_a_machine_without_the_disk_of_the_hints_fails(whole):
    node = inspected(whole, disks("one"), properties={"root_device": {"serial": "gone"}})

    assert "Inspection hook root-device failed: none of 1 disks fits" in node["last_error"]


def test_m_60_no_hook_sets_cpus(whole):
    # The hook of that name is for rules that come from Inspector: only who names it gets the property.
    assert set(loader.parse(whole.conf.inspector.hooks)) == NAMES - {"cpus"}
    body = {"cpu": {"architecture": "x86_64", "count": 64, "flags": ["vmx"]}, "memory": {"physical_mb": 1024}}

    node = inspected(whole, {**body, **disks("one")}, {"pci_devices": [T4], "lldp_raw": {"eth0": LLDP}})

    assert node["last_error"] is None
    assert "cpus" not in node["properties"] and "cpus" not in capabilities(node)


def test_m_60_who_names_the_hook_gets_cpus(tmp_path):
    with running(tmp_path, "[inspector]\nhooks = $default_hooks,cpus\n") as whole:
        node = inspected(whole, {"cpu": {"architecture": "x86_64", "count": 64}})

    assert node["properties"]["cpus"] == 64
