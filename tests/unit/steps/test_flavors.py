"""The requirements of extra specs, and the operators of Nova's scheduler."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import yaml

from ironic_rules.models.flavors import Flavor, resource_class_in_placement
from ironic_rules.steps import scheduler
from ironic_rules.steps.flavors import Lack, Requirements, lacks
from ironic_rules.steps.scheduler import matches
from tests.walking import walking

HOSTS = Path(__file__).resolve().parents[2] / "vectors" / "extra_specs" / "hosts.yaml"
UUID = "2b9e5a4c-0d31-4c57-8b1a-4c8a4a3d7f10"
FLAVOR = Flavor(id=1, flavorid="f", name="f", memory_mb=1024, vcpus=2, root_gb=10, ephemeral_gb=5, swap=1025,
                rxtx_factor=1.0, is_public=True, description=None, updated_at=None,
                created_at=datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC))


def fits(properties: dict[str, Any], specs: dict[str, str]) -> bool:
    """Return whether a node with these properties passes the filter."""
    capabilities, arch = (
        json.dumps(properties[name]) if name in properties else None for name in ("capabilities", "cpu_arch"))
    return all(scheduler.compared(
        scheduler.read_by_filter(specs), scheduler.host(capabilities, arch, UUID)).values())


@walking("value, wanted, expected", [
    ("uefi", "uefi", True), ("uefi", "bios", False), (None, "uefi", False), ("", "", True),
    ("uefi", "<or> bios <or> uefi", True), ("uefi", "<or> bios", False), ("bios", "<or>", False),
    ("aes-avx", "<in> avx", True), ("aes", "<in> avx", False), ("aes-avx", "<all-in> aes avx", True),
    ("aes", "<all-in> aes avx", False), ("8", ">= 4", True), ("8", "= 9", False), ("8", "== 8.0", True),
    ("8", "!= 8", False), ("8", "<= 8", True), ("eight", ">= 4", False), ("8", ">=", False),
    ("b", "s== b", True), ("b", "s!= b", False), ("b", "s< c", True), ("b", "s>= c", False), ("8", "> 4", False),
    ("> 4", "> 4", True), ("s= b", "s= b", True), ("a", "s==", False)])
def test_capabilities_are_compared_as_by_novas_scheduler(value, wanted, expected):
    assert matches(value, wanted) is expected


@walking("case", yaml.safe_load(HOSTS.read_text(encoding="utf-8")))
def test_a_node_passes_novas_filter_of_capabilities_or_does_not(case):
    assert fits(case["node"], case["specs"]) is case["fits"]


def test_what_only_nova_knows_counts_as_fulfilled_and_is_told():
    specs = {"capabilities:host_ip": "192.0.2.9", "host": "compute-1", "capabilities:x": "1", "hw:cpu_policy": "shared"}
    read = scheduler.read_by_filter(specs)

    assert scheduler.compared(read, scheduler.host(None, None)) == {
        "capabilities:host_ip": True, "host": True, "capabilities:x": False}
    assert scheduler.unknown(read) == ["capabilities:host_ip", "host"]


def test_extra_specs_that_the_filter_ignores_for_all_nodes_are_not_counted():
    specs = {"capabilities:a": "1", "cpu_arch": "arm", "group_policy": "none"}
    verdicts = [(scheduler.compared(specs, scheduler.host('"a:1"', arch)), count)
                for arch, count in (('"arm"', 3), ('"x86_64"', 2), (None, 1))]

    assert scheduler.capable(specs, verdicts) == {"capabilities:a": 6, "cpu_arch": 3}
    assert scheduler.capable(specs, []) == {"capabilities:a": 0}


def test_one_capability_that_two_extra_specs_require_is_lacking_once():
    required = Requirements.of(FLAVOR, {"capabilities:cpu_arch": "arm", "cpu_arch": "arm"})

    assert lacks(required, [], scheduler.compared(required.capabilities, scheduler.host(None, None)), None) == [
        Lack("capability", "cpu_arch")]


def test_the_uuid_of_a_node_is_asked_for_only_where_it_matters():
    assert [scheduler.distinguishing(keys) for keys in ([], ["cpu_arch"], ["capabilities:x", "uuid"])] == [
        (), ("capabilities", "cpu_arch"), ("capabilities", "cpu_arch", "uuid")]


def test_requirements_are_those_of_all_groups_and_malformed_ones_are_none():
    found = Requirements.of(FLAVOR, {
        "resources:CUSTOM_A": "1", "resources1:CUSTOM_A": "one", "resources:VCPU": "0", "resources_x:CUSTOM_B": "2",
        "trait:CUSTOM_T": "required", "trait2:CUSTOM_T": "required", "trait:HW_X": "forbidden", "trait:CUSTOM_U": "x",
        "capabilities:a:b": "c", "hw:cpu_policy": "shared"})

    assert (dict(found.classes), dict(found.standard)) == (
        {"CUSTOM_A": 1, "CUSTOM_B": 2}, {"MEMORY_MB": 1024, "DISK_GB": 17})
    assert (found.required, found.forbidden, dict(found.capabilities)) == (
        ("CUSTOM_T",), ("HW_X",), {"capabilities:a:b": "c"})
    assert found.resource_class is None
    assert [problem.where for problem in found.warnings()] == [
        "/extra_specs", "/extra_specs/resources:CUSTOM_B", "/extra_specs/resources:DISK_GB",
        "/extra_specs/resources:MEMORY_MB"]


#: extra specs -> the amounts that Nova 34 requests, which test_nova.py asks again.
AMOUNTS = [
    ({}, {"VCPU": 2, "MEMORY_MB": 1024, "DISK_GB": 17}),
    ({"resources1:CUSTOM_GOLD": "1", "resources2:CUSTOM_GOLD": "1", "resources:VCPU": "0"},
     {"CUSTOM_GOLD": 2, "MEMORY_MB": 1024, "DISK_GB": 17}),
    ({"resources1:VCPU": "0", "resources:VCPU": "1"}, {"VCPU": 1, "MEMORY_MB": 1024, "DISK_GB": 17}),
    ({"resources:PCPU": "0"}, {"MEMORY_MB": 1024, "DISK_GB": 17}),
    ({"resources:VCPU": "-1", "resources:DISK_GB": "x"}, {"VCPU": 2, "MEMORY_MB": 1024, "DISK_GB": 17}),
    ({"resources:CUSTOM_A": "+1", "resources:custom_b": "1", "resources:CUSTOM_C": "0"},
     {"CUSTOM_A": 1, "VCPU": 2, "MEMORY_MB": 1024, "DISK_GB": 17}),
]


@walking("specs, expected", AMOUNTS)
def test_amounts_are_those_that_nova_requests_of_all_groups(specs, expected):
    found = Requirements.of(FLAVOR, specs)

    assert {**found.classes, **found.standard} == expected


def test_a_node_does_not_offer_what_two_groups_request():
    found = Requirements.of(FLAVOR, AMOUNTS[1][0])

    assert "requests 2 of CUSTOM_GOLD; a node offers one" in found.warnings()[0].text


def test_resource_classes_have_the_names_that_nova_gives_them():
    assert [resource_class_in_placement(name) for name in ("baremetal.gold", "CUSTOM_A", "a-b")] == [
        "CUSTOM_BAREMETAL_GOLD", "CUSTOM_A", "CUSTOM_A_B"]
