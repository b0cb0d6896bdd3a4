"""Nova: its own ironic virt driver deploys, rebuilds and destroys instances; flavors select the deploy steps.

Nova has many dependencies, so it has a separate environment. IRONIC_RULES_TEST_NOVA is the path of one: make it with
``python -m venv PATH`` and ``PATH/bin/pip install nova``.
"""

from __future__ import annotations

import json
import os
import random
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.functional.clients import machines, warm_driver
from tests.functional.processes import standalone
from tests.unit.steps import test_flavors

DRIVER = Path(__file__).with_name("nova_driver.py")
SCHEDULER = Path(__file__).with_name("nova_scheduler.py")
VECTORS = Path(__file__).resolve().parents[2] / "vectors" / "extra_specs"
NOVA = os.environ.get("IRONIC_RULES_TEST_NOVA", "")
PREFIX = "CUSTOM_BM_CONFIG_"
IMAGE = "7b5e2bd6-5a4b-4a2a-9a5c-30cf1e9ad3ff"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not NOVA, reason="IRONIC_RULES_TEST_NOVA is not set: no environment has the package nova"),
]


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a service with the four templates of the document's example."""
    with standalone(tmp_path_factory.mktemp("nova")) as (_, url):
        for name, level in (("MIRROR", "1"), ("STRIPE", "0")):
            template(url, f"{PREFIX}RAID_DISK_{name}", "raid", "create_configuration", 10, {
                "logical_disks": [{"size_gb": "MAX", "raid_level": level, "is_root_volume": True}],
                "delete_configuration": True})
        for name, value in (("ON", "Enabled"), ("OFF", "Disabled")):
            template(url, f"{PREFIX}BIOS_VMX_{name}", "bios", "apply_configuration", 11, {
                "settings": [{"name": "ProcVirtualization", "value": value}]})
        yield url


def template(url: str, name: str, interface: str, step: str, priority: int, args: dict[str, Any]) -> None:
    machines.call(url, "POST", "deploy_templates", {
        "name": name, "steps": [{"interface": interface, "step": step, "args": args, "priority": priority}]})


@pytest.fixture
def node(endpoint: str) -> str:
    """A node that is available, with all the traits of the document's example, and with a port."""
    ident = str(uuid.uuid4())
    machines.call(endpoint, "POST", "nodes", {
        "uuid": ident, "driver": "fake-hardware", "raid_interface": "fake", "bios_interface": "fake",
        "resource_class": "COMPUTE_A",
        "properties": {"cpu_arch": "x86_64", "cpus": 2, "memory_mb": 1024, "local_gb": 10}})
    address = f"52:54:00:{ident[0:2]}:{ident[2:4]}:{ident[4:6]}"
    machines.call(endpoint, "POST", "ports", {"node_uuid": ident, "address": address})
    for target, state in (("manage", "manageable"), ("provide", "available")):
        machines.call(endpoint, "PUT", f"nodes/{ident}/states/provision", {"target": target})
        machines.wait_for_state(endpoint, ident, state)
    machines.call(endpoint, "PUT", f"nodes/{ident}/traits", {"traits": [
        "CUSTOM_CLASS_A", "CUSTOM_OTHER_TRAIT_I_AM_USUALLY_IGNORED",
        *(PREFIX + name for name in ("RAID_DISK_MIRROR", "RAID_DISK_STRIPE", "BIOS_VMX_ON", "BIOS_VMX_OFF"))]})
    return ident


def instance(node: str, *traits: str) -> dict[str, Any]:
    """Return an instance of a flavor that requires these traits."""
    extra_specs = {"resources:CUSTOM_COMPUTE_A": "1", **{f"trait:{trait}": "required" for trait in traits}}
    return {"uuid": str(uuid.uuid4()), "node": node, "image": IMAGE, "vif": str(uuid.uuid4()),
            "extra_specs": extra_specs}


def compute(endpoint: str, instance: dict[str, Any], *actions: str) -> list[dict[str, Any]]:
    """Run these actions with nova-compute's driver; see :mod:`tests.functional.clients.nova_driver`."""
    results: list[dict[str, Any]] = json.loads(warm_driver.run(
        Path(NOVA, "bin", "python"), DRIVER, endpoint, text=json.dumps({"actions": actions, "instance": instance})))
    return results


def ask(**cases: list[Any]) -> dict[str, list[Any]]:
    """Ask Nova's scheduler and its objects; see :mod:`tests.functional.clients.nova_scheduler`."""
    verdicts: dict[str, list[Any]] = json.loads(warm_driver.run(
        Path(NOVA, "bin", "python"), SCHEDULER, text=json.dumps({"hosts": [], "requests": [], "images": [], **cases})))
    return verdicts


def finished(endpoint: str, node: str) -> list[str]:
    """Return the deploy steps that have finished, in their order."""
    history = machines.call(endpoint, "GET", f"nodes/{node}/history?detail=true&limit=1000")["history"]
    return [entry["event"].split()[2] for entry in history if " finished after " in entry["event"]]


