"""``/v1/runbooks``, their traits, and cleaning and servicing by a runbook; ``/v1/shards``."""

from __future__ import annotations

import pytest

from ironic_rules.db import node_sets
from ironic_rules.models import states
from tests.functional.api.conftest import at
from tests.walking import walking

UUID = "12121212-1212-4212-8212-121212121212"
NAME = "CUSTOM_WIPE"
ERASE = {"interface": "deploy", "step": "erase_devices", "args": {}, "order": 2}
RAID = {"interface": "raid", "step": "delete_configuration", "args": {}, "order": 1}


def create(app, status=201, **fields):
    return app.post_json("/v1/runbooks", {"name": NAME, "steps": [ERASE, RAID], **fields}, status=status)


def test_a_runbook_is_created_shown_changed_and_deleted(app):
    created = create(app, uuid=UUID, extra={"a": 1}, owner="me",
                     steps=[{"interface": "deploy", "step": "erase_devices", "order": "2"}])
    patched = app.patch_json(f"/v1/runbooks/{NAME}", [
        {"op": "replace", "path": "/steps/0/order", "value": 5}, {"op": "add", "path": "/steps/-", "value": RAID},
        {"op": "replace", "path": "/disable_ramdisk", "value": True}]).json
    public = app.patch_json(f"/v1/runbooks/{UUID}", [{"op": "add", "path": "/public", "value": True}]).json
    shown = app.get(f"/v1/runbooks/{UUID}").json
    app.delete(f"/v1/runbooks/{NAME}", status=204)

    assert created.headers["Location"] == f"http://localhost/v1/runbooks/{UUID}"
    assert created.json.keys() == {"uuid", "name", "steps", "disable_ramdisk", "extra", "public", "owner", "traits",
                                   "created_at", "updated_at", "links"}
    assert (created.json["steps"], created.json["owner"], created.json["public"]) == ([ERASE], "me", False)
    assert (patched["steps"], patched["disable_ramdisk"]) == ([{**ERASE, "order": 5}, RAID], True)
    assert (public["public"], public["owner"]) == (True, None)
    assert shown == public
    app.get(f"/v1/runbooks/{NAME}", status=404)


@pytest.mark.parametrize(("value", "is_change"), [(1, False), (True, True), (1.0, True)])
def test_an_argument_that_only_changes_its_type_is_changed(app, value, is_change):
    create(app, steps=[{**ERASE, "args": {"n": 1}}])

    shown = app.patch_json(f"/v1/runbooks/{NAME}", [
        {"op": "replace", "path": "/steps/0/args/n", "value": value}]).json

    # Not ==, for which true is 1.
    assert (repr(shown["steps"][0]["args"]["n"]), shown["updated_at"] is not None) == (repr(value), is_change)


def test_runbooks_are_listed(app):
    uuids = [create(app, name=f"CUSTOM_{letter}").json["uuid"] for letter in "BCA"]

    page = app.get("/v1/runbooks?limit=2").json
    assert page["runbooks"][0].keys() == {"uuid", "name", "links"}
    assert [item["uuid"] for item in page["runbooks"] + app.get(page["next"]).json["runbooks"]] == uuids
    by_name = app.get("/v1/runbooks?sort_key=name&detail=true").json["runbooks"]
    assert [(item["name"], item["steps"]) for item in by_name] == [
        (f"CUSTOM_{letter}", [ERASE, RAID]) for letter in "ABC"]
    app.get("/v1/runbooks?sort_key=steps", status=400)


def test_versions_below_the_first_have_no_runbooks(app, make_node):
    create(app)
    node = make_node(provision_state=states.MANAGEABLE)
    for path in ("", f"/{NAME}", f"/{NAME}/traits"):
        app.get(f"/v1/runbooks{path}", headers=at(91), status=404)
    app.post_json("/v1/runbooks", {}, headers=at(91), status=405)
    app.put_json(f"/v1/nodes/{node.uuid}/states/provision", {"target": "clean", "runbook": NAME}, headers=at(91),
                 status=406)
    app.get("/v1/shards", headers=at(81), status=404)


@walking("body, pointer", [
    ({"name": "wipe"}, "/name"), ({"steps": []}, "/steps"), ({"steps": [{**ERASE, "order": -1}]}, "/steps/0/order"),
    ({"steps": [{**ERASE, "order": "x"}]}, "/steps/0/order"), ({"steps": [{**ERASE, "interface": "x"}]}, "/steps/0/in"),
    ({"steps": [{"interface": "deploy", "step": "x"}]}, "/steps/0/order"), ({"steps": [ERASE] * 257}, "/steps"),
    ({"steps": [{**ERASE, "priority": 1}]}, "/steps/0/priority"), ({"steps": [{**ERASE, "args": []}]}, "/steps/0/args"),
    ({"steps": [{**ERASE, "args": {"password": "******"}}]}, "/steps/0/args/password"),
    ({"public": True, "owner": "me"}, "/owner"), ({"traits": []}, "/traits"), ({"extra": 5}, "/extra")])
def test_bad_runbooks_are_refused_with_their_place(app, body, pointer):
    assert create(app, status=400, **body).fault["faultstring"].startswith(pointer)
    assert app.get("/v1/runbooks").json == {"runbooks": []}


