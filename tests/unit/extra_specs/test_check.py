"""Checks of extra specs: modes, kinds of problems, hints, and hostile input."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from ironic_rules.extra_specs import check, installed
from ironic_rules.extra_specs.registry import SpecRegistry
from ironic_rules.extra_specs.validators import ExtraSpecValidator
from ironic_rules.extra_specs.values import BadDefinition, rule_of
from ironic_rules.text import is_storable
from tests import strategies
from tests.walking import walking

VECTORS = Path(__file__).resolve().parents[2] / "vectors" / "extra_specs"
SETTINGS = settings(max_examples=strategies.wanted(80), deadline=None)


@walking("key, value", [
    ("hw:cpu_policy", "dedicated"), ("hw:numa_nodes", "+2"), ("hw:numa_nodes", "01"), ("hw:boot_menu", "YES"),
    ("hw:boot_menu", " on "), ("hw:mem_page_size", "large"), ("hw:mem_page_size", "2MB"), ("hw:numa_cpus.12", "0-3,^2"),
    ("trait:CUSTOM_RAID", "required"), ("trait1:HW_CPU_X86_VMX", "forbidden"), ("trait_GPU:CUSTOM_A", "required"),
    ("resources:CUSTOM_BAREMETAL_GOLD", "1"), ("resources:VCPU", "0"), ("resources_COMPUTE:VCPU", "1"),
    ("capabilities:boot_mode", "uefi"), ("capabilities:raid_level", "<in> 1"), ("capabilities:x", "<or> a <or> b"),
    ("capabilities:cpu_info:topology:cores", ">= 4"), ("capabilities:x", "s== y"), ("capabilities:x", "a b"),
    ("capabilities:x", "<all-in> aes mmx"), ("capabilities:x", ""), ("aggregate_instance_extra_specs:ssd", "true"),
    ("pci_passthrough:alias", "a1:2,a2:3"), ("accel:device_profile", "ein Profil ä"), ("quota:cpu_quota", "-1"),
    ("quota:cpu_shares", "9223372036854775807"), ("group_policy", "isolate"),
])
def test_what_is_valid(key, value):
    for mode in check.MODES:
        assert check.check({key: value}, mode) == []


@walking("key, value, kind, text", [
    ("hw:cpu_policy", "Dedicated", "enum", "Did you mean 'dedicated'?"),
    ("hw:cpu_policy", "dedicated\n", "pattern", "U+000A, in place 10"),
    ("hw:cpu_policy", 1, "type", "is a number; values are texts"),
    ("hw:cpu_policy", None, "type", "is null"),
    ("hw:cpu_policy", ["dedicated"], "type", "is a list"),
    ("hw:cpu_policy", "x" * 100_000, "range", "has 100000 characters"),
    ("hw:numa_nodes", "0", "range", "must be at least 1"),
    ("hw:redirected_usb_ports", "16", "range", "must be at most 15"),
    ("quota:cpu_quota", "9223372036854775808", "range", "at most 9223372036854775807"),
    ("quota:cpu_quota", "-9223372036854775809", "range", "at least -9223372036854775808"),
    ("hw:numa_nodes", "", "type", "it is empty"),
    ("hw:numa_nodes", " 1", "type", "white space"),
    ("hw:numa_nodes", "1_000", "type", "underscores"),
    ("hw:numa_nodes", "١", "type", "only the digits 0 to 9"),
    ("hw:numa_nodes", "0x1", "type", "the digits 0 to 9"),
    ("hw:boot_menu", "2", "type", "must be one of 1, t, true"),
    ("hw:mem_page_size", "Large", "pattern", "lower case"),
    ("hw:mem_page_size", "1.5GB", "pattern", "is an integer"),
    ("hw:mem_page_size", "2kbits", "pattern", "After the number comes a unit"),
    ("hw:mem_page_size", "", "pattern", "one of large, small, any"),
    ("hw:numa_cpus.0", "0-", "pattern", "a range has two ends"),
    ("pci_passthrough:alias", "a1", "pattern", "regular expression"),
    ("capabilities:x", ">=4", "pattern", "A space follows '>='"),
    ("capabilities:x", "> 4", "pattern", "There is no operator '>'"),
    ("capabilities:x", ">= four", "pattern", "A number follows"),
    ("capabilities:x", "<in> 1 5", "pattern", "ignores what comes after"),
    ("capabilities:x", "<or> a b", "pattern", "followed by one value"),
    ("capabilities:x", "<or>", "pattern", "followed by one value"),
    ("capabilities:x", "s==", "pattern", "One value follows"),
    ("capabilities:x", "<all-in>", "pattern", "A value follows"),
    ("aggregate_instance_extra_specs:x", "<all-in> a <in> b", "pattern", "does not follow"),
    ("resources:CUSTOM_GOLD", "one", "type", "not an integer"),
    ("trait:CUSTOM_RAID", "maybe", "enum", "required, forbidden"),
])
def test_a_bad_value_is_a_problem_in_strict_and_permissive_mode(key, value, kind, text):
    for mode in (check.STRICT, check.PERMISSIVE):
        problem, = check.check({key: value}, mode, pointer="/extra_specs")
        assert (problem.key, problem.kind, problem.pointer) == (key, kind, f"/extra_specs/{key}")
        assert text in problem.text
    assert check.check({key: value}, check.OFF) == []


@walking("key, nearest", [
    ("hw:cpu_pollllicy", "hw:cpu_policy"), ("HW:CPU_Policy", "hw:cpu_policy"), ("hw_cpu_policy", "hw:cpu_policy"),
    (" hw:cpu_policy", "hw:cpu_policy"), ("resource:VCPU", "resources:VCPU"), ("resources:VCPUS", "resources:VCPU"),
    ("trait:HW_CPU_X86_AVX9", "trait:HW_CPU_X86_AVX"), ("trait:custom_raid", "trait:CUSTOM_RAID"),
    ("hw:сpu_policy", "hw:cpu_policy"), ("ｈｗ:cpu_policy", "hw:cpu_policy"), ("group_polcy", "group_policy"),
    ("hw:numa_cpusX1", "hw:numa_cpus.{num}"), ("completely:different", None),
    ("trait" + "a" * 65 + ":HW_CPU_X86_AVX", None), ("x" * 250, None),
])
def test_the_nearest_key_of_an_unknown_one(key, nearest):
    problem = check.validate(key, "1")
    assert (problem.kind, problem.nearest) == ("unknown", nearest)
    assert problem.to_wire()["nearest"] == nearest
    assert (f"Did you mean '{nearest}'?" in problem.text) == (nearest is not None)


def test_a_letter_that_only_looks_right_is_named():
    assert "Character 4 of it is U+0441 (CYRILLIC SMALL LETTER ES)" in check.validate("hw:сpu_policy", "dedicated").text


@walking("key", [
    "hw:numa_cpusX1", "hw:numa_cpus.", "hw:numa_cpus.-1", "hw:numa_cpus.0.1", "hw:numa_cpus.٣", "hw:numa_cpus.1\n",
    "hw:cpu_policy:x", "trait:", "trait:CUSTOM_", "trait:CUSTOM_a", "trait:A B", "trait" + "a" * 65 + ":CUSTOM_X",
    "capabilities:", "capabilities:a b", ":", "", "x" * 256, "aggregate_instance_extra_specs:a\x00b",
    "resources:CUSTOM_",
    "resources:NOSUCH", "trait:HW_NOSUCH",
])
def test_names_are_literal_but_for_their_parameters(key):
    assert check.validate(key, "1").kind == "unknown"


@walking("value", ["0", "0KB", "00"])
def test_memory_pages_of_no_bytes_are_refused_in_strict_mode_only(value):
    assert "more than 0 bytes" in check.validate("hw:mem_page_size", value).text
    assert check.validate("hw:mem_page_size", value, check.PERMISSIVE) is None


def test_permissive_mode_takes_unknown_keys_and_tells_of_them():
    specs = {"foo:bar": "x", "hw:cpu_policy": "shared", "hide_hypervisor_id": "true", "powervm:uncapped": "x"}

    assert check.check(specs, check.PERMISSIVE) == []
    assert [(problem.key, problem.kind) for problem in check.warnings(specs, check.PERMISSIVE)] == [
        ("foo:bar", "unknown"), ("hide_hypervisor_id", "deprecated"), ("powervm:uncapped", "deprecated")]
    assert check.warnings(specs, check.OFF) == []


def test_a_removed_key_says_what_to_use_instead():
    problem, = check.check({"hw_watchdog_action": "reset"})
    assert problem.kind == "unknown"
    assert "Use 'hw:watchdog_action' instead." in problem.text
    problem, = check.check({"powervm:proc_units": "0.5"})
    assert "removed in Nova 26.0.0" in problem.text


def test_all_problems_are_found_at_once_in_order():
    specs = {"hw:cpu_policy": "x", "hw:numa_nodes": "2", "foo": "1", "hw:boot_menu": None}

    assert [problem.key for problem in check.check(specs)] == ["hw:cpu_policy", "foo", "hw:boot_menu"]


@walking("specs", [None, [], "hw:cpu_policy", 7, [("hw:cpu_policy", "shared")]])
def test_what_is_no_object_is_one_problem(specs):
    problem, = check.check(specs, pointer="/extra_specs")
    assert (problem.kind, problem.pointer) == ("type", "/extra_specs")
    assert check.warnings(specs) == []


def test_a_value_under_a_secret_key_of_a_plugin_is_not_shown():
    registry = SpecRegistry("extra spec")
    registry.add(ExtraSpecValidator("vault:admin_password", "A test.", {"type": str, "pattern": "[0-9]+"}), "a-plugin")
    registry.add(ExtraSpecValidator("vault:token_{n}", "A test.", {"type": str, "enum": ["a"]},
                                    [{"name": "n", "type": int}]), "a-plugin")

    for key in ("vault:admin_password", "vault:token_1"):
        assert "hunter" not in check.validate(key, "hunter", registry=registry).text
    for value in (">=hunter", "s== hunter 2", "<in>"):
        assert "hunter" not in check.validate("capabilities:admin_password", value).text
    assert "hunter" in check.validate("hw:tpm_secret_security", "hunter").text


def test_pointers_are_escaped():
    assert check.validate("a/b~c", "1", pointer="/x").pointer == "/x/a~1b~0c"


KEYS = st.one_of(
    st.text(max_size=20), st.integers(), st.none(),
    st.sampled_from([item.validator.name for item in installed.built_in()]),
    st.builds("{}:{}".format, st.sampled_from(["hw", "trait", "resources", "capabilities", "foo"]),
              st.text(max_size=12)),
    st.sampled_from(["hw:numa_cpus.0", "hw:mem_page_size", "hw:cpu_policy", "hw:numa_nodes", "hw:boot_menu",
                     "capabilities:x", "trait:CUSTOM_A", "pci_passthrough:alias"]))
VALUES = st.one_of(
    st.text(max_size=12), st.none(), st.integers(), st.booleans(), st.lists(st.text(max_size=2), max_size=2),
    st.text(alphabet="0123456789-,^kMGi<>=ors ", max_size=10),
    st.sampled_from(["dedicated", "1", "true", "required", "large", "0-3", "<in> a", "a:1"]))
SPECS = st.dictionaries(KEYS, VALUES, max_size=4)


@pytest.mark.slow
@SETTINGS
@given(st.one_of(SPECS, VALUES))
def test_a_check_never_raises_and_its_problems_are_data(specs):
    for mode in check.MODES:
        for problem in [*check.check(specs, mode), *check.warnings(specs, mode)]:
            wire = problem.to_wire()
            assert wire["text"].isprintable()
            assert wire["pointer"].isprintable()


@pytest.mark.slow
@SETTINGS
@given(KEYS, VALUES)
def test_permissive_mode_refuses_a_subset_of_what_strict_mode_refuses(key, value):
    assert check.validate(key, value, check.STRICT) or not check.validate(key, value, check.PERMISSIVE)
    assert not check.validate(key, value, check.OFF)


@pytest.mark.slow
@SETTINGS
@given(KEYS, VALUES)
def test_what_strict_mode_accepts_can_be_stored_and_read_again(key, value):
    if check.validate(key, value) is None:
        assert is_storable(key + value)
        assert max(len(key), len(value)) <= 255
        assert json.loads(json.dumps({key: value})) == {key: value}


@pytest.mark.slow
@SETTINGS
@given(st.sampled_from([item for item in installed.built_in() if item.validator.value["type"] is not str]),
       st.integers(-2**70, 2**70))
def test_an_integer_is_taken_if_it_is_within_the_limits(item, number):
    rule = item.rule
    expected = rule.lowest <= number <= rule.highest if item.validator.value["type"] is int else number in (0, 1)
    assert rule.accepts(str(number)) == expected


def test_the_package_needs_nothing_of_the_service():
    code = """
