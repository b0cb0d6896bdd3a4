"""``/v1/nodes/{node}/deploy_steps`` and ``/v1/deploy-templates/{template}/nodes``."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
import sqlalchemy as sa

from ironic_rules.db import conductors, deploy_templates, node_sets
from ironic_rules.hardware.enabled import EnabledHardware
from ironic_rules.models.nodes import INTERFACES
from ironic_rules.models.steps import Step
from tests.functional.api.conftest import FAKE_HARDWARE, at
from tests.walking import walking

NOBODY = "22222222-2222-4222-8222-222222222222"
FAKE = {f"{kind}_interface": "fake" for kind in INTERFACES}


@pytest.fixture(autouse=True)
def offered(conf, db):
    """A conductor that has registered its deploy steps."""
    with db.writer() as conn:
        conductors.register(conn, "conductor-1", "", EnabledHardware(conf).register(), "instance-1")


@pytest.fixture
def template(db):
    """A function that stores a template, without the API, so that it may have any steps."""
    def make(name, *steps):
        return db.write(lambda conn: deploy_templates.create(
            conn, {"name": name}, [Step(*step) for step in steps] or [RAID]))

    return make


@pytest.fixture
def node(db, make_node):
    """A function that stores a node of fake hardware with traits, without the API."""
    def make(*own, **fields):
        row = make_node(**{**FAKE, **fields})
        db.write(lambda conn: node_sets.set_traits(conn, row.id, own))
        return row

    return make


RAID = Step("raid", "delete_configuration", {}, 90)


def test_a_preview_shows_each_step_with_where_it_comes_from(app, node, template):
    template("CUSTOM_A")
    found = app.get(f"/v1/nodes/{node('CUSTOM_A', instance_info={'traits': ['CUSTOM_A']}).uuid}/deploy_steps").json

    assert found["deploy_steps"][:2] == [
        {"interface": "deploy", "step": "deploy", "args": {}, "priority": 100, "source": "code"},
        {"interface": "raid", "step": "delete_configuration", "args": {}, "priority": 90,
         "source": "template CUSTOM_A"}]
    assert (found["deploy_templates"], found["problems"], found["complete"]) == (["CUSTOM_A"], [], True)


def test_traits_of_the_query_stand_in_for_those_of_the_instance(app, node, template):
    template("CUSTOM_A")
    template("CUSTOM_B")
    row = node("CUSTOM_A", "CUSTOM_B", name="n", instance_info={"traits": ["CUSTOM_A"]})

    def counts(query):
        return app.get(f"/v1/nodes/n/deploy_steps{query}").json["deploy_templates"]

    assert counts("") == ["CUSTOM_A"]
    assert counts("?traits=CUSTOM_B") == counts("?traits=CUSTOM_B,CUSTOM_OTHER") == ["CUSTOM_B"]
    assert counts("?traits=CUSTOM_B&traits=CUSTOM_A") == ["CUSTOM_A", "CUSTOM_B"]
    assert counts("?traits=") == []
    assert row.instance_info == {"traits": ["CUSTOM_A"]}


def test_what_keeps_the_deployment_from_beginning_is_told(app, node, template):
    template("CUSTOM_A", ("bios", "apply_configuration", {"x": 1}, 5))
    row = node(raid_interface="no-raid")

    assert app.get(f"/v1/nodes/{row.uuid}/deploy_steps?traits=CUSTOM_A").json["problems"] == [
        "/instance_info/traits/0: the node does not have the trait CUSTOM_A",
        "deploy template CUSTOM_A, /steps/0 (bios.apply_configuration): /args/x: the step has no such argument",
        "deploy template CUSTOM_A, /steps/0 (bios.apply_configuration): /args/settings: the step requires this "
        "argument"]


def test_a_template_that_is_only_enabled_keeps_it_from_beginning_too(app, node, template):
    template("CUSTOM_A")
    template("CUSTOM_BAD", ("bios", "make_coffee", {}, 5))
    row = node("CUSTOM_A", "CUSTOM_BAD")

    found = app.get(f"/v1/nodes/{row.uuid}/deploy_steps?traits=CUSTOM_A").json

    assert found["problems"] == ["deploy template CUSTOM_BAD, /steps/0 (bios.make_coffee): the bios interface of the "
                                 "node does not offer this step"]
    assert found["deploy_templates"] == ["CUSTOM_A"]
    assert "make_coffee" not in [step["step"] for step in found["deploy_steps"]]


def test_secrets_in_arguments_are_hidden(app, node, template):
    template("CUSTOM_A", ("bios", "x", {"settings": [{"admin_password": "s3cr3t"}], "auth_token": "s3cr3t"}, 5))

    reply = app.get(f"/v1/nodes/{node('CUSTOM_A').uuid}/deploy_steps?traits=CUSTOM_A")

    assert "s3cr3t" not in reply.text
    assert '"auth_token":"******"' in reply.text


def test_templates_do_not_count_while_conductors_are_pinned(app, conf, node, template):
    template("CUSTOM_A")
    conf.set_override("pin_release_version", "0.1", group="conductor")

    found = app.get(f"/v1/nodes/{node('CUSTOM_A').uuid}/deploy_steps?traits=CUSTOM_A").json

    assert (found["deploy_templates"], len(found["deploy_steps"])) == ([], 6)


def test_the_configured_priorities_of_the_conductor_count(app, db, node):
    with db.writer() as conn:
        row = conductors.get(conn, "conductor-1")
        steps = row.hardware_types["fake-hardware"]["deploy_steps"]["bios"]["fake"]
        changed = [{**step, "priority": 95, "configured": True} if step["step"] == "factory_reset" else step
                   for step in steps]
        row.hardware_types["fake-hardware"]["deploy_steps"]["bios"]["fake"] = changed
        conductors.register(conn, "conductor-1", "", row.hardware_types, "instance-1")

    found = app.get(f"/v1/nodes/{node().uuid}/deploy_steps").json["deploy_steps"]

    assert (found[1]["step"], found[1]["source"]) == ("factory_reset", "configuration")


def test_a_node_without_a_conductor_has_no_preview(app, node):
    reply = app.get(f"/v1/nodes/{node(conductor_group='rack').uuid}/deploy_steps", status=503)
    assert "conductor" in reply.fault["faultstring"]

    reply = app.get(f"/v1/nodes/{node(driver='redfish').uuid}/deploy_steps", status=400)
    assert "redfish" in reply.fault["faultstring"]


def test_steps_of_a_ramdisk_are_not_known_before_it_runs(app, db, node, template):
    template("CUSTOM_A", ("raid", "of_the_ramdisk", {"a": 1}, 150), ("bios", "factory_reset", {"a": 1}, 50))
    with db.writer() as conn:
        row = conductors.get(conn, "conductor-1")
        row.hardware_types["fake-hardware"]["ramdisk_deploy_interfaces"] = ["fake"]
        conductors.register(conn, "conductor-1", "", row.hardware_types, "instance-1")
    row = node("CUSTOM_A", name="n")

    found = app.get("/v1/nodes/n/deploy_steps?traits=CUSTOM_A").json
    listed = app.get("/v1/deploy_templates/CUSTOM_A/nodes").json["nodes"]

    assert found["complete"] is False
    assert [step["step"] for step in found["deploy_steps"]][:2] == ["deploy", "of_the_ramdisk"]
    assert found["problems"] == listed[0]["problems"] == [
        "deploy template CUSTOM_A, /steps/1 (bios.factory_reset): /args/a: the step has no such argument"]


@walking("path, status", [
    (f"/v1/nodes/{NOBODY}/deploy_steps", 404), ("/v1/nodes/n%0a/deploy_steps", 400),
    ("/v1/nodes/n/deploy_steps?trait=CUSTOM_A", 400), ("/v1/nodes/n/deploy_steps?traits=%00", 400),
    (f"/v1/deploy-templates/{NOBODY}/nodes", 404), ("/v1/deploy-templates/CUSTOM_NO/nodes", 404),
    ("/v1/deploy-templates/CUSTOM_A/nodes?limit=0", 400), ("/v1/deploy-templates/CUSTOM_A/nodes?supported=true", 400),
    ("/v1/deploy-templates/CUSTOM_A/nodes?fields=driver_info", 400),
    ("/v1/deploy-templates/CUSTOM_A/nodes?sort_key=driver_info", 400),
    (f"/v1/deploy-templates/CUSTOM_A/nodes?marker={NOBODY}", 404),
], between="start_empty")
def test_bad_requests(app, node, template, path, status):
    node(name="n")
    template("CUSTOM_A")

    app.get(path, status=status)


def test_both_need_the_version_of_deploy_templates(app, node, template):
    row = node("CUSTOM_A")
    template("CUSTOM_A")

    for path in (f"/v1/nodes/{row.uuid}/deploy_steps", "/v1/deploy_templates/CUSTOM_A/nodes"):
        app.get(path, headers=at(54), status=404)
        app.get(path, headers=at(55), status=200)


@pytest.mark.parametrize("collection", ["deploy-templates", "deploy_templates"])
def test_nodes_of_a_template_come_in_pages(app, node, template, collection):
    nodes = [node("CUSTOM_A", name=f"n{number}") for number in range(5)]
    node("CUSTOM_B")
    template("CUSTOM_A")
    path, seen = f"/v1/{collection}/CUSTOM_A/nodes?limit=2&sort_key=name&sort_dir=desc&fields=uuid", []
    while path:
        reply = app.get(path).json
        seen += reply["nodes"]
        path = reply.get("next") and reply["next"].partition("localhost")[2]
        assert path is None or urlsplit(path).path == f"/v1/{collection}/CUSTOM_A/nodes"

    assert [item["uuid"] for item in seen] == [row.uuid for row in reversed(nodes)]
    assert seen[0].keys() == {"uuid", "links"}


def test_nodes_tell_whether_they_support_the_template(app, node, template):
    template("CUSTOM_A")
    able, unable = node("CUSTOM_A", name="a"), node("CUSTOM_A", name="b", raid_interface="no-raid")
    other_group, other_driver = node("CUSTOM_A", conductor_group="rack"), node("CUSTOM_A", driver="redfish")

    found = app.get("/v1/deploy-templates/CUSTOM_A/nodes").json["nodes"]

    assert [item["uuid"] for item in found] == [row.uuid for row in (able, unable, other_group, other_driver)]
    assert [item["supported"] for item in found] == [True, False, False, False]
    assert found[0] == {
        "uuid": able.uuid, "name": "a", "driver": "fake-hardware", "provision_state": "enroll", "supported": True,
        "problems": [], "warnings": [], "links": found[0]["links"]}
    assert found[0]["links"][0]["href"] == f"http://localhost/v1/nodes/{able.uuid}"
    assert ["raid interface" in found[1]["problems"][0], found[2]["problems"]] == [
        True, ["no conductor of the node's group is alive"]]
    assert "redfish" in found[3]["problems"][0]


def test_a_list_of_nodes_costs_as_many_queries_as_it_has_kinds_of_rows(app, db, node, template):
    template("CUSTOM_A")
    statements = []

    def count(*event):
        statements.append(event[2])

    def queries():
        statements.clear()
        app.get("/v1/deploy-templates/CUSTOM_A/nodes")
        return len(statements)

    node("CUSTOM_A")
    sa.event.listen(db.engine, "before_cursor_execute", count)
    try:
        queries()  # reads the steps that the conductor offers
        one = queries()
        for _ in range(20):
            node("CUSTOM_A")
        assert queries() == one
    finally:
        sa.event.remove(db.engine, "before_cursor_execute", count)


STEPS = "/v1/deploy-templates"


def create(app, *steps, status=201):
    return app.post_json(STEPS, {"name": "CUSTOM_A", "steps": list(steps)}, status=status)


def step(name, priority=5, **args):
    interface, _, own = name.partition(".")
    return {"interface": interface, "step": own, "priority": priority, "args": args}


def test_what_no_interface_accepts_is_stored_with_warnings(app):
    reply = create(app, step("bios.factory_reset"), step("bios.apply_configuration", **{"a/b\n": 1}),
                   step("deploy.write_image"), step("bios.factory_rset", anything=1))

    assert [(warning["pointer"], warning["text"].partition(";")[0]) for warning in reply.json["warnings"]] == [
        ("/steps/1/args/a~1b\\n", "the step has no such argument"),
        ("/steps/1/args/settings", "the step requires this argument"),
        ("/steps/2/priority", "must be 0: a core step can only be left out"),
        ("/steps/3/step", "no enabled bios interface has this step (did you mean factory_reset?)")]
    assert app.get(f"{STEPS}/CUSTOM_A").json["warnings"] == reply.json["warnings"]


def test_nothing_is_known_while_no_conductor_is_alive(app, db):
    with db.writer() as conn:
        conductors.unregister(conn, "conductor-1", "instance-1")

    create(app, step("bios.apply_configuration", anything=1))


def test_a_patch_is_warned_about_as_well(app, db):
    own = {"step": "apply_configuration", "priority": 0, "rerunnable": False, "core": False, "configured": False,
           "argsinfo": {"anything": {"description": "It.", "required": False}}}
    kinds = {**FAKE_HARDWARE["fake-hardware"], "deploy_steps": {"bios": {"fake": [own]}}}
    with db.writer() as conn:
        conductors.register(conn, "conductor-2", "rack", {"own-hardware": kinds}, "instance-2")

    created = create(app, step("bios.apply_configuration", anything=1)).json
    changed = app.patch_json(f"{STEPS}/CUSTOM_A", [{"op": "add", "path": "/steps/0/args/more", "value": 1}]).json

    def of_argument(reply, name):
        return [warning["text"] for warning in reply["warnings"] if warning["pointer"] == f"/steps/0/args/{name}"]

    assert [len(of_argument(reply, "anything")) for reply in (created, changed)] == [1, 1]
    assert len(of_argument(changed, "more")) == 1


def test_a_request_may_not_have_disallowed_steps(app, conf, node):
    row = node(provision_state="available")
    steps = [step("bios.factory_reset"), step("vendor.send_raw", raw_bytes="0x00")]

    reply = app.put_json(f"/v1/nodes/{row.uuid}/states/provision", {"target": "active", "deploy_steps": steps},
                         status=400)

    assert reply.fault["faultstring"] == (
        "/deploy_steps/1/step: the step vendor.send_raw is not allowed ([api]disallow_deploy_steps)")
    conf.set_override("disallow_deploy_steps", [], group="api")
    app.put_json(f"/v1/nodes/{row.uuid}/states/provision", {"target": "active", "deploy_steps": steps}, status=202)


def test_a_preview_of_automated_cleaning_shows_each_step_in_its_order(app, conf, node):
    uuid = node(automated_clean=True).uuid

    found = app.get(f"/v1/nodes/{uuid}/clean_steps").json

    assert found == {"automated_clean": True, "complete": True, "problems": [], "clean_steps": [
        {"interface": "deploy", "step": "erase_devices_metadata", "args": {}, "priority": 99, "source": "code"},
        {"interface": "deploy", "step": "erase_devices", "args": {}, "priority": 10, "source": "code"}]}


@pytest.mark.parametrize(("option", "own", "is_on"), [(True, None, True), (True, False, False), (False, None, False)])
def test_a_preview_of_cleaning_says_whether_it_is_on(app, conf, node, option, own, is_on):
    conf.set_override("automated_clean", option, group="conductor")

    assert app.get(f"/v1/nodes/{node(automated_clean=own).uuid}/clean_steps").json["automated_clean"] is is_on


def test_a_preview_of_cleaning_by_the_ramdisk_is_incomplete(app, conf, db, node):
    conf.set_override("enabled_deploy_interfaces", ["fake", "custom-agent"])
    with db.writer() as conn:
        conductors.register(conn, "conductor-2", "", EnabledHardware(conf).register(), "instance-2")

    found = app.get(f"/v1/nodes/{node(deploy_interface='custom-agent').uuid}/clean_steps").json

    assert [step["step"] for step in found["clean_steps"]] == ["prepare_cleaning", "tear_down_cleaning"]
    assert (found["complete"], found["problems"]) == (False, [])


@pytest.mark.parametrize(("minor", "status"), [(54, 404), (55, 200)])
def test_previews_of_cleaning_have_a_first_version(app, node, minor, status):
    reply = app.get(f"/v1/nodes/{node().uuid}/clean_steps", headers=at(minor), expect_errors=True)

    assert reply.status_int == status


def test_a_preview_of_cleaning_needs_a_conductor(app, node):
    reply = app.get(f"/v1/nodes/{node(conductor_group='rack-9').uuid}/clean_steps", expect_errors=True)

    assert reply.status_int == 503
