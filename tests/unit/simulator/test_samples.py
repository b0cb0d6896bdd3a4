"""The samples match each other: every example rule is valid, and all but the refusals match some sample inventory."""

import json
import uuid

import pytest

from ironic_rules import rules, samples
from ironic_rules.models.draft import NodeDraft, PortDraft
from ironic_rules.models.inventories import shipped_catalogue
from ironic_rules.models.task import Task
from tests.walking import walking

GOOD = [name for name in samples.inventory_names() if not samples.inventory(name).get("error")]


def run_rules(name):
    body = samples.inventory(name)
    inventory = body.pop("inventory")
    ports = [PortDraft({"address": nic["mac_address"], "physical_network": None}) for nic in inventory["interfaces"]]
    task = Task(NodeDraft({"name": name, "properties": {}, "extra": {}, "resource_class": None}), ports)
    compiled = [rules.compile(rules.Rule.of({**rule, "position": position}))
                for position, rule in enumerate(samples.rules())]
    traces = rules.RuleSet(compiled).run("main", rules.Facts(task, inventory, body))
    return task, body, [trace.description for trace in traces if trace.matched]


def test_six_inventories_ship_and_one_of_them_reports_an_error():
    assert len(samples.inventory_names()) == 6
    assert [name for name in samples.inventory_names() if name not in GOOD] == ["ramdisk-error"]


def test_an_unknown_sample_is_not_found():
    with pytest.raises(FileNotFoundError):
        samples.inventory("nothing")


def test_every_example_rule_is_valid():
    checked = {rule["description"]: rules.check(rule, known_paths=shipped_catalogue) for rule in samples.rules()}
    assert [f"{name}: {found}" for name, of in checked.items() for found in (*of.problems, *of.warnings)] == []


def test_the_uuid_of_every_example_rule_is_in_its_canonical_form():
    uuids = [rule["uuid"] for rule in samples.rules()]

    assert [text for text in uuids if str(uuid.UUID(text)) != text] == []


def test_example_rules_have_distinct_uuids_and_descriptions():
    for key in ("uuid", "description"):
        assert len({rule[key] for rule in samples.rules()}) == len(samples.rules())


def test_every_example_rule_but_the_refusals_matches_a_sample():
    matched = {description for name in GOOD for description in run_rules(name)[2]}

    unmatched = {rule["description"] for rule in samples.rules()} - matched
    assert {description.partition(" ")[0] for description in unmatched} == {"refuse"}


@walking("name, traits, properties", [
    ("dell-r660",
     ["CUSTOM_ALL_FLASH", "CUSTOM_LARGE_MEMORY", "CUSTOM_NIC_25G", "CUSTOM_VENDOR_DELL", "HW_CPU_X86_AVX512F"],
     {"vendor": "dell", "memory_mb": 524288, "cpus": 128, "site": "lab", "capabilities": "boot_mode:uefi,cpu_vt:true"}),
    ("vm-qemu-bios", ["CUSTOM_VIRTUAL"], {"memory_mb": 8192, "cpus": 4, "capabilities": "boot_mode:bios"}),
    ("ipv6-only-bmc", ["CUSTOM_ALL_FLASH", "CUSTOM_BMC_IPV6", "CUSTOM_LARGE_MEMORY", "CUSTOM_NIC_25G"],
     {"memory_mb": 393216, "cpus": 64, "capabilities": "boot_mode:uefi,cpu_vt:true"}),
])
def test_the_rules_do_visible_things(name, traits, properties):
    task, _, _ = run_rules(name)

    assert sorted(task.node.traits) == traits
    assert task.node.properties == properties


def test_ports_get_the_laboratorys_network():
    task, _, _ = run_rules("hpe-dl380-gen11")

    assert {port.physical_network for port in task.ports} == {"lab"}


def test_plugin_data_get_a_summary():
    _, plugin_data, _ = run_rules("extra-hardware-r730")

    assert plugin_data["summary"] == {
        "product": "PowerEdge R730 (SKU=NotProvided;ModelName=PowerEdge R730)", "serial": "8RB5KD2",
        "firmware": "2.19.0", "disks": ["/dev/sda: PERC H730 Mini"],
    }


def test_inventories_use_documentation_addresses_only():
    text = json.dumps([samples.inventory(name) for name in samples.inventory_names()])

    assert "192.0.2." in text
    assert "10.0." not in text
