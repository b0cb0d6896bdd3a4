"""``/v1/volume/connectors`` and ``/v1/volume/targets``, and those of a node."""

from __future__ import annotations

import pytest

from ironic_rules.models import states
from tests.functional.api.conftest import at

OTHER = "23232323-2323-4323-8323-232323232323"
URLS = {"connectors": "/v1/volume/connectors", "targets": "/v1/volume/targets"}


def a(kind, node, number=0, **more):
    """Return the body of a request that creates a connector or target."""
    one = {"type": "iqn", "connector_id": f"iqn.2026-11.example:{number}"} if kind == "connectors" else {
        "volume_type": "iscsi", "boot_index": number, "volume_id": f"volume-{number}"}
    return {"node_uuid": node.uuid, **one, **more}


@pytest.fixture
def off(make_node):
    """Make a node that is powered off."""
    return lambda **values: make_node(power_state=states.POWER_OFF, **values)


@pytest.mark.parametrize("kind", URLS)
def test_one_is_created_shown_changed_and_deleted(app, off, kind):
    node, url = off(), URLS[kind]
    created = app.post_json(url, a(kind, node, extra={"a": 1}))
    one = f"{url}/{created.json['uuid']}"
    path, value = {"connectors": ("/connector_id", "iqn.2026-11.example:9"), "targets": ("/boot_index", 9)}[kind]
    patched = app.patch_json(one, [{"op": "replace", "path": path, "value": value},
                                   {"op": "remove", "path": "/extra/a"}]).json
    shown = app.get(one).json
    app.delete(one, status=204)

    assert created.status_int == 201
    assert created.headers["Location"] == f"http://localhost{one}" == created.json["links"][0]["href"]
    assert {key: created.json[key] for key in a(kind, node)} == a(kind, node)
    assert created.json.keys() - a(kind, node).keys() - {"properties"} == {
        "uuid", "extra", "created_at", "updated_at", "links"}
    assert (patched[path[1:]], patched["extra"]) == (value, {})
    assert shown == patched
    app.get(one, status=404)


@pytest.mark.parametrize("kind", URLS)
def test_lists_are_of_all_nodes_or_of_one(app, off, kind):
    first, second = off(name="first"), off()
    uuids = [app.post_json(URLS[kind], a(kind, node, number)).json["uuid"]
             for number, node in enumerate((first, second, first))]

    def listed(path):
        return [item["uuid"] for item in app.get(path).json[kind]]

    assert listed(URLS[kind]) == uuids
    assert listed(f"{URLS[kind]}?node=first") == listed(f"/v1/nodes/first/volume/{kind}") == [uuids[0], uuids[2]]
    page = app.get(f"{URLS[kind]}?limit=2&sort_key=created_at&sort_dir=desc").json
    assert [item["uuid"] for item in page[kind] + app.get(page["next"]).json[kind]] == uuids[::-1]
    assert page[kind][0].keys() == {*a(kind, first), "uuid", "links"}
    detailed = app.get(f"{URLS[kind]}?detail=True&node={second.uuid}").json[kind]
    assert [item["node_uuid"] for item in detailed] == [second.uuid]
    assert "extra" in detailed[0]
    app.get(f"{URLS[kind]}?node={OTHER}", status=404)
    app.get(f"{URLS[kind]}?sort_key=extra", status=400)
    app.get(URLS[kind], headers=at(31), status=404)
    app.post_json(URLS[kind], a(kind, first, 7), headers=at(31), status=404)


@pytest.mark.parametrize(("kind", "wrong", "pointer"), [
    *((kind, wrong, pointer) for kind in URLS for wrong, pointer in (
        ({"node_uuid": OTHER}, "/node_uuid"), ({"extra": 1}, "/extra"), ({"nosuch": 1}, "/nosuch"))),
    ("connectors", {"type": ""}, "/type"), ("connectors", {"connector_id": None}, "/connector_id"),
    ("connectors", {"type": "x" * 33}, "/type"), ("targets", {"boot_index": -1}, "/boot_index"),
    ("targets", {"boot_index": "first"}, "/boot_index"), ("targets", {"volume_id": "x" * 256}, "/volume_id"),
    ("targets", {"properties": []}, "/properties"), ("targets", {"volume_type": 5}, "/volume_type")])
