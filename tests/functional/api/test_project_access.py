"""The access of callers in a project to the nodes that it owns or leases, and with runbooks."""

from __future__ import annotations

from typing import Any

import pytest

from ironic_rules.api.routes import find
from ironic_rules.api.v1 import RootController
from ironic_rules.db import facts, portgroups, ports
from ironic_rules.db.tables import nodes as table
from ironic_rules.models.facts import FactValue
from ironic_rules.policies import by_name
from tests.functional.api import test_auth
from tests.functional.api.conftest import Client
from tests.functional.api.routes import ROUTES
from tests.functional.api.tables import contents
from tests.functional.api.test_auth import keystone  # noqa: F401  (a fixture)
from tests.walking import walking

#: Project of tokens without a scope in ``test_auth``.
PROJECT = test_auth.SCOPES[""]["HTTP_X_PROJECT_ID"]
#: Keystone's implied roles.
ADMIN, MANAGER, MEMBER, READER = "admin,manager,member,reader", "manager,member,reader", "member,reader", "reader"
ROLES = (ADMIN, MANAGER, MEMBER, READER, "service")
NODE = "11111111-1111-4111-8111-111111111111"
PORT = "22222222-2222-4222-8222-222222222222"


def change(path: str, value: Any = "x", op: str = "add") -> list[dict[str, Any]]:
    return [{"op": op, "path": path, "value": value}]


#: Requests, and who may send them: roles of the owner's project, roles of the lessee's. Numbers: of ROLES[:4], so many;
#: ``s``: a service of the project, too.
ASKED = [
    ("GET", f"/v1/nodes/{NODE}", None, "4s", "4"), ("GET", f"/v1/nodes/{NODE}/states", None, "4s", "4"),
    ("GET", f"/v1/nodes/{NODE}/history", None, "4s", ""), ("GET", f"/v1/nodes/{NODE}/traits", None, "4s", "4"),
    ("GET", f"/v1/nodes/{NODE}/ports", None, "4s", "4"), ("GET", f"/v1/ports/{PORT}", None, "4s", "4"),
    ("GET", f"/v1/nodes/{NODE}/volume/targets", None, "4s", "4"),
    ("GET", f"/v1/nodes/{NODE}/management/boot_device", None, "2s", ""),
    ("PATCH", f"/v1/nodes/{NODE}", change("/extra/a"), "3", "3"),
    ("PATCH", f"/v1/nodes/{NODE}", change("/description"), "3", "3"),
    ("PATCH", f"/v1/nodes/{NODE}", change("/driver_info/a"), "3s", ""),
    ("PATCH", f"/v1/nodes/{NODE}", change("/instance_info/a"), "3s", "2"),
    ("PATCH", f"/v1/nodes/{NODE}", change("/lessee", PROJECT), "3s", ""),
    ("PATCH", f"/v1/nodes/{NODE}", change("/owner"), "", ""),
    ("PATCH", f"/v1/nodes/{NODE}", [{"op": "move", "path": "/extra/a", "from": "/owner"}], "", ""),
    ("PATCH", f"/v1/nodes/{NODE}", change("/automated_clean", False), "", ""),
    ("PATCH", f"/v1/nodes/{NODE}", [{"op": "copy", "path": "/automated_clean", "from": "/retired"}], "", ""),
    ("PATCH", f"/v1/nodes/{NODE}", change("/automated_clean", True), "3", "3"),
    ("PATCH", f"/v1/nodes/{NODE}", change("/automated_clean", "yes"), "3", "3"),
    ("PATCH", f"/v1/nodes/{NODE}", change("/maintenance", True), "3s", "2"),
    ("PATCH", f"/v1/nodes/{NODE}", change("/maintenance", "false"), "3s", "2"),
    ("PATCH", f"/v1/nodes/{NODE}", [{"op": "remove", "path": "/maintenance"}], "3s", "2"),
    ("PATCH", f"/v1/nodes/{NODE}", [{"op": "copy", "path": "/maintenance", "from": "/retired"}], "3s", "2"),
    ("PATCH", f"/v1/nodes/{NODE}", change("/inspection_scope"), "3s", ""),
    ("PATCH", f"/v1/nodes/{NODE}", change("/power_interface", "fake"), "2s", ""),
    ("PATCH", f"/v1/nodes/{NODE}", change("/shard"), "", ""),
    ("PUT", f"/v1/nodes/{NODE}/states/power", {"target": "power on"}, "3", "3"),
    ("PUT", f"/v1/nodes/{NODE}/states/provision", {"target": "inspect"}, "3s", "2"),
    ("PUT", f"/v1/nodes/{NODE}/maintenance", {}, "3s", "2"),
    ("PUT", f"/v1/nodes/{NODE}/traits/CUSTOM_A", None, "2s", ""),
    ("POST", "/v1/ports", {"node_uuid": NODE, "address": "52:54:00:00:00:09"}, "2s", ""),
    ("PATCH", f"/v1/ports/{PORT}", change("/extra/a"), "2s", ""),
    ("POST", "/v1/volume/targets", {"node_uuid": NODE, "volume_type": "iscsi", "boot_index": 0, "volume_id": "v"},
     "2s", "2"),
    ("DELETE", f"/v1/ports/{PORT}", None, "2s", ""), ("DELETE", f"/v1/nodes/{NODE}", None, "1", ""),
]


