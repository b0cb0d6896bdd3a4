"""Subresources of a node: maintenance, history, inventory."""

from __future__ import annotations

import pytest

from ironic_rules.db import inventory, node_records
from tests.walking import walking

from .conftest import at

UUID = "44444444-4444-4444-8444-444444444444"
URL = f"/v1/nodes/{UUID}"


@pytest.fixture
def node(make_node):
    return make_node(uuid=UUID, name="n")


def test_maintenance_begins_and_ends(app, node):
    began = app.put_json(f"{URL}/maintenance", {"reason": "new\nfan"})
    assert (began.status_int, began.body) == (202, b"")
    assert app.get(f"{URL}?fields=maintenance,maintenance_reason").json.items() >= {
        "maintenance": True, "maintenance_reason": "new\nfan"}.items()

    assert app.delete(f"{URL}/maintenance").status_int == 202
    assert app.get(URL).json["maintenance_reason"] is None


@pytest.mark.parametrize("body", [b"", b"{}", b'{"reason": null}', b"null"])
def test_a_reason_is_optional(app, node, body):
    reply = app.put(f"{URL}/maintenance", body, headers={"Content-Type": "application/json"})

    assert reply.status_int == 202
    assert app.get(URL).json["maintenance"] is True


@walking("body", [{"reason": 5}, {"nosuch": 1}, [], {"reason": "x" * 4097}])
def test_a_bad_reason_is_refused(app, node, body):
    assert app.put_json(f"{URL}/maintenance", body, expect_errors=True).status_int == 400
    assert app.get(URL).json["maintenance"] is False


def test_maintenance_of_a_locked_or_unknown_node(app, make_node):
    make_node(uuid=UUID, reservation="c")

    assert app.put_json(f"{URL}/maintenance", {}, expect_errors=True).status_int == 409
    assert app.delete(f"{URL}/maintenance", expect_errors=True).status_int == 409
    assert app.delete("/v1/nodes/nosuch/maintenance", expect_errors=True).status_int == 404


@pytest.fixture
def entries(db, node):
    with db.writer() as conn:
        for number in range(3):
            node_records.add_history(conn, node.id, "inspection", f"event {number} " + "x" * 300, "ERROR",
                                     "conductor-1", user="me")
    return node


def test_history_is_short_unless_asked_for_in_full(app, entries):
    short, full = app.get(f"{URL}/history").json["history"], app.get(f"{URL}/history?detail=true").json["history"]

    assert {frozenset(entry) for entry in short} == {frozenset({"uuid", "created_at", "severity", "event", "links"})}
    assert {frozenset(entry) for entry in full} == {frozenset({
        "uuid", "created_at", "severity", "event", "event_type", "conductor", "user", "request_id", "links"})}
    assert [entry["event"][:7] for entry in short] == ["event 0", "event 1", "event 2"]
    assert (len(short[0]["event"]), len(full[0]["event"])) == (255, 308)
    assert app.get(short[1]["links"][0]["href"].removeprefix("http://localhost")).json == full[1]


def test_history_has_the_fields_that_are_named(app, entries):
    listed = app.get(f"{URL}/history?fields=user,event").json["history"]

    assert {frozenset(entry) for entry in listed} == {frozenset({"event", "user", "links"})}
    assert len(listed[0]["event"]) == 308


def test_history_has_pages(app, entries):
    first = app.get("/v1/nodes/n/history?limit=2").json
    rest = app.get(first["next"].removeprefix("http://localhost")).json

    assert (len(first["history"]), len(rest["history"]), "next" in rest) == (2, 1, False)


@walking("path, minor, status", [
    ("", 77, 404), ("", 78, 200), ("/nosuch", 96, 404), (f"/{UUID}", 96, 404), ("/a%00", 96, 400),
    ("?nosuch=1", 96, 400),
    ("?fields=nosuch", 96, 400), ("?fields=uuid&detail=true", 96, 400), ("?detail=false", 96, 200),
    ("?marker=x", 96, 400), (f"?marker={UUID}", 96, 404), ("?limit=0", 96, 400),
])
def test_history_is_checked(app, entries, path, minor, status):
    reply = app.get(f"{URL}/history{path}", headers=at(minor), expect_errors=True)

    assert reply.status_int == status
    assert path != f"/{UUID}" or UUID in reply.fault["faultstring"]


def test_the_history_of_another_node_is_not_found(app, entries, make_node):
    entry, other = app.get(f"{URL}/history").json["history"][0], make_node()

    assert app.get(f"/v1/nodes/{other.uuid}/history/{entry['uuid']}", expect_errors=True).status_int == 404


