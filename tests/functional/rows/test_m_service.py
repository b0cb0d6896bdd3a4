"""The ramdisk, authorization to send data, options, and existing data (M-61 to M-69, M-77 to M-79)."""

from __future__ import annotations

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from ironic_rules.api.routes import walk_routes
from ironic_rules.api.v1 import RootController
from ironic_rules.db import migration
from ironic_rules.inspection.hooks import loader
from ironic_rules.models import states
from tests.functional.clients import machines
from tests.functional.clients.test_ipa import agent
from tests.functional.installations import refusal, running, served
from tests.functional.rows import drivers, hooks, interfaces
from tests.functional.rows.conftest import create, finish, inspected, stored, waiting
from tests.functional.whole import Whole
from tests.modules import MODULES, PACKAGE, imports_of
from tests.unit.doc_extensions import extension

ROOT = Path(__file__).resolve().parents[3]
GIB = 1024 ** 3
TOKEN = {"callback_url": "http://192.0.2.9:9999", "agent_token": ""}


@pytest.mark.slow
def test_m_61_the_agent_as_it_is_delivers_its_data_and_goes_on(tmp_path):
    machine = machines.machine(6100)
    with served(tmp_path) as endpoint:
        machines.enrol(endpoint, "m-61", machine)
        machines.start_inspection(endpoint, "m-61")

        found = agent("lookup", endpoint, machine)["found"]
        result = agent("inspect", endpoint, machine)

        node = machines.wait_for_state(endpoint, "m-61", "manageable")
        inventory = machines.call(endpoint, "GET", "nodes/m-61/inventory")["inventory"]
    assert (found["node"]["uuid"], result["uuid"], node["last_error"]) == (machine.uuid, machine.uuid, None)
    assert result["replies"] == [{"uuid": machine.uuid}]
    assert inventory["memory"] == machine.inventory["memory"]


def beat(whole: Whole, uuid: str, token: str) -> int:
    return int(whole.app.post_json(f"/v1/heartbeat/{uuid}", {**TOKEN, "agent_token": token}).status_int)


def test_m_62_who_has_delivered_data_needs_no_lookup(whole):
    uuid, body = waiting(whole)

    with hooks.held(whole, lambda: whole.callback(uuid, body)) as reply:
        token = reply.json["config"]["agent_token"]
        assert reply.json["node"]["uuid"] == uuid
        assert reply.json["config"]["heartbeat_timeout"] == 300
        # The holder of the token gets the answer that the node is locked; other clients, that there is no node.
        assert (beat(whole, uuid, token), beat(whole, uuid, "x" * 43)) == (409, 404)
    whole.at_rest(uuid)
    assert beat(whole, uuid, token) == 404


@pytest.mark.parametrize("state", sorted(states.ALL - {"inspect wait"}))
def test_m_63_only_nodes_that_wait_for_inspection_tell_anything(whole, state):
    mac, body = whole.machine()
    uuid = whole.enroll()
    whole.app.post_json("/v1/ports", {"node_uuid": uuid, "address": mac})
    whole.put(uuid, provision_state=state)

    for query in ("", f"?node_uuid={uuid}"):
        reply = whole.app.post_json(f"/v1/continue_inspection{query}", body)
        assert (reply.status_int, uuid in reply.text) == (404, False)
    assert whole.row(uuid).agent_token_hash is None


def test_m_63_a_token_that_was_fetched_is_not_given_again(whole):
    uuid, body = waiting(whole)
    fetched = whole.app.get(f"/v1/lookup?node_uuid={uuid}").json["config"]["agent_token"]

    with hooks.held(whole, lambda: whole.callback(uuid, body)) as reply:
        assert reply.json["config"]["agent_token"] == "******"
    assert len(fetched) >= 32
    whole.at_rest(uuid)


