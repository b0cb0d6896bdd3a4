"""Stored rules that no longer compile: the gate stays closed, and only the nodes that they apply to fail."""

from __future__ import annotations

import pytest

from ironic_rules.conductor import recovery
from ironic_rules.db import inspection_rules, inventory, nodes
from ironic_rules.db.paging import Page
from tests.functional.whole import running

RULES = "/v1/inspection_rules"
CONFIG = "[auto_discovery]\nenabled = true\ndriver = fake-hardware\nmax_nodes_per_minute = 1000\n"
FAIL = {"op": "fail", "args": {"msg": "not in this house"}}
NOTE = {"op": "set-attribute", "args": {"path": "/extra/seen", "value": True}}
NOSUCH = [{"op": "of-a-removed-plug-in", "args": {}}]


@pytest.fixture(scope="module")
def service_of_module(tmp_path_factory):
    with running(tmp_path_factory.mktemp("broken"), CONFIG) as made:
        yield made


@pytest.fixture
def whole(service_of_module):
    yield service_of_module
    service_of_module.app.delete(RULES)


def rule(whole, *actions, **fields):
    reply = whole.app.post_json(RULES, {"actions": list(actions), **fields})
    assert reply.status_int == 201, reply.text
    return reply.json["uuid"]


def break_(whole, uuid):
    """Change a stored rule as if the plug-in of its action had been uninstalled."""
    whole.db.write(lambda conn: inspection_rules.update(conn, uuid, {"actions": NOSUCH}))


def mend(whole, uuid, *actions):
    reply = whole.app.patch_json(f"{RULES}/{uuid}", [{"op": "replace", "path": "/actions", "value": list(actions)}])
    assert reply.status_int == 200, reply.text


def waiting(whole, **fields):
    """Return a node that waits for its ramdisk, and the body of that."""
    uuid = whole.enroll("manageable", **fields)
    mac, body = whole.machine()
    whole.app.post_json("/v1/ports", {"node_uuid": uuid, "address": mac})
    assert whole.provision(uuid, "inspect")["provision_state"] == "inspect wait"
    return uuid, body


def call(whole, body):
    return whole.app.post_json("/v1/continue_inspection", body, headers={"X-OpenStack-Ironic-API-Version": "1.1"})


@pytest.mark.parametrize("sensitive", [False, True])
def test_a_machine_that_is_not_known_is_refused_while_an_early_rule_is_broken(whole, caplog, sensitive):
    early = rule(whole, FAIL, phase="early", sensitive=sensitive)
    _, body = whole.machine()
    refused = call(whole, body)
    break_(whole, early)

    again = call(whole, body)

    assert (again.status_int, again.body) == (404, refused.body)
    assert whole.app.get("/healthcheck").json["invalid_rules"] == 1
    shown = whole.app.get(f"{RULES}/{early}").json
    assert (shown["valid"], [problem["pointer"] for problem in shown["problems"]]) == (
        False, [""] if sensitive else ["/actions/0/op"])
    assert ("plug-in is missing on this host" in shown["problems"][0]["text"]) is not sensitive
    assert [rule["uuid"] for rule in whole.app.get(f"{RULES}?valid=false").json["inspection_rules"]] == [early]
    with whole.db.reader() as conn:
        assert nodes.list_nodes(conn, {"auto_discovered": True}, Page(limit=9), ["id"]) == []
    reasons = [record.getMessage() for record in caplog.records if "A report is rejected" in record.getMessage()]
    assert [(early in reason, "an early rule is broken" in reason) for reason in reasons] == [
        (True, False), (True, True)]
    assert ("no such action" in caplog.text) is not sensitive
    mend(whole, early, {"op": "log", "args": ["welcome"]})
    reply = call(whole, body)
    assert reply.status_int == 200
    whole.at_rest(reply.json["uuid"])
    assert whole.app.delete(f"/v1/nodes/{reply.json['uuid']}").status_int == 204


