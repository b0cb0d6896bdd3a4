"""Definitions of facts: what is refused, and the built-in ones."""

from __future__ import annotations

from typing import Any

from ironic_rules import facts, samples
from ironic_rules.facts.evaluation import FactData, FactSet
from ironic_rules.models.facts import WRITABLE, Fact
from tests import corpus_reports
from tests.walking import walking

DISKS = "{inventory[disks]}"


@walking("definition, where, text", [
    (None, "", "must be an object"), ([], "", "must be an object"),
    ({"value": "{node[name]}"}, "/name", "is required: a lower-case letter"),
    ({"name": "1a"}, "/name", "must be a lower-case letter"), ({"name": "a" * 64}, "/name", "must be"),
    ({"name": "values"}, "/name", "a word of the API"), ({"nam": 1}, "/nam", "did you mean 'name'?"),
    ({"a\x00": 1}, "", "unknown field"), ({"value": None}, "/value", "is required"),
    ({"value": "text"}, "/value", "the same for all nodes"), ({"value": []}, "/value", "1 to 100 values"),
    ({"value": ["{node[name]}"] * 101}, "/value", "1 to 100 values"),
    ({"value": [[]]}, "/value/0", "must be a template"),
    ({"value": "{a[b]}"}, "/value", "known: inventory, plugin_data, node"),
    ({"value": "{ports[0]}"}, "/value", "column 2: there is no such name"),
    ({"value": "{fact[a]}"}, "/value", "there is no such name"), ({"value": "{item}"}, "/value", "only inside a loop"),
    ({"value": "{node[nam]}"}, "/value", "column 7: there is no such field; did you mean"),
    ({"value": "{node[name]|uper}"}, "/value", "did you mean 'upper'?"),
    ({"value": "{node[name]"}, "/value", "is not closed"),
    ({"value": "{node[driver_info][redfish_password]}"}, "/value", "column 20: this is a secret"),
    ({"value": "{item[password]}", "loop": DISKS}, "/value", "column 7: this is a secret"),
    ({"value": "\x00{node[name]}"}, "/value", "NUL"),
    ({"value": "{node[name]}" + "x" * 70_000}, "/value", "longer than"),
    ({"loop": "a{inventory[disks]}"}, "/loop", "exactly one template"),
    ({"loop": 1}, "/loop", "must be a list, an object, or one template"),
    ({"loop": "{disks}"}, "/loop", "no such name"),
    ({"combine": "count"}, "/combine", "needs a loop"), ({"combine": ""}, "/combine", "1 to 255 characters"),
    ({"combine": "cont", "loop": DISKS}, "/combine", "did you mean 'count'?"),
    ({"combine": "lower", "loop": DISKS}, "/combine", "lower converts no list"),
    ({"combine": "sum|max", "loop": DISKS}, "/combine", "others give no list"),
    ({"combine": "sort|unique|sort|unique|count", "loop": DISKS}, "/combine", "more than 4 conversions"),
    ({"conditions": {}}, "/conditions", "must be a list"),
    ({"conditions": [{"op": "is-true", "args": [1]}] * 101}, "/conditions", "more than 100"),
    ({"conditions": [{"op": "matches", "args": ["{node[name]}", "("]}]}, "/conditions/0/args/1", "regular expression"),
    ({"conditions": [{"op": "changed", "args": ["memory_gib"]}]}, "/conditions/0/args/0", "not available here"),
    ({"value": {"op": "eqq", "args": [1, 2]}}, "/value/op", "did you mean 'eq'?"),
    ({"unit": "a\nb"}, "/unit", "one line"),
    ({"unit": "x" * 33}, "/unit", "1 to 32"), ({"watched": 1}, "/watched", "true"),
])
def test_a_definition_is_refused_with_its_place(definition: Any, where: str, text: str) -> None:
    if isinstance(definition, dict):
        definition = {"name": "a", **definition}
        if definition.get("name") != "a" or "value" not in definition:
            definition.setdefault("value", "{node[name]}")
        if definition.get("value") == "{node[name]}" and "name" in definition and text.startswith("is required: a"):
            del definition["name"]
    problems = facts.check(definition).problems
    assert any(problem.where == where and text in problem.text for problem in problems), problems


