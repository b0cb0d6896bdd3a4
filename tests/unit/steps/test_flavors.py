"""What extra specs require, and the operators of Nova's scheduler."""

from __future__ import annotations

import datetime

import pytest

from ironic_rules.models.flavors import Flavor, resource_class_in_placement
from ironic_rules.steps.flavors import Requirements, capabilities_of, matches

FLAVOR = Flavor(id=1, flavorid="f", name="f", memory_mb=1024, vcpus=2, root_gb=10, ephemeral_gb=5, swap=1025,
                rxtx_factor=1.0, is_public=True, description=None, updated_at=None,
                created_at=datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC))


@pytest.mark.parametrize(("value", "wanted", "expected"), [
    ("uefi", "uefi", True), ("uefi", "bios", False), (None, "uefi", False), ("", "", True),
    ("uefi", "<or> bios <or> uefi", True), ("uefi", "<or> bios", False), ("bios", "<or>", False),
    ("aes-avx", "<in> avx", True), ("aes", "<in> avx", False), ("aes-avx", "<all-in> aes avx", True),
    ("aes", "<all-in> aes avx", False), ("8", ">= 4", True), ("8", "= 9", False), ("8", "== 8.0", True),
    ("8", "!= 8", False), ("8", "<= 8", True), ("eight", ">= 4", False), ("8", ">=", False),
    ("b", "s== b", True), ("b", "s!= b", False), ("b", "s< c", True), ("b", "s>= c", False), ("8", "> 4", False),
    ("> 4", "> 4", True), ("s= b", "s= b", True), ("a", "s==", False)])
def test_capabilities_are_compared_as_by_novas_scheduler(value, wanted, expected):
    assert matches(value, wanted) is expected


@pytest.mark.parametrize(("stored", "expected"), [
    (None, {}), ("", {}), ("null", {}), ("a:b, c:d:e,f", {"a": "b", "c": "d:e"}), ('"a:b"', {"a": "b"}),
    ('{"a": true, "b": 1}', {"a": "True", "b": "1"}), ("[1]", {})])
def test_capabilities_are_read_in_each_form(stored, expected):
    assert capabilities_of(stored) == expected


def test_requirements_are_those_of_all_groups_and_malformed_ones_are_none():
    found = Requirements.of(FLAVOR, {
        "resources:CUSTOM_A": "1", "resources1:CUSTOM_A": "one", "resources:VCPU": "0", "resources_x:CUSTOM_B": "2",
        "trait:CUSTOM_T": "required", "trait2:CUSTOM_T": "required", "trait:HW_X": "forbidden", "trait:CUSTOM_U": "x",
        "capabilities:a:b": "c", "hw:cpu_policy": "shared"})

    assert (dict(found.classes), dict(found.standard)) == (
        {"CUSTOM_A": 1, "CUSTOM_B": 2}, {"MEMORY_MB": 1024, "DISK_GB": 17})
    assert (found.required, found.forbidden, dict(found.capabilities)) == (("CUSTOM_T",), ("HW_X",), {"a:b": "c"})
    assert found.resource_class is None
    assert [problem.where for problem in found.warnings()] == [
        "/extra_specs", "/extra_specs/resources:CUSTOM_B", "/extra_specs/resources:DISK_GB",
        "/extra_specs/resources:MEMORY_MB"]


def test_resource_classes_have_the_names_that_nova_gives_them():
    assert [resource_class_in_placement(name) for name in ("baremetal.gold", "CUSTOM_A", "a-b")] == [
        "CUSTOM_BAREMETAL_GOLD", "CUSTOM_A", "CUSTOM_A_B"]
