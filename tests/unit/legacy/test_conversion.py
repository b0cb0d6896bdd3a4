"""Legacy rules as inspection rules: what each part becomes, and which notes it has."""

from __future__ import annotations

import pytest

from ironic_rules.exceptions import InvalidRule
from ironic_rules.legacy import conversion, counterparts
from ironic_rules.legacy.conversion import Verdict
from tests.walking import walking

HIT = [{"action": "set-capability", "name": "hit", "value": "yes"}]
MEMORY, VENDOR = "{inventory[memory][physical_mb]|int}", "{inventory[system_vendor][manufacturer]}"
DISKS, SIZE = "{inventory[disks]}", "{item[size]|int}"
IS_THERE = {"op": "!is-none", "args": {"value": VENDOR}}


def of(*, conditions=(), actions=HIT, **said):
    return conversion.convert_body({"conditions": list(conditions), "actions": actions, **said})


def texts(found):
    return [problem.text for problem in found.notes]


@walking("op, invert, expected", [
    ("lt", False, ["lt", 4096]), ("lt", True, ["gt", 4095]), ("le", False, ["lt", 4097]), ("le", True, ["gt", 4096]),
    ("gt", False, ["gt", 4096]), ("gt", True, ["lt", 4097]), ("ge", False, ["gt", 4095]), ("ge", True, ["lt", 4096]),
    ("eq", False, ["eq", 4096]), ("ne", True, ["eq", 4096]),
])
def test_a_whole_number_is_compared_without_an_inverse_so_that_a_missing_one_is_false(op, invert, expected):
    found = of(conditions=[{"field": "memory_mb", "op": op, "value": 4096, "invert": invert}])

    assert found.rule["conditions"] == [{"op": expected[0], "args": {"values": [MEMORY, expected[1]]}}]
    assert found.verdict is Verdict.EXACT


@walking("condition, expected, notes", [
    ({"field": "memory_mb", "op": "ne", "value": 1},
     [{"op": "!is-none", "args": {"value": "{inventory[memory][physical_mb]}"}},
      {"op": "!eq", "args": {"values": [MEMORY, 1]}}], []),
    ({"field": "inventory.system_vendor.manufacturer", "op": "eq", "value": "{Dell}"},
     [{"op": "eq", "args": {"values": [VENDOR, "{{Dell}}"]}}], []),
    ({"field": "inventory.system_vendor.manufacturer", "op": "ne", "value": "Dell"},
     [IS_THERE, {"op": "!eq", "args": {"values": [VENDOR, "Dell"]}}], [counterparts.NULL]),
    ({"field": "inventory.system_vendor.manufacturer", "op": "ge", "value": "D"},
     [IS_THERE, {"op": "!lt", "args": {"values": [VENDOR, "D"]}}], []),
    ({"field": "inventory.system_vendor.manufacturer", "op": "matches", "value": "D{1,2}{x}", "invert": True},
     [IS_THERE, {"op": "!matches", "args": {"value": VENDOR, "regex": "D{1,2}\\{x\\}"}}], [counterparts.NULL_TEXT]),
    ({"field": "inventory.system_vendor.manufacturer", "op": "matches", "value": "Dell.*"},
     [{"op": "matches", "args": {"value": VENDOR, "regex": "Dell.*"}}], []),
    ({"field": "inventory.system_vendor.manufacturer", "op": "matches", "value": ".*", "invert": True},
     [IS_THERE, {"op": "!matches", "args": {"value": VENDOR, "regex": ".*"}}], []),
    ({"field": "inventory.system_vendor.manufacturer", "op": "contains", "value": "n"},
     [{"op": "contains", "args": {"value": VENDOR, "regex": "n"}}], [counterparts.NULL_TEXT]),
    ({"field": "cpu_arch", "op": "matches", "value": "x86|arm{1}"},
     [{"op": "contains", "args": {"value": "{inventory[cpu][architecture]}", "regex": "\\A(?:x86|arm{1}$)"}}], []),
    ({"field": "inventory.interfaces[*].vendor", "op": "matches", "value": "0x8086", "invert": True},
     [{"op": "!matches", "args": {"value": "{item[vendor]}", "regex": "0x8086"}, "loop": "{inventory[interfaces]}"}],
     []),
    ({"field": "inventory.cpu.flags", "op": "contains", "value": "vmx"},
     [{"op": "contains", "args": {"value": "{inventory[cpu][flags]}", "regex": "vmx"}}], [counterparts.NO_TEXT]),
    ({"field": "inventory.bmc_address", "op": "net", "value": "192.0.2.0/24"},
     [{"op": "in-net", "args": {"address": "{inventory[bmc_address]}", "subnet": "192.0.2.0/24"}}], []),
    ({"field": "inventory.bmc_address", "op": "in-net", "value": "192.0.2.0/24", "invert": True},
     [{"op": "!is-empty", "args": {"value": "{inventory[bmc_address]}"}},
      {"op": "!in-net", "args": {"address": "{inventory[bmc_address]}", "subnet": "192.0.2.0/24"}}],
     [counterparts.NO_ADDRESS]),
    ({"field": "inventory.hostname", "op": "is-empty", "invert": True},
     [{"op": "!is-empty", "args": {"value": "{inventory[hostname]}"}}], []),
    ({"field": "inventory.disks[*].size", "op": "ge", "value": 4, "multiple": "all"},
     [{"op": "!is-empty", "args": {"value": DISKS}},
      {"op": "gt", "args": {"values": [SIZE, 3]}, "loop": DISKS, "multiple": "all"}], []),
    ({"field": "inventory.disks.*.rotational", "op": "eq", "value": True, "multiple": "first"},
     [{"op": "eq", "args": {"values": ["{item[rotational]}", True]}, "loop": DISKS, "multiple": "first"}], []),
    ({"field": "inventory.cpu.flags[*]", "op": "eq", "value": "vmx"},
     [{"op": "eq", "args": {"values": ["{item}", "vmx"]}, "loop": "{inventory[cpu][flags]}"}], []),
    ({"field": "data://site.rack", "op": "eq", "value": 7},
     [{"op": "eq", "args": {"values": ["{plugin_data[site][rack]|int}", 7]}}], [counterparts.DIGITS]),
    ({"field": "site.load", "op": "gt", "value": 0.5},
     [{"op": "gt", "args": {"values": ["{plugin_data[site][load]}", 0.5]}}],
     [counterparts.NUMBERS]),
    ({"field": "auto_discovered", "op": "eq", "value": True},
     [{"op": "eq", "args": {"values": ["{plugin_data[auto_discovered]}", True]}}], []),
])
def test_conditions(condition, expected, notes):
    found = of(conditions=[condition])

    assert found.rule["conditions"] == expected
    assert texts(found) == notes