def send(client: Client, token: str, method: str, path: str, body: Any = None) -> Any:
    given = {} if body is None else {"params": body}
    call = getattr(client, f"{method.lower()}{'' if body is None else '_json'}")
    return call(path, headers={"X-Auth-Token": token}, expect_errors=True, **given)


@walking("method, path, body, owners, lessees", ASKED, between="start_empty")
def test_a_role_in_the_project_of_a_node_may_what_ironic_lets_it(
        keystone, db, make_node, method, path, body, owners, lessees):  # noqa: F811
    for relation, allowed in (("owner", owners), ("lessee", lessees), ("", "")):
        for number, role in enumerate(ROLES):
            with db.writer() as conn:
                conn.execute(table.delete())
            # No value of a field in a project, so that each is what the relation makes of it.
            node = make_node(uuid=NODE, provision_state="manageable", **({relation: PROJECT} if relation else {}))
            with db.writer() as conn:
                ports.create(conn, {"uuid": PORT, "node_id": node.id, "address": "52:54:00:00:00:01"})

            reply = send(keystone, role, method, path, body)

            may = "s" in allowed if role == "service" else str(number + 1) <= allowed[:1]
            sees = relation == "owner" or (relation == "lessee" and role != "service")
            expected = range(200, 300) if may else [403] if sees else [400, 404] if method == "POST" else [404]
            assert reply.status_int in expected, (relation, role, reply.text)


def test_lists_have_what_the_project_owns_or_leases_and_hide_from_lessees_what_is_the_owners(
        keystone, db, make_node):  # noqa: F811
    made = {name: make_node(name=name, driver_info={"a": "b"}, last_error="e", **relation) for name, relation in {
        "owned": {"owner": PROJECT}, "leased": {"lessee": PROJECT, "owner": "p"}, "foreign": {"owner": "p"},
        "nobodys": {}}.items()}
    with db.writer() as conn:
        for number, node in enumerate(made.values()):
            ports.create(conn, {"node_id": node.id, "address": f"52:54:00:00:00:0{number}"})

    shown = send(keystone, READER, "GET", "/v1/nodes/detail").json["nodes"]

    assert [(node["name"], node["driver_info"] == {"a": "b"}, node["last_error"] == "e") for node in shown] == [
        ("owned", True, True), ("leased", False, False)]
    assert "requires baremetal:node:get:last_error" in shown[1]["last_error"]
    assert "driver_info" not in send(keystone, READER, "GET", "/v1/nodes?fields=name").json["nodes"][1]
    assert "requires" in send(keystone, READER, "GET", f"/v1/nodes/{made['leased'].uuid}/states").json["last_error"]
    assert len(send(keystone, READER, "GET", "/v1/ports").json["ports"]) == 2
    assert len(send(keystone, READER, "GET", f"/v1/nodes?project={PROJECT}").json["nodes"]) == 2
    assert send(keystone, READER, "GET", "/v1/nodes?project=p").status_int == 403
    assert send(keystone, READER, "GET", "/v1/node_states").status_int == 403
    assert len(send(keystone, "system:reader", "GET", "/v1/nodes").json["nodes"]) == 4
    # The owner is a condition of the list's own statement, and only for those who are confined.
    assert send(keystone, READER, "GET", "/v1/nodes?limit=1").json["next"].endswith(made["owned"].uuid)


