"""The effects of a flavor here: nodes, traits, templates, steps and warnings."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa

from ironic_rules.db import conductors, deploy_templates, flavors, node_sets, nodes
from ironic_rules.hardware.enabled import EnabledHardware
from ironic_rules.models.steps import Step

URL = "/v1/flavors/gold"
ZEROED = {"resources:VCPU": "0", "resources:MEMORY_MB": "0", "resources:DISK_GB": "0"}
SPECS = {**ZEROED, "resources:CUSTOM_BAREMETAL_GOLD": "1", "trait:CUSTOM_RAID": "required",
         "trait:CUSTOM_BROKEN": "forbidden", "capabilities:boot_mode": "<or> uefi <or> bios"}
GOLD = {"resource_class": "baremetal.gold", "provision_state": "available", "power_state": "power off",
        "raid_interface": "fake", "bios_interface": "fake", "deploy_interface": "fake",
        "properties": {"capabilities": "boot_mode:uefi,raid:1"}}
RAID = Step("raid", "create_configuration", {"logical_disks": [], "create_root_volume": True}, 50)


@pytest.fixture
def store(db, conf):
    """Store a node of the flavor's resource class, with other values; its traits are those of the flavor."""
    db.write(lambda conn: conductors.register(
        conn, "conductor-1", "", EnabledHardware(conf).register(), "instance-1"))

    def store(name: str, *wanted: str, **values: Any) -> None:
        def write(conn: sa.Connection) -> None:
            node = nodes.create(conn, {"driver": "fake-hardware", "name": name, **GOLD, **values})
            node_sets.set_traits(conn, node.id, wanted)
        db.write(write)
    return store


def make_flavor(db: Any, specs: dict[str, str], **values: Any) -> None:
    def write(conn: sa.Connection) -> None:
        found = flavors.create(conn, {"flavorid": "gold", "name": "bm.gold", "memory_mb": 1024, "vcpus": 2,
                                      "root_gb": 10, **values})
        flavors.write_specs(conn, found, specs, 128)
    db.write(write)


def make_template(db: Any, name: str, *steps: Step) -> None:
    db.write(lambda conn: deploy_templates.create(conn, {"name": name}, steps or [RAID]))


def names(part: dict[str, Any]) -> list[str]:
    assert part["count"] == len(part["nodes"])
    return [node["name"] for node in part["nodes"]]


def texts(told: list[dict[str, str]]) -> dict[str, str]:
    """Return the warnings by what they are about, all of one thing as one text."""
    pointers = dict.fromkeys(warning["pointer"] for warning in told)
    return {pointer: " ".join(warning["text"] for warning in told if warning["pointer"] == pointer)
            for pointer in pointers}


def test_each_node_fits_or_lacks_one_thing_or_is_not_shown(app, db, store):
    make_flavor(db, SPECS)
    make_template(db, "CUSTOM_RAID")
    store("fits", "CUSTOM_RAID", "CUSTOM_OTHER")
    store("fits-too", "CUSTOM_RAID", resource_class="BAREMETAL_GOLD",
          properties={"capabilities": "boot_mode:bios"})
    store("no-trait")
    store("broken", "CUSTOM_RAID", "CUSTOM_BROKEN")
    store("wrong-mode", "CUSTOM_RAID", properties={"capabilities": "boot_mode:legacy"})
    store("no-mode", "CUSTOM_RAID", properties={})
    store("active", "CUSTOM_RAID", provision_state="active", instance_uuid="11111111-1111-4111-8111-111111111111")
    store("cleaning", "CUSTOM_RAID", provision_state="cleaning")
    store("in-maintenance", "CUSTOM_RAID", maintenance=True)
    store("unpowered", "CUSTOM_RAID", power_state=None)
    store("two-lacks", maintenance=True)
    store("other", "CUSTOM_RAID", resource_class="silver")

    told = app.get(f"{URL}/explanation").json

    assert told["resource_class"] == {
        "name": "CUSTOM_BAREMETAL_GOLD", "resource_classes": ["BAREMETAL_GOLD", "baremetal.gold"], "nodes": 11}
    assert names(told["fitting"]) == ["fits", "fits-too"]
    assert {(item["lacks"]["kind"], item["lacks"]["name"]): names(item) for item in told["nearly_fitting"]} == {
        ("capability", "boot_mode"): ["wrong-mode", "no-mode"],
        ("forbidden trait", "CUSTOM_BROKEN"): ["broken"],
        ("state", "cleaning"): ["cleaning"], ("state", "instance"): ["active"],
        ("state", "maintenance"): ["in-maintenance"], ("state", "power state unknown"): ["unpowered"],
        ("trait", "CUSTOM_RAID"): ["no-trait"]}
    assert [(item["trait"], item["nodes"], item["deploy_template"]["name"]) for item in told["required_traits"]] == [
        ("CUSTOM_RAID", 10, "CUSTOM_RAID")]
    assert told["forbidden_traits"] == [{"trait": "CUSTOM_BROKEN", "nodes": 1}]
    assert told["capabilities"] == [{"name": "boot_mode", "value": "<or> uefi <or> bios", "nodes": 9}]
    assert (told["schedulable"], told["warnings"]) == (True, [])