import sys
from ironic_rules.extra_specs import check
assert not check.check({"hw:cpu_policy": "shared"})
print(sorted({"oslo_config", "oslo_utils", "pecan", "sqlalchemy", "os_traits"} & sys.modules.keys()))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"


IMAGES = yaml.safe_load((VECTORS / "image_values.yaml").read_text(encoding="utf-8"))


@walking("name, values", IMAGES["accepted"].items())
def test_values_of_images_are_those_that_nova_reads_in_any_case_and_by_other_words(name, values):
    properties = installed.image_properties()
    assert [value for value in values if check.validate(name, value, registry=properties)] == []


@walking("name, values", IMAGES["refused"].items())
def test_values_of_images_that_nova_refuses_are_refused(name, values):
    properties = installed.image_properties()
    assert [value for value in values if not check.validate(name, value, registry=properties)] == []


def test_the_hint_for_another_word_is_the_value():
    assert check.validate("hw_architecture", "AMD46", registry=installed.image_properties()).nearest == "x86_64"


@walking("value", [
    {"aliases": {"a": "b"}}, {"enum": ["b"], "aliases": ["b"]}, {"enum": ["b"], "aliases": {"A": "b"}},
    {"enum": ["b"], "aliases": {"a": "c"}}, {"enum": ["b"], "aliases": {1: "b"}}])
def test_other_words_belong_to_values(value):
    with pytest.raises(BadDefinition, match="aliases"):
        rule_of({"type": str, **value})
