"""R-45 to R-58: the actions."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from ironic_rules.exceptions import RuleFailed
from ironic_rules.rules import ACTIONS
from tests.functional.clients import machines
from tests.functional.processes import standalone
from tests.functional.rows import packages
from tests.functional.rows.conftest import (
    LOG,
    RULES,
    create,
    effects,
    finish,
    inspected,
    patch,
    refusal,
    stored,
    waiting,
)
from tests.functional.whole import Whole, fault, running
from tests.walking import walking

MAC = "52:54:00:aa:00:01"
NODE_ACTIONS = {"set-attribute": ["/extra/a", 1], "extend-attribute": ["/extra/a", 1], "del-attribute": ["/extra/a"]}
PORT_ACTIONS = {"set-port-attribute": [MAC, "/extra/a", 1], "extend-port-attribute": [MAC, "/extra/a", 1],
                "del-port-attribute": [MAC, "/extra/a"]}
MORE_ACTIONS = {"set-capability": ["a", "b"], "unset-capability": ["a"], "add-trait": ["CUSTOM_A"],
                "remove-trait": ["CUSTOM_A"]}


def do(op: str, *args: Any, **more: Any) -> dict[str, Any]:
    """Return an action with its arguments as a list."""
    return {"op": op, "args": list(args), **more}


def did(result: dict[str, Any]) -> dict[str, Any]:
    """Return a node that was inspected without a failure."""
    assert (result["provision_state"], result["last_error"]) == ("manageable", None)
    return result


def reason(result: dict[str, Any]) -> str:
    """Return why the inspection of a node failed."""
    assert result["provision_state"] == "inspect failed"
    return str(result["last_error"])


RACK = """
from ironic_rules.rules import InspectionRuleActionBase


class Rack(InspectionRuleActionBase):
    formatted_params = ["name"]

    def __call__(self, task, rule, name, row=1):
        task.node.extra["rack"] = [name, row]
        task.node.save()
