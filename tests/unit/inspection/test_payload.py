import copy
import json
from pathlib import Path

import pytest

import ironic_rules
from ironic_rules.exceptions import InvalidInventory
from ironic_rules.inspection.payload import split
from tests.walking import walking

SAMPLES = sorted((Path(ironic_rules.__file__).parent / "samples" / "inventories").glob("*.json"))

BODY = {
    "inventory": {
        "interfaces": [
            {"name": "eno1", "mac_address": "7C-C2-55-0A-66-00", "ipv4_address": "192.0.2.31", "has_carrier": True,
             "lldp": [], "speed_mbps": None},
        ],
        "cpu": {"count": 64, "architecture": "x86_64", "flags": ["lm"], "frequency": "2400.0"},
        "memory": {"total": 4096, "physical_mb": 4},
        "disks": [{"name": "/dev/sda", "size": 480036519936, "rotational": False}],
        "system_vendor": {"product_name": "X", "firmware": {"version": "1"}},
        "boot": {"current_boot_mode": "uefi", "pxe_interface": None},
        "bmc_address": "192.0.2.131", "bmc_v6address": "::/0", "hostname": "h", "something_new": {"a": [1]},
    },
    "error": None, "logs": "H4sI", "boot_interface": "01-7c-c2-55-0a-66-00",
}


def body(**inventory):
    changed = copy.deepcopy(BODY)
    changed["inventory"].update(inventory)
    return changed


def problems(data):
    with pytest.raises(InvalidInventory) as caught:
        split(data)
    return {problem.where: problem.text for problem in caught.value.problems}


def test_everything_but_the_inventory_the_logs_and_the_claim_to_be_discovered_is_plugin_data():
    payload = split({**body(), "auto_discovered": True})

    assert payload.inventory == BODY["inventory"]
    assert payload.plugin_data == {"error": None, "boot_interface": "01-7c-c2-55-0a-66-00"}


def test_addresses_are_normalised():
    payload = split(body(bmc_v6address="2001:DB8::0:1"))

    assert payload.macs == ("7c:c2:55:0a:66:00",)
    assert payload.bmc_addresses == ("192.0.2.131", "2001:db8::1")


@walking("address", [None, "", "0.0.0.0", "::", "::/0", "127.0.0.1", "fe80::1%eth0", "169.254.1.1"])
def test_an_address_that_identifies_no_bmc_is_none(address):
    assert split(body(bmc_address=address, bmc_v6address=address)).bmc_addresses == ()


def test_an_address_that_is_sent_twice_counts_once():
    interfaces = [{"name": "a", "mac_address": "52:54:00:00:00:01"}, {"name": "b", "mac_address": "52:54:00:00:00:01"}]

    assert split(body(interfaces=interfaces)).macs == ("52:54:00:00:00:01",)


@pytest.mark.parametrize("address", [None, "", "a0:00:02:20:fe:80:00:00:00:00:00:00:e4:1d:2d:03:00:a5:b1:01"])
def test_an_interface_without_an_ethernet_address_passes_and_gives_none(address):
    assert split(body(interfaces=[{"name": "ib0", "mac_address": address}])).macs == ()


@pytest.mark.parametrize("address", ["ff:ff:ff:ff:ff:ff", "00-00-00-00-00-00", "01:00:5E:00:00:01"])
def test_an_address_that_no_port_can_have_costs_itself_only(address):
    sent = [{"name": "a", "mac_address": address}, {"name": "b", "mac_address": "52:54:00:00:00:01"}]

    payload = split(body(interfaces=sent))

    assert (payload.macs, payload.inventory["interfaces"]) == (("52:54:00:00:00:01",), sent)


@pytest.mark.parametrize("inventory", [{"interfaces": []}, {"interfaces": None}])
def test_an_inventory_without_interfaces_is_valid(inventory):
    assert split(body(**inventory)).macs == ()


