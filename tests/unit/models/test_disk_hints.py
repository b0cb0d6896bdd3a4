"""Disk hints select the same disk as ironic-python-agent selects when it deploys."""

from __future__ import annotations

import warnings

import pytest

from ironic_rules import samples
from ironic_rules.models import disk_hints
from tests.walking import walking

with warnings.catch_warnings():
    # oslo.utils' specs matcher calls pyparsing by an old name, when the agent is imported and in every comparison.
    warnings.simplefilter("ignore", DeprecationWarning)
    from ironic_python_agent import device_hints

pytestmark = pytest.mark.filterwarnings("ignore:'.*' deprecated - use '.*':DeprecationWarning")

GIB = 1024 ** 3
DISKS = [
    *samples.inventory("dell-r660")["inventory"]["disks"],
    *samples.inventory("hpe-dl380-gen11")["inventory"]["disks"],
    *samples.inventory("vm-qemu-bios")["inventory"]["disks"],
    {"name": "/dev/sdx", "size": 60 * GIB, "rotational": "no", "model": "Two Words", "serial": ["A1", None, "B 2"]},
    {"name": "/dev/sdy", "size": 100 * GIB, "rotational": None, "model": "", "serial": []},
]

HINTS = [
    {"name": "/dev/sda"},
    {"name": "s!= /dev/sda"},
    {"name": "<or> /dev/sda <or>/dev/vda"},
    {"name": "s> /dev/sdc"},
    {"name": "s<= /dev/sdb"},
    {"model": "boss-n1"},
    {"model": " LOGICAL volume "},
    {"model": "s== logical volume"},
    {"model": "<in> volume"},
    {"model": "<or> two words <or> boss-n1"},
    {"model": "s!= boss-n1"},
    {"vendor": "s!= hpe"},
    {"vendor": "HPE"},
    {"serial": "b 2"},
    {"serial": "<in> a1"},
    {"serial": "nosuch"},
    {"wwn": "0x600508B1001C4E0A"},
    {"wwn_with_extension": "<in> 7d3355aa90c1f2f7"},
    {"wwn_vendor_extension": "0x7d3355aa90c1f2e6"},
    {"hctl": "1:1:0:1"},
    {"by_path": "<in> pci-0000:5c"},
    {"tran": "sas"},
    {"size": 60},
    {"size": "60"},
    {"size": "== 100"},
    {"size": "!= 60"},
    {"size": "= 100"},
    {"size": ">= 1000"},
    {"size": ">1000"},
    {"size": "< 100"},
    {"size": "<= 100"},
    {"rotational": True},
    {"rotational": "false"},
    {"rotational": "on", "vendor": "hpe", "size": "> 100"},
    {"rotational": False, "tran": "<or> sata <or> nvme"},
]

BAD = [
    {"colour": "red"}, {"serial": 7}, {"serial": None}, {"serial": ""}, {"serial": "  "}, {"size": "large"},
    {"size": 0}, {"size": "-5"}, {"size": ">= 0"}, {"size": "1.5"}, {"size": None}, {"rotational": "perhaps"},
    {"rotational": 3},
]


@walking("hints", HINTS)
def test_the_disks_are_those_that_the_agent_takes(hints):
    fits = disk_hints.parse(hints, "/properties/root_device")

    assert [disk["name"] for disk in DISKS if fits(disk)] == [
        disk["name"] for disk in device_hints.find_devices_by_hints(DISKS, hints)]


def test_every_hint_above_tells_disks_apart():
    fits = [disk_hints.parse(hints, "") for hints in HINTS if hints != {"serial": "nosuch"}]

    assert [0 < sum(map(fit, DISKS)) < len(DISKS) for fit in fits] == [True] * len(fits)


@walking("hints", BAD)
def test_what_the_agent_refuses_is_refused(hints):
    with pytest.raises(ValueError):
        device_hints.parse_root_device_hints(hints)

    with pytest.raises(disk_hints.BadHint, match=r"^/properties/root_device/"):
        disk_hints.parse(hints, "/properties/root_device")


def test_the_attributes_are_those_of_the_agent():
    assert set(device_hints.VALID_ROOT_DEVICE_HINTS) == disk_hints.ATTRIBUTES


def test_one_of_several_sizes():
    fits = disk_hints.parse({"size": "<or> 60 <or> 100"}, "")

    assert [disk["name"] for disk in DISKS if fits(disk)] == ["/dev/sdx", "/dev/sdy"]


@walking("expression", ["<all-in> a b", "<range-in> [ 1 2 ]", "= a", "> a"])
def test_operators_without_a_meaning_for_texts_are_refused(expression):
    with pytest.raises(disk_hints.BadHint, match="is not for texts"):
        disk_hints.parse({"model": expression}, "")


@walking("text, expected", [
    ("600508b1001c4e0a", True), ("WD 10 <or> x", True), ("<or> x", False), ("S== x", False), (">x", False),
    (" ", False)])
def test_plain_texts(text, expected):
    assert disk_hints.is_plain(text) is expected
