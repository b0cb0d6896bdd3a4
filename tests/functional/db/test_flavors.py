"""Flavors, and the nodes that they select, on each database."""

from __future__ import annotations

from typing import Any

import pytest

from ironic_rules.db import flavors, node_sets, nodes
from ironic_rules.db.paging import Page
from ironic_rules.exceptions import extra_spec_not_found, flavor_not_found
from ironic_rules.steps import scheduler
from tests.wordings import refused

VALUES = {"memory_mb": 1, "vcpus": 1, "root_gb": 1}
TOLD = ("capabilities", "cpu_arch")


def stats(told: Any) -> dict[str, Any]:
    """Return what Nova's scheduler knows of nodes as capabilities."""
    found: dict[str, Any] = scheduler.host(**told)["stats"]
    return {name: value for name, value in found.items() if value is not None}


def test_extra_specs_are_written_listed_and_deleted_with_their_flavor(db):
    with db.writer() as conn:
        for name in ("b", "B", "a "):
            made = flavors.create(conn, {"flavorid": name, "name": name, **VALUES})
            flavors.write_specs(conn, made, {"k": name, "K": "x", "k ": "y"}, 3)
        flavors.write_specs(conn, flavors.lock(conn, "b"), {"k": "changed"}, 3)
        flavors.remove_spec(conn, flavors.lock(conn, "B"), "k")
        with refused(extra_spec_not_found):
            flavors.remove_spec(conn, flavors.lock(conn, "B"), "k")
        flavors.destroy(conn, flavors.get_id(conn, "a "))
    with db.reader() as conn:
        found = flavors.list_flavors(conn, Page(limit=10, sort_key="flavorid"))
        after = flavors.list_flavors(conn, Page(limit=10, sort_key="flavorid", marker="B"))
        for ident in ("a ", "a", "missing\0"):
            with refused(flavor_not_found):
                flavors.get(conn, ident)

    assert [(flavor.flavorid, dict(flavor.extra_specs)) for flavor in found] == [
        ("B", {"K": "x", "k ": "y"}), ("b", {"K": "x", "k": "changed", "k ": "y"})]
    assert [flavor.flavorid for flavor in after] == ["b"]


def test_nodes_are_grouped_by_state_traits_and_capabilities(db):
    def node(conn: Any, capabilities: Any, *wanted: str, **values: Any) -> int:
        properties = {} if capabilities is None else {"capabilities": capabilities, "cpus": 8, "cpu_arch": "x86_64"}
        made = nodes.create(conn, {"driver": "fake-hardware", "resource_class": "gold", "power_state": "power off",
                                   "provision_state": "available", "properties": properties, **values})
        node_sets.set_traits(conn, made.id, wanted)
        return int(made.id)

    with db.writer() as conn:
        plain = [node(conn, "boot_mode:uefi,raid:\"1\"", "CUSTOM_A") for _ in range(3)]
        single = {
            "object": node(conn, {"boot_mode": "uefi"}, "CUSTOM_A"), "none": node(conn, None, "CUSTOM_A", "CUSTOM_B"),
            "maintenance": node(conn, None, "CUSTOM_A", maintenance=True), "other": node(conn, None, "CUSTOM_C"),
            "state": node(conn, None, provision_state="active"), "power": node(conn, None, power_state=None)}
        node(conn, None, resource_class="silver")
        groups = list(flavors.alike(conn, ["gold"], ["CUSTOM_A", "CUSTOM_B"], 2, TOLD))
        without = list(flavors.alike(conn, ["gold"], ["CUSTOM_A"], 20))
        by_uuid = list(flavors.alike(conn, ["gold"], [], 20, ("uuid",)))
        classes = flavors.resource_classes(conn)
        stored = [stats(told) for told in flavors.facts_of_nodes(conn, ["gold"], TOLD)]
        holders = flavors.trait_holders(conn, ["CUSTOM_A", "CUSTOM_B", "CUSTOM_D"])

    found = {(each.state, each.traits, tuple(sorted(stats(each.told).items()))):
             (each.count, each.ids) for each in groups}
    only_a, text = frozenset({"CUSTOM_A"}), (("boot_mode", "uefi"), ("cpu_arch", "x86_64"), ("raid", '"1"'))
    # Nova takes an object for a text.
    thing = (("cpu_arch", "x86_64"), ("{'boot_mode'", " 'uefi'}"))
    count, ids = found.pop((None, only_a, text))
    assert (count, len(ids), set(ids) <= set(plain)) == (3, 2, True)
    assert found == {
        (None, only_a, thing): (1, [single["object"]]),
        (None, frozenset({"CUSTOM_A", "CUSTOM_B"}), ()): (1, [single["none"]]),
        ("maintenance", only_a, ()): (1, [single["maintenance"]]),
        (None, frozenset(), ()): (1, [single["other"]]),
        ("active", frozenset(), ()): (1, [single["state"]]),
        ("power state unknown", frozenset(), ()): (1, [single["power"]])}
    assert sorted(each.count for each in without) == [1, 1, 1, 1, 5]
    assert classes == {"gold": 9, "silver": 1}
    assert sorted(stored, key=len) == [{}, dict(thing), dict(text)]
    assert len({each.told["uuid"] for each in by_uuid}) == 9
    assert holders == {"CUSTOM_A": 6, "CUSTOM_B": 1, "CUSTOM_D": 0}


@pytest.mark.parametrize("odd", ["{x:1", '"', "[a:1", 5, 0, True, None, 1.5, [1], {"b": ["c"]}, "", "null"])
def test_whatever_users_have_written_into_properties_keeps_no_flavor_from_being_explained(db, odd):
    with db.writer() as conn:
        for properties in ({"capabilities": odd, "cpu_arch": odd},
                           {"capabilities": "a:1", "vendor": "N\0L \\u0000 'x' %s :y"}):
            nodes.create(conn, {"driver": "d", "resource_class": "gold", "properties": properties})
    with db.reader() as conn:
        found = [stats(told) for told in flavors.facts_of_nodes(conn, ["gold"], TOLD)]
        count = sum(each.count for each in flavors.alike(conn, ["gold"], [], 5, TOLD))

    assert {"a": "1"} in found
    assert count == 2


def test_a_text_is_distinguished_from_what_it_is_the_json_of(db):
    with db.writer() as conn:
        for name, stored in (("text", '{"a": 1}'), ("object", {"a": 1}), ("quoted", '"a:1"'), ("none", None)):
            nodes.create(conn, {"driver": "d", "resource_class": name, "properties": {"capabilities": stored}})
    with db.reader() as conn:
        found = {name: [stats(told) for told in flavors.facts_of_nodes(conn, [name], TOLD)]
                 for name in ("text", "object", "quoted", "none")}

    assert found == {"text": [{'{"a"': " 1}"}], "object": [{"{'a'": " 1}"}], "quoted": [{'"a': '1"'}], "none": [{}]}
