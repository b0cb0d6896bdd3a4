"""``/v1/ports``, and the ports of a node."""

from __future__ import annotations

import pytest

from ironic_rules.db import portgroups, ports
from tests.walking import walking

from .conftest import at

UUID = "55555555-5555-4555-8555-555555555555"
NODE = "44444444-4444-4444-8444-444444444444"
OTHER = "33333333-3333-4333-8333-333333333333"
MAC = "52:54:00:aa:00:01"
FIELDS = {"uuid", "created_at", "updated_at", "address", "extra", "internal_info", "is_smartnic",
          "local_link_connection",
          "physical_network", "pxe_enabled", "node_uuid", "name", "portgroup_uuid", "links"}


@pytest.fixture
def node(make_node):
    return make_node(uuid=NODE, name="n")


def create(app, minor=96, **fields):
    body = {"address": MAC, "node_uuid": NODE, **fields}
    return app.post_json("/v1/ports", {k: v for k, v in body.items() if v is not ...}, headers=at(minor),
                         expect_errors=True)


def patch(app, *operations, minor=96, port=UUID):
    return app.patch_json(f"/v1/ports/{port}", list(operations), headers=at(minor), expect_errors=True)


def test_a_new_port_has_every_field_and_its_url(app, node):
    reply = create(app, uuid=UUID, address=MAC.upper())

    assert (reply.status_int, reply.headers["Location"]) == (201, f"http://localhost/v1/ports/{UUID}")
    port = reply.json
    assert port.keys() == FIELDS
    assert (port["address"], port["node_uuid"], port["portgroup_uuid"], port["pxe_enabled"]) == (MAC, NODE, None, True)
    assert port["links"][1] == {"href": f"http://localhost/ports/{UUID}", "rel": "bookmark"}
    assert app.get(f"/v1/ports/{UUID}").json == port
    for method in (app.get, app.delete):
        assert method(f"/v1/ports/{MAC}", expect_errors=True).status_int == 400


def test_a_port_goes_by_its_name_too(app, node):
    create(app, uuid=UUID, name="uplink")

    assert app.get("/v1/ports/uplink").json["uuid"] == UUID
    assert app.get("/v1/ports/uplink", headers=at(87), status=400)
    assert app.get("/v1/ports/downlink", status=404)
    renamed = patch(app, {"op": "replace", "path": "/name", "value": "downlink"}, port="uplink")
    assert (renamed.status_int, renamed.json["name"]) == (200, "downlink")
    assert app.delete("/v1/ports/downlink", status=204)


@walking("fields, place", [
    ({"address": MAC + "\n"}, "/address"), ({"address": "52:54:00:aa:00"}, "/address"),
    ({"address": None}, "/address"),
    ({"address": 5}, "/address"), ({"address": ...}, "/address"), ({"address": "525400aa0001"}, "/address"),
    ({"node_uuid": ...}, "/node_uuid"), ({"node_uuid": "n"}, "/node_uuid"), ({"node_uuid": UUID}, "/node_uuid"),
    ({"node_ident": "n"}, "/node_uuid"), ({"node_uuid": ..., "node_ident": "nosuch"}, "/node_ident"),
    ({"uuid": "x"}, "/uuid"),
    ({"extra": []}, "/extra"), ({"pxe_enabled": "perhaps"}, "/pxe_enabled"),
    ({"physical_network": ""}, "/physical_network"),
    ({"physical_network": "x" * 65}, "/physical_network"), ({"internal_info": {}}, "/internal_info"),
    ({"nosuch": 1}, "/nosuch"),
    ({"portgroup_uuid": UUID}, "/portgroup_uuid"), ({"name": "a b"}, "/name"),
    ({"is_smartnic": True}, "/local_link_connection"),
])
def test_a_bad_field_is_refused_with_its_place_and_nothing_is_stored(app, node, fields, place):
    reply = create(app, **fields)

    assert reply.status_int == 400
    assert place in reply.fault["faultstring"]
    assert app.get("/v1/ports").json == {"ports": []}


