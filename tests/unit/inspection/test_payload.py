import copy
import json
from pathlib import Path

import pytest

import ironic_rules
from ironic_rules.exceptions import InvalidInventory
from ironic_rules.inspection.payload import addresses_in, split, usable
from ironic_rules.models import addresses
from ironic_rules.models.inventories import WARNINGS
from ironic_rules.models.json_text import Oddity
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


@walking("address", [None, "", "a0:00:02:20:fe:80:00:00:00:00:00:00:e4:1d:2d:03:00:a5:b1:01"])
def test_an_interface_without_an_ethernet_address_passes_and_gives_none(address):
    assert split(body(interfaces=[{"name": "ib0", "mac_address": address}])).macs == ()


@walking("address", ["ff:ff:ff:ff:ff:ff", "00-00-00-00-00-00", "01:00:5E:00:00:01"])
def test_an_address_that_no_port_can_have_costs_itself_only(address):
    sent = [{"name": "a", "mac_address": address}, {"name": "b", "mac_address": "52:54:00:00:00:01"}]

    payload = split(body(interfaces=sent))

    assert (payload.macs, payload.inventory["interfaces"]) == (("52:54:00:00:00:01",), sent)


@walking("inventory", [{"interfaces": []}, {"interfaces": None}])
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


@walking("inventory", [None, [], "x"])
def test_an_inventory_that_is_no_object_is_refused(inventory):
    assert problems({"inventory": inventory}) == {"/inventory": "must be an object"}


def warned(data, **given):
    """Return what is odd in a report: by place, what is read there, or "left out", or "as it came"."""
    found = split(data, **given)
    assert found.received == data["inventory"]
    return {each["path"]: "left out" if "left_out" in each else each.get("used", "as it came")
            for each in found.warnings}


@walking("address", [
    "zz", "52:54:00:00:00:01\n", " 52:54:00:00:00:01", "ff:ff:ff:ff:ff:fg", "00:00:00:00:00", 5, [], False,
    "a0:00:02:20:fe:80:00:00:00:00:00:00:e4:1d:2d:03:00:a5:b1:0\n", "00:11:22:ff:fe:33:44:55",
])
def test_a_malformed_mac_address_costs_itself_only(address):
    sent = body(interfaces=[{"mac_address": address}, {"name": "b", "mac_address": "52:54:00:00:00:01"}])

    assert warned(sent) == {"/inventory/interfaces/0/mac_address": None}
    assert split(sent).macs == ("52:54:00:00:00:01",)


@walking("inventory, where, read", [
    ({"interfaces": {}}, "/interfaces", None),
    ({"interfaces": ["eth0"]}, "/interfaces/0", "left out"),
    ({"interfaces": [None]}, "/interfaces/0", "left out"),
    ({"interfaces": [{"mac_address": "", "name": 1}]}, "/interfaces/0/name", "1"),
    ({"interfaces": [{"mac_address": "", "name": True}]}, "/interfaces/0/name", None),
    ({"interfaces": [{"mac_address": "", "lldp": "x"}]}, "/interfaces/0/lldp", None),
    ({"interfaces": [{"mac_address": "", "has_carrier": "yes"}]}, "/interfaces/0/has_carrier", True),
    ({"interfaces": [{"mac_address": "", "has_carrier": "perhaps"}]}, "/interfaces/0/has_carrier", None),
    ({"interfaces": [{"mac_address": "", "ipv4_address": "N/A"}]}, "/interfaces/0/ipv4_address", None),
    ({"disks": [{"size": "big"}]}, "/disks/0/size", None),
    ({"disks": [{"size": 1.5}]}, "/disks/0/size", None),
    ({"disks": [{"size": True}]}, "/disks/0/size", None),
    ({"disks": [{"size": 2**63}]}, "/disks/0/size", None),
    ({"disks": [{"size": -1}]}, "/disks/0/size", None),
    ({"disks": [{"size": "-1"}]}, "/disks/0/size", None),
    ({"cpu": []}, "/cpu", None),
    ({"cpu": {"flags": ["a", [1]]}}, "/cpu/flags/1", None),
    ({"cpu": {"flags": ["a", 1]}}, "/cpu/flags/1", "1"),
    ({"cpu": {"architecture": "x" * 4097}}, "/cpu/architecture", None),
    ({"cpu": {"architecture": "N/A"}}, "/cpu/architecture", None),
    ({"memory": {"physical_mb": "4"}}, "/memory/physical_mb", 4),
    ({"memory": {"physical_mb": 4.0}}, "/memory/physical_mb", 4),
    ({"system_vendor": {"firmware": "1"}}, "/system_vendor/firmware", None),
    ({"system_vendor": {"serial_number": 4711}}, "/system_vendor/serial_number", "4711"),
    ({"boot": {"pxe_interface": {}}}, "/boot/pxe_interface", None),
    ({"bmc_address": "nowhere"}, "/bmc_address", None),
    ({"bmc_address": 1}, "/bmc_address", None),
    ({"bmc_v6address": "192.0.2.1:623"}, "/bmc_v6address", None),
])
def test_a_value_of_another_kind_costs_itself_only(inventory, where, read):
    assert warned(body(**inventory)) == {f"/inventory{where}": read}


@walking("name", ["data", "pci_devices", "usb_devices", "lldp_raw"])
def test_free_form_data_of_collectors_are_only_noted(name):
    sent = {**body(), name: "text"}

    assert warned(sent) == {f"/{name}": "as it came"}
    assert split(sent).plugin_data[name] == "text"


@walking("inventory, where", [
    ({"interfaces": [{"mac_address": ""}] * 1025}, "/inventory/interfaces"),
    ({"disks": [{}] * 4097}, "/inventory/disks"),
])
def test_too_many_values_are_refused_with_their_place(inventory, where):
    assert list(problems(body(**inventory))) == [where]