"""


def test_r_45_an_action_of_an_installed_package_is_accepted_and_runs(tmp_path, monkeypatch):
    site = packages.install(tmp_path / "site", "acme_actions", RACK,
                            {"ironic.inspection_rules.actions": {"acme-rack": "Rack"}})
    monkeypatch.setenv("PYTHONPATH", str(site))
    machine = machines.machine(4500)
    with standalone(tmp_path) as (_, endpoint):
        rule = {"actions": [{"op": "acme-rack", "args": {"name": "{inventory[cpu][architecture]}", "row": 7}}]}
        assert machines.call(endpoint, "POST", "inspection_rules", rule)["actions"] == rule["actions"]
        machines.enrol(endpoint, "racked", machine)
        machines.start_inspection(endpoint, "racked")
        machines.boot(endpoint, "racked", machine)
        node = machines.wait_for_state(endpoint, "racked", "manageable")

    assert node["extra"] == {"rack": ["x86_64", 7]}


def test_r_46_fail_ends_the_inspection_with_its_message_filled_in(whole):
    rule = create(whole, do("set-attribute", "/extra/a", 1), do("fail", "{inventory[hostname]} has no {{place}}"))

    node = inspected(whole, {"hostname": "intruder"})

    assert "intruder has no {place}" in reason(node)
    assert rule["uuid"] in node["last_error"]
    assert node["extra"] == {}


def test_r_46_fail_in_the_early_phase_turns_the_machine_away(whole, caplog):
    create(whole, do("fail", "{inventory[hostname]} is not ours"), phase="early")
    uuid, body = waiting(whole)
    body["inventory"]["hostname"] = "intruder"

    reply = whole.callback(uuid, body)

    assert reply.status_int == 404
    assert "intruder" not in reply.text
    assert "intruder is not ours" in caplog.text
    assert whole.show(uuid)["provision_state"] == "inspect wait"


@pytest.mark.parametrize("args", [["site.rack", "{inventory[memory]}"],
                                  {"path": "site.rack", "value": "{inventory[memory]}"}])
def test_r_47_set_plugin_data_stores_a_value_of_any_type(whole, args):
    action = {"op": "set-plugin-data", "args": args}

    rule = create(whole, action)
    node = did(inspected(whole, {"memory": {"physical_mb": 7}}, {"site": {"row": 1}}))

    assert rule["actions"] == [action]  # nothing is added to what the user sent
    assert whole.app.get(f"{RULES}/{rule['uuid']}").json["actions"] == [action]
    assert stored(whole, node["uuid"])["plugin_data"]["site"] == {"row": 1, "rack": {"physical_mb": 7}}


@pytest.mark.parametrize("unique", [["vlans", 7, True], {"path": "vlans", "value": 7, "unique": True}])
def test_r_48_extend_plugin_data_appends_and_unique_skips_what_is_there(whole, unique):
    create(whole, do("extend-plugin-data", "vlans", 7), do("extend-plugin-data", "vlans", 7),
           {"op": "extend-plugin-data", "args": unique},
           do("extend-plugin-data", "seen.hosts", "{inventory[hostname]}"))

    node = did(inspected(whole, {"hostname": "web"}, {"vlans": [3]}))

    data = stored(whole, node["uuid"])["plugin_data"]
    assert (data["vlans"], data["seen"]) == ([3, 7, 7], {"hosts": ["web"]})


def test_r_48_what_is_not_a_list_can_not_be_extended(whole):
    create(whole, do("extend-plugin-data", "site", 1))

    assert "/actions/0" in reason(inspected(whole, plugin_data={"site": "text"}))


def test_r_49_unset_plugin_data_removes_exactly_what_is_named(whole):
    create(whole, do("unset-plugin-data", "site.rack"), do("unset-plugin-data", "only"),
           do("unset-plugin-data", "not.there"))

    node = did(inspected(whole, plugin_data={"site": {"rack": 1}, "only": {"a": 1}}))

    data = stored(whole, node["uuid"])["plugin_data"]
    assert data["site"] == {}  # an object that has become empty is still one
    assert "only" not in data
    assert "not" not in data
    assert effects(do("unset-plugin-data", "a"), plugin_data={"a": 1})["plugin_data"] == {}


@pytest.mark.parametrize("level", ["critical", "error", "warning", "info", "debug"])
def test_r_50_log_writes_to_the_log_of_the_service(whole, caplog, level):
    caplog.set_level(logging.DEBUG, "ironic_rules")
    rule = create(whole, do("log", "found {inventory[hostname]}", level), do("log", "at the default level"))

    did(inspected(whole, {"hostname": "web\nforged line"}))

    said = {record.getMessage().partition(rule["uuid"])[2]: record.levelname for record in caplog.records
            if rule["uuid"] in record.getMessage() and "forged" in record.getMessage() + "forged"}
    assert said[": found web\\nforged line"] == level.upper()
    assert said[": at the default level"] == "INFO"


def test_r_50_a_level_that_does_not_exist_is_refused_when_the_rule_is_created(whole):
    assert "/actions/0/args/1: " in refusal(whole, do("log", "hello", "loud"))
    assert "/actions/1/args/level: " in refusal(whole, LOG, {"op": "log", "args": {"msg": "hello", "level": "loud"}})


def test_r_51_set_attribute_follows_the_paths_of_a_json_patch(whole):
    create(whole, do("set-attribute", "/extra/deep/er", "{inventory[memory]}"),
           do("set-attribute", "/extra/a~1b~0c", True), do("set-attribute", "/extra/list", ["x", "y"]),
           do("set-attribute", "/extra/list/0", "{inventory[hostname]}"), do("set-attribute", "/extra/list/-", 3),
           do("set-attribute", "/resource_class", "baremetal.{inventory[cpu][architecture]}"),
           do("set-attribute", "/traits", ["CUSTOM_A"]), do("set-attribute", "/description", None))

    node = did(inspected(whole, {"hostname": "web", "memory": {"physical_mb": 7}}, description="old"))

    assert node["extra"] == {"deep": {"er": {"physical_mb": 7}}, "a/b~c": True, "list": ["web", "y", 3]}
    assert (node["resource_class"], node["traits"], node["description"]) == ("baremetal.x86_64", ["CUSTOM_A"], None)


@walking("path", [
    "/id", "/uuid", "/provision_state", "/target_provision_state", "/power_state", "/reservation", "/last_error",
    "/instance_uuid", "/created_at", "/auto_discovered", "/driver_internal_info/agent_secret_token", "/no_such_field"])
def test_r_51_a_field_that_belongs_to_the_service_is_refused_when_the_rule_is_created(whole, path):
    assert "/actions/0/args/0: a rule cannot write this field" in refusal(whole, do("set-attribute", path, "x"))


def test_r_51_a_protected_field_that_only_the_data_name_fails_the_rule(whole):
    create(whole, do("set-attribute", "/{plugin_data[field]}", "active"))

    assert "a rule cannot write this field" in reason(inspected(whole, plugin_data={"field": "provision_state"}))


def test_r_51_a_new_driver_brings_its_own_interfaces(whole):
    create(whole, do("set-attribute", "/driver", "faulty-hardware"))

    node = did(inspected(whole))

    assert (node["driver"], node["power_interface"], node["deploy_interface"]) == (
        "faulty-hardware", "faulty", "faulty")


def test_r_52_extend_attribute_appends_and_unique_skips_what_is_there(whole):
    create(whole, do("extend-attribute", "/extra/hosts", "{inventory[hostname]}"),
           do("extend-attribute", "/extra/hosts", "{inventory[hostname]}"),
           {"op": "extend-attribute", "args": {"path": "/extra/hosts", "value": "web", "unique": True}},
           do("extend-attribute", "/extra/new", "{item}", True, loop=[1, 2, 1]),
           do("extend-attribute", "/traits", "CUSTOM_B"))

    node = did(inspected(whole, {"hostname": "web"}, extra={"hosts": ["old"]}))

    assert node["extra"] == {"hosts": ["old", "web", "web"], "new": [1, 2]}
    assert node["traits"] == ["CUSTOM_B"]


def test_r_53_removing_a_missing_sub_key_is_no_error(whole):
    create(whole, do("del-attribute", "/extra/missing"), do("del-attribute", "/extra/missing/deeper"),
           do("del-attribute", "/properties/capabilities"), do("del-attribute", "/extra/old"),
           do("del-attribute", "/extra/list/0"), do("del-attribute", "/description"))

    node = did(inspected(whole, extra={"old": 1, "list": [1, 2], "kept": 3}, description="old"))

    assert (node["extra"], node["description"]) == ({"list": [2], "kept": 3}, None)


def test_r_53_removing_an_attribute_that_no_node_has_is_an_error(whole):
    assert "/actions/0/args/0: " in refusal(whole, do("del-attribute", "/no_such_field"))
    with pytest.raises(RuleFailed, match="a rule cannot write this field"):
        effects(do("del-attribute", "/{inventory[hostname]}"))


def ports_of(whole: Whole, node: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the ports of a node by their MAC addresses."""
    found = whole.app.get(f"/v1/ports/detail?node={node['uuid']}").json["ports"]
    return {port["address"]: port for port in found}


