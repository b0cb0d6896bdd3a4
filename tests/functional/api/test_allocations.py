"""``/v1/allocations``, and the allocation of a node."""

from __future__ import annotations

import datetime
import threading

import pytest
import sqlalchemy as sa

from ironic_rules.conductor import periodics
from ironic_rules.db import allocations, clock, node_sets, nodes
from ironic_rules.db.tables import allocations as table
from ironic_rules.models import states
from tests.functional.api.conftest import at
from tests.walking import walking

UUID = "12121212-1212-4212-8212-121212121212"
OTHER = "23232323-2323-4323-8323-232323232323"


@pytest.fixture
def free(make_node):
    """Make a node that is available."""
    return lambda **values: make_node(**{
        "provision_state": states.AVAILABLE, "power_state": states.POWER_OFF, "resource_class": "gold", **values})


def create(app, status=201, **fields):
    return app.post_json("/v1/allocations", {"resource_class": "gold", **fields}, status=status)


def result(app, **fields):
    """Return an allocation after its creation."""
    return app.get(f"/v1/allocations/{create(app, **fields).json['uuid']}").json


def test_an_allocation_gets_a_node_and_keeps_it_until_it_is_deleted(app, free):
    node = free(instance_info={"a": 1})
    created = create(app, name="web", uuid=UUID, extra={"b": 2}, owner=None)
    shown = app.get("/v1/allocations/web").json
    of_node = app.get(f"/v1/nodes/{node.uuid}/allocation").json
    taken = app.get(f"/v1/nodes/{node.uuid}").json
    second = result(app)
    app.delete("/v1/allocations/web", status=204)
    left = app.get(f"/v1/nodes/{node.uuid}").json

    assert created.headers["Location"] == f"http://localhost/v1/allocations/{UUID}"
    assert (created.json["state"], created.json["node_uuid"], created.json["last_error"]) == ("allocating", None, None)
    assert shown.keys() == {"uuid", "name", "node_uuid", "state", "last_error", "resource_class", "traits", "owner",
                            "candidate_nodes", "extra", "created_at", "updated_at", "links"}
    assert (shown["state"], shown["node_uuid"], shown["last_error"]) == ("active", node.uuid, None)
    assert of_node == shown
    assert (taken["allocation_uuid"], taken["instance_uuid"], taken["instance_info"]) == (
        UUID, UUID, {"a": 1, "traits": []})
    assert (second["state"], second["node_uuid"]) == ("error", None)
    assert "no available nodes match the resource class gold" in second["last_error"]
    assert (left["allocation_uuid"], left["instance_uuid"], left["instance_info"]) == (
        None, None, {"a": 1, "traits": []})
    app.get(f"/v1/nodes/{node.uuid}/allocation", status=404)
    # As in Ironic: clients put None there while an allocation has no node yet.
    app.get("/v1/nodes/None/allocation", status=400)
    app.delete("/v1/nodes/None/allocation", status=404)
    app.get("/v1/allocations/web", status=404)


@pytest.mark.parametrize("unfit", [
    {"resource_class": "silver"}, {"provision_state": states.MANAGEABLE}, {"maintenance": True},
    {"instance_uuid": OTHER}, {"power_state": None}, {"retired": True}])
def test_only_a_node_that_fits_is_given(app, free, unfit):
    free(**unfit)
    assert result(app)["state"] == "error"
    fitting = free()
    assert result(app)["node_uuid"] == fitting.uuid


def test_traits_candidates_owner_and_name_restrict_the_nodes(app, db, free):
    plain, marked, named = free(name="plain"), free(name="marked", owner="me"), free(name="named")
    for trait in ("CUSTOM_A", "CUSTOM_B"):
        db.write(lambda conn, trait=trait: node_sets.add_trait(conn, marked.id, trait))

    nobody = result(app, traits=["CUSTOM_A", "CUSTOM_C"])
    other = result(app, candidate_nodes=["marked"], owner="you")
    by_name = result(app, name="named")
    by_traits = result(app, traits=["CUSTOM_B", "CUSTOM_A"], owner="me")
    by_candidate = result(app, candidate_nodes=["marked", "plain"])

    assert "no suitable nodes have the requested traits CUSTOM_A, CUSTOM_C" in nobody["last_error"]
    assert "none of the requested nodes are available" in other["last_error"]
    assert by_name["node_uuid"] == named.uuid
    assert by_traits["node_uuid"] == marked.uuid
    assert app.get(f"/v1/nodes/{marked.uuid}").json["instance_info"]["traits"] == ["CUSTOM_B", "CUSTOM_A"]
    assert (by_candidate["node_uuid"], by_candidate["candidate_nodes"]) == (plain.uuid, [marked.uuid, plain.uuid])