@walking("field, template, hook", [
    ("local_gb", "{plugin_data[local_gb]}", "root-device"),
    ("root_disk.wwn", "{plugin_data[root_disk][wwn]}", "root-device"),
    ("ipmi_address", "{plugin_data[bmc_address]}", "validate-interfaces"),
    ("macs[0]", "{plugin_data[macs][0]}", "validate-interfaces"),
    ("all_interfaces.eth0.mac", "{plugin_data[all_interfaces][eth0][mac_address]}", "validate-interfaces"),
    ("interfaces.eth0.lldp_processed.switch_port_id", "{plugin_data[parsed_lldp][eth0][switch_port_id]}", "parse-lldp"),
    ("extra.cpu.logical.number", "{plugin_data[extra][cpu][logical][number]}", "extra-hardware"),
])
def test_what_hooks_write_is_noted_with_the_hook(field, template, hook):
    found = of(conditions=[{"field": field, "op": "eq", "value": "x"}])

    assert found.rule["conditions"] == [{"op": "eq", "args": {"values": [template, "x"]}}]
    assert any(f"The hook {hook} must be enabled" in text for text in texts(found))


def test_interfaces_are_an_object_by_name():
    found = of(conditions=[{"field": "all_interfaces.*.pxe", "op": "eq", "value": True}])

    assert found.rule["conditions"] == [
        {"op": "eq", "args": {"values": ["{item[value][pxe_enabled]}", True]}, "loop": "{plugin_data[all_interfaces]}"}]


@walking("action, expected, notes", [
    ({"action": "set-attribute", "path": "driver_info/{x}", "value": ["{{", 1, {"a": "{data[inventory][disks]}"}]},
     {"op": "set-attribute", "args": {"path": "/driver_info/{{x}}", "value": ["{{", 1, {"a": DISKS}]}},
     [conversion.NULLABLE]),
    ({"action": "set-attribute", "path": "/properties/x", "value": "{data[memory_mb]}"},
     {"op": "set-attribute", "args": {"path": "/properties/x", "value": "{inventory[memory][physical_mb]|lower}"}}, []),
    ({"action": "set-attribute", "key": "/extra/a", "value": 1, "cleanup": 0},
     {"op": "set-attribute", "args": {"path": "/extra/a", "value": 1}}, [conversion.CLEANUP]),
    ({"action": "set-attribute", "path": "/extra/list/-", "value": 1},
     {"op": "set-attribute", "args": {"path": "/extra/list/-", "value": 1}}, [conversion.APPENDED_BY_PATH]),
    ({"action": "set-attribute", "path": "/extra/list/0", "value": 1},
     {"op": "set-attribute", "args": {"path": "/extra/list/0", "value": 1}}, [conversion.INSERTED]),
    ({"action": "set-attribute", "path": "/driver", "value": "ipmi"},
     {"op": "set-attribute", "args": {"path": "/driver", "value": "ipmi"}}, [conversion.DRIVER]),
    ({"action": "extend-attribute", "path": "/extra/a", "value": 1, "unique": True},
     {"op": "extend-attribute", "args": {"path": "/extra/a", "value": 1, "unique": True}}, []),
    ({"action": "append-attribute", "key": "/extra/a", "value": 1},
     {"op": "extend-attribute", "args": {"path": "/extra/a", "value": 1}}, [conversion.APPENDED]),
    ({"action": "set-capability", "name": "m", "value": "{data[memory_mb]} MB"},
     {"op": "set-capability", "args": {"name": "m", "value": "{inventory[memory][physical_mb]} MB"}}, []),
    ({"action": "set-capability", "name": "profile", "value": None},
     {"op": "unset-capability", "args": {"name": "profile"}}, []),
    ({"action": "add-trait", "name": "CUSTOM_A"}, {"op": "add-trait", "args": {"name": "CUSTOM_A"}}, []),
    ({"action": "remove-trait", "name": "CUSTOM_A"}, {"op": "remove-trait", "args": {"name": "CUSTOM_A"}}, []),
    ({"action": "fail", "message": "no {data[cpu_arch]} {1,2}"},
     {"op": "fail", "args": {"msg": "no {inventory[cpu][architecture]} {{1,2}}"}}, []),
])
def test_actions(action, expected, notes):
    found = of(actions=[action])

    assert found.rule["actions"] == [expected]
    assert texts(found) == notes
    assert found.not_undone == (() if action["action"] == "fail" else ("/actions/0",))


