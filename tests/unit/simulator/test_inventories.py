import copy
import ipaddress
import json

import pytest

from ironic_rules import samples
from ironic_rules.models import addresses
from ironic_rules.simulator import inventories
from ironic_rules.simulator.inventories import InventoryFileError, Sample
from tests.walking import walking

SAMPLES = [Sample(name, samples.inventory(name)) for name in samples.inventory_names()]
each_sample = pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)


def shape(value):
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    return [shape(item) for item in value] if isinstance(value, list) else type(value)


def identifiers(body):
    inventory = body["inventory"]
    nics = [nic["mac_address"] for nic in inventory["interfaces"]]
    disks = [disk[key] for disk in inventory["disks"] for key in ("serial", "wwn", "wwn_with_extension")]
    bmc = [inventory.get(key) for key in ("bmc_mac", "bmc_address", "bmc_v6address")]
    found = {*nics, *disks, *bmc, inventory["system_vendor"]["serial_number"]}
    return found - {None, "", "::/0", "0.0.0.0"}


@each_sample
def test_a_varied_inventory_keeps_its_shape(sample):
    made = inventories.vary(sample, "run", 7)

    assert shape(json.loads(made.content)) == shape(sample.body)
    assert made.inventory == json.loads(made.content)["inventory"]


@each_sample
def test_the_sample_itself_stays_as_it_was(sample):
    before = copy.deepcopy(sample.body)

    inventories.vary(sample, "run", 7)

    assert sample.body == before


@each_sample
def test_no_identifier_of_the_sample_is_left(sample):
    made = inventories.vary(sample, "run", 7)

    assert not [name for name in identifiers(sample.body) if name in made.content.decode()]


@each_sample
def test_machines_share_no_identifier_within_a_run_and_between_runs(sample):
    bodies = [json.loads(inventories.vary(sample, run, index).content) for run in "ab" for index in (0, 1, 255, 256)]
    found = [identifiers(body) for body in bodies]

    assert len(set.union(*found)) == sum(map(len, found))


@each_sample
def test_the_same_run_makes_the_same_machine(sample):
    assert inventories.vary(sample, "run", 3) == inventories.vary(sample, "run", 3)


@each_sample
def test_the_boot_interface_is_a_nic_of_the_machine(sample):
    made = inventories.vary(sample, "run", 7)
    body = json.loads(made.content)

    assert made.pxe_mac in [nic["mac_address"] for nic in made.inventory["interfaces"]]
    assert addresses.mac_from_pxelinux(body["boot_interface"]) == made.pxe_mac


@each_sample
def test_the_root_disk_is_a_disk_of_the_machine(sample):
    body = json.loads(inventories.vary(sample, "run", 7).content)

    assert body.get("root_disk") in [None, *body["inventory"]["disks"]]


@each_sample
def test_a_world_wide_name_stays_part_of_its_extended_form(sample):
    for disk in inventories.vary(sample, "run", 7).inventory["disks"]:
        assert disk["wwn"] is None or disk["wwn_with_extension"].startswith(disk["wwn"])


def test_collected_data_name_the_new_addresses():
    body = json.loads(inventories.vary(Sample("r730", samples.inventory("extra-hardware-r730")), "run", 7).content)

    serials = [row[3] for row in body["data"] if row[0] == "network" and row[2] == "serial"]
    assert serials == [nic["mac_address"] for nic in body["inventory"]["interfaces"]]


def test_a_link_local_address_follows_its_mac_address():
    nic = inventories.vary(Sample("vm", samples.inventory("vm-qemu-bios")), "run", 258).inventory["interfaces"][0]
    octets = nic["mac_address"].split(":")

    address, _, zone = nic["ipv6_address"].partition("%")
    assert zone == "enp1s0"
    assert ipaddress.ip_address(address).packed[-8:] == bytes.fromhex(
        f"{int(octets[0], 16) ^ 2:02x}{octets[1]}{octets[2]}fffe{''.join(octets[3:])}")


@walking("name, network", [
    ("dell-r660", "10.0.0.0/8"), ("hpe-dl380-gen11", "10.0.0.0/8"), ("ipv6-only-bmc", "fd00::/8"),
])
def test_the_bmc_gets_an_address_of_a_private_network(name, network):
    made = inventories.vary(Sample(name, samples.inventory(name)), "run", 65535)

    assert ipaddress.ip_address(made.bmc_address) in ipaddress.ip_network(network)
    assert made.bmc_address in (made.inventory["bmc_address"], made.inventory["bmc_v6address"])


def test_a_machine_without_bmc_stays_without():
    assert inventories.vary(Sample("vm", samples.inventory("vm-qemu-bios")), "run", 0).bmc_address is None


def test_mac_addresses_are_local_unicast_and_distinct():
    made = {inventories.mac_address(run, index, nic) for run in "abc" for index in (0, 1, 256, 65535) for nic in (0, 1)}

    assert len(made) == 24
    assert {int(address[:2], 16) & 3 for address in made} == {2}
    assert all(addresses.normalize_mac(address) == address for address in made)


def test_bmc_addresses_of_a_large_run_are_distinct_host_addresses():
    made = {inventories.bmc_address("run", index) for index in range(65536)}

    assert len(made) == 65536
    assert not [address for address in made if address.endswith((".0", ".255")) or not address.startswith("10.")]


def test_a_run_has_a_bounded_number_of_machines():
    with pytest.raises(ValueError, match="at most 65536"):
        inventories.vary(SAMPLES[0], "run", 65536)


def test_unusual_addresses_are_left_alone():
    infiniband = "80:00:02:08:fe:80:00:00:00:00:00:00:e4:1d:2d:03:00:5d:b6:11"
    nics = [{"mac_address": address} for address in (infiniband, "", None, "52:54:00:00:00:01")]

    made = inventories.vary(Sample("odd", {"inventory": {"interfaces": nics}}), "run", 0)

    assert [nic["mac_address"] for nic in made.inventory["interfaces"]] == [infiniband, "", None, made.pxe_mac]


def test_an_error_in_the_data_is_expected_to_fail_inspection():
    states = {sample.name: inventories.vary(sample, "run", 0).expected_state for sample in SAMPLES}

    assert states.pop("ramdisk-error") == "inspect failed"
    assert set(states.values()) == {"manageable"}


def test_load_reads_a_file(tmp_path):
    (tmp_path / "one.json").write_text('{"inventory": {"interfaces": []}}')

    assert inventories.load(str(tmp_path / "one.json")) == Sample("one", {"inventory": {"interfaces": []}})


@pytest.mark.parametrize(("text", "reason"), [
    ("{", "not JSON"), ("[]", "not a ramdisk's data"), ('{"inventory": {}}', "inventory.interfaces"),
])
def test_load_refuses_other_files_in_one_line(tmp_path, text, reason):
    (tmp_path / "bad.json").write_text(text)

    with pytest.raises(InventoryFileError, match=reason) as caught:
        inventories.load(str(tmp_path / "bad.json"))

    assert "\n" not in str(caught.value)


def test_load_names_a_missing_file():
    with pytest.raises(InventoryFileError, match=r"nowhere\.json: No such file"):
        inventories.load("nowhere.json")