def test_a_node_is_what_novas_scheduler_knows_of_it(app, db, store):
    own = "22222222-2222-4222-8222-222222222222"
    make_flavor(db, {**{key: value for key, value in SPECS.items() if not key.startswith(("trait", "cap"))},
                     "cpu_arch": "x86_64", "capabilities:cpu_arch": "x86_64", "capabilities:hypervisor_type": "ironic",
                     "capabilities:vcpus_total": ">= 0", "capabilities:hypervisor_hostname": own,
                     "capabilities:host_ip": "192.0.2.1", "group_policy": "none"})
    store("fits", uuid=own, properties={"cpu_arch": "x86_64"})
    store("another", properties={"cpu_arch": "x86_64"})
    store("other-arch", uuid="33333333-3333-4333-8333-333333333333", properties={"cpu_arch": "aarch64"})
    store("object", properties={"capabilities": {"cpu_arch": "x86_64"}})

    told = app.get(f"{URL}/explanation").json

    assert names(told["fitting"]) == ["fits"]
    assert [(item["lacks"]["name"], names(item)) for item in told["nearly_fitting"]] == [
        ("hypervisor_hostname", ["another"])]
    assert {(item["name"], item["nodes"]) for item in told["capabilities"]} == {
        ("cpu_arch", 2), ("hypervisor_type", 4), ("vcpus_total", 4), ("hypervisor_hostname", 1), ("host_ip", 4)}
    assert list(texts(told["warnings"])) == ["/extra_specs/capabilities:host_ip"]
    assert "Only Nova knows host_ip" in told["warnings"][0]["text"]


def test_the_steps_are_those_of_the_nodes_own_preview(app, db, store):
    make_flavor(db, SPECS)
    make_template(db, "CUSTOM_RAID")
    make_template(db, "CUSTOM_OTHER", Step("bios", "apply_configuration", {"settings": []}, 120))
    store("fits", "CUSTOM_RAID", "CUSTOM_OTHER")

    deployment = app.get(f"{URL}/explanation").json["deployment"]
    preview = app.get("/v1/nodes/fits/deploy_steps?traits=CUSTOM_RAID").json

    assert (deployment.pop("node")["name"], deployment.pop("reason")) == ("fits", None)
    assert deployment == preview
    assert "template CUSTOM_RAID" in [step["source"] for step in deployment["deploy_steps"]]
    assert deployment["deploy_templates"] == ["CUSTOM_RAID"]


def test_a_flavor_that_no_node_can_have_says_why(app, db, store):
    make_flavor(db, {"trait:CUSTOM_NOWHERE": "required", "resources:CUSTOM_GOLD": "2", "resources:VCPU": "0"})
    store("fits", resource_class="silver")

    told = app.get(f"{URL}/explanation").json

    assert told["schedulable"] is False
    assert told["fitting"]["count"] == 0
    assert told["deployment"]["reason"] == "no node fits"
    warnings = texts(told["warnings"])
    assert "2 of CUSTOM_GOLD; a node offers one." in warnings["/extra_specs/resources:CUSTOM_GOLD"]
    assert "Add resources:MEMORY_MB=0." in warnings["/extra_specs/resources:MEMORY_MB"]
    assert "Add resources:DISK_GB=0." in warnings["/extra_specs/resources:DISK_GB"]
    assert "no deploy template" in warnings["/extra_specs/trait:CUSTOM_NOWHERE"]
    assert "/extra_specs/resources:VCPU" not in warnings


def test_a_strict_write_has_the_same_warnings_and_others_have_none(app, db, store):
    make_flavor(db, {})
    make_template(db, "CUSTOM_RAID")
    make_template(db, "CUSTOM_RAID_TOO")
    store("gold", "CUSTOM_RAID")
    specs = {**SPECS, "trait:CUSTOM_RAID_TOO": "required", "trait:CUSTOM_NOWHERE": "required",
             "capabilities:boot_mode": "s== tape"}

    strict = app.post_json(f"{URL}/os-extra_specs", {"extra_specs": specs}).json
    others = [app.post_json(f"{URL}/os-extra_specs?validation={mode}", {"extra_specs": specs}).json
              for mode in ("permissive", "off")]
    put = app.put_json(f"{URL}/os-extra_specs/resources:VCPU", {"resources:VCPU": "1"}).json

    assert others == [{"extra_specs": specs}] * 2
    told = texts(strict["warnings"])
    assert told.keys() == {"/extra_specs/trait:CUSTOM_NOWHERE", "/extra_specs/trait:CUSTOM_RAID_TOO",
                           "/extra_specs/capabilities:boot_mode"}
    assert "both have steps of the raid interface" in told["/extra_specs/trait:CUSTOM_RAID_TOO"]
    assert put["resources:VCPU"] == "1"
    assert "Add resources:VCPU=0." in texts(put["warnings"])["/extra_specs/resources:VCPU"]
    assert app.get(f"{URL}/explanation").json["warnings"] == put["warnings"]


def test_the_number_of_queries_is_constant(app, db, store):
    make_flavor(db, SPECS)
    make_template(db, "CUSTOM_RAID")
    many = [f"CUSTOM_T{number}" for number in range(20)]
    store("one", "CUSTOM_RAID", *many)
    def explain() -> int:
        """Return the number of queries."""
        asked: list[str] = []

        def count(conn: Any, cursor: Any, statement: str, *rest: Any) -> None:
            asked.append(statement)

        sa.event.listen(db.engine, "before_cursor_execute", count)
        try:
            assert names(app.get(f"{URL}/explanation").json["fitting"]) == ["one"]
        finally:
            sa.event.remove(db.engine, "before_cursor_execute", count)
        return len(asked)

    # What conductors offer is read once.
    explain()
    first = explain()
    for number in range(50):
        store(f"more-{number}", *(["CUSTOM_RAID"] if number % 3 else []), maintenance=True)
    for name in many:
        make_template(db, name)
    app.post_json(f"{URL}/os-extra_specs", {"extra_specs": {f"trait:{name}": "required" for name in many}})

    assert explain() == first <= 10
