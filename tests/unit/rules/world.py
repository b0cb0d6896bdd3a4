"""A small world for rules: an inventory, a node with two ports, services to call, and functions to run a rule in it."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonpatch
import yaml

from ironic_rules import rules, samples
from ironic_rules.models.draft import NodeDraft, PortDraft
from ironic_rules.models.task import Task
from ironic_rules.rules import ActionError
from ironic_rules.rules.limits import AllowedHosts
from ironic_rules.rules.signatures import Operation

#: The services that rules may call.
ALLOWED = ("cmdb.example.org", "cmdb.example.org:8443", "silent.example.org", "192.0.2.7", "[2001:db8::7]:8080")
LIMITS = rules.Limits(hosts=AllowedHosts.of(ALLOWED))
VECTORS = Path(__file__).parents[2] / "vectors"
#: libyaml's loader where PyYAML has it: it takes a tenth of the time
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
PXE_MAC = "52:54:00:12:00:00"
PORT_UUID = "6a1f5b9e-0d5c-4a0e-9f59-0c1c39a6f0d1"

INVENTORY: dict[str, Any] = {
    "interfaces": [
        {"name": "ens1f0", "mac_address": PXE_MAC, "ipv4_address": "10.0.0.5",
        "has_carrier": True, "speed_mbps": 25000},
        {"name": "ens1f1", "mac_address": "52:54:00:12:00:01", "ipv4_address": None, "has_carrier": False},
    ],
    "disks": [{"name": "/dev/sda", "size": 480103981056, "rotational": False}],
    "cpu": {
        "model_name": "Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz", "count": 40, "architecture": "x86_64",
        "frequency": "2400.0", "flags": ["vmx", "aes", "pse"],
    },
    "memory": {"physical_mb": 393216},
    "bmc_address": "192.0.2.10", "bmc_v6address": None, "bmc_mac": "52:54:00:99:00:01",
    "system_vendor": {"manufacturer": "Dell Inc.", "product_name": "PowerEdge R740xd", "serial_number": "ABC1234"},
    "boot": {"current_boot_mode": "uefi", "pxe_interface": "01-52-54-00-12-00-00", "secure": True},
    "hostname": "rack07-node3",
    "0": {"zero": "a key of digits"},
}
NODE: dict[str, Any] = {
    "id": 7, "uuid": "1be26c0b-03f2-4d2e-ae87-c02d7f33c123", "name": "node-7", "driver": "fake-hardware",
    "driver_info": {"ipmi_address": "192.0.2.10", "ipmi_username": "admin", "ipmi_password": "s3cret"},
    "driver_internal_info": {"agent_secret_token": "t0ken"}, "properties": {"capabilities": "a:b,boot_mode:bios"},
    "instance_info": {}, "extra": {"old": "x", "list": [1, 2]}, "description": "a node", "resource_class": None,
    "owner": None, "lessee": None, "conductor_group": "", "automated_clean": None, "protected": False, "retired": False,
    "retired_reason": None, "inspection_scope": None, "auto_discovered": True, "inspect_interface": "agent",
    "provision_state": "inspecting",
}


class Web:
    """Answers ``/status/N`` with N, silent.example.org not at all, and all others with 200. Records the requests."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, str], float]] = []

    def get(self, url: str, headers: Mapping[str, str], timeout_s: float) -> int:
        self.asked.append((url, dict(headers), timeout_s))
        if "silent.example.org" in url:
            raise ActionError("silent.example.org did not answer within 5 seconds")
        _, found, status = url.partition("/status/")
        return int(status[:3]) if found else 200


WEB = Web()


def ports() -> list[PortDraft]:
    """Return the node's two ports."""
    return [
        PortDraft({"id": number, "uuid": uuid, "address": address, "extra": {}, "local_link_connection": {},
                   "pxe_enabled": True, "physical_network": None, "is_smartnic": False, "name": None})
        for number, (uuid, address) in enumerate(
            [(PORT_UUID, PXE_MAC), ("b0f9a2c4-6c0a-4f63-b0a4-28cf2b4b1c22", "52:54:00:12:00:01")], start=1)
    ]