def test_hooks_read_what_is_usable_and_the_rest_is_stored_as_it_came():
    sent = body(interfaces=["eth0", {"name": 1, "mac_address": "zz"}, None], bmc_address="N/A")
    sent["data"] = [[1, "NaN"]]

    stored = split(sent, [Oddity("/data/0/1", "is no number", True), Oddity("/logs", "is odd", True)]).to_store()
    data, warnings = usable(stored.inventory, stored.plugin_data)

    assert stored.inventory == sent["inventory"]
    assert stored.plugin_data["data"] == [[1, "NaN"]]
    assert data.inventory == {**sent["inventory"], "interfaces": [{"name": "1", "mac_address": None}],
                              "bmc_address": None}
    assert data.plugin_data["data"] == [[1, None]]
    assert WARNINGS not in data.plugin_data
    assert len(warnings) == 6


def test_what_a_machine_says_of_its_own_report_is_dropped():
    claimed = [{"path": "/inventory/bmc_address", "problem": "none", "used": "192.0.2.1"}]

    assert WARNINGS not in split({**body(), WARNINGS: claimed}).to_store().plugin_data


@walking("written", [5, "x", [5], [{"path": 1}], [{"path": "~", "problem": "x", "used": 1}],
                                     [{"path": "/a/b/c", "problem": "x", "left_out": True}]])
def test_what_an_early_rule_writes_in_the_place_of_warnings_does_no_harm(written):
    assert usable({"a": 1}, {WARNINGS: written})[0].inventory == {"a": 1}


def test_a_part_with_very_many_odd_values_is_left_out_as_a_whole():
    sent = body(disks=[{"size": "big", "name": []}] * 1000, bmc_address=5)

    assert warned(sent) == {"/inventory/disks": None, "/inventory/bmc_address": None}


def test_nothing_of_the_body_comes_back():
    with pytest.raises(InvalidInventory) as caught:
        split({"inventory": {**body()["inventory"], "interfaces": [{"mac_address": "<script>"}] * 1025}})

    assert "script" not in str(caught.value)


@walking("text", [
    '{"inventory": {"interfaces": {"a": {"mac_address":"7C-C2-55-0A-66-00"}, "mac_address": "zz"}, "bmc_address": '
    '"192.0.2.131"', '{"mac_address" : "7c:c2:55:0a:66:00"} {"bmc_v6address":"192.0.2.131/24", "mac_address": "7c:c2'])
def test_the_addresses_in_any_text_are_found(text):
    assert addresses_in(text.encode()) == (("7c:c2:55:0a:66:00",), ("192.0.2.131",))


def test_few_of_the_addresses_in_a_text_are_read(monkeypatch):
    read = []
    monkeypatch.setattr(addresses, "normalize", lambda text: read.append(text) or text)
    text = b"".join(b'"bmc_v6address":"fd00::%x"' % number for number in range(9000))

    assert [len(found) for found in addresses_in(text)] == [0, 256]
    assert read == [f"fd00::{number:x}" for number in range(4096)]


DISK = {"name": "/dev/sda", "size": 480036519936, "rotational": False}


@walking("medium", [
    {"name": "/dev/sr0", "size": 150_000_000}, {"name": "/dev/fd0", "size": 4096},
    {"name": "/dev/sdb", "size": 1_474_560, "model": "QEMU HARDDISK", "vendor": "QEMU"},
    {"name": "/dev/sdb", "size": 150_000_000, "model": "Virtual Media", "vendor": "AMI"},
    {"name": "/dev/sdb", "size": 9_000_000_000, "model": "Virtual CDROM0", "vendor": "AMI"},
    {"name": "/dev/sdb", "size": None, "model": "Virtual Floppy", "vendor": "iDRAC"},
    {"name": "/dev/sdb", "size": 155_150_336, "model": "QEMU HARDDISK", "vendor": "QEMU", "tran": "usb"},
    {"name": "/dev/sdb", "size": 1, "model": "CIMC-Mapped vHDD", "vendor": "Cisco"},
    {"name": "/dev/sdb", "size": 1, "model": "File-Stor Gadget", "vendor": "Linux"}])
def test_a_virtual_medium_is_no_disk(medium):
    sent = split({**body(disks=[medium, DISK]), "root_disk": medium})

    assert sent.received["disks"] == sent.inventory["disks"] == [DISK]
    assert "root_disk" not in sent.plugin_data
    assert sent.warnings == []
    odd = split(body(disks=[medium, {**DISK, "size": "480036519936"}]))
    assert odd.inventory["disks"] == [DISK]
    assert usable(odd.received, odd.to_store().plugin_data)[0].inventory["disks"] == [DISK]
    assert [(each["path"], each["problem"]) for each in odd.warnings] == [
        ("/inventory/disks/1/size", "is a text and read as a number"),
        ("/inventory/disks/0", "is a virtual medium of the BMC, and no disk")]


def test_disks_of_virtual_machines_and_usb_sticks_are_disks():
    disks = [{"name": f"/dev/sd{number}", "size": 10_737_418_240, "vendor": vendor, "model": model, "tran": "usb"}
             for number, (vendor, model) in enumerate([
                 ("VMware", "Virtual disk"), ("Msft", "Virtual Disk"), ("QEMU", "QEMU HARDDISK"), ("0x1af4", None),
                 ("AWS", "Elastic Block"), ("SanDisk", "Ultra USB 3.0"), (None, None), (7, ["x"])])]

    sent = split({**body(disks=disks), "root_disk": disks[0]})

    assert sent.received["disks"] == disks
    assert sent.plugin_data["root_disk"] == disks[0]