def test_facts_are_those_of_the_nodes_that_the_project_owns(keystone, db, make_node):  # noqa: F811
    made = [make_node(name=name, **relation) for name, relation in (
        ("owned", {"owner": PROJECT}), ("leased", {"lessee": PROJECT, "owner": "p"}), ("foreign", {"owner": "p"}))]
    with db.writer() as conn:
        fact = facts.create(conn, {"name": "rack", "value": "{plugin_data[rack]}"})
        for node in made:
            facts.save(conn, node.id, {fact.id: facts.Found(FactValue("text", (node.name,)), "odd", fact.defined)}, "1",
                       fact.revision, {})
            facts.add_changes(conn, node.id, [facts.Change(fact.id, None, node.name)], None)

    def seen(token: str) -> list[Any]:
        changed = send(keystone, token, "GET", "/v1/fact_changes?sort_dir=asc").json["fact_changes"]
        one, = send(keystone, token, "GET", "/v1/facts?fields=problems").json["facts"]
        return [[row["after"] for row in changed], one["problems"],
                len(send(keystone, token, "GET", "/v1/facts/rack").json["problems"])]

    assert seen(READER) == [["owned"], 1, 1]
    assert seen("system:reader") == [["owned", "leased", "foreign"], 3, 3]
    paths = [f"/v1/nodes/{node.uuid}/facts" for node in made]
    assert [send(keystone, READER, "GET", path).status_int for path in paths] == [200, 403, 404]
    assert send(keystone, READER, "GET", paths[0]).json == {"facts": {"rack": "owned"}, "problems": {"rack": "odd"}}
    assert [send(keystone, READER, "GET", f"/v1/fact_changes?node={node.uuid}").status_int for node in made] == [
        200, 200, 404]
    for path in ("/v1/facts/rack/values?", "/v1/facts/values?facts=rack&"):
        assert send(keystone, READER, "GET", path).json["nodes"] == 1
        assert send(keystone, READER, "GET", f"{path}failure=0123456789abcdef").status_int == 403
    for token in (ADMIN, "system:reader"):
        assert send(keystone, token, "DELETE", "/v1/facts/rack").status_int == 403


def test_a_lessee_does_not_see_an_error_that_is_the_reason_for_maintenance(keystone, make_node):  # noqa: F811
    for fault, sees in (("clean failure", False), (None, True)):
        node = make_node(lessee=PROJECT, maintenance=True, maintenance_reason="disk 4711", fault=fault, last_error="e")

        shown = send(keystone, READER, "GET", f"/v1/nodes/{node.uuid}").json
        listed = send(keystone, READER, "GET", "/v1/nodes?fields=uuid,maintenance_reason").json["nodes"]

        assert (shown["maintenance_reason"] == "disk 4711") is sees
        assert {"uuid": node.uuid, "maintenance_reason": shown["maintenance_reason"]} in [
            {name: each[name] for name in ("uuid", "maintenance_reason")} for each in listed]
    assert send(keystone, READER, "GET", "/v1/nodes?failure=0123456789abcdef").status_int == 403


@pytest.mark.parametrize("path", ["nodes", "ports", "portgroups", "volume/connectors", "runbooks"])
def test_a_page_does_not_follow_what_the_caller_may_not_see(keystone, db, make_node, path):  # noqa: F811
    """The values of its sort key would be told by which of the own rows are on the page."""
    def create(number: int, owner: str) -> str:
        if path == "runbooks":
            return send(keystone, "system:admin", "POST", "/v1/runbooks", {
                "name": f"CUSTOM_{number}", "owner": owner, "steps": STEPS}).json["uuid"]
        node = make_node(name=f"n{number}", owner=owner)
        if path == "nodes":
            return node.uuid
        body = {"ports": {"address": f"52:54:00:00:00:0{number}"}, "portgroups": {"name": f"g{number}"},
                "volume/connectors": {"type": "iqn", "connector_id": f"iqn.{number}"}}[path]
        return send(keystone, "system:admin", "POST", f"/v1/{path}", {"node_uuid": node.uuid, **body}).json["uuid"]

    own = [create(number, PROJECT) for number in (1, 3)]
    foreign = create(2, "p")

    def page(token: str, marker: str) -> Any:
        return send(keystone, token, "GET", f"/v1/{path}?marker={marker}&sort_key=created_at")

    name = path.rpartition("/")[2]
    assert [each["uuid"] for each in page(MANAGER, own[0]).json[name]] == [own[1]]
    assert page(MANAGER, foreign).status_int == 404
    assert page("system:reader", foreign).status_int == 200