def test_the_built_in_facts_are_valid_and_said_as_a_request_would() -> None:
    found = facts.built_in()
    assert len({fact.name for fact in found}) == len(found) >= 40
    wrong = [f"{fact.name}: {problem}" for fact in found
             for problem in facts.check({name: getattr(fact, name) for name in WRITABLE}).problems]
    assert wrong == []
    assert [fact.name for fact in found if fact.description is None] == []


def found_in(body: dict[str, Any], plugin_data: dict[str, Any] | None = None, *, odd: bool = False) -> dict[str, Any]:
    """Return the built-in facts of a report.

    :param odd: one of its MAC addresses is none
    """
    known = FactSet(facts.check({"name": fact.name, **fact.said()}).of(fact) for fact in facts.built_in())
    rest = {name: value for name, value in body.items() if name != "inventory"} | (plugin_data or {})
    found = known.find(FactData(body["inventory"], rest, lambda: {"secure_boot": True, "properties": {}}))
    assert list(found.problems) == ["macs"] * odd
    return {name: value.plain() for name, value in found.values.items()}


def test_a_server_has_what_its_report_says() -> None:
    assert found_in(samples.inventory("dell-r660"), {"parsed_lldp": {
        "eno1": {"switch_system_name": "leaf-2", "switch_port_id": "Ethernet7"}, "eno2": {"switch_port_id": "x"}}}) == {
        "vendor": "Dell Inc.", "product": "PowerEdge R660 (SKU=0A6B;ModelName=PowerEdge R660)", "serial": "4HT81X3",
        "hostname": "localhost.localdomain", "virtual": False, "bios_vendor": "Dell Inc.", "bios_version": "2.4.4",
        "bios_date": "12/19/2024", "boot_mode": "uefi", "secure_boot": True, "bmc_address": "192.0.2.161",
        "bmc_mac": "b0:7b:25:e4:52:f0", "cpu_arch": "x86_64", "cpu_model": "Intel(R) Xeon(R) Gold 6430",
        "cpu_count": 128, "cpu_sockets": 2, "memory_gib": 512,
        "cpu_flags": ["aes", "amx_int8", "amx_tile", "avx", "avx2", "avx512f", "pdpe1gb", "pse", "smx", "vmx"],
        "disk_count": 7, "disk_gb": 12002.34, "disk_largest_gb": 1920.38, "nvme_count": 0, "nvme_gb": 0,
        "ssd_count": 7, "ssd_gb": 12002.34, "hdd_count": 0, "hdd_gb": 0, "disk_models": ["BOSS-N1", "KPM7VRUG1T92"],
        "nic_count": 4, "nic_link_count": 3, "nic_speed": 25000, "nic_vendors": ["14e4", "15b3"],
        "macs": [f"b0:7b:25:e4:52:1{number}" for number in range(4)], "switches": ["leaf-2"],
        "switch_ports": ["eno1: leaf-2 Ethernet7"], "accelerator_count": 0,
        "pci_devices": ["1000:10e2", "14e4:165f", "15b3:101f", "8086:09a2"]}


def test_every_known_machine_has_facts_without_a_problem() -> None:
    with_gpus = set()
    for machine in corpus_reports.machines():
        found = found_in(corpus_reports.body(machine), odd="a broadcast one" in machine["name"])
        assert found.get("memory_gib", 0) == (machine.get("memory_mb") or 0) / 1024, machine["name"]
        assert found["disk_count"] <= len(corpus_reports.body(machine)["inventory"].get("disks") or ())
        if found.get("accelerator_count"):
            with_gpus.update(found["accelerators"])
    assert {"10de:20b2", "10de:2330", "1002:7408"} <= with_gpus
    assert found_in(samples.inventory("vm-qemu-bios"))["virtual"] is True
    assert "serial" not in found_in(samples.inventory("vm-qemu-bios"))


def test_the_parts_of_a_definition_are_kept_as_they_are_said() -> None:
    fact = Fact(name="a", value=["{node[name]}"], loop=None, conditions=[], combine="first")
    assert fact.said() == {"value": ["{node[name]}"], "loop": None, "conditions": [], "combine": "first"}