def test_m_63_the_endpoints_of_ramdisks_can_be_turned_off(whole):
    uuid, body = waiting(whole)

    with whole.option("api", "enable_ramdisk_endpoints", False):
        replies = [whole.callback(uuid, body), whole.app.get(f"/v1/lookup?node_uuid={uuid}"),
                   whole.app.post_json(f"/v1/heartbeat/{uuid}", {**TOKEN, "agent_token": "x" * 43})]

    assert [reply.status_int for reply in replies] == [404] * 3
    assert whole.callback(uuid, body).status_int == 200
    whole.at_rest(uuid)


def test_m_64_neither_api_nor_conductor_has_the_filter_in_it(whole):
    users = {path.relative_to(PACKAGE).parts[0] for path in MODULES
             if any(name.startswith("ironic_rules.pxe_filter") for _, name in imports_of(path))}

    # Only modules that start processes may use it.
    assert users <= {"pxe_filter", "cmd", "service.py"}
    # No filter runs here.
    assert inspected(whole)["provision_state"] == "manageable"


def hooks_and_effects(folder: Path, text: str) -> tuple[list[str], set[str], int]:
    """Return the names of the hooks, and the properties and the number of the ports that an inspection makes."""
    with running(folder, f"[inspector]\n{text}") as whole:
        enabled = loader.load(loader.parse(whole.conf.inspector.hooks))
        node = inspected(whole, {"boot": {"current_boot_mode": "uefi"}, "memory": {"physical_mb": 1024}})
        ports = whole.app.get(f"/v1/nodes/{node['uuid']}/ports").json["ports"]
        return [name for name, _ in enabled], node["properties"].keys(), len(ports)


DEFAULT = ["ramdisk-error", "validate-interfaces", "ports", "architecture"]


def test_m_65_the_default_hooks_make_ports_and_set_cpu_arch_and_no_more(tmp_path, whole):
    node = inspected(whole)

    assert node["properties"].keys() == {"cpu_arch"}
    assert len(whole.app.get(f"/v1/nodes/{node['uuid']}/ports").json["ports"]) == 1
    assert (node["extra"], node["traits"], node["driver_info"], node["name"]) == ({}, [], {}, None)
    assert hooks_and_effects(tmp_path, "default_hooks = ramdisk-error,memory\n") == (
        ["ramdisk-error", "memory"], {"memory_mb"}, 0)


@pytest.mark.parametrize(("text", "expected"), [
    ("", (DEFAULT, {"cpu_arch"}, 1)),
    ("hooks = memory,$default_hooks,boot-mode,root-device\n",
     (["memory", *DEFAULT, "boot-mode", "root-device"], {"memory_mb", "cpu_arch", "capabilities", "local_gb"}, 1)),
    ("hooks = validate_interfaces, ports\n", (["validate-interfaces", "ports"], set(), 1)),
    ("hooks =\n", ([], set(), 0)),
])
def test_m_66_hooks_default_to_the_default_ones_and_can_surround_them(tmp_path, text, expected):
    assert hooks_and_effects(tmp_path, text) == expected


def ports_after(folder: Path, options: str) -> set[str]:
    """Inspect a node that has ports for ``eth0`` and ``gone``; return the names of the interfaces that have ports then.

    The machine booted from ``eth0``, which has no IP address; ``eth1`` has one, ``eth2`` has none.
    """
    with running(folder, f"[inspector]\n{options}") as whole:
        names = {whole.machine()[0]: name for name in ("eth0", "eth1", "eth2", "gone")}
        macs = {name: address for address, name in names.items()}
        uuid, body = whole.enroll("manageable"), whole.machine()[1]
        for name in ("eth0", "gone"):
            assert whole.app.post_json("/v1/ports", {"node_uuid": uuid, "address": macs[name]}).status_int == 201
        body["inventory"] |= {"boot": {"pxe_interface": "01-" + macs["eth0"].replace(":", "-")}, "interfaces": [
            {"name": name, "mac_address": macs[name], "ipv4_address": "192.0.2.1" if name == "eth1" else None}
            for name in ("eth0", "eth1", "eth2")]}
        assert whole.inspect(uuid, body)["last_error"] is None
        return {names[port["address"]] for port in whole.app.get(f"/v1/nodes/{uuid}/ports").json["ports"]}