def test_names_are_unique_and_a_public_runbook_has_no_owner(app):
    create(app, uuid=UUID)
    other = create(app, name="CUSTOM_B").json["uuid"]

    create(app, status=409)
    create(app, status=409, name="CUSTOM_C", uuid=UUID)
    app.patch_json(f"/v1/runbooks/{other}", [{"op": "replace", "path": "/name", "value": NAME}], status=409)
    app.patch_json(f"/v1/runbooks/{other}", [{"op": "add", "path": "/public", "value": True},
                                             {"op": "add", "path": "/owner", "value": "me"}], status=400)
    app.patch_json(f"/v1/runbooks/{other}", [{"op": "add", "path": "/traits", "value": []}], status=400)


def test_secrets_in_arguments_are_hidden(app):
    created = create(app, steps=[{**ERASE, "args": {"password": "hunter2", "n": 1}}]).json
    hidden = {"password": "******", "n": 1}

    assert created["steps"][0]["args"] == hidden
    assert "hunter2" not in app.get(f"/v1/runbooks/{NAME}").text + app.get("/v1/runbooks?detail=true").text
    app.patch_json(f"/v1/runbooks/{NAME}", [
        {"op": "test", "path": "/steps/0/args/password", "value": "hunter2"}], status=400)


def test_traits_of_a_runbook_are_set_added_and_removed(app):
    create(app)
    url = f"/v1/runbooks/{NAME}/traits"
    app.put_json(url, {"traits": ["CUSTOM_B", "CUSTOM_A", "CUSTOM_B"]}, status=204)
    added = app.put(f"{url}/HW_CPU_X86_AVX2", status=204)
    app.delete(f"{url}/CUSTOM_A", status=204)
    app.delete(f"{url}/CUSTOM_A", status=204)

    assert added.headers["Location"] == f"http://localhost{url}/HW_CPU_X86_AVX2"
    assert app.get(url).json == {"traits": ["CUSTOM_B", "HW_CPU_X86_AVX2"]}
    assert app.get(f"/v1/runbooks/{NAME}").json["traits"] == ["CUSTOM_B", "HW_CPU_X86_AVX2"]
    for bad in ({"traits": ["x"]}, {"traits": [f"CUSTOM_{number}" for number in range(51)]}, {}):
        app.put_json(url, bad, status=400)
    app.put(f"{url}/bad", status=400)
    app.delete(url, status=204)
    assert app.get(url).json == {"traits": []}
    app.put("/v1/runbooks/CUSTOM_NONE/traits/CUSTOM_A", status=404)


@pytest.fixture
def node(db, make_node):
    """A node with the trait that is the name of the runbook."""
    made = make_node(provision_state=states.MANAGEABLE)
    db.write(lambda conn: node_sets.add_trait(conn, made.id, NAME))
    return made


def provision(app, node, status=202, **body):
    return app.put_json(f"/v1/nodes/{node.uuid}/states/provision", body, status=status)


def test_a_runbook_cleans_and_services_in_its_order(app, rpc, node, make_node, db):
    create(app, disable_ramdisk=True)
    deployed = make_node(provision_state=states.ACTIVE)
    db.write(lambda conn: node_sets.add_trait(conn, deployed.id, "CUSTOM_OTHER"))
    app.put(f"/v1/runbooks/{NAME}/traits/CUSTOM_OTHER")

    provision(app, node, target="clean", runbook=NAME)
    provision(app, deployed, target="service", runbook=app.get(f"/v1/runbooks/{NAME}").json["uuid"])

    steps = [{name: step[name] for name in ("interface", "step", "args")} for step in (RAID, ERASE)]
    (clean, service) = [call for call in rpc.calls if call[0] == "change_provision_state"]
    assert {"clean_steps": steps, "disable_ramdisk": True}.items() <= clean[-1].items()
    assert {"service_steps": steps, "disable_ramdisk": True}.items() <= service[-1].items()


@pytest.mark.parametrize(("body", "pointer"), [
    ({"target": "clean", "runbook": "CUSTOM_NONE"}, "/runbook: Runbook CUSTOM_NONE could not"),
    ({"target": "clean", "runbook": "CUSTOM_B"}, "/runbook: runbook"), ({"target": "clean", "runbook": 7}, "/runbook"),
    ({"target": "provide", "runbook": NAME}, "/runbook: can only be used"),
    ({"target": "clean", "runbook": NAME, "clean_steps": [{"interface": "deploy", "step": "x"}]}, "/clean_steps"),
    ({"target": "clean", "runbook": NAME, "disable_ramdisk": False}, "/disable_ramdisk")])
def test_a_runbook_is_refused_with_a_reason(app, rpc, node, body, pointer):
    create(app)
    create(app, name="CUSTOM_B")

    assert provision(app, node, status=400, **body).fault["faultstring"].startswith(pointer)
    assert [call for call in rpc.calls if call[0] == "change_provision_state"] == []


def test_shards_are_counted_and_nodes_found_by_them(app, make_node):
    named = [make_node(shard=shard).uuid for shard in ("east", "east", "west", None, None, None)]

    assert app.get("/v1/shards").json == {"shards": [
        {"name": None, "count": 3}, {"name": "east", "count": 2}, {"name": "west", "count": 1}]}
    for query, found in (("shard=east", named[:2]), ("shard=east,west", named[:3]), ("sharded=true", named[:3]),
                         ("sharded=false", named[3:])):
        assert [node["uuid"] for node in app.get(f"/v1/nodes?{query}").json["nodes"]] == found
    app.get("/v1/nodes?shard=east", headers=at(81), status=406)
    app.get("/v1/shards/east", status=404)