def test_a_port_group_that_the_caller_does_not_see_does_not_exist(keystone, db, make_node):  # noqa: F811
    own, leased, foreign = (make_node(provision_state="manageable", **relation) for relation in (
        {"owner": PROJECT}, {"lessee": PROJECT, "owner": "p"}, {"owner": "p"}))
    with db.writer() as conn:
        ports.create(conn, {"uuid": PORT, "node_id": own.id, "address": "52:54:00:00:00:01"})
        hidden, seen = (portgroups.create(conn, {"node_id": node.id}).uuid for node in (foreign, leased))

    def join(token: str, group: str) -> list[tuple[int, str]]:
        replies = (
            send(keystone, token, "PATCH", f"/v1/ports/{PORT}", change("/portgroup_uuid", group)),
            send(keystone, token, "POST", "/v1/ports", {
                "node_uuid": own.uuid, "address": "52:54:00:00:00:02", "portgroup_uuid": group}))
        return [(reply.status_int, reply.fault["faultstring"].replace(group, "UUID")) for reply in replies]

    assert join(ADMIN, hidden) == join(ADMIN, NODE)
    for status, text in join("system:admin", hidden):
        assert (status, "belongs to another node" in text) == (400, True)
    assert [status for status, _ in join(ADMIN, seen)] == [403, 403]


def test_a_node_that_an_administrator_of_a_project_creates_belongs_to_it(keystone):  # noqa: F811
    body = {"driver": "fake-hardware"}

    assert send(keystone, ADMIN, "POST", "/v1/nodes", {**body, "automated_clean": False}).status_int == 403
    assert send(keystone, ADMIN, "POST", "/v1/nodes", {**body, "automated_clean": True}).status_int == 201
    assert send(keystone, ADMIN, "POST", "/v1/nodes", body).json["owner"] == PROJECT
    assert send(keystone, ADMIN, "POST", "/v1/nodes", {**body, "owner": PROJECT}).json["owner"] == PROJECT
    assert send(keystone, ADMIN, "POST", "/v1/nodes", {**body, "owner": "p"}).status_int == 403
    assert send(keystone, MANAGER, "POST", "/v1/nodes", body).status_int == 403
    assert send(keystone, "system:admin", "POST", "/v1/nodes", body).json["owner"] is None
    assert send(keystone, "system:admin", "POST", "/v1/nodes", {**body, "owner": "p"}).json["owner"] == "p"


def test_only_an_administrator_of_the_system_changes_the_owner_of_a_deployed_node(
        keystone, make_node):  # noqa: F811
    node = make_node(provision_state="active").uuid

    assert send(keystone, "system:member", "PATCH", f"/v1/nodes/{node}", change("/owner")).status_int == 409
    assert send(keystone, "system:admin", "PATCH", f"/v1/nodes/{node}", change("/owner")).json["owner"] == "x"


STEPS = [{"interface": "deploy", "step": "erase_devices", "args": {}, "order": 1}]