@pytest.mark.parametrize(("fields", "message"), [
    ({}, f"A port with MAC address {MAC} already exists."), ({"address": MAC.upper().replace(":", "-")}, MAC),
    ({"address": "52:54:00:aa:00:02", "uuid": UUID}, "UUID"), ({"address": "52:54:00:aa:00:02", "name": "p"}, "name"),
])
def test_duplicates_are_conflicts(app, node, fields, message):
    create(app, uuid=UUID, name="p")

    reply = create(app, **fields)

    assert reply.status_int == 409
    assert message in reply.fault["faultstring"]


def test_the_node_may_go_by_name_since_1_94(app, node):
    assert create(app, node_uuid=..., node_ident="n", minor=93).status_int == 406
    assert create(app, node_uuid=..., node_ident="n", minor=94).json["node_uuid"] == NODE


@pytest.mark.parametrize(("field", "value", "since"), [
    ("local_link_connection", {"port_id": "x"}, 19), ("pxe_enabled", False, 19), ("physical_network", "net", 34),
    ("is_smartnic", False, 53), ("name", "p", 88),
])
def test_fields_appear_with_their_versions(app, node, field, value, since):
    assert create(app, minor=since - 1, **{field: value}).status_int == 406
    assert create(app, uuid=UUID, minor=since, **{field: value}).json[field] == value
    assert field not in app.get(f"/v1/ports/{UUID}", headers=at(since - 1)).json
    assert app.get(f"/v1/ports?fields={field}", headers=at(since - 1), expect_errors=True).status_int == 406
    assert patch(app, {"op": "add", "path": f"/{field}", "value": value}, minor=since - 1).status_int == 406


def test_a_patch_changes_a_port(app, node):
    create(app, uuid=UUID, extra={"a": 1})

    reply = patch(app, {"op": "remove", "path": "/extra/a"}, {"op": "add", "path": "/local_link_connection/port_id",
                                                              "value": "x"},
                  {"op": "replace", "path": "/pxe_enabled", "value": "False"}, {"op": "replace", "path": "/address",
                                                                             "value": "52:54:00:AA:00:09"})

    assert reply.status_int == 200
    assert [reply.json[name] for name in ("extra", "local_link_connection", "pxe_enabled", "address")] == [
        {}, {"port_id": "x"}, False, "52:54:00:aa:00:09"]
    assert patch(app, {"op": "remove", "path": "/pxe_enabled"}).json["pxe_enabled"] is True


@pytest.mark.parametrize(("operation", "place"), [
    ({"op": "replace", "path": "/address", "value": MAC + "\n"}, "/address"),
    ({"op": "remove", "path": "/address"}, "/address"),
    ({"op": "replace", "path": "/uuid", "value": NODE}, "/uuid"),
    ({"op": "add", "path": "/internal_info/x", "value": 1}, "/internal_info"),
    ({"op": "replace", "path": "/node_uuid", "value": UUID}, "/node_uuid"),
    ({"op": "remove", "path": "/node_uuid"}, "/node_uuid"),
    ({"op": "replace", "path": "/portgroup_uuid", "value": UUID}, "/portgroup_uuid"),
    ({"op": "replace", "path": "/physical_network", "value": ""}, "/physical_network"),
    ({"op": "remove", "path": "/extra/x"}, "/extra/x"),
    ({"op": "replace", "path": "/is_smartnic", "value": True}, "/local_link_connection"),
])
def test_a_bad_operation_is_refused_with_its_place(app, node, operation, place):
    create(app, uuid=UUID)

    reply = patch(app, {"op": "add", "path": "/extra/before", "value": 1}, operation)

    assert reply.status_int == 400
    assert place in reply.fault["faultstring"]
    assert app.get(f"/v1/ports/{UUID}").json["extra"] == {}


def test_an_address_that_is_taken_is_a_conflict(app, node):
    create(app, uuid=UUID)
    create(app, address="52:54:00:aa:00:02")

    assert patch(app, {"op": "replace", "path": "/address", "value": "52:54:00:aa:00:02"}).status_int == 409


def test_a_port_moves_to_another_node(app, node, make_node):
    other, locked = make_node(), make_node(reservation="c")
    create(app, uuid=UUID)

    assert patch(app, {"op": "replace", "path": "/node_uuid", "value": locked.uuid}).status_int == 409
    assert patch(app, {"op": "replace", "path": "/node_uuid", "value": other.uuid}).json["node_uuid"] == other.uuid


