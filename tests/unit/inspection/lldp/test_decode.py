"""Every kind of TLV, its octets written by hand from the standards."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ironic_rules.inspection import lldp
from ironic_rules.inspection.lldp import med, tlvs
from ironic_rules.inspection.lldp.decode import MAX_FRAME, MAX_PROBLEMS, MAX_TLV
from tests.walking import walking

MAC = "d89ef3001101"
V6 = "20010db8000000000000000000000001"
DOT1, DOT3, MED = "0080c2", "00120f", "0012bb"


def text(characters: str) -> str:
    return characters.encode().hex()


#: type, value, decoded value
GOOD = [
    (1, "01" + text("chassis 1"), {"switch_chassis_id": "chassis 1"}),
    (1, "02" + text("alias"), {"switch_chassis_id": "alias"}),
    (1, "03" + text("slot"), {"switch_chassis_id": "slot"}),
    (1, "04" + MAC, {"switch_chassis_id": "d8:9e:f3:00:11:01"}),
    (1, "0501c0000201", {"switch_chassis_id": "192.0.2.1"}),
    (1, "0502" + V6, {"switch_chassis_id": "2001:db8::1"}),
    (1, "0506" + MAC, {"switch_chassis_id": "d8:9e:f3:00:11:01"}),
    (1, "0503aabbcc", {}),
    (1, "06" + text("ge-0/0/1"), {"switch_chassis_id": "ge-0/0/1"}),
    (1, "07" + text("säule"), {"switch_chassis_id": "säule"}),
    (1, "08ffff", {}),
    (1, "07", {}),
    (2, "01" + text("uplink"), {"switch_port_id": "uplink"}),
    (2, "02" + text("slot 3"), {"switch_port_id": "slot 3"}),
    (2, "03" + MAC, {"switch_port_id": "d8:9e:f3:00:11:01"}),
    (2, "0401c0000207", {"switch_port_id": "192.0.2.7"}),
    (2, "0402" + V6, {"switch_port_id": "2001:db8::1"}),
    (2, "05" + text("Ethernet1/17"), {"switch_port_id": "Ethernet1/17"}),
    (2, "06" + "0004ff", {"switch_port_id": "\\x00\\x04\\xff"}),
    (2, "07" + text("17"), {"switch_port_id": "17"}),
    (2, "00" + text("17"), {}),
    (3, "0078", {"switch_ttl": 120}),
    (3, "0000", {"switch_ttl": 0}),
    (4, text("server port"), {"switch_port_description": "server port"}),
    (4, "", {}),
    (5, text("leaf-a3-1"), {"switch_system_name": "leaf-a3-1"}),
    (6, text("Network OS 10.5") + "00", {"switch_system_description": "Network OS 10.5"}),
    (6, text("two\nlines"), {"switch_system_description": "two\\nlines"}),
    (7, "07fe0004", {
        "switch_capabilities_support": ["Repeater", "Bridge", "WLAN", "Router", "Telephone", "DOCSIS cable device",
                                        "Station only", "C-Vlan", "S-Vlan", "TPMR"],
        "switch_capabilities_enabled": ["Bridge"]}),
    (7, "00010000", {"switch_capabilities_support": [], "switch_capabilities_enabled": []}),
    (8, "0501c0000201" + "02" + "00000065" + "00", {"switch_mgmt_addresses": ["192.0.2.1"]}),
    (8, "1102" + V6 + "01" + "00000000" + "022b06", {"switch_mgmt_addresses": ["2001:db8::1"]}),
    (8, "0706" + MAC + "020000000100", {"switch_mgmt_addresses": ["d8:9e:f3:00:11:01"]}),
    (8, "0310aabb" + "020000000100", {}),

    (127, DOT1 + "01" + "0136", {"switch_port_untagged_vlan_id": 310}),
    (127, DOT1 + "02" + "06" + "0064", {
        "switch_port_protocol_vlan_support": True, "switch_port_protocol_vlan_enabled": True,
        "switch_port_protocol_vlan_ids": [100]}),
    (127, DOT1 + "02" + "02" + "0000", {
        "switch_port_protocol_vlan_support": True, "switch_port_protocol_vlan_enabled": False,
        "switch_port_protocol_vlan_ids": [0]}),
    (127, DOT1 + "03" + "0065" + "07" + text("vlan101"), {"switch_port_vlans": [{"id": 101, "name": "vlan101"}]}),
    (127, DOT1 + "03" + "0065" + "00", {"switch_port_vlans": [{"id": 101, "name": ""}]}),
    (127, DOT1 + "04" + "08" + "0026424203000000", {"switch_protocol_identities": ["0026424203000000"]}),
    (127, DOT1 + "05" + "00000001", {}),
    (127, DOT1 + "06" + "0ffe", {"switch_port_management_vlan_id": 4094}),
    (127, DOT1 + "07" + "03" + "00000296", {
        "switch_port_link_aggregation_support": True, "switch_port_link_aggregation_enabled": True,
        "switch_port_link_aggregation_id": 662}),

    (127, DOT3 + "01" + "03" + "7fff" + "001e", {
        "switch_port_autonegotiation_support": True, "switch_port_autonegotiation_enabled": True,
        "switch_port_physical_capabilities": sorted(tlvs.AUTONEGOTIATION.values()),
        "switch_port_mau_type": "1000BASE-T full duplex"}),
    (127, DOT3 + "01" + "01" + "8001" + "0090", {
        "switch_port_autonegotiation_support": True, "switch_port_autonegotiation_enabled": False,
        "switch_port_physical_capabilities": ["1000BASE-T fdx"], "switch_port_mau_type": "MAU type 144"}),
    (127, DOT3 + "02" + "07" + "01" + "05", {"switch_port_power": {
        "port_class": "PSE", "supported": True, "enabled": True, "pair_control": False, "pairs": "signal",
        "power_class": 4}}),
    (127, DOT3 + "02" + "08" + "02" + "00" + "41" + "00ff" + "0064", {"switch_port_power": {
        "port_class": "PD", "supported": False, "enabled": False, "pair_control": True, "pairs": "spare",
        "power_class": None, "type": 2, "priority": "critical", "requested_mw": 25500, "allocated_mw": 10000}}),
    (127, DOT3 + "02" + "07" + "09" + "01" + "80" + "0000" + "0000" + "ff" * 17, {"switch_port_power": {
        "port_class": "PSE", "supported": True, "enabled": True, "pair_control": False, "pairs": "unknown",
        "power_class": 0, "type": 1, "priority": "unknown", "requested_mw": 0, "allocated_mw": 0}}),
    (127, DOT3 + "03" + "01" + "00000000", {
        "switch_port_link_aggregation_support": True, "switch_port_link_aggregation_enabled": False,
        "switch_port_link_aggregation_id": 0}),
    (127, DOT3 + "04" + "2400", {"switch_port_mtu": 9216}),

    (127, MED + "01" + "002f" + "04", {
        "switch_med_capabilities": ["capabilities", "network policy", "location", "power PSE", "inventory"],
        "switch_med_device_type": "network connectivity"}),
    (127, MED + "01" + "0010" + "00", {
        "switch_med_capabilities": ["power PD"], "switch_med_device_type": "unknown"}),
    (127, MED + "02" + "01" + "40c96e", {"switch_med_network_policies": [{
        "application": "voice", "defined": True, "tagged": True, "vlan_id": 100, "priority": 5, "dscp": 46}]}),
    (127, MED + "02" + "7f" + "800000", {"switch_med_network_policies": [{
        "application": "application 127", "defined": False, "tagged": False, "vlan_id": 0, "priority": 0,
        "dscp": 0}]}),
    # Resolution 18 bits, 38.5 degrees; 18 bits, -77.03125 degrees; metres, 36 bits, 15; WGS84
    (127, MED + "03" + "01" + "484d0000004b65f000001900000f0001", {"switch_med_locations": [{
        "format": "coordinates", "latitude": 38.5, "longitude": -77.03125, "altitude": 15.0, "altitude_unit": "m",
        "datum": "WGS84"}]}),
    (127, MED + "03" + "02" + "10" + "02" + text("DE") + "0306" + text("Berlin") + "1c03" + text("3.4"), {
        "switch_med_locations": [{"format": "civic", "country": "DE", "elements": {"3": "Berlin", "28": "3.4"}}]}),
    (127, MED + "03" + "03" + text("4930123456"), {"switch_med_locations": [
        {"format": "elin", "number": "4930123456"}]}),
    (127, MED + "03" + "04" + "ff", {}),
    (127, MED + "04" + "12" + "0041", {"switch_med_power": {
        "type": "PSE", "source": "primary", "priority": "high", "power_mw": 6500}}),
    (127, MED + "04" + "73" + "0001", {"switch_med_power": {
        "type": "PD", "source": "PSE and local", "priority": "low", "power_mw": 100}}),
    (127, MED + "04" + "c0" + "0000", {"switch_med_power": {
        "type": "unknown", "source": "unknown", "priority": "unknown", "power_mw": 0}}),
    (127, MED + "05" + text("A02"), {"switch_hardware_revision": "A02"}),
    (127, MED + "06" + text("1.2"), {"switch_firmware_revision": "1.2"}),
    (127, MED + "07" + text("10.5"), {"switch_software_revision": "10.5"}),
    (127, MED + "08" + text("CN0X"), {"switch_serial_number": "CN0X"}),
    (127, MED + "09" + text("Dell EMC"), {"switch_manufacturer": "Dell EMC"}),
    (127, MED + "0a" + text("S4148"), {"switch_model": "S4148"}),
    (127, MED + "0b" + text("4711"), {"switch_asset_id": "4711"}),

    (9, "00", {}),
    (126, "ff", {}),
    (127, "00014201aabb", {}),
    (127, MED + "0c" + "ff", {}),
]

#: type, value, error
BAD = [
    (1, "", "octets missing: 1"),
    (1, "04d89ef30011", "a MAC address of 5 octets"),
    (1, "04d89ef300110102", "a MAC address of 7 octets"),
    (1, "05", "octets missing: 1"),
    (1, "0501c00002", "an address of family 1 with 3 octets"),
    (1, "0502c0000201", "an address of family 2 with 4 octets"),
    (2, "", "octets missing: 1"),
    (2, "03", "a MAC address of 0 octets"),
    (3, "00", "octets missing: 1"),
    (3, "007800", "octets too many: 1"),
    (7, "0014", "octets missing: 2"),
    (7, "0014001400", "octets too many: 1"),
    (8, "", "octets missing: 1"),
    (8, "00", "octets missing: 1"),
    (8, "0501c000", "octets missing: 2"),
    (8, "0201c0", "an address of family 1 with 1 octets"),
    (127, "", "octets missing: 3"),
    (127, "0080c2", "octets missing: 1"),
    (127, DOT1 + "01" + "01", "octets missing: 1"),
    (127, DOT1 + "01" + "013600", "octets too many: 1"),
    (127, DOT1 + "02" + "0600", "octets missing: 1"),
    (127, DOT1 + "03" + "0065", "octets missing: 1"),
    (127, DOT1 + "03" + "0065" + "ff" + text("vlan"), "octets missing: 251"),
    (127, DOT1 + "03" + "0065" + "01" + text("vlan"), "octets too many: 3"),
    (127, DOT1 + "04" + "08" + "00", "octets missing: 7"),
    (127, DOT1 + "07" + "03" + "000002", "octets missing: 1"),
    (127, DOT3 + "01" + "03" + "7fff" + "00", "octets missing: 1"),
    (127, DOT3 + "02" + "07" + "01", "octets missing: 1"),
    (127, DOT3 + "02" + "07" + "01" + "05" + "41" + "00", "octets missing: 1"),
    (127, DOT3 + "04" + "24000000", "octets too many: 2"),
    (127, MED + "01" + "002f", "octets missing: 1"),
    (127, MED + "02" + "01" + "40c9", "octets missing: 1"),
    (127, MED + "03", "octets missing: 1"),
    (127, MED + "03" + "01" + "00" * 15, "octets missing: 1"),
    (127, MED + "03" + "02" + "10" + "02" + text("DE"), "octets missing: 13"),
    (127, MED + "03" + "02" + "06" + "02" + text("DE") + "0306" + text("Be"), "octets missing: 5"),
    (127, MED + "03" + "03" + text("110a"), "an ELIN that is not a number"),
    (127, MED + "03" + "03", "an ELIN that is not a number"),
    (127, MED + "04" + "12" + "004100", "octets too many: 1"),
    (5, "7", "its value is not hexadecimal"),
    (5, "0x37", "its value is not hexadecimal"),
    (5, "73 77", "its value is not hexadecimal"),
    (5, "é7", "its value is not hexadecimal"),
    (5, "\ud800", "its value is not hexadecimal"),
    (5, None, "its value is not text of at most 511 octets"),
    (5, ["7377"], "its value is not text of at most 511 octets"),
    (5, "00" * (MAX_TLV + 1), "its value is not text of at most 511 octets"),
    ("5", "7377", "its type is not a number from 0 to 127"),
    (5.0, "7377", "its type is not a number from 0 to 127"),
    (True, "7377", "its type is not a number from 0 to 127"),
    (128, "7377", "its type is not a number from 0 to 127"),
    (-1, "7377", "its type is not a number from 0 to 127"),
]


@walking("kind, value, expected", GOOD)
def test_a_tlv_says_what_its_octets_mean(kind, value, expected):
    assert lldp.decode([[kind, value]]) == lldp.Neighbour(expected, [])


@walking("kind, value, problem", BAD)
def test_a_malformed_tlv_is_left_out_and_the_next_one_is_read(kind, value, problem):
    assert lldp.decode([[kind, value], [5, "7377"]]) == lldp.Neighbour(
        {"switch_system_name": "sw"}, [f"TLV 0: {problem}"])


def test_the_tables_above_have_every_tlv():
    kinds = {1, 2, 3, 4, 5, 6, 7, 8}
    tables = ((tlvs.DOT1_OUI, tlvs.DOT1_TLVS), (tlvs.DOT3_OUI, tlvs.DOT3_TLVS), (med.OUI, med.TLVS))
    organised = {(oui, subtype) for oui, subtypes in tables for subtype in subtypes}

    assert set(tlvs.BASIC_TLVS) == kinds <= {kind for kind, _, _ in GOOD}
    assert organised <= {(bytes.fromhex(value[:6]), int(value[6:8], 16)) for kind, value, _ in GOOD if kind == 127}


@walking("number, name", [
    (0, "Unknown"), (1, "AUI"), (14, "100 BASE-T4"), (16, "100BASE-TX full duplex"), (30, "1000BASE-T full duplex"),
    (36, "10GBASE-SR"), (53, "1000BASE-PX20U"), (54, "10GBASE-T"), (58, "10GBASE-KR"), (71, "40GBASE-CR4"),
    (78, "100GBASE-ER4"), (79, "MAU type 79"), (65535, "MAU type 65535"),
])
def test_media_have_the_numbers_of_the_registry(number, name):
    assert tlvs.mau_type(number) == name


@walking("tlvs", [None, 7, "0180c2", {"1": "04"}, ({1, 2},), object()])
def test_what_is_no_list_is_one_problem(tlvs):
    assert lldp.decode(tlvs) == lldp.Neighbour({}, ["not a list of TLVs"])


def test_items_that_are_no_pairs_are_left_out():
    found = lldp.decode([None, [], [5], [5, "73", 7], "57"])

    assert found.values == {}
    assert found.problems == [*(f"TLV {index}: not a pair of type and value" for index in range(4)),
                              "more TLVs are ignored"]


def test_lists_have_every_value_once_and_in_order():
    found = lldp.decode([[127, DOT1 + "03" + "0002" + "0162"], [127, DOT1 + "03" + "0001" + "0161"],
                         [127, DOT1 + "03" + "0002" + "0162"], [8, "0501c0000201"], [8, "0501c0000201"]])

    assert found.values == {"switch_port_vlans": [{"id": 2, "name": "b"}, {"id": 1, "name": "a"}],
                            "switch_mgmt_addresses": ["192.0.2.1"]}


@walking("item", [[127, DOT1 + "02" + "060064"], [5, "zz"], None, [9, ""], [6, "00" * MAX_TLV]])
def test_a_hundred_thousand_tlvs_are_not_all_looked_at(item):
    looked_at = []

    class Watched(list):
        def __iter__(self):
            for index, value in enumerate(super().__iter__()):
                looked_at.append(index)
                yield value

    found = lldp.decode(Watched([item] * 100_000))

    assert len(looked_at) <= MAX_FRAME / 2 + 1
    assert len(found.problems) <= MAX_PROBLEMS + 1
    assert len(json.dumps(found.values)) < 5 * MAX_FRAME


def test_a_frame_that_is_too_long_is_read_as_far_as_frames_go():
    found = lldp.decode([[5, "7377"], *[[9, "00" * 500]] * 4, [4, "7377"]])

    assert found == lldp.Neighbour({"switch_system_name": "sw"}, ["TLV 4 is the last that fits into a frame"])


_SUBTYPES = st.sampled_from([oui + bytes([subtype]) for oui in (tlvs.DOT1_OUI, tlvs.DOT3_OUI, med.OUI)
                             for subtype in range(13)])
_TLVS = st.one_of(
    st.tuples(st.integers(0, 9), st.binary(max_size=60).map(bytes.hex)),
    st.tuples(st.just(127), st.builds(lambda head, rest: (head + rest).hex(), _SUBTYPES, st.binary(max_size=40))),
).map(list)
_ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8)


@pytest.mark.slow
@given(st.lists(_TLVS | _ANYTHING, max_size=12) | _ANYTHING)
@example([[127, "0012bb0301" + "ff" * 16]])
@example([[5, "c285e280a8efbbbf"]])
def test_nothing_makes_it_raise_or_lets_a_control_character_through(tlvs):
    found = lldp.decode(tlvs)

    assert json.loads(json.dumps(found.values)) == found.values
    assert all(character.isprintable() for character in "".join(_texts([found.values, found.problems])))


def _texts(value):
    if isinstance(value, str):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _texts(item)
