"""``/v1/chassis``, and nodes in a chassis."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from ironic_rules.db import collection, node_queries
from ironic_rules.db.tables import nodes
from tests.functional.api.conftest import at
from tests.walking import walking

UUID = "12121212-1212-4212-8212-121212121212"
OTHER = "23232323-2323-4323-8323-232323232323"


def create(app, **fields):
    return app.post_json("/v1/chassis", fields)


def test_a_chassis_is_created_shown_changed_and_deleted(app):
    created = create(app, uuid=UUID, description="rack 7\nrow 2", extra={"a": 1})
    patched = app.patch_json(f"/v1/chassis/{UUID}", [
        {"op": "replace", "path": "/description", "value": "rack 8"}, {"op": "add", "path": "/extra/b", "value": [2]},
        {"op": "remove", "path": "/extra/a"}]).json
    shown = app.get(f"/v1/chassis/{UUID}").json
    app.delete(f"/v1/chassis/{UUID}", status=204)

    assert created.status_int == 201
    assert created.headers["Location"] == f"http://localhost/v1/chassis/{UUID}"
    assert created.json.keys() == {"uuid", "description", "extra", "created_at", "updated_at", "links", "nodes"}
    assert (created.json["description"], created.json["extra"], created.json["updated_at"]) == (
        "rack 7\nrow 2", {"a": 1}, None)
    assert created.json["nodes"][0]["href"] == f"http://localhost/v1/chassis/{UUID}/nodes"
    assert (patched["description"], patched["extra"]) == ("rack 8", {"b": [2]})
    assert shown == patched
    assert patched["updated_at"] is not None
    assert app.get(f"/v1/chassis/{UUID}", status=404).fault["faultstring"] == f"Chassis {UUID} could not be found."


def test_chassis_are_listed_in_pages_sorted_and_with_fields(app):
    uuids = [create(app, description=text).json["uuid"] for text in ("b", "c", "a")]

    first = app.get("/v1/chassis?limit=2").json
    second = app.get(first["next"]).json
    by_text = app.get("/v1/chassis?sort_key=description&sort_dir=desc&fields=description").json["chassis"]

    assert [item["uuid"] for item in first["chassis"] + second["chassis"]] == uuids
    assert first["chassis"][0].keys() == {"uuid", "description", "links"}
    assert [item["description"] for item in by_text] == ["c", "b", "a"]
    assert app.get("/v1/chassis/detail").json == app.get("/v1/chassis?detail=true").json
    assert "extra" in app.get("/v1/chassis/detail").json["chassis"][0]
    assert app.get(f"/v1/chassis/{uuids[0]}?fields=extra,links").json.keys() == {"extra", "links"}
    app.get("/v1/chassis?fields=uuid", headers=at(7), status=406)
    app.get("/v1/chassis?detail=true", headers=at(42), status=400)


@walking("body, pointer", [
    ({"description": "x" * 256}, "/description"), ({"description": 5}, "/description"), ({"extra": []}, "/extra"),
    ({"uuid": "x"}, "/uuid"), ({"name": "x"}, "/name"), ([], "")])
def test_a_bad_chassis_is_refused_with_its_place(app, body, pointer):
    assert app.post_json("/v1/chassis", body, status=400).fault["faultstring"].startswith(pointer)
    assert app.get("/v1/chassis").json == {"chassis": []}


@pytest.mark.parametrize("operation", [
    {"op": "replace", "path": "/uuid", "value": OTHER}, {"op": "add", "path": "/nodes", "value": []},
    {"op": "add", "path": "/description", "value": 7}, {"op": "remove", "path": "/extra/none"}])
def test_a_bad_patch_changes_nothing(app, operation):
    before = create(app, uuid=UUID).json

    app.patch_json(f"/v1/chassis/{UUID}", [{"op": "add", "path": "/extra/a", "value": 1}, operation], status=400)

    assert app.get(f"/v1/chassis/{UUID}").json == before


def test_a_uuid_is_taken_once(app):
    create(app, uuid=UUID)

    assert UUID in app.post_json("/v1/chassis", {"uuid": UUID.upper()}, status=409).fault["faultstring"]


def test_nodes_are_in_a_chassis_and_found_by_it(app):
    for uuid in (UUID, OTHER):
        create(app, uuid=uuid)
    first = app.post_json("/v1/nodes", {"driver": "fake-hardware", "name": "a", "chassis_uuid": UUID.upper()}).json
    second = app.post_json("/v1/nodes", {"driver": "fake-hardware", "name": "b"}).json
    put = [{"op": "add", "path": "/chassis_uuid", "value": OTHER}]
    patched = app.patch_json(f"/v1/nodes/{second['uuid']}", put).json

    assert (first["chassis_uuid"], second["chassis_uuid"], patched["chassis_uuid"]) == (UUID, None, OTHER)
    for path in (f"nodes?chassis_uuid={UUID}", f"chassis/{UUID}/nodes", f"chassis/{UUID}/nodes?maintenance=false"):
        assert [node["name"] for node in app.get(f"/v1/{path}").json["nodes"]] == ["a"]
    detailed = app.get(f"/v1/chassis/{OTHER}/nodes/detail").json["nodes"]
    assert [(node["name"], node["driver"]) for node in detailed] == [("b", "fake-hardware")]
    assert app.get(f"/v1/chassis/{OTHER}/nodes?detail=true").json["nodes"] == detailed
    named = app.get("/v1/nodes?fields=chassis_uuid").json["nodes"]
    assert [node["chassis_uuid"] for node in named] == [UUID, OTHER]
    app.get(f"/v1/chassis/{first['uuid']}/nodes", status=404)
    app.get(f"/v1/nodes?chassis_uuid={first['uuid']}", status=404)


def test_the_chassis_of_a_node_must_exist(app, make_node):
    node = make_node()
    put = [{"op": "add", "path": "/chassis_uuid", "value": UUID}]

    for reply in (app.post_json("/v1/nodes", {"driver": "fake-hardware", "chassis_uuid": UUID}, status=400),
                  app.patch_json(f"/v1/nodes/{node.uuid}", put, status=400)):
        assert reply.fault["faultstring"] == f"/chassis_uuid: Chassis {UUID} could not be found."


def test_a_node_leaves_its_chassis_since_1_25(app, make_node):
    create(app, uuid=UUID)
    node = make_node(chassis_uuid=UUID)
    leave = [{"op": "remove", "path": "/chassis_uuid"}]

    app.patch_json(f"/v1/nodes/{node.uuid}", leave, headers=at(24), status=406)
    assert app.get(f"/v1/nodes/{node.uuid}").json["chassis_uuid"] == UUID
    assert app.patch_json(f"/v1/nodes/{node.uuid}", leave, headers=at(25)).json["chassis_uuid"] is None


def test_a_chassis_with_nodes_is_not_deleted(app, make_node):
    create(app, uuid=UUID)
    node = make_node(chassis_uuid=UUID)

    assert "still has nodes" in app.delete(f"/v1/chassis/{UUID}", status=400).fault["faultstring"]
    assert app.get(f"/v1/nodes/{node.uuid}").json["chassis_uuid"] == UUID
    app.delete(f"/v1/nodes/{node.uuid}")
    app.delete(f"/v1/chassis/{UUID}", status=204)
    app.delete(f"/v1/chassis/{UUID}", status=404)


@pytest.mark.servers
@pytest.mark.parametrize("kind", ["mysql", "postgresql"])
def test_a_reference_holds_on_the_servers_too(kind, emptied):
    db = emptied(kind)
    db.write(lambda conn: collection.CHASSIS.create(conn, {"uuid": UUID}))
    with pytest.raises(Exception, match=r"(?i)foreign key"), db.writer() as conn:
        conn.execute(sa.insert(nodes).values(uuid=OTHER, driver="x", provision_state="enroll",
                                             created_at=sa.func.now(), chassis_uuid=OTHER))
    with db.reader() as conn:
        assert conn.scalar(sa.select(sa.func.count()).select_from(nodes)) == 0
        assert conn.scalar(sa.select(nodes.c.id).where(*node_queries.conditions({"chassis_uuid": UUID}))) is None
