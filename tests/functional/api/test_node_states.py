"""``/v1/nodes/{node}/states``, ``validate``."""

from __future__ import annotations

import pytest

from ironic_rules.exceptions import NodeLocked, NoFreeWorker, RPCTimeout, invalid_state
from ironic_rules.models import states
from tests.walking import walking

from .conftest import at

UUID = "44444444-4444-4444-8444-444444444444"
STEP = {"interface": "deploy", "step": "erase"}


@pytest.fixture
def provision(app):
    def put(target, minor=96, **arguments):
        return app.put_json(f"/v1/nodes/{UUID}/states/provision", {"target": target, **arguments}, headers=at(minor),
                            expect_errors=True)

    return put


def test_states_tell_where_a_node_is(app, make_node):
    make_node(uuid=UUID, provision_state="deploy failed", target_provision_state="active", last_error="no",
              power_state="power on")

    shown = app.get(f"/v1/nodes/{UUID}/states").json

    assert shown == {
        "console_enabled": False, "last_error": "no", "power_state": "power on", "provision_state": "deploy failed",
        "target_power_state": None, "target_provision_state": "active", "provision_updated_at": None, "raid_config": {},
        "target_raid_config": {}, "boot_mode": None, "secure_boot": None}
    assert "boot_mode" not in app.get(f"/v1/nodes/{UUID}/states", headers=at(74)).json


def test_a_target_is_accepted_with_an_empty_body_and_handed_to_a_conductor(provision, make_node, rpc):
    make_node(uuid=UUID, conductor_group="rack1")

    reply = provision("manage")

    assert (reply.status_int, reply.body) == (202, b"")
    assert reply.headers["Location"] == f"http://localhost/v1/nodes/{UUID}/states"
    assert "Content-Type" not in reply.headers
    assert rpc.calls == [("change_provision_state", UUID, {"target": "manage", "group": "rack1"})]


@walking("state, target, arguments", [
    ("available", "active", {"configdrive": "abc"}), ("available", "active", {"configdrive": {"meta_data": {}}}),
    ("available", "active", {"deploy_steps": [{**STEP, "args": {}, "priority": 50}]}),
    ("active", "rebuild", {"configdrive": "x"}),
    ("manageable", "clean", {"clean_steps": [{**STEP, "args": {"a": 1}}]}),
    ("active", "service", {"service_steps": [STEP]}),
    ("active", "rescue", {"rescue_password": "x"}), ("manageable", "clean",
                                                     {"clean_steps": [STEP], "disable_ramdisk": True}),
], between="start_empty")
def test_arguments_reach_the_conductor(provision, make_node, rpc, state, target, arguments):
    make_node(uuid=UUID, provision_state=state)

    assert provision(target, **arguments).status_int == 202
    assert rpc.calls == [("change_provision_state", UUID, {"target": target, "group": "", **arguments})]


def test_arguments_that_are_null_are_not_given(provision, make_node, rpc):
    make_node(uuid=UUID)

    provision("manage", configdrive=None, clean_steps=None)

    assert rpc.calls == [("change_provision_state", UUID, {"target": "manage", "group": ""})]


@pytest.mark.parametrize(("verb", "means"), [("deploy", "active"), ("undeploy", "deleted")])
def test_aliases_of_targets(provision, make_node, rpc, verb, means):
    make_node(uuid=UUID, provision_state={"deploy": "available", "undeploy": "active"}[verb])

    assert provision(verb).status_int == 202
    assert rpc.calls[0][2]["target"] == means


@walking("verb, since", sorted((v, n) for v, n in states.VERB_VERSIONS.items() if n > 1), between="start_empty")
def test_a_target_that_is_too_new_is_406(provision, make_node, verb, since):
    make_node(uuid=UUID, provision_state="verifying")

    assert provision(verb, minor=since - 1).status_int == 406
    assert provision(verb, minor=since).status_int == 400


@walking("target", ["nosuch", "", None, 1, "done", "wait", "fail", "resume"], between="start_empty")
def test_an_unknown_target_is_refused_with_the_known_ones(provision, make_node, rpc, target):
    make_node(uuid=UUID)

    reply = provision(target)

    assert reply.status_int == 400
    assert "/target: must be one of abort, active, adopt" in reply.fault["faultstring"]
    assert rpc.calls == []


@walking("state", sorted(states.ALL))
@walking("verb", ["manage", "inspect"], between="start_empty")
def test_a_transition_that_does_not_exist_is_400(provision, make_node, rpc, state, verb):
    make_node(uuid=UUID, provision_state=state)

    reply = provision(verb)

    assert reply.status_int == (202 if states.transition(state, verb) else 400)
    assert bool(rpc.calls) is (reply.status_int == 202)


def test_a_wrong_transition_says_what_and_where(provision, make_node):
    make_node(uuid=UUID)

    assert provision("inspect").fault["faultstring"] == (
        f'The requested action "inspect" can not be performed on node "{UUID}" while it is in state "enroll".')


def test_a_wrong_transition_of_a_locked_node_is_a_conflict(provision, make_node):
    make_node(uuid=UUID, provision_state="deploying", reservation="conductor-1")

    assert provision("active").status_int == 409


@pytest.mark.parametrize(("minor", "status"), [(40, 406), (41, 202)])
def test_aborting_an_inspection_needs_1_41(provision, make_node, minor, status):
    make_node(uuid=UUID, provision_state="inspect wait")

    assert provision("abort", minor=minor).status_int == status


