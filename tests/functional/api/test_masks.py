"""``******`` never overwrites a secret: what replies hide cannot be sent back, nor stored by a rule."""

from __future__ import annotations

from typing import Any

import pytest

from ironic_rules.db import nodes
from tests.functional.whole import fault
from tests.walking import walking

NODE = "11111111-1111-4111-8111-111111111111"
INFO = {"ipmi_address": "192.0.2.1", "ipmi_username": "root", "ipmi_password": "s3cret",
        "deploy_kernel": "https://files:t0p@images.example.org/kernel"}
RULES = "/v1/inspection_rules"


@pytest.fixture
def node(app: Any, make_node: Any) -> Any:
    return make_node(uuid=NODE, driver_info=INFO, provision_state="manageable",
                     instance_info={"configdrive": "H4sI", "deep": [{"auth_token": "t"}]})


def patch(app: Any, op: str, path: str, value: Any) -> Any:
    return app.patch_json(f"/v1/nodes/{NODE}", [{"op": op, "path": path, "value": value}], expect_errors=True)


def stored(db: Any) -> Any:
    with db.reader() as conn:
        return nodes.get(conn, NODE)


def test_what_get_returned_cannot_be_sent_back_over_the_secrets(app, db, node):
    shown = app.get(f"/v1/nodes/{NODE}").json
    refused = patch(app, "replace", "/driver_info", {**shown["driver_info"], "ipmi_address": "192.0.2.9"})

    assert refused.status_int == 400
    for where in ("/driver_info/ipmi_password: is a secret that a reply has hidden",
                  "/driver_info/deploy_kernel: is a secret that a reply has hidden"):
        assert where in fault(refused)
    assert patch(app, "add", "/instance_info", shown["instance_info"]).status_int == 400
    assert (stored(db).driver_info, stored(db).instance_info["configdrive"]) == (INFO, "H4sI")


def test_a_difference_as_openstacksdk_sends_it_needs_no_secret(app, db, node):
    assert patch(app, "add", "/driver_info/ipmi_address", "192.0.2.9").status_int == 200
    assert stored(db).driver_info == {**INFO, "ipmi_address": "192.0.2.9"}


@pytest.mark.parametrize(("op", "path", "value", "where"), [
    ("replace", "/driver_info/ipmi_password", "******", "/driver_info/ipmi_password"),
    ("add", "/driver_info/redfish_password", "******", "/driver_info/redfish_password"),
    ("add", "/instance_info/deep/0/auth_token", "******", "/instance_info/deep/0/auth_token"),
    ("add", "/extra/site", {"a/b": [{"api_token": "******"}]}, "/extra/site/a~1b/0/api_token"),
    ("add", "/driver_info/deploy_ramdisk", "https://files:******@images.example.org/r", "/driver_info/deploy_ramdisk"),
])
def test_a_patch_never_stores_the_mask_under_a_secret_key(app, node, op, path, value, where):
    refused = patch(app, op, path, value)

    assert (refused.status_int, f"{where}: is a secret" in fault(refused)) == (400, True)


@pytest.mark.parametrize(("path", "value"), [
    ("/extra/stars", "******"), ("/driver_info/ipmi_password", "*******"), ("/driver_info/ipmi_password", None),
    ("/extra/url", "https://u@example.org/******"),
])
def test_other_values_are_accepted(app, node, path, value):
    assert patch(app, "add", path, value).status_int == 200


def test_a_copy_of_the_mask_is_refused_too(app, node):
    patch(app, "add", "/extra/stars", "******")
    body = [{"op": "copy", "from": "/extra/stars", "path": "/driver_info/ipmi_password"}]

    assert app.patch_json(f"/v1/nodes/{NODE}", body, expect_errors=True).status_int == 400


def test_a_mask_that_an_earlier_version_has_stored_hinders_no_other_change(app, db, make_node):
    make_node(uuid=NODE, driver_info={"ipmi_password": "******"})

    assert patch(app, "add", "/driver_info/ipmi_address", "192.0.2.9").status_int == 200
    assert patch(app, "replace", "/driver_info/ipmi_password", "s3cret").status_int == 200
    assert stored(db).driver_info == {"ipmi_password": "s3cret", "ipmi_address": "192.0.2.9"}


def test_new_objects_and_requests_have_no_masks(app, node):
    def refused(method: str, path: str, body: Any) -> str:
        reply = getattr(app, f"{method}_json")(path, body, expect_errors=True)
        assert reply.status_int == 400
        return fault(reply)

    hidden = {"password": "******"}
    port = {"node_uuid": NODE, "address": "52:54:00:00:00:01", "extra": hidden}
    assert "/driver_info/password: is a secret" in refused(
        "post", "/v1/nodes", {"driver": "fake-hardware", "driver_info": hidden})
    assert "/extra/password: is a secret" in refused("post", "/v1/ports", port)
    assert "/extra/password: is a secret" in refused("post", "/v1/portgroups", {"node_uuid": NODE, "extra": hidden})
    made = app.post_json("/v1/ports", {**port, "extra": {}}).json["uuid"]
    assert "/extra/a/secret: is a secret" in refused(
        "patch", f"/v1/ports/{made}", [{"op": "add", "path": "/extra/a", "value": {"secret": "******"}}])


@pytest.mark.parametrize(("target", "given", "where"), [
    ("active", {"configdrive": "******"}, "/configdrive"),
    ("active", {"deploy_steps": [{"interface": "raid", "step": "x", "priority": 1, "args": {"password": "******"}}]},
     "/deploy_steps/0/args/password"),
    ("rescue", {"rescue_password": "******"}, "/rescue_password"),
])
def test_requests_for_a_state_have_no_masks(app, make_node, target, given, where):
    make_node(uuid=NODE, provision_state="available" if target == "active" else "active")
    reply = app.put_json(f"/v1/nodes/{NODE}/states/provision", {"target": target, **given}, expect_errors=True)

    assert (reply.status_int, f"{where}: is a secret" in fault(reply)) == (400, True)


@walking("op, args, place", [
    ("set-attribute", ["/driver_info/ipmi_password", "******"],
     "/actions/0/args/1: /driver_info/ipmi_password: ******"),
    ("set-attribute", {"path": "/driver_info", "value": {"ipmi_password": "******"}},
     "/actions/0/args/value: /driver_info/ipmi_password: ******"),
    ("set-plugin-data", ["site.password", "******"], "/actions/0/args/1: /site/password: ******"),
    ("extend-attribute", ["/extra/tokens", "******"], "/actions/0/args/1: /extra/tokens: ******"),
])
def test_a_rule_with_the_mask_for_a_secret_is_refused(app, op, args, place):
    reply = app.post_json(RULES, {"actions": [{"op": op, "args": args}]}, expect_errors=True)

    assert (reply.status_int, place in fault(reply)) == (400, True), reply.text