@walking("values, path, value, status", [
    ({"provision_state": "active"}, "/address", "52:54:00:aa:00:02", 409),
    ({"instance_uuid": NODE}, "/address", "52:54:00:aa:00:02", 409),
    ({"provision_state": "active", "maintenance": True}, "/address", "52:54:00:aa:00:02", 200),
    ({"provision_state": "available"}, "/pxe_enabled", False, 409),
    ({"provision_state": "manageable"}, "/pxe_enabled", False, 200),
    ({"provision_state": "active"}, "/extra/x", 1, 200), ({"provision_state": "active"}, "/pxe_enabled", True, 200),
    ({"provision_state": "active"}, "/node_uuid", OTHER, 409),
    ({"provision_state": "available"}, "/node_uuid", OTHER, 409),
    ({"provision_state": "active", "maintenance": True}, "/node_uuid", OTHER, 200),
    ({"provision_state": "inspecting"}, "/extra/x", 1, 409), ({"reservation": "c"}, "/extra/x", 1, 409),
], between="start_empty")
def test_what_the_nodes_state_forbids_is_a_conflict(app, db, make_node, values, path, value, status):
    node = make_node(uuid=NODE, **values)
    make_node(uuid=OTHER)
    db.write(lambda conn: ports.create(conn, {"uuid": UUID, "address": MAC, "node_id": node.id}))

    reply = patch(app, {"op": "add", "path": path, "value": value})

    assert reply.status_int == status
    if path in ("/node_uuid", "/pxe_enabled") and status == 409:
        assert f"Cannot update {path} of port" in reply.fault["faultstring"]


def test_a_locked_node_keeps_its_ports(app, db, make_node):
    node = make_node(uuid=NODE, reservation="conductor-7")
    db.write(lambda conn: ports.create(conn, {"uuid": UUID, "address": MAC, "node_id": node.id}))

    reply = create(app, address="52:54:00:aa:00:02")
    assert reply.status_int == 409
    assert "conductor-7" in reply.fault["faultstring"]
    assert app.delete(f"/v1/ports/{UUID}", expect_errors=True).status_int == 409
    assert len(app.get("/v1/ports").json["ports"]) == 1


def test_a_port_is_deleted(app, node):
    create(app, uuid=UUID)

    reply = app.delete(f"/v1/ports/{UUID}")

    assert (reply.status_int, reply.body) == (204, b"")
    gone = app.get(f"/v1/ports/{UUID}", expect_errors=True)
    assert (gone.status_int, gone.fault["faultstring"]) == (404, f"Port {UUID} could not be found.")
    assert app.delete(f"/v1/ports/{UUID}", expect_errors=True).status_int == 404


@pytest.mark.parametrize("ident", ["nosuch", UUID])
def test_an_unknown_port_is_404(app, ident):
    assert app.get(f"/v1/ports/{ident}", expect_errors=True).status_int == 404


@pytest.fixture
def three(app, node, make_node):
    other = make_node(name="other", conductor_group="rack1")
    create(app, uuid=UUID)
    create(app, address="52:54:00:aa:00:02")
    create(app, address="52:54:00:aa:00:03", node_uuid=other.uuid)


@walking("query, expected", [
    ("", [1, 2, 3]), ("?node=n", [1, 2]), (f"?node={NODE}", [1, 2]), (f"?node_uuid={NODE}", [1, 2]),
    ("?node=other", [3]),
    (f"?address={MAC.upper()}", [1]), ("?address=52:54:00:aa:00:99", []), (f"?node=n&node_uuid={NODE}", [1, 2]),
    ("?sort_key=address&sort_dir=desc", [3, 2, 1]), ("/detail?node=n", [1, 2]), ("?detail=True&node=n", [1, 2]),
    ("?shard=x", []), ("?conductor_groups=Rack1,r9", [3]), ("/detail?conductor_groups=rack1", [3]),
    ("?conductor_groups=r9", []),
    ("/?node=n", [1, 2]),
])
def test_filters(app, three, query, expected):
    assert [int(port["address"][-2:]) for port in app.get(f"/v1/ports{query}").json["ports"]] == expected


