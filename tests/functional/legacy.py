"""Helpers of tests of legacy rules: rules, machines that are inspected several times, and a plug-in package."""

from __future__ import annotations

import contextlib
import copy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.functional.whole import Whole

RULES = "/v1/rules"
#: The example of the document, unchanged.
EXAMPLE: dict[str, Any] = {
    "conditions": [
        {"field": "inventory.disk.*.size", "op": "gt", "value": 4},
        {"field": "inventory.network.*.ipv4", "op": "net", "value": "192.0.2.0/24"},
        {"field": "memory_mb", "op": "ge", "value": 4096},
    ],
    "actions": [
        {"action": "set-capability", "name": "much-memory", "value": "wow"},
        {"action": "append-attribute", "key": "/extra/matched", "value": "much-memory"},
    ],
}


def rule(whole: Whole, *actions: dict[str, Any], conditions: Any = (), **fields: Any) -> str:
    """Create a rule and return its UUID."""
    reply = whole.app.post_json(RULES, {"conditions": list(conditions), "actions": list(actions), **fields})
    assert reply.status_int == 201, reply.text
    uuid: str = reply.json["uuid"]
    return uuid


def sets(path: str = "/extra/a", value: Any = 1, **more: Any) -> dict[str, Any]:
    """Return an action that sets an attribute."""
    return {"action": "set-attribute", "path": path, "value": value, **more}


def at_least(memory_mb: int) -> list[dict[str, Any]]:
    """Return conditions that hold for a machine with that memory."""
    return [{"field": "memory_mb", "op": "ge", "value": memory_mb}]


class Machine:
    """A node and what its ramdisk sends. ``fields`` are those of the node."""

    def __init__(self, whole: Whole, **fields: Any) -> None:
        self.whole = whole
        self.uuid = whole.enroll("manageable", **fields)
        self.body = whole.machine()[1]
        self.body["inventory"] |= {"disk": [{"size": 2}, {"size": 8}], "network": [{"ipv4": "192.0.2.77"}]}

    def report(self, memory_mb: int = 8192) -> dict[str, Any]:
        """Return what the ramdisk sends of a machine with that memory."""
        body = copy.deepcopy(self.body)
        body["inventory"]["memory"] = {"physical_mb": memory_mb, "total": memory_mb * 2**20}
        return body

    def inspect(self, memory_mb: int = 8192) -> dict[str, Any]:
        """Inspect the node with that memory, and return it."""
        return self.whole.inspect(self.uuid, self.report(memory_mb))

    def owned(self) -> list[tuple[str, Any]]:
        """Return the places and values that rules own."""
        values = self.whole.app.get(f"/v1/nodes/{self.uuid}/legacy_values").json["legacy_values"]
        return [(value["place"], value["written"]) for value in values]

    def events(self) -> list[str]:
        """Return the texts of the node's history."""
        return [event for _, event in self.whole.events(self.uuid)]


def capabilities(node: dict[str, Any]) -> set[str]:
    """Return the capabilities of a node as the API shows it."""
    return set(filter(None, node["properties"].get("capabilities", "").split(",")))


#: A package of conditions and actions for ironic-inspector.
PLUGINS = '''
CALLS = []


class Divides:
    REQUIRED_PARAMS = {"value"}

    def validate(self, params):
        if params.get("value") == 0:
            raise ValueError("0 divides nothing")

    def check(self, node_info, field, params):
        CALLS.append(("check", dict(params)))
        return field % params["value"] == 0


class Absent:
    ALLOW_NONE = True

    def validate(self, params):
        pass

    def check(self, node_info, field, params):
        return field is None


class Plain:
    def check(self, node_info, field, params):
        return field is not None


class Label:
    REQUIRED_PARAMS = {"label"}
    FORMATTED_PARAMS = ["label"]

    def apply(self, node_info, params, **kwargs):
        CALLS.append(("apply", dict(params)))
        node_info.update_properties(label=params["label"])

    def cleanup(self, node_info, params, **kwargs):
        CALLS.append(("cleanup", dict(params)))


class Bare:
    def apply(self, node_info, params):
        node_info.patch([{"op": "add", "path": "/extra/bare", "value": True}])

    def cleanup(self, node_info, params):
        pass
'''
_ENTRY_POINTS = """[ironic_inspector.rules.conditions]
divides = legacy_rule_plugins:Divides
absent = legacy_rule_plugins:Absent
plain = legacy_rule_plugins:Plain
unloadable = legacy_rule_plugins:Nothing

[ironic_inspector.rules.actions]
label = legacy_rule_plugins:Label
bare = legacy_rule_plugins:Bare
"""


@contextlib.contextmanager
def with_plugins(folder: Path) -> Iterator[None]:
    """Make a package with conditions and actions available to this process, as if pip had installed it."""
    (folder / "legacy_rule_plugins.py").write_text(PLUGINS)
    metadata = folder / "legacy_rule_plugins-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: legacy-rule-plugins\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(_ENTRY_POINTS)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        sys.modules.pop("legacy_rule_plugins", None)
