"""The differences of two inventories."""

from __future__ import annotations

import copy
from typing import Any

import jsonpatch
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ironic_rules.models import inventories
from ironic_rules.models.inventories import InspectionData
from tests import strategies
from tests.walking import walking

NOTHING: dict[str, Any] = {"added": [], "removed": [], "changed": []}
SAME = {"disks": NOTHING, "interfaces": NOTHING, "memory": {}, "firmware": {}, "firmware_components": NOTHING,
        "pci_devices": NOTHING, "patch": []}


def difference(before: dict[str, Any], after: dict[str, Any], **plugin_data: tuple[Any, Any]) -> dict[str, Any]:
    """Return what differs, without the patch, which is shown to be right."""
    old, new = ({name: both[place] for name, both in plugin_data.items()} for place in (0, 1))
    found = inventories.difference(InspectionData(before, old), InspectionData(after, new))
    assert jsonpatch.JsonPatch(found["patch"]).apply(copy.deepcopy(before)) == after
    return {name: value for name, value in found.items() if value != SAME[name] and name != "patch"}


def disk(name: str, serial: str | None, **more: Any) -> dict[str, Any]:
    return {"name": name, "serial": serial, **more}


def nic(name: str, mac: str | None, **more: Any) -> dict[str, Any]:
    return {"name": name, "mac_address": mac, **more}


@walking("before, after, expected", [
    # Renamed by a boot, in another order; one is replaced.
    ([disk("/dev/sda", "A"), disk("/dev/sdb", "B")], [disk("/dev/sda", "C"), disk("/dev/sdb", "A")],
     {"added": [disk("/dev/sda", "C")], "removed": [disk("/dev/sdb", "B")], "changed": [
         {"identity": {"serial": "A"}, "changes": {"name": {"before": "/dev/sda", "after": "/dev/sdb"}}}]}),
    # Two paths to one disk, of which one goes: what remains has not changed.
    ([disk("/dev/sda", "A"), disk("/dev/sdb", "A")], [disk("/dev/sdb", "A")],
     {"added": [], "removed": [disk("/dev/sda", "A")], "changed": []}),
    # Without a serial number.
    ([disk("/dev/sda", None, wwn="W", size=1)], [disk("/dev/sdb", None, wwn="W", size=1, hctl="0:0")],
     {"added": [], "removed": [], "changed": [{"identity": {"wwn": "W"}, "changes": {
         "name": {"before": "/dev/sda", "after": "/dev/sdb"}, "hctl": {"after": "0:0"}}}]}),
    ([disk("/dev/sda", "", size=1)], [disk("/dev/sda", "", size=True)],
     {"added": [], "removed": [], "changed": [
         {"identity": {"name": "/dev/sda"}, "changes": {"size": {"before": 1, "after": True}}}]}),
])
def test_disks(before: list[Any], after: list[Any], expected: dict[str, Any]) -> None:
    assert difference({"disks": before}, {"disks": after}) == {"disks": expected}


def test_interfaces_are_known_by_their_addresses_also_below_a_bond() -> None:
    cards = [nic("bond0", "52:54:00:00:00:01"), nic("eth0", "52:54:00:00:00:01"), nic("eth1", "52:54:00:00:00:02")]
    later = [nic("eth0", "52:54:00:00:00:01"), nic("eth7", "52:54:00:00:00:02"), nic("bond0", "52:54:00:00:00:01", a=1)]
    assert difference({"interfaces": cards}, {"interfaces": later}) == {"interfaces": {**NOTHING, "changed": [
        {"identity": {"mac_address": "52:54:00:00:00:02"}, "changes": {"name": {"before": "eth1", "after": "eth7"}}},
        {"identity": {"mac_address": "52:54:00:00:00:01"}, "changes": {"a": {"after": 1}}}]}}
    assert difference({"interfaces": [nic("a", "AA:00:00:00:00:01")]}, {"interfaces": [
        nic("b", "aa:00:00:00:00:01")]})["interfaces"]["changed"][0]["identity"] == {"mac_address": "aa:00:00:00:00:01"}


def test_memory_firmware_and_devices() -> None:
    before = {"memory": {"physical_mb": 4096, "total": 1},
              "system_vendor": {"firmware": {"version": "1", "vendor": "V"}}}
    after = {"memory": {"physical_mb": 2048}, "system_vendor": {"firmware": {"version": "2", "vendor": "V"}}}
    card = {"bus": "0000:3b:00.0", "vendor_id": "10de"}
    assert difference(before, after, firmware=([{"id": "BMC", "version": "1"}], [{"id": "BMC", "version": "2"}]),
                      pci_devices=([card, {"vendor_id": "8086"}], [{**card, "revision": "a1"}])) == {
        "memory": {"physical_mb": {"before": 4096, "after": 2048}, "total": {"before": 1}},
        "firmware": {"version": {"before": "1", "after": "2"}},
        "firmware_components": {**NOTHING, "changed": [
            {"identity": {"id": "BMC"}, "changes": {"version": {"before": "1", "after": "2"}}}]},
        "pci_devices": {"added": [], "removed": [{"vendor_id": "8086"}], "changed": [
            {"identity": {"bus": "0000:3b:00.0"}, "changes": {"revision": {"after": "a1"}}}]}}


PARTS = st.lists(st.one_of(st.integers(), st.dictionaries(
    st.sampled_from(["serial", "name", "mac_address", "bus", "size"]),
    st.one_of(st.sampled_from(["a", "b", ""]), st.none(), st.integers(0, 1), st.just([])), max_size=3)), max_size=5)
DATA = st.dictionaries(st.sampled_from(["disks", "interfaces", "memory", "system_vendor"]), st.one_of(
    PARTS, st.none(), st.dictionaries(st.sampled_from(["firmware", "total"]), st.one_of(st.integers(), st.just({})))))


@pytest.mark.slow
@settings(max_examples=strategies.wanted(80), deadline=None)
@given(DATA, DATA, PARTS)
def test_whatever_a_machine_has_sent(before: dict[str, Any], after: dict[str, Any], devices: list[Any]) -> None:
    """Each part of both sides is found once: it came, went, changed or is the same."""
    assert difference(before, before, pci_devices=(devices, devices[::-1])) == {}
    old, new = InspectionData(before, {"pci_devices": devices}), InspectionData(after, {"pci_devices": devices[1:]})
    found = inventories.difference(old, new)
    assert len(found["pci_devices"]["removed"]) == sum(isinstance(item, dict) for item in devices[:1])
    for name in ("disks", "interfaces"):
        here, there = ([item for item in side.get(name) or () if isinstance(item, dict)]
                       if isinstance(side.get(name), list) else [] for side in (before, after))
        assert len(here) - len(found[name]["removed"]) == len(there) - len(found[name]["added"])
        assert all(item in here for item in found[name]["removed"])
        assert all(item in there for item in found[name]["added"])


def test_large_inventories_are_bounded() -> None:
    """Tens of thousands of parts that all have one identity, and a patch of more operations than it is worth."""
    before = {"disks": [disk(f"/dev/{number}", "A") for number in range(50_000)], "x": [0] * 20_000}
    after = {"disks": [disk(f"/dev/{number}", "A") for number in reversed(range(49_999))], "x": [1] * 20_000}
    found = inventories.difference(InspectionData(before), InspectionData(after))
    assert found["disks"] == {**NOTHING, "removed": [disk("/dev/49999", "A")]}
    assert found["patch"] == [{"op": "replace", "path": "", "value": after}]