def test_lists_show_a_few_fields_those_asked_for_or_all(app, three):
    assert {frozenset(port) for port in app.get("/v1/ports").json["ports"]} == {frozenset({"uuid", "address", "links"})}
    for path in ("/v1/ports/detail", "/v1/ports?detail=true", f"/v1/nodes/{NODE}/ports/detail",
                 "/v1/nodes/n/ports?detail=1"):
        assert app.get(path).json["ports"][0] == app.get(f"/v1/ports/{UUID}").json
    chosen = app.get(f"/v1/ports?address={MAC}&fields=node_uuid,uuid,address").json["ports"][0]
    assert chosen.items() >= {"node_uuid": NODE, "uuid": UUID, "address": MAC}.items()
    assert app.get(f"/v1/ports/{UUID}?fields=name").json.keys() == {"name", "links"}


def test_the_ports_of_a_node(app, three):
    assert [port["address"][-1] for port in app.get("/v1/nodes/n/ports").json["ports"]] == ["1", "2"]
    assert app.get("/v1/nodes/nosuch/ports", expect_errors=True).status_int == 404
    page = app.get("/v1/nodes/n/ports?limit=1").json
    assert page["next"].startswith("http://localhost/v1/nodes/n/ports?limit=1&marker=")
    rest = app.get(page["next"].removeprefix("http://localhost")).json
    assert [port["address"][-1] for port in rest["ports"]] == ["2"]


@walking("query, status", [
    ("nosuch=1", 400), ("address=x", 400), (f"address={MAC}%0A", 400), ("node=nosuch", 404), (f"node_uuid={UUID}", 404),
    ("node_uuid=x", 400), ("portgroup=nosuch", 404), ("fields=nosuch", 400), ("fields=node_id", 400), ("limit=x", 400),
    ("sort_key=extra", 400), ("marker=x", 400), (f"marker={NODE}", 404),
    (f"node_uuid={NODE}&node=other", 400), ("fields=uuid&detail=1", 400),
])
def test_bad_parameters_are_refused(app, three, query, status):
    assert app.get(f"/v1/ports?{query}", expect_errors=True).status_int == status


def test_fields_make_no_sense_in_a_detailed_list(app):
    assert app.get("/v1/ports/detail?fields=uuid", expect_errors=True).status_int == 400


def test_detail_as_a_parameter_needs_1_43(app):
    assert app.get("/v1/ports?detail=true", headers=at(42), expect_errors=True).status_int == 400
    assert app.get("/v1/ports/detail", headers=at(1)).status_int == 200


def test_a_port_may_have_any_address(app, make_node, caplog):
    make_node(uuid=NODE)
    strange = ("11:11:11:11:11:11", "ff:ff:ff:ff:ff:ff", "00:00:00:00:00:00")

    for address in strange:
        assert create(app, address=address).status_int == 201
    create(app)

    assert [port["address"] for port in app.get("/v1/ports").json["ports"]] == [*strange, MAC]
    assert [port["address"] for port in app.get(f"/v1/ports?address={strange[0]}").json["ports"]] == [strange[0]]
    assert [address for address in (*strange, MAC) if f"The port {address}" in caplog.text] == list(strange)


def test_ports_of_a_port_group_are_in_one_physical_network(app, db, make_node):
    node = make_node(uuid=NODE)
    group = db.write(lambda conn: portgroups.create(conn, {"node_id": node.id})).uuid
    first = create(app, address="52:54:00:00:00:01", physical_network="a", portgroup_uuid=group).json["uuid"]

    assert create(app, address="52:54:00:00:00:02", physical_network="b", portgroup_uuid=group).status_int == 409
    assert create(app, address="52:54:00:00:00:02", portgroup_uuid=group).status_int == 409
    other = create(app, address="52:54:00:00:00:02", physical_network="b").json["uuid"]

    def change(uuid, **fields):
        return app.patch_json(f"/v1/ports/{uuid}", [
            {"op": "add", "path": f"/{name}", "value": value} for name, value in fields.items()],
            expect_errors=True).status_int

    assert change(other, portgroup_uuid=group) == 409
    assert change(other, portgroup_uuid=group, physical_network="a") == 200
    assert change(other, physical_network="b") == 409
    assert change(other, extra={"a": 1}) == 200
    assert change(other, portgroup_uuid=None) == 200
    assert change(first, physical_network="c") == 200