@walking("said, where, text", [
    ({"conditions": [{"field": "a..b", "op": "eq", "value": 1}]}, "/conditions/0", "keys, indexes and one wildcard"),
    ({"conditions": [{"field": "a[*].b[*]", "op": "eq", "value": 1}]}, "/conditions/0", "more than one wildcard"),
    ({"conditions": [{"field": "a[*]", "op": "is-empty"}]}, "/conditions/0", "is true if nothing is found"),
    ({"conditions": [{"field": "a", "op": "lt", "value": [1]}]}, "/conditions/0", "not ordered"),
    ({"conditions": [{"field": "inventory.disks", "op": "contains", "value": "SSD"}]}, "/conditions/0",
     "do not search the text of an object"),
    ({"conditions": [{"field": "inventory.disks[*]", "op": "contains", "value": "SSD"}]}, "/conditions/0",
     "do not search the text of an object"),
    ({"conditions": [{"field": "node://nonsense", "op": "eq", "value": 1}]}, "/conditions/0", "no such field"),
    ({"actions": [*HIT, {"action": "fail", "message": "x", "maintenance": True}]}, "/actions/1", "in maintenance"),
    ({"actions": [{"action": "set-attribute", "path": "/extra/a", "value": {"{data[cpu_arch]}": 1}}]}, "/actions/0",
     "cannot be templates"),
    ({"actions": [{"action": "set-attribute", "path": "/extra/a", "value": "{data[inventory][cpu]}[x]"},
                  {"action": "set-attribute", "path": "/extra/b", "value": "{data[interfaces][eth0]}"}]}, "/actions/1",
     "has other fields here"),
])
def test_what_cannot_be_converted_says_where_and_why(said, where, text):
    found = of(**said)

    assert (found.verdict, found.rule) == (Verdict.NOT_CONVERTIBLE, None)
    assert [problem.where for problem in found.problems] == [where]
    assert text in found.problems[0].text


def test_the_heading_of_a_rule_is_kept():
    uuid = "0d2f8a52-70f4-4f3b-8b4e-8f2f7d6f3a10"

    found = of(uuid=uuid, description="d" * 300, scope="rack1")

    assert {name: found.rule[name] for name in ("uuid", "description", "scope")} == {
        "uuid": uuid, "description": "d" * 255, "scope": "rack1"}
    assert [note.where for note in found.notes] == ["/description", "/scope"]
    assert found.verdict == "exact with a note"


def test_a_guard_is_not_repeated():
    field = "inventory.system_vendor.manufacturer"

    found = of(conditions=[{"field": field, "op": "ne", "value": text} for text in ("a", "b")])

    assert found.rule["conditions"] == [
        IS_THERE, *({"op": "!eq", "args": {"values": [VENDOR, text]}} for text in ("a", "b"))]


def test_an_invalid_rule_is_no_rule():
    with pytest.raises(InvalidRule) as caught:
        of(actions=[], conditions=[{"field": "["}])

    assert len(caught.value.problems) >= 2


def test_a_reply_has_all_of_it():
    shown = of(actions=[{"action": "append-attribute", "key": "/extra/a", "value": 1}]).to_wire()

    assert shown == {
        "verdict": "exact with a note", "problems": [], "not_undone": ["/actions/0"],
        "rule": {"conditions": [], "actions": [
            {"op": "extend-attribute", "args": {"path": "/extra/a", "value": 1}}]},
        "notes": [{"pointer": "/actions/0", "text": conversion.APPENDED}]}