def test_a_flavor_chooses_the_deploy_steps(endpoint, node):
    mirror = instance(node, "CUSTOM_CLASS_A", f"{PREFIX}BIOS_VMX_ON", f"{PREFIX}RAID_DISK_MIRROR")

    results = compute(endpoint, mirror, "prepare", "networks", "spawn", "power")

    assert results == [{"result": None}, {"result": None}, {"result": None}, {"result": 1}]  # 1: running
    shown = machines.node(endpoint, node)
    assert (shown["provision_state"], shown["instance_uuid"]) == ("active", mirror["uuid"])
    assert shown["instance_info"]["traits"] == [
        "CUSTOM_CLASS_A", f"{PREFIX}BIOS_VMX_ON", f"{PREFIX}RAID_DISK_MIRROR"]
    assert shown["instance_info"]["image_source"] == IMAGE
    assert finished(endpoint, node)[-2:] == ["bios.apply_configuration", "raid.create_configuration"]
    assert shown["raid_config"]["logical_disks"] == [
        {"size_gb": "MAX", "raid_level": "1", "is_root_volume": True}]
    assert shown["driver_internal_info"]["fake_bios_settings"] == {"ProcVirtualization": "Enabled"}
    assert machines.call(endpoint, "GET", f"nodes/{node}/vifs") == {"vifs": [{"id": mirror["vif"]}]}

    assert compute(endpoint, mirror, "destroy") == [{"result": None}]

    shown = machines.wait_for_state(endpoint, node, "available")
    assert (shown["instance_uuid"], shown["instance_info"], shown["power_state"]) == (None, {}, "power off")
    assert machines.call(endpoint, "GET", f"nodes/{node}/vifs") == {"vifs": []}


def test_a_flavors_explanation_foretells_the_node_and_the_steps(endpoint, node):
    mirror = instance(node, "CUSTOM_CLASS_A", f"{PREFIX}BIOS_VMX_OFF", f"{PREFIX}RAID_DISK_STRIPE")
    machines.call(endpoint, "POST", "flavors", {"flavor": {
        "id": "stripe", "name": "bm.stripe", "ram": 1024, "vcpus": 2, "disk": 10}})
    machines.call(endpoint, "POST", "flavors/stripe/os-extra_specs", {"extra_specs": {
        **mirror["extra_specs"], **{f"resources:{name}": "0" for name in ("VCPU", "MEMORY_MB", "DISK_GB")}}})
    # Nodes of other tests have the same resource class.
    for other in machines.call(endpoint, "GET", "nodes?resource_class=COMPUTE_A")["nodes"]:
        if other["uuid"] != node:
            machines.call(endpoint, "PUT", f"nodes/{other['uuid']}/maintenance")

    told = machines.call(endpoint, "GET", "flavors/stripe/explanation")
    before = len(finished(endpoint, node))
    results = compute(endpoint, mirror, "prepare", "spawn")

    assert results == [{"result": None}] * 2
    assert [item["uuid"] for item in told["fitting"]["nodes"]] == [told["deployment"]["node"]["uuid"]] == [node]
    assert (told["schedulable"], told["warnings"]) == (True, [])
    foretold = [f"{step['interface']}.{step['step']}" for step in told["deployment"]["deploy_steps"]]
    assert finished(endpoint, node)[before:] == foretold
    assert {"bios.apply_configuration", "raid.create_configuration"} <= set(foretold)
    after = machines.call(endpoint, "GET", "flavors/stripe/explanation")
    assert after["fitting"]["count"] == 0
    assert "instance" in [item["lacks"]["name"] for item in after["nearly_fitting"]]


def test_the_next_instance_may_have_another_flavor(endpoint, node):
    mirror = instance(node, f"{PREFIX}RAID_DISK_MIRROR")
    assert compute(endpoint, mirror, "prepare", "spawn", "destroy") == [{"result": None}] * 3
    machines.wait_for_state(endpoint, node, "available")

    stripe = instance(node, f"{PREFIX}RAID_DISK_STRIPE", f"{PREFIX}BIOS_VMX_OFF")
    assert compute(endpoint, stripe, "prepare", "spawn") == [{"result": None}] * 2

    shown = machines.node(endpoint, node)
    assert shown["raid_config"]["logical_disks"][0]["raid_level"] == "0"
    assert shown["driver_internal_info"]["fake_bios_settings"] == {"ProcVirtualization": "Disabled"}


def test_a_rebuild_runs_the_steps_again(endpoint, node):
    mirror = instance(node, f"{PREFIX}RAID_DISK_MIRROR")

    assert compute(endpoint, mirror, "prepare", "spawn", "rebuild") == [{"result": None}] * 3

    assert machines.node(endpoint, node)["provision_state"] == "active"
    assert finished(endpoint, node).count("raid.create_configuration") == 2