@pytest.mark.parametrize(("value", "new"), [(None, {"eth1", "eth2"}), ("all", {"eth1", "eth2"}), ("active", {"eth1"}),
                                            ("pxe", set()), ("disabled", set())])
def test_m_67_add_ports_says_which_interfaces_become_ports_and_is_all_by_default(tmp_path, value, new):
    assert ports_after(tmp_path, f"add_ports = {value}\n" if value else "") == {"eth0", "gone"} | new


@pytest.mark.parametrize(("options", "left"), [
    ("", {"eth0", "eth1", "eth2", "gone"}), ("keep_ports = all\n", {"eth0", "eth1", "eth2", "gone"}),
    ("keep_ports = present\n", {"eth0", "eth1", "eth2"}),
    ("add_ports = active\nkeep_ports = present\n", {"eth0", "eth1"}),
    ("add_ports = active\nkeep_ports = added\n", {"eth1"}), ("add_ports = pxe\nkeep_ports = added\n", {"eth0"}),
])
def test_m_68_keep_ports_says_which_ports_stay_and_is_all_by_default(tmp_path, options, left):
    assert ports_after(tmp_path, options) == left


@pytest.mark.parametrize(("option", "value"), [("add_ports", "some"), ("keep_ports", "none")])
def test_m_68_another_value_of_either_option_stops_the_start(tmp_path, option, value):
    assert option in refusal(tmp_path, f"[inspector]\n{option} = {value}\n")


@pytest.mark.parametrize(("value", "local_gb"), [(None, 499), ("0", 500), ("1", 499), ("20", 480), ("true", 499),
                                                 ("false", 500)])
def test_m_69_local_gb_is_so_many_gib_less_than_the_disk(tmp_path, value, local_gb):
    option = f"disk_partitioning_spacing = {value}\n" if value else ""
    with running(tmp_path, f"[inspector]\nhooks = $default_hooks,root-device\n{option}") as whole:
        uuid, body = waiting(whole)
        body.pop("root_disk", None)
        body["inventory"]["disks"] = [{"name": "/dev/sda", "size": 500 * GIB}]

        assert finish(whole, uuid, body)["properties"]["local_gb"] == local_gb


@pytest.mark.parametrize("value", ["-1", "one", "1.5"])
def test_m_69_anything_but_whole_gib_stops_the_start(tmp_path, value):
    assert "disk_partitioning_spacing" in refusal(tmp_path, f"[inspector]\ndisk_partitioning_spacing = {value}\n")


def test_m_77_data_of_an_inspector_in_the_same_database_are_left_alone(tmp_path):
    old = ("11111111-1111-4111-8111-111111111111", 1, '{"memory_mb": 1}')

    def of_inspector(engine: sa.Engine) -> None:
        migration.upgrade(engine)  # a database that is not ours is refused
        with engine.begin() as conn:
            conn.exec_driver_sql("CREATE TABLE introspection_data (uuid VARCHAR(36), processed INTEGER, data TEXT)")
            conn.execute(sa.text("INSERT INTO introspection_data VALUES (:uuid, :processed, :data)"),
                         dict(zip(("uuid", "processed", "data"), old, strict=True)))

    with running(tmp_path, before=of_inspector) as whole:
        node = whole.enroll("manageable", uuid=old[0])
        assert whole.app.get(f"/v1/nodes/{node}/inventory").status_int == 404
        body = whole.machine()[1]
        assert whole.inspect(node, body)["provision_state"] == "manageable"
        assert stored(whole, node)["inventory"] == body["inventory"]
        with whole.db.reader() as conn:
            assert [tuple(row) for row in conn.exec_driver_sql("SELECT * FROM introspection_data")] == [old]