@pytest.fixture
def inventories(db, node):
    """Return a function that stores data of the node as the inspections with these statuses leave them."""
    def store(*statuses):
        with db.writer() as conn:
            for number, status in enumerate(statuses):
                row = inventory.receive(conn, node.id, {"number": number, "x": "2.0"}, {"sent": number}, None)
                if status == "processed":
                    inventory.finish(conn, row, {"made": number}, status)
                elif status == "failed":
                    inventory.supersede(conn, node.id)
    return store


def data_of(number, status):
    return {"inventory": {"number": number, "x": "2.0"},
            "plugin_data": {"made" if status == "processed" else "sent": number}}


def with_status(number, status):
    return {**data_of(number, status), "status": status}


@pytest.mark.parametrize(("stored", "number", "status"), [
    (["failed"], 0, "failed"), (["failed", "failed"], 1, "failed"), (["received"], 0, "pending"),
    (["failed", "received"], 1, "pending"), (["failed", "processed", "failed", "received"], 1, "processed"),
])
def test_the_inventory_is_that_of_the_last_good_inspection_or_else_the_newest(app, inventories, stored, number, status):
    inventories(*stored)

    for ident in (UUID, "n"):
        assert app.get(f"/v1/nodes/{ident}/inventory").json == data_of(number, status)


def test_the_status_of_the_inventory_can_be_chosen(app, inventories):
    inventories("processed", "failed", "failed", "received")

    shown = [app.get(f"{URL}/inventory?status={status}").json for status in ("processed", "failed", "pending")]

    assert shown == [with_status(0, "processed"), with_status(2, "failed"), with_status(3, "pending")]


@walking("query, status, reason", [
    ("status=processed", 404, f"Node {UUID} has no inspection inventory that is processed."),
    ("status=pending", 404, f"Node {UUID} has no inspection inventory that is pending."),
    ("status=received", 400, "status: must be one of processed, failed, pending, waiting"),
    ("status=", 400, "status: must be one of processed, failed, pending, waiting"),
    ("status=failed&status=failed", 400, "status: is given more than once"),
    ("state=failed", 400, "Unexpected query parameters: state."),
])
def test_an_inventory_that_there_is_not_and_bad_statuses(app, inventories, query, status, reason):
    inventories("failed")

    reply = app.get(f"{URL}/inventory?{query}", expect_errors=True)

    assert (reply.status_int, reply.fault["faultstring"]) == (status, reason)


def test_the_secrets_of_an_inventory_are_masked(app, db, node):
    sent = {"bmc": {"snmp_community": "s3cret"}, "images": ["ftp://u:s3cret@h/x"], "cpu_pinning": "0-3"}
    with db.writer() as conn:
        row = inventory.receive(conn, node.id, sent, {"ssh_key": "s3cret", "text": '"password":"x"'}, None)
        inventory.finish(conn, row, {"api-key": "s3cret", "rack": 7}, "processed")

    assert app.get(f"{URL}/inventory").json == {
        "inventory": {"bmc": {"snmp_community": "******"}, "images": ["ftp://u:******@h/x"], "cpu_pinning": "0-3"},
        "plugin_data": {"api-key": "******", "rack": 7}}


def test_without_an_inspection_there_is_no_inventory_and_the_error_names_the_uuid(app, node):
    reply = app.get("/v1/nodes/n/inventory", expect_errors=True)

    assert (reply.status_int, reply.fault["faultstring"]) == (
        404, f"Inspection inventory for node {UUID} could not be found.")


def test_the_inventory_needs_1_81(app, node):
    reply = app.get(f"{URL}/inventory", headers=at(80), expect_errors=True)

    assert reply.status_int == 404
    assert "Inspection inventory" not in reply.text


def test_every_link_of_a_node_leads_somewhere(app, node):
    shown = app.get(URL).json

    for field in ("links", "ports", "states", "portgroups", "volume"):
        assert app.get(shown[field][0]["href"].removeprefix("http://localhost")).status_int == 200


def test_a_node_has_no_volumes(app, node):
    volume = app.get(f"{URL}/volume").json

    for name in ("connectors", "targets"):
        path = volume[name][0]["href"].removeprefix("http://localhost")
        for query in ("", "?detail=True", "?limit=1&sort_key=uuid&sort_dir=desc", "?fields=uuid,node_uuid"):
            assert app.get(path + query).json == {name: []}
        assert app.get(f"{path}?fields=nosuch", expect_errors=True).status_int == 400
    assert app.get("/v1/nodes/nosuch/volume", expect_errors=True).status_int == 404
    assert app.get(f"{URL}/volume", headers=at(31), expect_errors=True).status_int == 404