def test_a_trait_that_the_node_lacks_fails_the_spawn_and_leaves_the_node_as_it_was(endpoint, node):
    wrong = instance(node, "CUSTOM_NOT_THERE")

    prepared, spawned, cleaned = compute(endpoint, wrong, "prepare", "spawn", "clean_up")

    assert (prepared, spawned["error"]) == ({"result": None}, "ValidationError")
    assert "CUSTOM_NOT_THERE" in spawned["text"]
    assert cleaned == {"result": None}
    shown = machines.node(endpoint, node)
    assert (shown["provision_state"], shown["instance_uuid"], shown["instance_info"]) == ("available", None, {})


def test_a_network_that_no_port_is_free_for_belongs_to_the_node_only(endpoint, node):
    port = machines.call(endpoint, "GET", f"nodes/{node}/ports")["ports"][0]["uuid"]
    machines.call(endpoint, "DELETE", f"ports/{port}")

    spawned = instance(node)

    assert compute(endpoint, spawned, "prepare", "networks") == [{"result": None}, {"result": None}]

    assert machines.call(endpoint, "GET", f"nodes/{node}/vifs") == {"vifs": [{"id": spawned["vif"]}]}
    machines.call(endpoint, "DELETE", f"nodes/{node}/vifs/{spawned['vif']}")
    assert compute(endpoint, spawned, "clean_up") == [{"result": None}]


def test_a_failed_step_fails_the_spawn_with_its_name(endpoint, node):
    template(endpoint, "CUSTOM_SMOKES", "raid", "pretend", 50, {"error": "smoke"})
    machines.call(endpoint, "PUT", f"nodes/{node}/traits/CUSTOM_SMOKES")
    unlucky = instance(node, "CUSTOM_SMOKES")

    _, spawned, destroyed = compute(endpoint, unlucky, "prepare", "spawn", "destroy")

    assert spawned["error"] == "InstanceDeployFailure"
    assert "raid.pretend" in spawned["text"]
    assert destroyed == {"result": None}
    shown = machines.wait_for_state(endpoint, node, "available")
    assert shown["instance_uuid"] is None


def test_d_04_placement_is_told_of_traits_and_resource_class(endpoint, node):
    resources, = compute(endpoint, instance(node), "resources")

    assert f"{PREFIX}RAID_DISK_MIRROR" in resources["result"]["traits"]
    assert resources["result"]["inventory"]["CUSTOM_COMPUTE_A"]["total"] == 1


def test_the_vectors_are_novas_verdicts():
    hosts = yaml.safe_load((VECTORS / "hosts.yaml").read_text(encoding="utf-8"))
    images = yaml.safe_load((VECTORS / "image_values.yaml").read_text(encoding="utf-8"))
    values = [(name, value, kind == "accepted") for kind, found in images.items()
              for name, each in found.items() for value in each]

    told = ask(hosts=[[{"uuid": test_flavors.UUID, "properties": case["node"]}, case["specs"]] for case in hosts],
               requests=[specs for specs, _ in test_flavors.AMOUNTS],
               images=[[name, value] for name, value, _ in values])

    assert [case for case, verdict in zip(hosts, told["hosts"], strict=True) if verdict != case["fits"]] == []
    assert told["requests"] == [amounts for _, amounts in test_flavors.AMOUNTS]
    assert [case for case, verdict in zip(values, told["images"], strict=True) if verdict != case[2]] == []


def test_novas_filter_and_ours_agree_about_any_node():
    """Nodes and flavors are put together at random, of pieces between which there are differences."""
    chosen = random.Random(34)
    names = ["a", "a b", "x:y", "cpu_arch", "uuid", "stats",
             "hypervisor_type", "vcpus_total", "numa_topology", "limits"]
    values = ["1", "x86_64", " 1", "", "ironic", "a:1", "{}", "uefi"]
    wanted = [*values, ">= 0", "== 1", "<in> 6", "<or> 1 <or> uefi", "s!= 1", "<all-in> x 6", "= x", "!= 1", "s< b"]
    cases = []
    for _ in range(3000):
        pairs = ",".join(f"{chosen.choice(names)}{chosen.choice(['', ':', ':', ':'])}{chosen.choice(values)}"
                         for _ in range(chosen.randrange(4)))
        properties = {"capabilities": chosen.choice([pairs, pairs, pairs, [pairs], {"a": pairs}, None, 1, True])}
        if chosen.random() < 0.8:
            properties["cpu_arch"] = chosen.choice(["x86_64", "AMD64", "pdp11", ""])
        scopes = ["", "capabilities:", "capabilities:stats:"]
        specs = {chosen.choice(scopes) + chosen.choice(names): chosen.choice(wanted)
                 for _ in range(chosen.randrange(1, 3))}
        cases.append((properties, specs))

    told = ask(hosts=[[{"uuid": test_flavors.UUID, "properties": properties}, specs] for properties, specs in cases])

    assert [case for case, verdict in zip(cases, told["hosts"], strict=True)
            if verdict != test_flavors.fits(*case)] == []
    assert told["hosts"].count(True) > 200