def with_port(whole: Whole, **fields: Any) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Return a node in INSPECT WAIT that has a port, the report of its ramdisk, and the port."""
    uuid, body = waiting(whole)
    mac = body["inventory"]["interfaces"][0]["mac_address"]
    reply = whole.app.post_json("/v1/ports", {"node_uuid": uuid, "address": mac, **fields})
    assert reply.status_int == 201, reply.text
    return uuid, body, reply.json


@pytest.mark.parametrize("form", ["address", "ADDRESS", "uuid"])
def test_r_54_set_port_attribute_finds_the_port_by_mac_address_or_uuid(whole, form):
    uuid, body, port = with_port(whole)
    ident = port["uuid"] if form == "uuid" else port["address"]
    create(whole, do("set-port-attribute", ident.upper() if form.isupper() else ident, "/extra/switch",
                     "{inventory[hostname]}"), do("set-port-attribute", ident, "/physical_network", "net-1"))
    body["inventory"]["hostname"] = "web"

    node = did(finish(whole, uuid, body))

    changed = ports_of(whole, node)[port["address"]]
    assert changed["uuid"] == port["uuid"]
    assert (changed["extra"], changed["physical_network"]) == ({"switch": "web"}, "net-1")


def test_r_54_a_port_that_this_inspection_creates_is_found_too(whole):
    create(whole, do("set-port-attribute", "{item[mac_address]}", "/extra/name", "{item[name]}",
                     loop="{inventory[interfaces]}"))

    port, = ports_of(whole, did(inspected(whole))).values()

    assert port["extra"] == {"name": "eth0"}


def test_r_54_a_port_of_another_node_is_out_of_reach(whole):
    _, _, port = with_port(whole)
    create(whole, do("set-port-attribute", port["address"], "/extra/a", 1))

    assert "the node has no port" in reason(inspected(whole))
    assert whole.app.get(f"/v1/ports/{port['uuid']}").json["extra"] == {}


def test_r_55_extend_port_attribute_appends_and_unique_skips_what_is_there(whole):
    uuid, body, port = with_port(whole, extra={"vlans": [3]})
    create(whole, do("extend-port-attribute", port["address"], "/extra/vlans", 7),
           do("extend-port-attribute", port["uuid"], "/extra/vlans", 7),
           {"op": "extend-port-attribute",
            "args": {"port_id": port["address"], "path": "/extra/vlans", "value": 7, "unique": True}},
           do("extend-port-attribute", port["uuid"], "/extra/hosts", "{inventory[hostname]}", True))
    body["inventory"]["hostname"] = "web"

    node = did(finish(whole, uuid, body))

    assert ports_of(whole, node)[port["address"]]["extra"] == {"vlans": [3, 7, 7], "hosts": ["web"]}


def test_r_56_del_port_attribute_removes_by_mac_address_or_uuid(whole):
    uuid, body, port = with_port(whole, extra={"a": 1, "b": 2, "c": 3}, physical_network="net-1")
    create(whole, do("del-port-attribute", port["address"], "/extra/a"),
           do("del-port-attribute", port["uuid"], "/extra/b"), do("del-port-attribute", port["uuid"], "/extra/none"),
           do("del-port-attribute", port["address"], "/physical_network"))

    node = did(finish(whole, uuid, body))

    changed = ports_of(whole, node)[port["address"]]
    assert (changed["extra"], changed["physical_network"]) == ({"c": 3}, None)


@walking("op", sorted(NODE_ACTIONS | PORT_ACTIONS | MORE_ACTIONS))
def test_r_57_what_needs_a_node_is_refused_in_the_early_phase(whole, op):
    action = do(op, *(NODE_ACTIONS | PORT_ACTIONS | MORE_ACTIONS)[op])
    rule = create(whole, LOG, action)

    assert "/actions/1/op: not available in the early phase" in refusal(whole, LOG, action, phase="early")
    reply = patch(whole, rule, {"op": "replace", "path": "/phase", "value": "early"})
    assert (reply.status_int, "/actions/1/op" in fault(reply)) == (400, True)
    assert whole.app.get(f"{RULES}/{rule['uuid']}").json["phase"] == "main"


def test_r_57_every_other_action_works_in_the_early_phase(whole):
    early = {plugin.name for plugin in ACTIONS if plugin.early}

    assert early >= {"fail", "log", "set-plugin-data", "extend-plugin-data", "unset-plugin-data"}
    assert not early & set(NODE_ACTIONS | PORT_ACTIONS | MORE_ACTIONS)
    create(whole, do("set-plugin-data", "a", "{inventory[hostname]}"), do("extend-plugin-data", "b", 1),
           do("unset-plugin-data", "c"), do("log", "{plugin_data[a]}"), phase="early")
    node = did(inspected(whole, {"hostname": "web"}, {"c": 1}))
    data = stored(whole, node["uuid"])["plugin_data"]
    assert (data["a"], data["b"], "c" in data) == ("web", [1], False)


def test_r_58_capabilities_are_set_and_unset_one_by_one(whole):
    create(whole, do("set-capability", "boot_mode", "uefi"), do("set-capability", "cores", "{inventory[cpu][count]}"),
           do("unset-capability", "old"), do("unset-capability", "missing"))

    node = did(inspected(whole, {"cpu": {"architecture": "x86_64", "count": 8}},
                         properties={"capabilities": "old:1,boot_mode:bios,kept:yes"}))

    assert dict(pair.split(":") for pair in node["properties"]["capabilities"].split(",")) == {
        "boot_mode": "uefi", "kept": "yes", "cores": "8"}


def test_r_58_traits_are_added_and_removed_one_by_one(whole):
    create(whole, do("add-trait", "CUSTOM_{inventory[cpu][count]}_CPUS"), do("add-trait", "HW_CPU_X86_AVX2"),
           do("remove-trait", "CUSTOM_OLD"), do("remove-trait", "CUSTOM_MISSING"))
    uuid, body = waiting(whole)
    assert whole.app.put_json(f"/v1/nodes/{uuid}/traits", {"traits": ["CUSTOM_OLD", "CUSTOM_KEPT"]}).status_int == 204
    body["inventory"]["cpu"] = {"architecture": "x86_64", "count": 8}

    node = did(finish(whole, uuid, body))

    assert node["traits"] == ["CUSTOM_8_CPUS", "CUSTOM_KEPT", "HW_CPU_X86_AVX2"]
    assert "/actions/0/args/0" in refusal(whole, do("add-trait", "not a trait"))


@pytest.fixture
def asset_service() -> Iterator[tuple[str, list[str]]]:
    """An HTTP service on a separate port: its address, and the requested paths."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield f"127.0.0.1:{server.server_port}", asked
        server.shutdown()
        thread.join()


def test_r_58_api_call_asks_the_services_that_the_operator_allows_and_no_other(tmp_path, asset_service):
    host, asked = asset_service
    call = do("api-call", f"http://{host}/assets/{{inventory[hostname]}}")
    with running(tmp_path, f"api_call_allowed_hosts = {host}\n") as whole:
        create(whole, call)
        did(inspected(whole, {"hostname": "web"}))
        assert "/actions/0/args/0" in refusal(whole, do("api-call", "http://192.0.2.1/assets"))
    assert asked == ["/assets/web"]
    with running(tmp_path) as whole:
        assert "/actions/0/args/0: api-call is disabled" in refusal(whole, call)
