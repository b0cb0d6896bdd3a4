"""``/v1/portgroups``, the port groups of a node, and the ports of a port group."""

from __future__ import annotations

import pytest

from ironic_rules.db import portgroups, ports
from tests.walking import walking

from .conftest import at

UUID = "66666666-6666-4666-8666-666666666666"
PORT = "55555555-5555-4555-8555-555555555555"
NODE = "44444444-4444-4444-8444-444444444444"
MAC = "52:54:00:aa:00:01"
FIELDS = {"uuid", "created_at", "updated_at", "address", "extra", "internal_info", "mode", "name", "properties",
          "standalone_ports_supported", "node_uuid", "links", "ports"}


@pytest.fixture
def node(make_node):
    return make_node(uuid=NODE, name="n")


def create(app, minor=96, **fields):
    body = {"node_uuid": NODE, **fields}
    return app.post_json("/v1/portgroups", {k: v for k, v in body.items() if v is not ...}, headers=at(minor),
                         expect_errors=True)


def patch(app, *operations, minor=96):
    return app.patch_json(f"/v1/portgroups/{UUID}", list(operations), headers=at(minor), expect_errors=True)


def test_without_any_the_list_is_empty(app, node):
    for path in ("/v1/portgroups", "/v1/portgroups/detail", f"/v1/portgroups/detail?node={NODE}",
                 "/v1/nodes/n/portgroups"):
        assert app.get(path, headers=at(26)).json == {"portgroups": []}


def test_a_new_port_group_has_every_field_and_its_url(app, node):
    reply = create(app, uuid=UUID, name="bond0", address=MAC.upper())

    assert (reply.status_int, reply.headers["Location"]) == (201, f"http://localhost/v1/portgroups/{UUID}")
    group = reply.json
    assert group.keys() == FIELDS
    assert (group["mode"], group["standalone_ports_supported"], group["address"], group["node_uuid"]) == (
        "active-backup", True, MAC, NODE)
    assert group["ports"][0]["href"] == f"http://localhost/v1/portgroups/{UUID}/ports"
    assert app.get("/v1/portgroups/bond0").json == app.get(f"/v1/portgroups/{UUID}").json == group
    for path in ("/v1/portgroups/detail", "/v1/nodes/n/portgroups/detail"):
        assert app.get(path).json == {"portgroups": [group]}
    assert app.get("/v1/portgroups").json["portgroups"][0].keys() == {"uuid", "address", "name", "links"}


@walking("fields, place", [
    ({"node_uuid": ...}, "/node_uuid"), ({"node_uuid": UUID}, "/node_uuid"), ({"name": "a b"}, "/name"),
    ({"name": UUID}, "/name"),
    ({"address": MAC + "\n"}, "/address"), ({"mode": 5}, "/mode"), ({"properties": []}, "/properties"),
    ({"uuid": "x"}, "/uuid"),
    ({"standalone_ports_supported": "x"}, "/standalone_ports_supported"), ({"internal_info": {}}, "/internal_info"),
    ({"nosuch": 1}, "/nosuch"),
])
def test_a_bad_field_is_refused_with_its_place(app, node, fields, place):
    reply = create(app, **fields)

    assert reply.status_int == 400
    assert place in reply.fault["faultstring"]


@pytest.mark.parametrize("fields", [{"uuid": UUID}, {"name": "bond0"}, {"address": MAC}])
def test_duplicates_are_conflicts(app, node, fields):
    create(app, uuid=UUID, name="bond0", address=MAC)

    assert create(app, **fields).status_int == 409


def test_a_patch_changes_a_port_group(app, node):
    create(app, uuid=UUID, name="bond0", address=MAC)

    reply = patch(app, {"op": "replace", "path": "/mode", "value": "802.3ad"},
                  {"op": "add", "path": "/properties/miimon", "value": 100},
                  {"op": "remove", "path": "/address"}, {"op": "remove", "path": "/name"})

    assert [reply.json[name] for name in ("mode", "properties", "address", "name")] == ["802.3ad", {"miimon": 100},
                                                                                        None, None]


@pytest.mark.parametrize(("operation", "status"), [
    ({"op": "remove", "path": "/mode"}, 400), ({"op": "replace", "path": "/uuid", "value": NODE}, 400),
    ({"op": "replace", "path": "/name", "value": "a b"}, 400),
    ({"op": "add", "path": "/internal_info/x", "value": 1}, 400),
    ({"op": "replace", "path": "/node_uuid", "value": UUID}, 400),
    ({"op": "replace", "path": "/node_uuid", "value": NODE}, 200),
    ({"op": "replace", "path": "/address", "value": "x"}, 400),
    ({"op": "replace", "path": "/name", "value": "taken"}, 409),
])
def test_operations_are_checked(app, node, operation, status):
    create(app, uuid=UUID)
    create(app, name="taken")

    assert patch(app, operation).status_int == status


def test_a_port_group_does_not_move(app, node, make_node):
    create(app, uuid=UUID)

    assert patch(app, {"op": "replace", "path": "/node_uuid", "value": make_node().uuid}).status_int == 409