def test_a_node_that_waits_fails_with_its_data_stored_and_is_inspected_when_the_rule_is_mended(whole):
    early = rule(whole, {"op": "log", "args": ["welcome"]}, phase="early")
    rule(whole, NOTE)
    uuid, body = waiting(whole)
    break_(whole, early)

    assert call(whole, body).status_int == 200

    whole.at_rest(uuid)
    node = whole.show(uuid)
    assert node["provision_state"] == "inspect failed"
    assert node["last_error"].startswith(
        f"Inspection failed: Inspection rule {early} failed at /actions/0/op: it is no longer valid: there is no such")
    assert node["extra"] == {}
    assert whole.inventories(uuid) == ["failed"]
    mend(whole, early, {"op": "log", "args": ["welcome"]})
    assert whole.inspect(uuid, body)["extra"] == {"seen": True}


def test_a_conductor_that_dies_before_it_fails_the_inspection_fails_it_later(whole, monkeypatch):
    """The reason is stored with the data, in the transaction that accepts them."""
    uuid, body = waiting(whole)
    with monkeypatch.context() as patch:
        patch.setattr(type(whole.conductor.workers), "take", lambda *args: _Dead())
        early = rule(whole, FAIL, phase="early")
        break_(whole, early)
        assert call(whole, body).status_int == 200
    with whole.db.reader() as conn:
        pending = inventory.pending(conn, nodes.get_id(conn, uuid))
    assert pending is not None
    assert early in pending.refusal
    mend(whole, early, {"op": "log", "args": ["welcome"]})
    recovery.resume_orphans(whole.conductor)
    whole.at_rest(uuid)
    assert early in whole.show(uuid)["last_error"]


class _Dead:
    """A slot whose work is never done."""

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def run(self, *work):
        pass


@pytest.mark.parametrize("phase", ["preprocess", "main"])
def test_only_nodes_in_the_scope_of_a_broken_rule_fail(whole, phase):
    scoped = rule(whole, FAIL, phase=phase, scope="a")
    rule(whole, NOTE)
    break_(whole, scoped)
    (inside, first), (outside, second) = waiting(whole, inspection_scope="a"), waiting(whole, inspection_scope="b")

    assert [call(whole, body).status_int for body in (first, second)] == [200, 200]

    for uuid in (inside, outside):
        whole.at_rest(uuid)
    assert whole.show(outside)["extra"] == {"seen": True}
    failed = whole.show(inside)
    assert (failed["provision_state"], failed["extra"]) == ("inspect failed", {})
    assert f"Inspection rule {scoped} failed at /actions/0/op" in failed["last_error"]


@pytest.mark.parametrize("sensitive", [False, True])
def test_a_broken_rule_can_be_disabled_until_it_is_mended(whole, sensitive):
    early = rule(whole, FAIL, phase="early", sensitive=sensitive)
    main = rule(whole, FAIL, sensitive=sensitive)
    uuid, body = waiting(whole)
    for each in (early, main):
        break_(whole, each)

    for each in (early, main):
        disabled = whole.app.patch_json(f"{RULES}/{each}", [{"op": "replace", "path": "/enabled", "value": False}])
        assert (disabled.status_int, disabled.json["valid"]) == (200, False)
        again = whole.app.patch_json(f"{RULES}/{each}", [{"op": "replace", "path": "/enabled", "value": True}])
        assert (again.status_int, "no such action" in again.text) == (400, not sensitive)

    for known, report in ((uuid, body), (None, whole.machine()[1])):
        reply = call(whole, report)
        assert (reply.status_int, reply.json["uuid"]) == (200, known or reply.json["uuid"])
        whole.at_rest(reply.json["uuid"])
        assert whole.show(reply.json["uuid"])["last_error"] is None
        assert whole.app.delete(f"/v1/nodes/{reply.json['uuid']}").status_int == 204
