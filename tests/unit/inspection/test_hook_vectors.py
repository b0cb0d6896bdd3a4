"""Every hook's vectors: data in, drafts and plugin data out."""

from __future__ import annotations

from importlib import metadata
from typing import Any

import pytest

from ironic_rules.exceptions import HookFailed
from ironic_rules.inspection.hook_settings import HookSettings
from ironic_rules.inspection.hooks import loader
from ironic_rules.inspection.pipeline import Outcome, Pipeline
from ironic_rules.models.task import Task
from tests.unit.inspection.tasks import make_task
from tests.unit.rules import world
from tests.walking import walking

#: the hooks of this project, by their entry points
HOOKS = {point.name: point for point in metadata.distribution("ironic-rules").entry_points.select(group=loader.GROUP)}
CASES = world.vectors("hooks")
CLASSES = {hook: HOOKS[hook].load() for hook, _ in CASES}


def vectors(failing: bool) -> list[tuple[str, str, dict[str, Any]]]:
    """Return name, hook and case of each vector with, or without, an ``error``."""
    return [(world.name_of(vector), *vector) for vector in CASES if ("error" in vector[1]) == failing]


def run(hook: str, case: dict[str, Any]) -> tuple[Task, Outcome]:
    """Run a hook, and before it its dependencies and those that the case names in ``before``."""
    settings = HookSettings(**case.get("settings", {}))
    task = make_task(case.get("node"), case.get("ports", ()), case.get("foreign", ()),
                     case.get("port_groups", ()))
    task.begin_inspection(task.foreign_addresses, lambda: case.get("previous"))
    names = dict.fromkeys([*CLASSES[hook].dependencies, *case.get("before", ()), hook])
    hooks = loader.load(names, settings, CLASSES)
    return task, Pipeline(hooks, settings).run(task, case.get("inventory", {}), case.get("plugin_data", {}))


def subset(actual: dict[str, Any], expected: dict[str, Any]) -> dict[str, Any]:
    return {key: actual.get(key) for key in expected}


@walking("name, hook, case", vectors(failing=False))
def test_a_hook_does_what_its_vector_says(name, hook, case):
    task, outcome = run(hook, case)

    expect, changes = case["expect"], task.port_changes()
    ports = {port.address: port.read() for port in task.ports}
    interfaces = outcome.plugin_data.get("valid_interfaces", {})
    actual = {
        "node": task.node.changes(),
        "ports": {address: subset(ports[address], expect.get("ports", {}).get(address, {})) for address in ports},
        "plugin_data": subset(outcome.plugin_data, expect.get("plugin_data", {})),
        "absent": [key for key in expect.get("absent", ()) if key not in outcome.plugin_data],
        "is_added": {card: interface.get("is_added") for card, interface in interfaces.items()},
        "created": len(changes.created), "updated": len(changes.updated), "deleted": len(changes.deleted),
        "messages": len(outcome.messages),
    }
    texts = [text for _, text in outcome.messages]
    wanted = {**expect, "messages": len(expect["messages"])} if "messages" in expect else expect
    assert subset(actual, wanted) == wanted
    assert [part for part, text in zip(expect.get("messages", ()), texts, strict=False) if part not in text] == []


@walking("name, hook, case", vectors(failing=True))
def test_a_hook_fails_as_its_vector_says(name, hook, case):
    with pytest.raises(HookFailed) as caught:
        run(hook, case)

    assert case["error"] in str(caught.value)


def test_every_hook_has_vectors():
    assert HOOKS.keys() - {hook for hook, _ in CASES} == set()


def test_a_long_ramdisk_error_is_cut():
    case = {"plugin_data": {"error": "x" * 100_000}}

    with pytest.raises(HookFailed, match=r"\(97952 more characters\)") as caught:
        run("ramdisk-error", case)

    assert len(str(caught.value)) < 2200


def test_the_inventory_is_not_touched():
    sent = {"interfaces": [{"name": "eth0", "mac_address": "52:54:00:3A:BC:01", "lldp": [[1, "04"]]}]}

    _, outcome = run("ports", {"inventory": sent})
    outcome.plugin_data["all_interfaces"]["eth0"]["lldp"].append("x")

    assert sent == {"interfaces": [{"name": "eth0", "mac_address": "52:54:00:3A:BC:01", "lldp": [[1, "04"]]}]}