def test_an_inventory_may_be_empty():
    assert split({"inventory": {}}).plugin_data == {}


@walking("path", SAMPLES)
def test_the_sample_inventories_pass(path):
    assert split(json.loads(path.read_text(encoding="utf-8"))).macs


@walking("data", [None, [], "inventory", 1])
def test_a_body_that_is_no_object_is_refused(data):
    assert problems(data) == {"": "must be an object"}


def test_a_missing_inventory_is_named():
    assert problems({"error": None}) == {"/inventory": "is required"}


@pytest.mark.parametrize("inventory", [None, [], "x"])
def test_an_inventory_that_is_no_object_is_refused(inventory):
    assert problems({"inventory": inventory}) == {"/inventory": "must be an object"}


@walking("address", [
    "zz", "52:54:00:00:00:01\n", " 52:54:00:00:00:01", "ff:ff:ff:ff:ff:fg", "00:00:00:00:00", 5, [], False,
    "a0:00:02:20:fe:80:00:00:00:00:00:00:e4:1d:2d:03:00:a5:b1:0\n",
])
def test_a_malformed_mac_address_is_refused_with_its_place(address):
    assert list(problems(body(interfaces=[{"mac_address": ""}, {"mac_address": address}]))) == [
        "/inventory/interfaces/1/mac_address"]


@walking("inventory, where", [
    ({"interfaces": {}}, "/inventory/interfaces"),
    ({"interfaces": ["eth0"]}, "/inventory/interfaces/0"),
    ({"interfaces": [None]}, "/inventory/interfaces/0"),
    ({"interfaces": [{"name": "eth0"}]}, "/inventory/interfaces/0/mac_address"),
    ({"interfaces": [{"mac_address": "", "name": 1}]}, "/inventory/interfaces/0/name"),
    ({"interfaces": [{"mac_address": "", "lldp": "x"}]}, "/inventory/interfaces/0/lldp"),
    ({"interfaces": [{"mac_address": "", "has_carrier": "yes"}]}, "/inventory/interfaces/0/has_carrier"),
    ({"interfaces": [{"mac_address": ""}] * 1025}, "/inventory/interfaces"),
    ({"disks": [{"size": "big"}]}, "/inventory/disks/0/size"),
    ({"disks": [{"size": 1.5}]}, "/inventory/disks/0/size"),
    ({"disks": [{"size": True}]}, "/inventory/disks/0/size"),
    ({"disks": [{"size": 2**63}]}, "/inventory/disks/0/size"),
    ({"disks": [{}] * 4097}, "/inventory/disks"),
    ({"cpu": []}, "/inventory/cpu"),
    ({"cpu": {"flags": [1]}}, "/inventory/cpu/flags/0"),
    ({"cpu": {"architecture": "x" * 4097}}, "/inventory/cpu/architecture"),
    ({"memory": {"physical_mb": "4"}}, "/inventory/memory/physical_mb"),
    ({"system_vendor": {"firmware": "1"}}, "/inventory/system_vendor/firmware"),
    ({"boot": {"pxe_interface": {}}}, "/inventory/boot/pxe_interface"),
    ({"bmc_address": "nowhere"}, "/inventory/bmc_address"),
    ({"bmc_address": 1}, "/inventory/bmc_address"),
    ({"bmc_v6address": "192.0.2.1:623"}, "/inventory/bmc_v6address"),
])
def test_a_wrong_type_or_size_is_refused_with_its_place(inventory, where):
    assert list(problems(body(**inventory))) == [where]


def test_all_problems_are_told_at_once_up_to_a_bound():
    found = problems(body(interfaces=[{"mac_address": "zz"}] * 1000, bmc_address=5))

    assert len(found) == 20


def test_nothing_of_the_body_comes_back():
    with pytest.raises(InvalidInventory) as caught:
        split(body(bmc_address="<script>", cpu={"architecture": ["<script>"]}))

    assert "script" not in str(caught.value)
