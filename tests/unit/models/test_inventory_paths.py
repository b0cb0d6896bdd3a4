"""The catalogue of the paths that inventories have."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

from ironic_rules import samples
from ironic_rules.inspection import payload
from ironic_rules.models import inventories
from ironic_rules.models.inventories import Catalogue, shipped_catalogue
from tests.calls import counted
from tests.walking import walking

#: Prints the fields of what the agent sends. In a process of its own: the agent's modules register options.
AGENT_FIELDS = """
import json
from ironic_python_agent import config, hardware
print(json.dumps({name: getattr(hardware, name).serializable_fields for name in (
    "NetworkInterface", "BlockDevice", "CPU", "Memory", "SystemVendorInfo", "SystemFirmware", "BootInfo")}))
"""
PLACES = {"NetworkInterface": ("interfaces", "*"), "BlockDevice": ("disks", "*"), "CPU": ("cpu",),
          "Memory": ("memory",), "SystemVendorInfo": ("system_vendor",),
          "SystemFirmware": ("system_vendor", "firmware"), "BootInfo": ("boot",)}


def after(inventory: dict[str, Any], catalogue: Catalogue | None = None) -> tuple[list[str], Catalogue]:
    """Return the paths that an inventory adds, and the catalogue with them."""
    new = (catalogue or shipped_catalogue()).new(inventory)
    return new, Catalogue((*inventories.shipped_paths(), *new))


def accepted(check: Any) -> Iterator[tuple[str, ...]]:
    """Yield the paths that a check of ``payload`` knows by name."""
    inside = inspect.getclosurevars(check).nonlocals
    for name, below in inside.get("fields", {}).items():
        yield from ((name, *rest) for rest in accepted(below))
    if inside.get("check") is not None:
        yield from ((inventories.ANY_KEY, *rest) for rest in accepted(inside["check"]))
    elif "fields" not in inside:
        yield ()


def test_what_ramdisks_send_is_known() -> None:
    for name in samples.inventory_names():
        assert shipped_catalogue().has_all(samples.inventory(name)["inventory"]), name
    agent = subprocess.run([sys.executable, "-W", "ignore", "-c", AGENT_FIELDS], capture_output=True, text=True,
                           check=True, timeout=60)
    names = {(*PLACES[kind], name) for kind, fields in json.loads(agent.stdout).items() for name in fields}
    names |= set(accepted(payload._INVENTORY))
    assert len(names) > 45
    assert [path for path in names if shipped_catalogue().unknown_step(path) is not None] == []
    # And no other: each is a name of one of those.
    known = {tuple(path.strip("/").split("/")) for path in inventories.shipped_paths()}
    assert known - names == {("interfaces", "*", "lldp", "*", "*")}


@walking("inventory, new", [
    ({}, []), ({"interfaces": [], "disks": None, "cpu": {}}, []), ({"hostname": {}}, []),
    ({"rack": 1, "slots": [], "vendor": {"a": [{"b": 1}, {"c": [[2]]}]}},
     ["/rack", "/slots", "/vendor/a/*/b", "/vendor/a/*/c/*/*"]),
    ({"hostname": {"x": 1}}, ["/hostname/x"]),
    ({"cpu": {"flags": [{"x": 1}]}}, ["/cpu/flags/*/x"]),
])
def test_only_what_is_not_known_is_new(inventory: dict[str, Any], new: list[str]) -> None:
    assert shipped_catalogue().new(inventory) == new
    assert shipped_catalogue().has_all(inventory) is (not new)


@walking("key", [
    "52:54:00:aa:bb:cc", "aa-bb-cc-dd-ee-ff", "1be26c0b-03f2-4d2e-ae87-c02d7f33c123", "eth0", "enp3s0f1", "0", "17",
    "0000:3a:00.0", "Slot 4", "a" * 65, "naïve", "", "*", "**", "a/b", "~", "\x1b[2J", "x\x00", "😀"])
def test_keys_that_are_data_are_one_step(key: str) -> None:
    new, catalogue = after({"by_key": {key: {"speed": 1}, f"{key}:1": {"speed": 2}}})
    assert new == ["/by_key/*/speed"]
    assert catalogue.unknown_step(("by_key", "00:11:22:33:44:55", "speed")) is None
    assert catalogue.unknown_step(("by_key", "name", "speed")) == 1


@walking("key", ["manufacturer", "ipv4_address", "x", "_x", "current-boot-mode", "pciVendor", "a_1"])
def test_names_are_steps_of_their_own(key: str) -> None:
    assert shipped_catalogue().new({"some": {key: 1}}) == [f"/some/{key}"]


def names(count: int, length: int = 12) -> list[str]:
    """Return different keys without digits: no rule tells them from names."""
    return ["".join(chr(97 + (number >> 4 * place) % 16) for place in range(length)) for number in range(count)]


def nested(levels: int, keys: list[str]) -> Any:
    return {key: nested(levels - 1, keys) for key in keys} if levels else 1


HOSTILE: dict[str, Callable[[], dict[str, Any]]] = {
    "many keys": lambda: dict.fromkeys(names(100_000)),
    "many keys below": lambda: {"extra": dict.fromkeys(names(65))},
    "many objects": lambda: nested(3, names(40)),
    "many MAC addresses": lambda: {"by_mac": {f"52:54:00:00:{n >> 8:02x}:{n & 255:02x}": {"a": n}
                                              for n in range(9000)}},
    "many levels": lambda: json.loads('{"a":' * 90 + "1" + "}" * 90),
    "long names": lambda: nested(5, [name * 5 for name in names(3)]),
    "very long keys": lambda: {"x" * 100_000: {"y" * 100_000: 1}},
    "many elements": lambda: {"cpu": {"flags": ["x"] * 200_000},
                              "disks": [{"name": "x", **dict.fromkeys(names(60))}] * 4096,
                              "interfaces": [{"lldp": [[1, "x"]] * 1024}] * 1024},
    "each element different": lambda: {"disks": [{name: 1} for name in names(4096)]},
}


@walking("kind", HOSTILE)
def test_no_inventory_fills_the_catalogue_or_takes_long(kind: str) -> None:
    inventory = HOSTILE[kind]()
    (new, catalogue), made = counted(lambda: after(inventory))
    known, asked = counted(lambda: catalogue.has_all(inventory))
    # A million calls take a tenth of a second. Without limits it is seconds.
    assert made + asked < 1_000_000
    assert len(new) <= inventories.MAX_NEW
    assert all(len(path) <= inventories.MAX_PATH_LENGTH for path in new)
    assert known
    assert after(inventory, catalogue)[0] == []


def test_nothing_is_known_where_there_was_too_much() -> None:
    _, catalogue = after({"extra": dict.fromkeys(names(65)), "vendor": {"slot": 1}})
    assert catalogue.unknown_step(("extra", "anything", "at", "all")) is None
    assert catalogue.unknown_step(("vendor", "anything")) == 1
    assert not catalogue.is_full
    assert after(dict.fromkeys(names(65)))[1].is_full


def test_what_different_inventories_add_to_one_object_is_bounded_together() -> None:
    catalogue = shipped_catalogue()
    added: list[str] = []
    for name in names(200):
        added += catalogue.new({"extra": {name: 1}})
        catalogue = Catalogue((*inventories.shipped_paths(), *added))
    assert len(added) == inventories.MAX_KEYS + 1
    assert added[-1] == "/extra/**"


def test_the_nearest_path_is_one_that_is_known() -> None:
    _, catalogue = after({"vendor": {"bays": [{"slot": {"speed": 1}}]}})
    assert catalogue.nearest(("vendor", "bay", "3", "slot", "speed")) == ("vendor", "bays", "3", "slot", "speed")
    assert catalogue.nearest(("vendor", "bay", "3", "slot", "sped")) == ("vendor", "bays", "3", "slot")
    assert catalogue.nearest(("vendor", "speed")) == ("vendor", "bays", "*", "slot", "speed")
    assert catalogue.nearest(("speed",)) == ("vendor", "bays", "*", "slot", "speed")
    assert catalogue.nearest(("vendor", "vendor")) is None
    assert catalogue.nearest(("vendor", "bays")) is None