@walking("state, target, arguments, place", [
    ("manageable", "clean", {}, "/clean_steps"), ("manageable", "clean", {"clean_steps": []}, "/clean_steps"),
    ("active", "rescue", {}, "/rescue_password"), ("active", "service", {}, "/service_steps"),
    ("enroll", "manage", {"configdrive": "x"}, "/configdrive"),
    ("enroll", "manage", {"clean_steps": [STEP]}, "/clean_steps"),
    ("available", "active", {"rescue_password": "x"}, "/rescue_password"),
    ("enroll", "manage", {"nosuch": 1}, "/nosuch"),
    ("available", "active", {"configdrive": 5}, "/configdrive"),
    ("available", "active", {"deploy_steps": [STEP]}, "/deploy_steps/0/priority"),
    ("available", "active", {"deploy_steps": [{**STEP, "args": {}, "priority": -1}]}, "/deploy_steps/0/priority"),
    ("manageable", "clean", {"clean_steps": [{"interface": "nosuch", "step": "x"}]}, "/clean_steps/0/interface"),
    ("manageable", "clean", {"clean_steps": [{**STEP, "extra": 1}]}, "/clean_steps/0/extra"),
    ("manageable", "clean", {"clean_steps": {}}, "/clean_steps"),
], between="start_empty")
def test_bad_arguments_are_refused_with_their_place(provision, make_node, rpc, state, target, arguments, place):
    make_node(uuid=UUID, provision_state=state)

    reply = provision(target, **arguments)

    assert reply.status_int == 400
    assert place in reply.fault["faultstring"]
    assert rpc.calls == []


@walking("state, target, arguments, since", [
    ("available", "active", {"deploy_steps": []}, 69), ("active", "rebuild", {"configdrive": "x"}, 35),
    ("available", "active", {"configdrive": {}}, 56), ("manageable", "clean",
                                                       {"clean_steps": [STEP], "disable_ramdisk": True}, 70),
], between="start_empty")
def test_an_argument_that_is_too_new_is_406(provision, make_node, state, target, arguments, since):
    make_node(uuid=UUID, provision_state=state)

    assert provision(target, minor=since - 1, **arguments).status_int == 406
    assert provision(target, minor=since, **arguments).status_int == 202


@walking("values, target, status", [
    ({"provision_state": "available", "maintenance": True}, "active", 400),
    ({"provision_state": "active", "protected": True}, "deleted", 403),
    ({"provision_state": "active", "protected": True}, "undeploy", 403),
    ({"provision_state": "active", "protected": True}, "rebuild", 403),
], between="start_empty")
def test_maintenance_and_protection_are_respected(provision, make_node, rpc, values, target, status):
    make_node(uuid=UUID, **values)

    assert provision(target).status_int == status
    assert rpc.calls == []


@walking("error, status", [
    (NodeLocked(node=UUID, host="c"), 409), (invalid_state(action="manage", node=UUID, state="x"), 400),
    (NoFreeWorker(node=UUID), 503), (RPCTimeout(), 503),
], between="start_empty")
def test_what_the_conductor_says_is_passed_on(provision, make_node, rpc, error, status):
    make_node(uuid=UUID)
    rpc.fail_with("change_provision_state", error)

    assert provision("manage").status_int == status


def test_an_unknown_node_is_404(app):
    for path in ("", "/provision", "/power"):
        send = app.get if not path else app.put_json
        body = () if not path else ({"target": "manage" if path == "/provision" else "power on"},)
        assert send(f"/v1/nodes/{UUID}/states{path}", *body, expect_errors=True).status_int == 404


def test_power_is_changed_by_a_conductor(app, make_node, rpc):
    make_node(uuid=UUID, name="n", conductor_group="rack1")

    reply = app.put_json("/v1/nodes/n/states/power", {"target": "soft rebooting", "timeout": 5})

    assert (reply.status_int, reply.body) == (202, b"")
    assert reply.headers["Location"] == "http://localhost/v1/nodes/n/states"
    assert rpc.calls == [("change_power_state", UUID, {"target": "soft rebooting", "timeout": 5, "group": "rack1"})]


@walking("body, minor, status", [
    ({"target": "nosuch"}, 96, 400), ({}, 96, 400), ({"target": "power on", "timeout": 0}, 96, 400),
    ({"target": "power on", "timeout": "x"}, 96, 400), ({"target": "power on", "nosuch": 1}, 96, 400), ([], 96, 400),
    ({"target": "soft power off"}, 26, 406), ({"target": "power on", "timeout": 1}, 26, 406),
    ({"target": "power on"}, 1, 202),
    ({"target": "power on", "timeout": None}, 1, 202),
], between="start_empty")
def test_power_requests_are_checked(app, make_node, body, minor, status):
    make_node(uuid=UUID)

    reply = app.put_json(f"/v1/nodes/{UUID}/states/power", body, headers=at(minor), expect_errors=True)

    assert reply.status_int == status


@pytest.mark.parametrize("values", [{"reservation": "c"}, {"provision_state": "clean wait"}])
def test_the_power_of_a_busy_node_is_a_conflict(app, make_node, rpc, values):
    make_node(uuid=UUID, **values)

    reply = app.put_json(f"/v1/nodes/{UUID}/states/power", {"target": "power on"}, expect_errors=True)

    assert (reply.status_int, rpc.calls) == (409, [])


def test_validate_asks_a_conductor(app, make_node, rpc):
    make_node(uuid=UUID, name="n", conductor_group="rack1")
    rpc.validation = {"power": {"result": True}, "deploy": {"result": False, "reason": "no"}}

    assert app.get("/v1/nodes/n/validate").json == rpc.validation
    assert rpc.calls == [("validate_interfaces", UUID, {"group": "rack1"})]
