"""All inspection hooks at once, over every sample inventory, in the whole service."""

from __future__ import annotations

from importlib import metadata

import pytest

from ironic_rules import samples, service
from ironic_rules.db import inventory, nodes
from ironic_rules.exceptions import ConfigurationError
from ironic_rules.inspection.hooks import loader
from tests.functional.whole import configuration, make_conductor, running

#: in the order in which they run, after the default ones
OPTIONAL = [
    "parse-lldp", "local-link-connection", "physical-network", "accelerators", "boot-mode", "cpu-capabilities",
    "cpus", "extra-hardware", "memory", "pci-devices", "raid-device", "root-device"]
DEFAULT = ["ramdisk-error", "validate-interfaces", "ports", "architecture"]
OPTIONS = f"""[inspector]
hooks = $default_hooks,{",".join(OPTIONAL)}
physical_network_cidr_map = 192.0.2.0/24:provider,2001:db8::/32:v6
pci_device_alias = {{"vendor_id": "15b3", "product_id": "101f", "name": "nic_cx6"}}
pci_device_alias = {{"vendor_id": "1000", "product_id": "10e2", "name": "hba"}}
"""

INTEL = "cpu_vt:true,cpu_aes:true,cpu_hugepages:true,cpu_hugepages_1g:true,cpu_txt:true"
AMD = "cpu_vt:true,cpu_aes:true,cpu_hugepages:true,cpu_hugepages_1g:true"
PROPERTIES = {
    "dell-r660": {"cpus": 128, "memory_mb": 524288, "local_gb": 446, "accelerators": [],
                  "capabilities": f"boot_mode:uefi,{INTEL},hba:1,nic_cx6:2"},
    "extra-hardware-r730": {"cpus": 40, "memory_mb": 196608, "local_gb": 1115,
                            "capabilities": f"boot_mode:bios,{INTEL}"},
    "hpe-dl380-gen11": {"cpus": 80, "memory_mb": 262144, "local_gb": 893, "capabilities": f"boot_mode:uefi,{INTEL}"},
    "ipv6-only-bmc": {"cpus": 64, "memory_mb": 393216, "local_gb": 1787, "capabilities": f"boot_mode:uefi,{AMD}"},
    "vm-qemu-bios": {"cpus": 4, "memory_mb": 8192, "local_gb": 31, "capabilities": "boot_mode:bios"},
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    with running(tmp_path_factory.mktemp("hooks"), OPTIONS) as service:
        yield service


def plugin_data(whole, node):
    return whole.app.get(f"/v1/nodes/{node}/inventory").json["plugin_data"]


def test_every_hook_of_this_project_takes_part():
    points = metadata.distribution("ironic-rules").entry_points.select(group=loader.GROUP)

    assert {point.name for point in points} == {*DEFAULT, *OPTIONAL}


def test_every_sample_is_expected_to_succeed_or_to_report_an_error():
    assert {*PROPERTIES, "ramdisk-error"} == set(samples.inventory_names())


@pytest.mark.parametrize("name", sorted(PROPERTIES))
def test_the_properties_of_a_sample(whole, name):
    body = samples.inventory(name)
    node = whole.enroll("manageable")

    shown = whole.inspect(node, body)

    assert (shown["provision_state"], shown["last_error"]) == ("manageable", None)
    assert shown["properties"] == {"cpu_arch": "x86_64", **PROPERTIES[name]}
    data = plugin_data(whole, node)
    assert data["root_disk"] == body["root_disk"]
    assert data["local_gb"] == PROPERTIES[name]["local_gb"]
    ports = {port["address"] for port in whole.app.get(f"/v1/nodes/{node}/ports").json["ports"]}
    assert ports == {interface["mac_address"].lower() for interface in body["inventory"]["interfaces"]}
    assert whole.app.delete(f"/v1/nodes/{node}").status_int == 204


def test_the_extra_hardware_of_a_sample(whole):
    node = whole.enroll("manageable")

    whole.inspect(node, samples.inventory("extra-hardware-r730"))

    data = plugin_data(whole, node)
    extra = data["extra"]
    assert "data" not in data
    assert (extra["cpu"]["logical"]["number"], extra["system"]["product"]["vendor"]) == (40, "Dell Inc.")
    assert whole.app.delete(f"/v1/nodes/{node}").status_int == 204


def test_the_sample_with_an_error_fails_and_changes_nothing(whole):
    node = whole.enroll("manageable", properties={"rack": "a3"})

    shown = whole.inspect(node, samples.inventory("ramdisk-error"))

    assert shown["provision_state"] == "inspect failed"
    assert "Inspection hook ramdisk-error failed" in shown["last_error"]
    assert shown["properties"] == {"rack": "a3"}


def test_a_rule_sees_what_the_hooks_found(whole):
    rule = {"conditions": [{"op": "gt", "args": ["{node[properties][local_gb]}", 400]},
                           {"op": "eq", "args": ["{plugin_data[root_disk][model]}", "BOSS-N1"]}],
            "actions": [{"op": "add-trait", "args": {"name": "CUSTOM_LARGE"}}]}
    assert whole.app.post_json("/v1/inspection_rules", rule).status_int == 201
    node = whole.enroll("manageable")

    shown = whole.inspect(node, samples.inventory("dell-r660"))

    whole.app.delete("/v1/inspection_rules")
    assert shown["traits"] == ["CUSTOM_LARGE"]
    assert whole.app.delete(f"/v1/nodes/{node}").status_int == 204


class Machine:
    """A machine whose disks are exchanged between inspections."""

    def __init__(self, whole):
        _, self._body = whole.machine()
        self._body.pop("root_disk", None)

    def report(self, *serials, **fields):
        """Return a report of disks of 500, 501, ... GiB."""
        disks = [{"name": f"/dev/sd{letter}", "size": (500 + number) * 1024 ** 3, "serial": serial, "wwn": None}
                 for number, (letter, serial) in enumerate(zip("abcdefgh", serials, strict=False))]
        return {**self._body, "inventory": {**self._body["inventory"], "disks": disks}, **fields}


def test_a_raid_volume_made_between_two_inspections_becomes_the_root_device(whole):
    node, machine = whole.enroll("manageable"), Machine(whole)

    first = whole.inspect(node, machine.report("one", "two"))
    assert ("root_device" in first["properties"], first["properties"]["local_gb"]) == (False, 499)
    # A failed inspection in between is ignored.
    failed = whole.inspect(node, machine.report("one", "two", "volume", error="broken"))
    assert failed["provision_state"] == "inspect failed"
    second = whole.inspect(node, machine.report("one", "two", "volume"))

    assert second["properties"]["root_device"] == {"serial": "volume"}
    assert second["properties"]["local_gb"] == 501
    assert plugin_data(whole, node)["root_disk"]["name"] == "/dev/sdc"
    # A root device that was found is kept, also when another disk is new.
    third = whole.inspect(node, machine.report("one", "volume", "other"))
    assert third["properties"]["root_device"] == {"serial": "volume"}
    assert plugin_data(whole, node)["root_disk"]["name"] == "/dev/sdb"


def test_several_new_disks_are_no_root_device(whole):
    node, machine = whole.enroll("manageable"), Machine(whole)
    whole.inspect(node, machine.report("one"))

    shown = whole.inspect(node, machine.report("one", "two", "three"))

    assert (shown["provision_state"], "root_device" in shown["properties"]) == ("manageable", False)


def test_without_stored_inventories_no_disk_is_new(whole):
    node, machine = whole.enroll("manageable"), Machine(whole)

    with whole.option("inventory", "data_backend", "none"):
        whole.inspect(node, machine.report("one"))
        shown = whole.inspect(node, machine.report("one", "two"))

    assert "root_device" not in shown["properties"]


def test_a_disk_that_does_not_fit_fails_the_inspection(whole):
    node = whole.enroll("manageable", properties={"root_device": {"serial": "nosuch"}})

    shown = whole.inspect(node, Machine(whole).report("one", "two"))

    assert shown["provision_state"] == "inspect failed"
    assert shown["last_error"] == (
        "Inspection failed: Inspection hook root-device failed: none of 2 disks fits the root device hints "
        "{'serial': 'nosuch'} (IR-1030)")


def test_the_previous_inventory_is_not_read_unless_a_hook_looks_at_it(whole, monkeypatch):
    read = []
    original = inventory.latest_inventory

    def latest_inventory(conn, node_id, before=None):
        read.append(node_id)
        return original(conn, node_id, before)

    monkeypatch.setattr(inventory, "latest_inventory", latest_inventory)
    known = whole.enroll("manageable", properties={"root_device": {"serial": "one"}})
    whole.inspect(known, Machine(whole).report("one"))
    assert read == []
    new = whole.enroll("manageable")
    whole.inspect(new, Machine(whole).report("one"))

    with whole.db.reader() as conn:
        assert read == [nodes.get_id(conn, new)]


@pytest.mark.parametrize(("text", "message"), [
    ("hooks = $default_hooks,pci-devices\npci_device_alias = {}", r"\[inspector\]pci_device_alias: '\{\}'"),
    ("hooks = cpu-capabilities\ncpu_capabilities = vmx:cpu:vt", r"\[inspector\]cpu_capabilities: 'vmx:cpu:vt'"),
    ("hooks = accelerators\nknown_accelerators = nosuch.yaml", r"\[inspector\]known_accelerators: nosuch.yaml"),
])
def test_a_malformed_option_stops_the_start(tmp_path, text, message):
    conf = configuration(tmp_path, f"[inspector]\n{text}\n")
    db = service.make_database(conf, upgrade=True)
    try:
        with pytest.raises(ConfigurationError, match=message):
            make_conductor(conf, db)
    finally:
        db.dispose()