def test_bad_ones_are_refused_with_their_place(app, off, kind, wrong, pointer):
    assert app.post_json(URLS[kind], a(kind, off(), **wrong), status=400).fault["faultstring"].startswith(pointer)
    assert app.get(URLS[kind]).json == {kind: []}


@pytest.mark.parametrize("kind", URLS)
def test_what_must_be_unique_is_taken_once(app, off, kind):
    first, second = off(), off()
    stored = app.post_json(URLS[kind], a(kind, first)).json
    other = app.post_json(URLS[kind], a(kind, first, 1)).json
    path, value = {"connectors": ("/connector_id", stored.get("connector_id")), "targets": ("/boot_index", 0)}[kind]

    app.post_json(URLS[kind], a(kind, first), status=409)
    app.post_json(URLS[kind], a(kind, second, 2, uuid=stored["uuid"]), status=409)
    app.patch_json(f"{URLS[kind]}/{other['uuid']}", [{"op": "replace", "path": path, "value": value}], status=409)
    # Boot indices are those of a node; a connector is one in the whole network.
    app.post_json(URLS[kind], a(kind, second), status=409 if kind == "connectors" else 201)


@pytest.mark.parametrize("kind", URLS)
def test_they_change_while_the_node_is_off(app, make_node, kind):
    running = make_node(power_state=states.POWER_ON, provision_state=states.ACTIVE)
    unused = make_node(power_state=states.POWER_ON, provision_state=states.MANAGEABLE)
    change = [{"op": "add", "path": "/extra/a", "value": 1}]
    of_running, of_unused = (f"{URLS[kind]}/{app.post_json(URLS[kind], a(kind, node, number)).json['uuid']}"
                             for number, node in enumerate((running, unused)))

    for refused in (app.patch_json(of_running, change, status=400), app.patch_json(of_unused, change, status=400),
                    app.delete(of_running, status=400)):
        assert 'while it is in state "power on"' in refused.fault["faultstring"]
    app.delete(of_unused, status=204)
    assert app.get(of_running).json["extra"] == {}


@pytest.mark.parametrize("kind", URLS)
def test_they_belong_to_a_node_that_is_not_locked(app, db, off, make_node, kind):
    node, locked = off(), make_node(power_state=states.POWER_OFF, reservation="conductor-1")
    one = f"{URLS[kind]}/{app.post_json(URLS[kind], a(kind, node)).json['uuid']}"

    def move(uuid, status):
        return app.patch_json(one, [{"op": "replace", "path": "/node_uuid", "value": uuid}], status=status)

    app.post_json(URLS[kind], a(kind, locked, 5), status=409)
    move(locked.uuid, 409)
    assert move(OTHER, 400).fault["faultstring"].startswith("/node_uuid")
    second = off()
    assert move(second.uuid, 200).json["node_uuid"] == second.uuid
    app.delete(f"/v1/nodes/{second.uuid}")
    app.get(one, status=404)


def test_secrets_of_targets_are_hidden(app, off):
    node = off()
    properties = {"target_iqn": "iqn.x", "auth_username": "u", "auth_password": "hunter2"}
    created = app.post_json(URLS["targets"], a("targets", node, properties=properties)).json
    one = f"{URLS['targets']}/{created['uuid']}"
    hidden = {**properties, "auth_password": "******"}

    assert created["properties"] == app.get(one).json["properties"] == hidden
    for path in (f"{URLS['targets']}?detail=true", f"/v1/nodes/{node.uuid}/volume/targets?fields=properties"):
        assert "hunter2" not in app.get(path).text
    look = {"op": "test", "path": "/properties/auth_password", "value": "hunter2"}
    app.patch_json(one, [look], status=400)
    app.patch_json(one, [{"op": "copy", "from": "/properties/auth_password", "path": "/extra/x"}], status=400)
    masked = app.patch_json(one, [{"op": "replace", "path": "/properties", "value": hidden}], status=400)
    assert masked.fault["faultstring"].startswith("/properties/auth_password: is a secret")
    masked = app.post_json(URLS["targets"], a("targets", node, 1, properties=hidden), status=400)
    assert masked.fault["faultstring"].startswith("/properties/auth_password: is a secret")