def test_allocations_are_listed_and_filtered(app, free):
    node = free(owner="me")
    first, second = result(app, name="first", owner="me"), result(app, resource_class="silver", name="second")

    for query, expected in (("", [first, second]), ("state=error", [second]), (f"node={node.uuid}", [first]),
                            ("resource_class=silver", [second]), ("owner=me", [first]),
                            ("sort_key=name&sort_dir=desc", [second, first])):
        assert app.get(f"/v1/allocations?{query}").json["allocations"] == expected
    page = app.get("/v1/allocations?limit=1&fields=name").json
    assert [item["name"] for item in page["allocations"] + app.get(page["next"]).json["allocations"]] == [
        "first", "second"]
    app.get("/v1/allocations?node=nosuch", status=400)
    app.get("/v1/allocations?sort_key=traits", status=400)
    app.get("/v1/allocations?state=lost", status=400)
    app.get("/v1/allocations?owner=me", headers=at(59), status=406)
    assert "owner" not in app.get("/v1/allocations", headers=at(59)).json["allocations"][0]


def test_versions_below_the_first_have_no_allocations(app, free):
    free()
    create(app, name="web")
    app.get("/v1/allocations", headers=at(51), status=404)
    app.post_json("/v1/allocations", {"resource_class": "gold"}, headers=at(51), status=405)
    app.delete("/v1/allocations/web", headers=at(51), status=405)
    app.patch_json("/v1/allocations/web", [{"op": "add", "path": "/extra/a", "value": 1}], headers=at(56), status=405)
    app.post_json("/v1/allocations", {"node": "web"}, headers=at(57), status=406)
    app.post_json("/v1/allocations", {"resource_class": "gold", "owner": "me"}, headers=at(59), status=406)


@walking("body, pointer", [
    ({"resource_class": None}, "/resource_class"), ({"resource_class": "x" * 81}, "/resource_class"),
    ({"traits": ["bad"]}, "/traits/0"), ({"traits": ["CUSTOM_A"] * 51}, "/traits"),
    ({"candidate_nodes": ["nosuch"]}, "/candidate_nodes/0"), ({"candidate_nodes": [7]}, "/candidate_nodes/0"),
    ({"name": "not a name"}, "/name"), ({"uuid": "x"}, "/uuid"), ({"state": "active"}, "/state"),
    ({"node": "nosuch"}, "/node")])
def test_bad_allocations_are_refused_with_their_place(app, body, pointer):
    assert app.post_json("/v1/allocations", {"resource_class": "gold", **body},
                         status=400).fault["faultstring"].startswith(pointer)
    assert app.get("/v1/allocations").json == {"allocations": []}


def test_name_and_extra_can_be_changed_and_names_are_unique(app):
    create(app, name="first", uuid=UUID)
    create(app, name="second")
    create(app, status=409, name="first")
    create(app, status=409, uuid=UUID)

    changed = app.patch_json("/v1/allocations/first", [
        {"op": "replace", "path": "/name", "value": "third"}, {"op": "add", "path": "/extra/a", "value": 1}]).json
    app.patch_json("/v1/allocations/third", [{"op": "add", "path": "/name", "value": "second"}], status=409)
    app.patch_json("/v1/allocations/third", [{"op": "add", "path": "/resource_class", "value": "x"}], status=400)

    assert (changed["name"], changed["extra"]) == ("third", {"a": 1})


