"""Tasks for tests: a node under inspection with the data of the tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ironic_rules.models.draft import NodeDraft, PortDraft
from ironic_rules.models.task import Task

UUID = "11111111-2222-4333-8444-555555555555"
_NODE: dict[str, Any] = {
    "id": 1, "uuid": UUID, "name": None, "driver": "fake-hardware", "driver_info": {}, "driver_internal_info": {},
    "properties": {}, "instance_info": {}, "extra": {}, "resource_class": None, "power_state": "power off",
    "provision_state": "inspecting", "target_provision_state": "manageable",
    "inspect_interface": "agent", "boot_interface": "fake", "power_interface": "fake",
    "management_interface": "fake", "agent_token_hash": None, "disable_power_off": False, "inspection_scope": None,
    "auto_discovered": False, "boot_mode": None, "network_data": {},
}
_PORT: dict[str, Any] = {
    "pxe_enabled": True, "extra": {}, "local_link_connection": {}, "physical_network": None, "is_smartnic": False,
    "name": None, "internal_info": {}, "node_id": 1,
}


def make_task(node: Mapping[str, Any] | None = None, ports: Iterable[Mapping[str, Any]] = (),
              foreign: Iterable[str] = (), port_groups: Iterable[Mapping[str, Any]] = ()) -> Task:
    """Return a task of a node with the given values and ports; ``foreign`` are other nodes' MAC addresses."""
    drafts = [
        PortDraft({**_PORT, "id": number, "uuid": f"00000000-0000-4000-8000-{number:012}", **values})
        for number, values in enumerate(ports, 1)
    ]
    task = Task(NodeDraft({**_NODE, **(node or {})}), drafts, port_groups)
    task.begin_inspection(set(foreign), lambda: None)
    return task