def test_runbooks_belong_to_projects_and_public_ones_to_everybody(keystone, make_node):  # noqa: F811
    def ask(token: str, method: str, below: str = "", body: Any = None) -> Any:
        return send(keystone, token, method, f"/v1/runbooks{below}", body)

    def new(name: str, **fields: Any) -> dict[str, Any]:
        return {"name": f"CUSTOM_{name}", "steps": STEPS, **fields}

    assert ask("system:member", "POST", "", new("PUBLIC", public=True)).json["owner"] is None
    assert ask("system:member", "POST", "", new("FOREIGN", owner="p")).json["owner"] == "p"
    assert ask(MANAGER, "POST", "", new("OWN")).json["owner"] == PROJECT
    for refused in (ask(MEMBER, "POST", "", new("A")), ask(MANAGER, "POST", "", new("A", public=True)),
                    ask(MANAGER, "POST", "", new("A", owner="p"))):
        assert refused.status_int == 403
    listed = {token: [each["name"] for each in ask(token, "GET").json["runbooks"]]
              for token in (READER, "system:reader")}
    assert listed == {READER: ["CUSTOM_PUBLIC", "CUSTOM_OWN"],
                      "system:reader": ["CUSTOM_PUBLIC", "CUSTOM_FOREIGN", "CUSTOM_OWN"]}
    for name, token, seen, changed, published in (
            ("OWN", READER, 200, 403, 403), ("OWN", MEMBER, 200, 403, 403), ("OWN", MANAGER, 200, 200, 403),
            ("PUBLIC", ADMIN, 200, 403, 403), ("FOREIGN", ADMIN, 404, 404, 404),
            ("FOREIGN", "system:reader", 200, 403, 403), ("FOREIGN", "system:member", 200, 200, 200)):
        one = f"/CUSTOM_{name}"
        assert [ask(token, "GET", one).status_int, ask(token, "GET", f"{one}/traits").status_int] == [seen] * 2
        assert ask(token, "PATCH", one, change("/extra/a")).status_int == changed
        assert ask(token, "PUT", f"{one}/traits/CUSTOM_A").status_int in (changed, changed + 4)
        assert ask(token, "PATCH", one, change("/owner", "p")).status_int == published
        assert ask(token, "PATCH", one, change("/public", True)).status_int == published
    node = make_node(uuid=NODE, owner=PROJECT, provision_state="manageable")
    # 400: the node lacks the trait; a runbook that one does not see does not exist.
    for name, token, used in (("OWN", MANAGER, 400), ("OWN", MEMBER, 403), ("PUBLIC", MEMBER, 400),
                              ("PUBLIC", READER, 403)):
        body = {"target": "clean", "runbook": f"CUSTOM_{name}"}
        assert send(keystone, token, "PUT", f"/v1/nodes/{node.uuid}/states/provision", body).status_int == used
    assert [ask(token, "DELETE", "/CUSTOM_OWN").status_int for token in (MEMBER, MANAGER)] == [403, 204]


def test_policy_and_version_are_checked_in_ironics_order(keystone, make_node):  # noqa: F811
    make_node(uuid=NODE)

    def status(token: str, method: str, path: str, body: Any, minor: int = 70) -> int:
        headers = {"X-Auth-Token": token, "X-OpenStack-Ironic-API-Version": f"1.{minor}"}
        call = keystone.put_json if method == "PUT" else keystone.post_json
        return int(call(path, body, headers=headers, expect_errors=True).status_int)

    for name, target in (("boot_mode", "uefi"), ("secure_boot", True)):
        tokens = (READER, "system:reader", "system:member")
        path = f"/v1/nodes/{NODE}/states/{name}"
        assert [status(token, "PUT", path, {"target": target}) for token in tokens] == [404, 403, 404]
    # The input is not looked at for a node of others.
    power = f"/v1/nodes/{NODE}/states/power"
    assert [status(token, "PUT", power, {"target": "?"}) for token in (ADMIN, "system:member")] == [404, 400]
    assert status("system:admin", "PUT", f"/v1/nodes/{NODE}/states/target_raid_config", {"target": {}}) == 405
    beat = {"callback_url": "http://192.0.2.5:9999", "agent_token": "x"}
    assert [status("", "POST", "/v1/heartbeat", beat, minor) for minor in (21, 22)] == [404, 400]


#: Requests that read, although they have a body.
ASKING = ("/v1/nodes/search", "/v1/inspection_rules/conditions")


@walking("route", ROUTES, between="restock")
def test_no_route_gives_anything_of_others_to_the_administrator_of_a_project(
        keystone, stocked, route):  # noqa: F811
    """Every route, with objects that exist and a body that it takes."""
    declared = by_name().get(find(RootController(), route.method, route.path).controller.route.policy)
    if declared is None or not declared.check:
        return
    before = contents(stocked)

    reply = send(keystone, ADMIN, route.method, route.path, route.body)

    if declared.of == "project" and reply.status_int == 200 and (route.method == "GET" or route.path in ASKING):
        # Definitions of facts, and conditions that are made of a question, belong to no project.
        names = {route.path.rpartition("/")[2], "nodes", "ports", "portgroups"} - {"facts", "conditions"}
        assert not any(reply.json[name] for name in reply.json.keys() & names)
    elif (declared.of, route.method) == ("project", "POST"):
        assert reply.json["owner"] == PROJECT
        return
    else:
        assert reply.status_int == 403 or (declared.of and reply.status_int in (400, 404)), reply.text
    assert contents(stocked) == before