def test_ports_join_and_leave(app, node):
    create(app, uuid=UUID, name="bond0")
    app.post_json("/v1/ports", {"address": MAC, "node_uuid": NODE, "uuid": PORT, "portgroup_uuid": UUID})

    assert app.get(f"/v1/ports/{PORT}").json["portgroup_uuid"] == UUID
    for path in ("/v1/portgroups/bond0/ports", f"/v1/portgroups/{UUID}/ports/detail", "/v1/ports?portgroup=bond0",
                 f"/v1/ports/detail?portgroup={UUID}"):
        assert [port["uuid"] for port in app.get(path).json["ports"]] == [PORT]
    assert app.delete("/v1/portgroups/bond0", expect_errors=True).status_int == 400

    app.patch_json(f"/v1/ports/{PORT}", [{"op": "remove", "path": "/portgroup_uuid"}])
    assert app.get("/v1/portgroups/bond0/ports").json == {"ports": []}
    assert app.delete("/v1/portgroups/bond0").status_int == 204
    assert app.get("/v1/portgroups/bond0", expect_errors=True).status_int == 404


def test_a_port_joins_only_a_group_of_its_node_that_lets_it(app, node, make_node):
    foreign = create(app, node_uuid=make_node().uuid).json["uuid"]
    closed = create(app, standalone_ports_supported=False).json["uuid"]
    port = {"address": MAC, "node_uuid": NODE}

    assert app.post_json("/v1/ports", {**port, "portgroup_uuid": foreign}, expect_errors=True).status_int == 400
    assert app.post_json("/v1/ports", {**port, "portgroup_uuid": closed, "pxe_enabled": True},
                         expect_errors=True).status_int == 409
    assert app.post_json("/v1/ports", {**port, "portgroup_uuid": closed, "pxe_enabled": False}).status_int == 201


def test_a_port_group_without_standalone_ports_stays_so(app, db, node):
    closed = create(app, uuid=UUID, standalone_ports_supported=False).json["uuid"]

    def make(last, **values):
        return db.write(lambda conn: ports.create(
            conn, {"node_id": node.id, "address": f"52:54:00:00:00:0{last}", **values})).uuid

    def change(uuid, name, value):
        return app.patch_json(f"/v1/ports/{uuid}", [{"op": "add", "path": f"/{name}", "value": value}],
                              expect_errors=True).status_int

    boots, carries = make(1), make(2, pxe_enabled=False, internal_info={"tenant_vif_port_id": "a"})
    member = make(3, pxe_enabled=False)
    assert change(member, "portgroup_uuid", closed) == 200
    assert [change(member, "pxe_enabled", True), change(boots, "portgroup_uuid", closed),
            change(carries, "portgroup_uuid", closed)] == [409] * 3
    assert patch(app, {"op": "replace", "path": "/standalone_ports_supported", "value": True}).status_int == 200
    for uuid, reason in ((boots, "pxe_enabled"), (carries, "a VIF attached")):
        assert change(uuid, "portgroup_uuid", closed) == 200
        reply = patch(app, {"op": "replace", "path": "/standalone_ports_supported", "value": False})
        assert (reply.status_int, f"{uuid}, which has {reason}." in reply.fault["faultstring"]) == (409, True)
        assert change(uuid, "portgroup_uuid", None) == 200
    assert patch(app, {"op": "replace", "path": "/standalone_ports_supported", "value": False}).status_int == 200


def test_a_port_whose_client_does_not_mention_pxe_enabled_joins_every_group(app, node):
    # Ironic's API, too, refuses only what a request sets.
    create(app, uuid=UUID, standalone_ports_supported=False)

    made = app.post_json("/v1/ports", {"address": MAC, "node_uuid": NODE, "portgroup_uuid": UUID}).json

    assert (made["portgroup_uuid"], made["pxe_enabled"]) == (UUID, True)
    changed = app.patch_json(f"/v1/ports/{made['uuid']}", [{"op": "add", "path": "/extra/a", "value": 1}])
    assert changed.json["extra"] == {"a": 1}


@pytest.mark.parametrize(("minor", "method", "status"), [(22, "get", 404), (23, "get", 200), (22, "post", 404),
                                                         (22, "delete", 404)])
def test_port_groups_need_1_23(app, node, minor, method, status):
    sent = {"get": lambda: app.get("/v1/portgroups", headers=at(minor), expect_errors=True),
            "post": lambda: create(app, minor=minor),
            "delete": lambda: app.delete(f"/v1/portgroups/{UUID}", headers=at(minor), expect_errors=True)}

    assert sent[method]().status_int == status


def test_mode_and_properties_need_1_26(app, node):
    assert create(app, minor=25, mode="802.3ad").status_int == 406
    assert "mode" not in create(app, minor=25, uuid=UUID).json
    assert patch(app, {"op": "add", "path": "/properties/x", "value": 1}, minor=25).status_int == 406


@walking("query, status", [
    ("nosuch=1", 400), ("node=nosuch", 404), ("address=x", 400), ("fields=nosuch", 400), ("sort_key=extra", 400),
    ("limit=x", 400),
])
def test_bad_parameters_are_refused(app, query, status):
    assert app.get(f"/v1/portgroups?{query}", expect_errors=True).status_int == status


def test_the_groups_of_a_locked_node_stay(app, db, make_node):
    node = make_node(uuid=NODE, reservation="c")
    db.write(lambda conn: portgroups.create(conn, {"uuid": UUID, "node_id": node.id}))

    assert create(app).status_int == 409
    assert patch(app, {"op": "add", "path": "/extra/x", "value": 1}).status_int == 409
    assert app.delete(f"/v1/portgroups/{UUID}", expect_errors=True).status_int == 409
