"""``/v1/nodes/{node}/vifs``."""

from __future__ import annotations

import pytest

from ironic_rules.db import portgroups, ports
from tests.walking import walking

from .conftest import at

UUID = "44444444-4444-4444-8444-444444444444"
URL = f"/v1/nodes/{UUID}/vifs"


@pytest.fixture
def node(make_node):
    return make_node(uuid=UUID, name="n")


@pytest.fixture
def make_port(db, node):
    def make(last, **values):
        return db.write(lambda conn: ports.create(
            conn, {"node_id": node.id, "address": f"52:54:00:00:00:{last:02x}", **values}))

    return make


@pytest.fixture
def make_group(db, node):
    return lambda **values: db.write(lambda conn: portgroups.create(conn, {"node_id": node.id, **values}))


def attach(app, vif, **more):
    return app.post_json(URL, {"id": vif, **more}, expect_errors=True)


def carried(app, port):
    return app.get(f"/v1/ports/{port.uuid}").json["internal_info"].get("tenant_vif_port_id")


def test_vifs_come_and_go(app, make_port):
    make_port(1)

    assert app.get(URL).json == {"vifs": []}
    assert (attach(app, "vif-1").status_int, app.get(URL).json) == (204, {"vifs": [{"id": "vif-1"}]})
    reply = app.delete(f"{URL}/vif-1")
    assert (reply.status_int, reply.body, app.get(URL).json) == (204, b"", {"vifs": []})


def test_ports_that_the_node_boots_from_come_first(app, make_port):
    late, first, second = make_port(1, pxe_enabled=False), make_port(2), make_port(3)

    for vif in ("a", "b", "c"):
        attach(app, vif)

    assert [carried(app, port) for port in (first, second, late)] == ["a", "b", "c"]


def test_other_internal_information_is_kept(app, make_port):
    port = make_port(1, internal_info={"x": 1})

    attach(app, "a")
    app.delete(f"{URL}/a")

    assert app.get(f"/v1/ports/{port.uuid}").json["internal_info"] == {"x": 1}


def test_only_a_second_time_is_a_conflict(app, make_port):
    # Nova interprets 409 as "already attached".
    make_port(1)
    for vif in ("a", "without-a-port"):
        assert attach(app, vif).status_int == 204
        again = attach(app, vif)
        assert (again.status_int, "already" in again.fault["faultstring"]) == (409, True)


def test_a_node_takes_more_vifs_than_it_has_ports(app, make_port):
    port = make_port(1)
    for vif in ("a", "b", "c"):
        assert attach(app, vif).status_int == 204

    assert carried(app, port) == "a"
    assert app.get(URL).json == {"vifs": [{"id": "a"}, {"id": "b"}, {"id": "c"}]}
    app.delete(f"{URL}/b", status=204)
    app.delete(f"{URL}/b", status=400)
    assert app.get(URL).json == {"vifs": [{"id": "a"}, {"id": "c"}]}
    app.delete(f"{URL}/c", status=204)
    assert app.get(URL.removesuffix("/vifs")).json["driver_internal_info"] == {}


def test_detaching_what_is_not_attached_is_400_as_clients_expect(app, node):
    assert app.delete(f"{URL}/nosuch", expect_errors=True).status_int == 400


def test_a_port_can_be_chosen(app, make_port):
    make_port(1)
    chosen = make_port(2, pxe_enabled=False)

    assert attach(app, "a", port_uuid=chosen.uuid).status_int == 204
    assert carried(app, chosen) == "a"
    assert attach(app, "b", port_uuid=chosen.uuid).status_int == 400
    assert attach(app, "b", port_uuid=UUID).status_int == 400
    assert attach(app, "b", port_uuid=chosen.uuid, portgroup_uuid=UUID).status_int == 400


def test_a_port_group_comes_before_its_ports(app, make_port, make_group):
    group, closed = make_group(name="g"), make_group(name="closed", standalone_ports_supported=False)
    empty = make_group(name="empty")
    member, hidden = make_port(1, portgroup_id=group.id), make_port(2, portgroup_id=closed.id, pxe_enabled=False)

    assert [attach(app, vif).status_int for vif in ("a", "b", "c", "d")] == [204] * 4
    assert (carried(app, member), carried(app, hidden)) == ("c", None)
    assert attach(app, "e", portgroup_uuid=empty.uuid).status_int == 400
    assert [vif["id"] for vif in app.get(URL).json["vifs"]] == ["a", "b", "c", "d"]


@pytest.fixture
def port(make_port):
    return make_port(1)


@walking("body", [{}, {"id": None}, {"id": ""}, {"id": 5}, {"id": "a\n"}, {"id": "a/b"}, {"id": "a b"}, [],
                  {"id": "a", "port_uuid": "x"}])
def test_bad_bodies_are_refused(app, port, body):
    assert app.post_json(URL, body, expect_errors=True).status_int == 400


def test_what_else_a_client_tells_about_a_vif_is_ignored(app, make_port):
    make_port(1)

    assert attach(app, "a", network="x").status_int == 204


def test_a_locked_node_is_a_conflict(app, make_node):
    locked = make_node(reservation="c").uuid

    assert app.post_json(f"/v1/nodes/{locked}/vifs", {"id": "a"}, expect_errors=True).status_int == 409
    assert app.delete(f"/v1/nodes/{locked}/vifs/a", expect_errors=True).status_int == 409


def test_versions(app, make_port):
    port = make_port(1)

    assert app.get(URL, headers=at(27), expect_errors=True).status_int == 404
    assert app.post_json(URL, {"id": "a"}, headers=at(27), expect_errors=True).status_int == 404
    assert app.post_json(URL, {"id": "a", "port_uuid": port.uuid}, headers=at(66), expect_errors=True).status_int == 406
    assert app.post_json(URL, {"id": "a"}, headers=at(28)).status_int == 204


def test_a_port_with_a_vif_can_be_deleted_in_maintenance_only(app, make_port):
    port = make_port(1)
    attach(app, "a")

    assert app.delete(f"/v1/ports/{port.uuid}", expect_errors=True).status_int == 409
    app.put_json(f"/v1/nodes/{UUID}/maintenance", {})
    assert app.delete(f"/v1/ports/{port.uuid}").status_int == 204


def test_a_port_group_with_a_vif_and_its_members_can_be_deleted_in_maintenance_only(app, make_port, make_group):
    group = make_group()
    member = make_port(1, portgroup_id=group.id)
    attach(app, "a")

    for maintenance, status in ((False, 409), (True, 204)):
        if maintenance:
            app.put_json(f"/v1/nodes/{UUID}/maintenance", {})
        for url in (f"/v1/ports/{member.uuid}", f"/v1/portgroups/{group.uuid}"):
            assert app.delete(url, expect_errors=True).status_int == status


@pytest.mark.parametrize("maintenance", [False, True])
def test_a_port_takes_no_vif_to_another_node(app, make_node, make_port, maintenance):
    port, other = make_port(1), make_node()
    if maintenance:
        app.put_json(f"/v1/nodes/{UUID}/maintenance", {})
    move = [{"op": "replace", "path": "/node_uuid", "value": other.uuid}]
    attach(app, "a")

    refused = app.patch_json(f"/v1/ports/{port.uuid}", move, expect_errors=True)

    assert (refused.status_int, "/node_uuid" in refused.fault["faultstring"]) == (409, True)
    app.delete(f"{URL}/a", status=204)
    assert app.patch_json(f"/v1/ports/{port.uuid}", move).json["node_uuid"] == other.uuid
