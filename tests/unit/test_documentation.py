"""What the documentation shows works: its example rules, its example hook, its configuration file, its references."""

from __future__ import annotations

import configparser
import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

import ironic_rules.cmd  # noqa: F401  (the references import the API, and with it oslo.messaging)
from ironic_rules import rules, samples
from ironic_rules.api.controllers.root import RootController
from ironic_rules.api.resource import walk_routes
from ironic_rules.conf import opts
from ironic_rules.exceptions import RuleFailed
from ironic_rules.inspection.hooks import loader
from ironic_rules.inspection.hooks.ramdisk_error import RamdiskErrorHook
from ironic_rules.inspection.pipeline import Pipeline
from ironic_rules.models import pointer
from ironic_rules.models.draft import NodeDraft, PortDraft
from ironic_rules.models.task import Task
from tests.unit.rules.world import NODE

DOC = Path(__file__).resolve().parents[2] / "doc"
EXAMPLES = DOC / "source" / "user" / "examples"
FILES = sorted(path for path in EXAMPLES.iterdir() if path.suffix in (".json", ".yaml"))


def module(path: Path) -> ModuleType:
    """Return the module in a file that is not part of the package."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec and spec.loader
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def rules_of(name: str) -> list[dict[str, Any]]:
    """Return the rules of an example file."""
    text = (EXAMPLES / name).read_text(encoding="utf-8")
    return yaml.safe_load(text) if name.endswith(".yaml") else [json.loads(text)]


def inspected(sample: str) -> tuple[Task, dict[str, Any]]:
    """Return a task whose node has the ports of a sample machine, and the sample."""
    body = samples.inventory(sample)
    ports = [PortDraft({"id": number, "uuid": None, "address": interface["mac_address"], "extra": {},
                        "local_link_connection": {}, "pxe_enabled": True, "physical_network": None,
                        "is_smartnic": False, "name": None})
             for number, interface in enumerate(body["inventory"]["interfaces"])]
    return Task(NodeDraft({**NODE, "name": None, "driver_info": {}, "extra": {}, "properties": {}}), ports), body


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_example_rule_is_valid(path):
    assert [problem for rule in rules_of(path.name) for problem in rules.validate(rule)] == []


#: (file, sample, descriptions of the rules that match, what the node has afterwards)
OUTCOMES: list[tuple[str, str, list[str], dict[str, Any]]] = [
    ("first.json", "dell-r660", ["Machines with 256 GiB or more"], {"/traits": ["CUSTOM_LARGE_MEMORY"]}),
    ("first.json", "vm-qemu-bios", [], {"/traits": []}),
    ("asset.yaml", "dell-r660", ["asset data"],
     {"/name": "node-4HT81X3", "/extra/serial": "4HT81X3", "/extra/firmware": "2.4.4"}),
    ("asset.yaml", "vm-qemu-bios", [], {"/name": None}),
    ("minimum.yaml", "dell-r660", [], {}),
    ("resource-class.yaml", "dell-r660", ["general purpose", "much memory", "many CPUs and much memory"],
     {"/resource_class": "baremetal-huge"}),
    ("resource-class.yaml", "hpe-dl380-gen11", ["general purpose", "much memory"],
     {"/resource_class": "baremetal-memory"}),
    ("resource-class.yaml", "extra-hardware-r730", ["general purpose"], {"/resource_class": "baremetal-general"}),
    ("network.yaml", "extra-hardware-r730",
     ["ports of machines with a BMC in the lab", "names and speeds of the interfaces"],
     {"/extra/nics": ["em1: 10000 Mbit/s", "em2: 10000 Mbit/s"]}),
    ("storage.yaml", "ipv6-only-bmc", ["only flash", "NVMe"],
     {"/traits": ["CUSTOM_ALL_FLASH", "CUSTOM_NVME"], "/properties/capabilities": "nvme:true"}),
    ("storage.yaml", "hpe-dl380-gen11", [], {"/traits": []}),
    ("storage.yaml", "ramdisk-error", [], {"/traits": []}),
    ("report.yaml", "hpe-dl380-gen11", ["summary"], {}),
    ("discovered.yaml", "hpe-dl380-gen11", ["Initialize freshly discovered nodes"],
     {"/driver_info/ipmi_address": "192.0.2.162"}),
]


@pytest.mark.parametrize(("name", "sample", "matched", "expected"), OUTCOMES,
                         ids=[f"{name}-{sample}" for name, sample, *_ in OUTCOMES])
def test_an_example_does_to_a_sample_machine_what_it_says(name, sample, matched, expected):
    task, body = inspected(sample)
    plugin_data = {"bmc_address": body["inventory"]["bmc_address"]}
    facts = rules.Facts(task, body["inventory"], plugin_data)

    traces = rules.RuleSet(map(rules.compile, rules_of(name))).run("main", facts)

    assert [trace.description for trace in traces if trace.matched] == matched
    found = task.node.read()
    assert {path: pointer.get(found, pointer.parse(path)) for path in expected} == expected
    if name == "network.yaml":
        assert {port.physical_network for port in task.ports} == {"lab"}
    if name == "report.yaml":
        assert plugin_data["summary"] == {"model": "ProLiant DL380 Gen11 (P52560-B21)", "boot mode": "uefi"}


def test_the_example_for_minimum_sizes_refuses_a_small_machine():
    task, body = inspected("vm-qemu-bios")
    rule_set = rules.RuleSet(map(rules.compile, rules_of("minimum.yaml")))

    with pytest.raises(RuleFailed) as caught:
        rule_set.run("main", rules.Facts(task, body["inventory"], {}))

    assert "8192 MiB of memory, 16384 are needed" in str(caught.value)


def test_every_example_is_evaluated():
    assert {path.name for path in FILES} == {name for name, *_ in OUTCOMES}


def test_the_example_hook_works():
    hook = module(DOC / "source" / "contributor" / "memory_hook.py").MemoryHook
    hooks = loader.load(["ramdisk-error", "memory"], classes={"ramdisk-error": RamdiskErrorHook, "memory": hook})
    task, body = inspected("dell-r660")

    Pipeline(hooks).run(task, body["inventory"])

    assert task.node.properties == {"memory_mb": 524288}


def test_the_example_configuration_names_only_options_that_exist():
    config = configparser.ConfigParser(default_section="")
    config.read(DOC / "source" / "install" / "ironic-rules.conf", encoding="utf-8")
    known = {(group, option.dest) for group, options in opts.list_opts() for option in options}
    known |= {("DEFAULT", "transport_url"), ("DEFAULT", "log_dir"), ("database", "connection")}

    assert {(group, name) for group in config.sections() for name in config[group]} - known == set()


def test_the_api_reference_has_every_route():
    reference = module(DOC / "ext" / "api_text.py")

    titles = [line for line in reference.pages().splitlines() if line.startswith("``") and " /" in line]

    assert len(titles) == len(set(titles)) == len(list(walk_routes(RootController())))