class Inspector(BaseHTTPRequestHandler):
    """The part of an Inspector that an inspect interface needs that passes data to one."""

    received: dict[str, Any]

    def do_POST(self) -> None:
        sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        type(self).received = {"path": self.path, **sent}
        answer = json.dumps({"uuid": "x", "processed": {"by": "Inspector"}}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def test_m_78_one_callback_serves_an_interface_that_hands_data_to_an_inspector_and_our_own(tmp_path):
    with (ThreadingHTTPServer(("127.0.0.1", 0), Inspector) as server,
          drivers.running(tmp_path, "supported_interfaces = ^(agent|inspector)$\n",
                          {"remote": interfaces.ProxiedHardware}, {"inspector": interfaces.Proxy}) as whole):
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            create(whole, {"op": "set-attribute", "args": ["/extra/rule", True]})
            where, body = {"inspector": f"http://127.0.0.1:{server.server_port}"}, whole.machine()[1]
            old = whole.inspect(whole.enroll(
                "manageable", driver="remote", inspect_interface="inspector", driver_info=where), body)
            new = whole.inspect(whole.enroll("manageable", driver="remote", inspect_interface="agent"),
                                whole.machine()[1])
        finally:
            server.shutdown()
            thread.join()

        received = Inspector.received
        assert (received["path"], received["inventory"]) == ("/v1/continue", body["inventory"])
        for node in (old, new):
            assert (node["provision_state"], node["last_error"], node["extra"]) == ("manageable", None, {"rule": True})
        assert stored(whole, old["uuid"])["inventory"] == body["inventory"]
        assert [stored(whole, node["uuid"])["plugin_data"].get("by") for node in (old, new)] == ["Inspector", None]


def test_m_78_an_interface_waits_for_an_inspector_that_answers_later(tmp_path):
    with (ThreadingHTTPServer(("127.0.0.1", 0), Inspector) as server,
          drivers.running(tmp_path, "supported_interfaces = ^(agent|inspector)$\n",
                          {"remote": interfaces.ProxiedHardware}, {"inspector": interfaces.SlowProxy}) as whole):
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            create(whole, {"op": "set-attribute", "args": ["/extra/by", "{plugin_data[by]}"]})
            where, body = {"inspector": f"http://127.0.0.1:{server.server_port}"}, whole.machine()[1]
            node = whole.enroll("manageable", driver="remote", inspect_interface="inspector", driver_info=where)
            assert whole.inspect(node, body)["provision_state"] == "inspect wait"
            assert Inspector.received["inventory"] == body["inventory"]
            assert whole.callback(node, {"inventory": body["inventory"], "by": "Inspector"}).status_int == 200
            row = whole.at_rest(node)
        finally:
            server.shutdown()
            thread.join()

        assert (row.provision_state, row.last_error, row.extra) == ("manageable", None, {"by": "Inspector"})
        assert stored(whole, node)["inventory"] == body["inventory"]


def plain(path: str) -> str:
    """Return a path without the names of its arguments, and without the brackets of optional ones."""
    return re.sub(r"[\[\]]", "", re.sub(r"{[^}]*}", "{}", path))


def test_m_79_the_api_reference_lists_every_endpoint():
    lines = extension("api_text").pages().splitlines()
    titles = {line.strip("`") for line in lines if re.fullmatch(r"``[A-Z]+ /\S*``", line)}

    endpoints = {plain(f"{route.method} {route.path}") for route in walk_routes(RootController())}
    assert {plain(title) for title in titles} == endpoints
    assert titles > {"POST /v1/continue_inspection", "GET /v1/nodes/{node}/inventory"}


def test_m_79_the_risk_of_every_endpoint_without_authentication_is_documented():
    page = (ROOT / "doc" / "source" / "admin" / "security.rst").read_text(encoding="utf-8")
    public = {re.sub("/{.*", "", route.path) for route in walk_routes(RootController())
              if route.controller.route.public}

    assert {"/v1/continue_inspection", "/v1/lookup", "/v1/heartbeat"} < public
    assert [path for path in public if f"``{path}``" not in page] == []
    risks = ("agent token", "*inspect wait*", "Without in-band inspection", "enable_ramdisk_endpoints")
    assert [risk for risk in risks if risk not in page] == []