def facts(node: dict[str, Any] | None = None, plugin_data: dict[str, Any] | None = None,
          inventory: dict[str, Any] | None = None, early: bool = False,
          previous: dict[str, Any] | None = None) -> rules.Facts:
    """Return facts; ``node`` and ``inventory`` are merged with the defaults, ``previous`` is a whole inventory."""
    values = copy.deepcopy({**NODE, **(node or {})})
    traits = values.pop("traits", ())
    task = None if early else Task(NodeDraft(values, traits), ports())
    if task is not None:
        task.begin_inspection((), lambda: copy.deepcopy(previous))
    data = copy.deepcopy(plugin_data or {})
    return rules.Facts(task, copy.deepcopy({**INVENTORY, **(inventory or {})}), data)


def of_reports() -> Iterator[rules.Facts]:
    """Yield the facts of this world, and those of each sample inventory, whose node has a port for each interface."""
    yield facts()
    for name in samples.inventory_names():
        data = samples.inventory(name)
        inventory = data.pop("inventory")
        task = Task(NodeDraft(copy.deepcopy(NODE)))
        for interface in inventory["interfaces"]:
            task.add_port(interface["mac_address"])
        yield rules.Facts(task, inventory, data)


def rule(*, uuid: str = "0d2f8a52-70f4-4f3b-8b4e-8f2f7d6f3a10", **values: Any) -> dict[str, Any]:
    """Return a rule, by default one that logs."""
    return {"uuid": uuid, "actions": [{"op": "log", "args": {"msg": "hi"}}], **values}


def run(*many: dict[str, Any], given: rules.Facts | None = None, phase: str = "main", explain: bool = False,
        **options: Any) -> list[rules.Trace]:
    """Compile and run rules."""
    given = facts() if given is None else given
    return rules.RuleSet(map(compiled, many), http_get=WEB.get, **options).run(phase, given, explain=explain)


def compiled(fields: dict[str, Any], **options: Any) -> rules.CompiledRule:
    """Return a rule, as a user writes it, compiled as if it were stored."""
    return rules.compile(rules.Rule.of(fields), **{"limits": LIMITS, **options})


def validate(fields: Any, **options: Any) -> list[rules.Problem]:
    """Return the problems of a rule, as a user writes it, if it may call the services of this world."""
    return rules.validate(fields, **{"limits": LIMITS, **options})


def vectors(folder: str) -> list[Any]:
    """Return ``(file stem, case)`` of every case in a folder of YAML vectors."""
    return [
        (path.stem, case)
        for path in sorted((VECTORS / folder).glob("*.yaml"))
        for case in yaml.load(path.read_text(encoding="utf-8"), LOADER)
    ]


def name_of(parameter: Any) -> str:
    """Return a test id for a vector."""
    stem, case = parameter
    return f"{stem}: {case['name']}"


def example(operation: Operation) -> dict[str, Any]:
    """Return the ``.. rule::`` example of an operator or action."""
    line, = (line for line in operation.doc.splitlines() if ".. rule::" in line)
    return dict(yaml.safe_load(line.partition(".. rule::")[2]))


def effects(given: rules.Facts) -> dict[str, Any]:
    """Return the effects of rules: the plugin data, changed node fields, traits, ports by id, and messages if any."""
    found: dict[str, Any] = {"plugin_data": given.plugin_data}
    if given.messages:
        found["messages"] = [[level, text.partition(": ")[2]] for level, text in given.messages]
    if given.task is not None:
        if changed := given.task.node.changes():
            found["node"] = changed
        traits = given.task.node.trait_changes()
        if traits is not None:
            found["traits"] = traits
        if updated := given.task.port_changes().updated:
            found["ports"] = updated
    return found


def patched(document: Any, operations: list[dict[str, Any]]) -> Any:
    """Return a document with a patch (RFC 6902) applied, by a library that did not make the patch."""
    return jsonpatch.JsonPatch(operations).apply(copy.deepcopy(document))