def test_a_deployed_node_gets_the_allocation_that_it_did_not_have(app, make_node):
    deployed = {"provision_state": states.ACTIVE, "resource_class": "gold"}
    node, other = make_node(**deployed, instance_uuid=OTHER), make_node(**deployed)
    unused = make_node(provision_state=states.AVAILABLE, resource_class="gold")

    made = app.post_json("/v1/allocations", {"node": node.uuid}).json
    second = app.post_json("/v1/allocations", {"node": other.uuid, "uuid": UUID, "name": "b"}).json
    refused = [create(app, status=409, **fields).fault["faultstring"] for fields in (
        {"node": unused.uuid}, {"node": other.uuid}, {"node": other.uuid, "resource_class": "silver"},
        {"node": other.uuid, "traits": ["CUSTOM_A"], "name": "c"})]

    assert (made["uuid"], made["state"], made["node_uuid"], made["resource_class"]) == (
        OTHER, "active", node.uuid, "gold")
    assert (second["uuid"], second["node_uuid"]) == (UUID, other.uuid)
    assert app.get(f"/v1/nodes/{other.uuid}").json["allocation_uuid"] == UUID
    assert ["not \"active\"" in refused[0], "silver" in refused[2], "traits" in refused[3]] == [True] * 3
    assert len(app.get("/v1/allocations").json["allocations"]) == 2
    assert "not in maintenance" in app.delete("/v1/allocations/b", status=409).fault["faultstring"]
    app.put_json(f"/v1/nodes/{other.uuid}/maintenance", {})
    app.delete(f"/v1/nodes/{other.uuid}/allocation", status=204)
    assert app.get(f"/v1/nodes/{other.uuid}").json["instance_uuid"] is None


def test_a_node_loses_its_allocation_with_its_instance(app, db, free):
    node = free()
    allocation = result(app)
    leave = [{"op": "remove", "path": "/instance_uuid"}]

    app.patch_json(f"/v1/nodes/{node.uuid}", leave, status=409)
    app.delete(f"/v1/nodes/{node.uuid}", status=409)
    db.write(lambda conn: nodes.update(conn, node.id, {"instance_uuid": None}))
    assert app.get(f"/v1/nodes/{node.uuid}").json["allocation_uuid"] is None
    app.get(f"/v1/allocations/{allocation['uuid']}", status=404)


class Conductor:
    """A conductor, as the loop needs it."""

    def __init__(self, db):
        self.db = db


def test_an_allocation_waits_for_a_locked_node_and_a_conductor_goes_on(app, db, free):
    node = free(reservation="conductor-1")
    first = result(app)
    periodics.settle_allocations(Conductor(db))
    still = app.get(f"/v1/allocations/{first['uuid']}").json
    with db.writer() as conn:
        conn.execute(sa.update(nodes.nodes).values(reservation=None))
    periodics.settle_allocations(Conductor(db))
    periodics.settle_allocations(Conductor(db))

    assert (first["state"], still["state"]) == ("allocating", "allocating")
    assert app.get(f"/v1/allocations/{first['uuid']}").json["node_uuid"] == node.uuid


def test_an_allocation_does_not_wait_forever(app, db, free):
    free(reservation="conductor-1")
    allocation = result(app)
    with db.writer() as conn:
        conn.execute(sa.update(table).values(created_at=clock.now() - datetime.timedelta(seconds=61)))
    periodics.settle_allocations(Conductor(db))

    ended = app.get(f"/v1/allocations/{allocation['uuid']}").json
    assert (ended["state"], "all of 1 suitable nodes are locked" in ended["last_error"]) == ("error", True)


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("mysql", marks=pytest.mark.servers),
                                  pytest.param("postgresql", marks=pytest.mark.servers)])
def test_no_node_is_given_twice(kind, emptied):
    db = emptied(kind)
    for _ in range(6):
        db.write(lambda conn: nodes.create(conn, {
            "driver": "x", "provision_state": states.AVAILABLE, "power_state": states.POWER_OFF,
            "resource_class": "gold"}))
    uuids = [db.write(lambda conn: allocations.ALLOCATIONS.create(conn, {
        "resource_class": "gold", "state": "allocating"})).uuid for _ in range(8)]
    # Each twice, as if a conductor did it at the same time as the API.
    threads = [threading.Thread(target=db.write, args=(lambda conn, uuid=uuid: allocations.settle(conn, uuid),))
               for uuid in uuids * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with db.reader() as conn:
        rows = conn.execute(sa.select(table.c.state, table.c.node_id)).all()
        owners = set(conn.scalars(sa.select(nodes.nodes.c.allocation_uuid)))

    assert sorted(row.state for row in rows) == ["active"] * 6 + ["error"] * 2
    assert len({row.node_id for row in rows if row.state == "active"}) == 6
    assert len(owners) == 6
