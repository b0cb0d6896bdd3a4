"""The data that legacy rules read: ironic-inspector's names, whichever hooks are enabled."""

from __future__ import annotations

import copy
from typing import Any

from ironic_rules.inspection.hooks.disks import RootDeviceHook
from ironic_rules.inspection.hooks.validate_interfaces import ValidateInterfacesHook
from ironic_rules.inspection.pipeline import legacy_data
from tests.unit.legacy.test_field_rules import MACHINE, data_of
from tests.unit.legacy.world import Machine


def test_the_names_of_ironic_inspector() -> None:
    data = data_of(Machine())
    names = ("memory_mb", "cpus", "cpu_arch", "local_gb", "ipmi_address", "ipmi_v6address", "boot_interface", "macs")
    assert {name: data[name] for name in names} == {
        "memory_mb": 65536, "cpus": 16, "cpu_arch": "x86_64", "local_gb": 446, "ipmi_address": "10.0.0.5",
        "ipmi_v6address": "2001:db8::5", "boot_interface": "52:54:00:00:00:01",
        "macs": ["52:54:00:00:00:03", "52:54:00:00:00:01", "52:54:00:00:00:02"]}
    assert data["root_disk"]["serial"] == "S1"
    assert data["extra"]["cpu"]["physical"]["number"] == 2
    assert data["inventory"] == MACHINE["inventory"]
    boot = data["interfaces"]["eno1"]
    assert {name: boot[name] for name in ("mac", "ip", "pxe", "client_id")} == {
        "mac": "52:54:00:00:00:01", "ip": "192.0.2.10", "pxe": True, "client_id": None}
    assert boot["lldp_processed"]["switch_port_description"] == "rack1-u7"
    assert "lldp_processed" not in data["all_interfaces"]["eno2"]
    assert "auto_discovered" not in data
    assert data_of(Machine({"auto_discovered": True}))["auto_discovered"] is True


def test_loopback_is_no_valid_interface() -> None:
    interfaces = [*MACHINE["inventory"]["interfaces"], {"name": "lo", "mac_address": "52:54:00:00:00:09"}]
    data = data_of(Machine(), {"inventory": {"interfaces": interfaces}})
    assert set(data["all_interfaces"]) - set(data["interfaces"]) == {"lo"}


def test_results_of_enabled_hooks_are_used_and_nothing_is_changed() -> None:
    task = Machine().task()
    inventory, plugin_data = copy.deepcopy(MACHINE["inventory"]), copy.deepcopy(MACHINE["plugin_data"])
    ValidateInterfacesHook().preprocess(task, inventory, plugin_data)
    RootDeviceHook()(task, inventory, plugin_data)
    plugin_data["local_gb"] = 7
    before = copy.deepcopy((inventory, plugin_data, task.node.read(), task.messages))
    data = legacy_data(task, inventory, plugin_data)

    assert data["local_gb"] == 7
    assert data["all_interfaces"] == data_of(Machine())["all_interfaces"]
    assert (inventory, plugin_data, task.node.read(), task.messages) == before


def test_what_a_hook_would_fail_at_is_missing() -> None:
    report: dict[str, Any] = {"interfaces": "none", "disks": 7, "cpu": [], "memory": None, "boot": "x",
                              "bmc_address": "0.0.0.0"}
    data = legacy_data(Machine().task(), report, {"lldp_raw": 3, "data": {}, "auto_discovered": True})
    assert set(data) <= {"inventory", "lldp_raw", "data", "parsed_lldp", "all_interfaces", "valid_interfaces",
                         "interfaces", "macs"}
    assert data["all_interfaces"] == {}
