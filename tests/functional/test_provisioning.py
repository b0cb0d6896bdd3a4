"""The state machine, from HTTP to the database and back, in one process."""

from __future__ import annotations

import pytest

from ironic_rules.db import nodes
from ironic_rules.hardware.fake import FakeManagement
from ironic_rules.models import states
from tests.functional.processes import in_time
from tests.functional.whole import fault, running
from tests.walking import walking

STEPS = [{"interface": "power", "step": "reboot"}]
#: Arguments that a target requires.
ARGUMENTS = {
    "clean": {"clean_steps": STEPS}, "service": {"service_steps": STEPS}, "rescue": {"rescue_password": "secret"},
}
#: (state, target) -> the final state of the node with fake hardware, for every target that a client may request.
ENDS = {
    (state, verb): {
        "manage": "manageable", "provide": "available", "inspect": "inspect wait", "active": "active",
        "rebuild": "active", "deleted": "available", "clean": "manageable", "adopt": "active", "service": "active",
        "rescue": "rescue", "unrescue": "active",
        "abort": {"inspect wait": "inspect failed", "wait call-back": "deploy failed", "clean wait": "clean failed",
                  "clean hold": "clean failed",
                  "deploy hold": "deploy failed", "rescue wait": "rescue failed", "service wait": "service failed",
                  "service hold": "service failed"}.get(state),
        "unhold": {"clean hold": "available", "deploy hold": "active", "service hold": "active"}.get(state),
    }[verb]
    for state, verb in states.TRANSITIONS
    if verb in states.VERB_VERSIONS
}
ABORTED = {
    "inspect wait": "Inspection was aborted by request. (IR-2083)",
    **dict.fromkeys(("wait call-back", "deploy hold"), "The deployment was aborted by request. (IR-2084)"),
    **dict.fromkeys(("clean wait", "clean hold"), "The cleaning was aborted by request. (IR-2084)"),
    "rescue wait": "The rescue was aborted by request. (IR-2084)",
    **dict.fromkeys(("service wait", "service hold"), "The servicing was aborted by request. (IR-2084)"),
}
VERBS = sorted(set(states.VERB_VERSIONS) - set(states.VERB_ALIASES))
RESTING = sorted(states.ALL - states.TRANSIENT - {states.REBUILD, states.DELETED})


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    with running(tmp_path_factory.mktemp("whole")) as service:
        yield service


@walking("state, verb", sorted(ENDS))
def test_every_transition_ends_where_it_should(whole, state, verb):
    node = whole.enroll(state, instance_info={"image_source": "x"})
    whole.put(node, last_error="an earlier failure")

    shown = whole.provision(node, verb, **ARGUMENTS.get(verb, {}))

    assert (shown["provision_state"], shown["reservation"]) == (ENDS[state, verb], None)
    assert shown["power_state"] in ("power on", "power off")
    assert shown["last_error"] == (ABORTED[state] if verb == "abort" else None)
    resting = {"inspect wait": "manageable", "inspect failed": "manageable", "clean failed": "manageable",
               "deploy failed": "active", "rescue failed": "rescue", "service failed": "active"}
    assert shown["target_provision_state"] == resting.get(shown["provision_state"])


@walking("verb", VERBS)
def test_wrong_transitions_are_400_and_change_nothing(whole, verb):
    for state in RESTING:
        if (state, verb) in ENDS:
            continue
        node = whole.enroll(state)
        before = whole.row(node)

        assert whole.ask(node, verb, **ARGUMENTS.get(verb, {})).status_int == 400, (state, verb)
        assert whole.row(node) == before


@pytest.mark.parametrize("target", ["manage", "power"])
def test_a_locked_node_is_a_conflict_that_names_the_holder(whole, target):
    node = whole.enroll()
    whole.db.write(lambda conn: nodes.reserve(
        conn, nodes.Lock(nodes.get_id(conn, node), "elsewhere", "run:1"), "test"))

    if target == "manage":
        reply = whole.ask(node, "manage")
    else:
        reply = whole.app.put_json(f"/v1/nodes/{node}/states/power", {"target": "power on"})

    assert reply.status_int == 409
    assert "elsewhere" in fault(reply)


def test_the_power_state_is_known_once_a_node_is_manageable(whole):
    node = whole.enroll()
    assert whole.show(node)["power_state"] is None

    shown = whole.provision(node, "manage")

    assert (shown["provision_state"], shown["power_state"]) == ("manageable", "power off")


@pytest.mark.parametrize(("target", "ends"), [
    ("power on", "power on"), ("power off", "power off"), ("rebooting", "power on"), ("soft rebooting", "power on"),
    ("soft power off", "power off"),
])
def test_power_targets(whole, target, ends):
    node = whole.enroll("manageable")
    whole.put(node, last_error="an earlier failure")

    assert whole.app.put_json(f"/v1/nodes/{node}/states/power", {"target": target, "timeout": 5}).status_int == 202

    row = whole.at_rest(node)
    assert (row.power_state, row.target_power_state, row.last_error) == (ends, None, None)


REFUSED = "is refused, because the node has disable_power_off; reboot it instead"


@pytest.mark.parametrize("target", ["power off", "soft power off"])
def test_a_machine_that_must_stay_on_is_not_switched_off_by_request(whole, target):
    node = whole.enroll("active", disable_power_off=True)
    whole.put(node, power_state="power on")

    reply = whole.app.put_json(f"/v1/nodes/{node}/states/power", {"target": target})

    assert (reply.status_int, fault(reply)) == (400, f"/target: {REFUSED}")
    assert (whole.row(node).power_state, whole.row(node).target_power_state) == ("power on", None)


@pytest.mark.parametrize(("state", "verb", "field", "more"), [
    ("active", "rebuild", "deploy_steps", {"args": {}, "priority": 50}), ("active", "service", "service_steps", {}),
    ("manageable", "clean", "clean_steps", {}),
])
def test_a_machine_that_must_stay_on_is_not_switched_off_by_a_step(whole, state, verb, field, more):
    node = whole.enroll(state, disable_power_off=True)

    reply = whole.ask(node, verb, **{field: [{"interface": "power", "step": "power_off", **more}]})

    assert (reply.status_int, whole.row(node).provision_state) == (400, state)
    assert "(power.power_off)" in fault(reply) or f"/{field}/0/step" in fault(reply)
    assert f"/step: {REFUSED}" in fault(reply)


def test_a_machine_that_must_stay_on_is_on_after_its_instance(whole):
    node = whole.enroll("available", automated_clean=False, disable_power_off=True)
    assert whole.provision(node, "active")["power_state"] == "power on"

    shown = whole.provision(node, "deleted")

    assert (shown["provision_state"], shown["power_state"], shown["last_error"]) == ("available", "power on", None)


@pytest.mark.parametrize(("how", "text"), [("refuse", "refuses to set_power_state"), ("crash", "unexpected error")])
def test_a_failed_power_change_is_told(whole, how, text):
    node = whole.enroll("manageable", driver="faulty-hardware", driver_info={"set_power_state": how})

    whole.app.put_json(f"/v1/nodes/{node}/states/power", {"target": "power on"})

    row = whole.at_rest(node)
    assert (row.power_state, row.target_power_state) == ("power off", None)
    assert text in row.last_error


def test_validation_tells_what_each_interface_lacks(whole):
    node = whole.enroll(raid_interface="no-raid", rescue_interface="no-rescue")

    shown = whole.app.get(f"/v1/nodes/{node}/validate").json

    assert shown["power"] == {"result": True}
    assert {kind for kind, result in shown.items() if not result["result"]} == {"raid", "rescue"}
    assert "raid" in shown["raid"]["reason"]


def test_validation_of_unmanaged_boot_when_the_service_must_boot_the_ramdisk(whole):
    node = whole.enroll("manageable")
    with whole.option("inspector", "require_managed_boot", True):
        shown = whole.app.get(f"/v1/nodes/{node}/validate").json
        reply = whole.ask(node, "inspect")

    assert shown["inspect"]["result"] is False
    assert "require_managed_boot" in shown["inspect"]["reason"]
    assert (reply.status_int, whole.row(node).provision_state) == (400, "manageable")


def test_an_interface_that_crashes_in_validation_is_invalid(whole):
    node = whole.enroll(driver="faulty-hardware", driver_info={"validate": "crash"})

    shown = whole.app.get(f"/v1/nodes/{node}/validate").json

    assert shown["power"]["result"] is False
    assert "unexpected error" in shown["power"]["reason"]


def test_rescue_needs_a_rescue_interface(whole):
    node = whole.enroll("active", rescue_interface="no-rescue")

    reply = whole.ask(node, "rescue", rescue_password="secret")

    assert (reply.status_int, whole.row(node).provision_state) == (400, "active")
    assert "rescue" in fault(reply)


def test_the_rescue_password_does_not_outlive_the_rescue(whole):
    node = whole.enroll("active")
    whole.provision(node, "rescue", rescue_password="secret")
    assert whole.row(node).instance_info == {"rescue_password": "secret"}

    whole.provision(node, "unrescue")

    assert whole.row(node).instance_info == {}


def test_a_node_forgets_its_instance_with_its_end(whole):
    instance = "5bd4a8a1-7d80-4b22-a5ca-3a6db1e1b6c5"
    node = whole.enroll("available", instance_info={"image_source": "x"}, instance_uuid=instance)
    whole.provision(node, "active", configdrive="abc")
    assert whole.row(node).instance_info == {"image_source": "x", "configdrive": "abc"}

    shown = whole.provision(node, "deleted")

    assert (shown["instance_uuid"], shown["instance_info"]) == (None, {})


def test_manual_cleaning_stays_manual_when_it_is_held(whole):
    node = whole.enroll("clean hold")
    whole.put(node, target_provision_state="manageable")

    assert whole.provision(node, "unhold")["provision_state"] == "manageable"


@pytest.mark.parametrize("verb", ["deleted", "rebuild"])
def test_a_protected_node_is_kept(whole, verb):
    node = whole.enroll("active")
    whole.put(node, protected=True)

    assert (whole.ask(node, verb).status_int, whole.row(node).provision_state) == (403, "active")


@pytest.mark.parametrize(("state", "verb"), [("available", "active"), ("active", "rebuild"), ("manageable", "clean"),
                                             ("active", "service"), ("active", "rescue"), ("rescue", "unrescue")])
def test_a_node_in_maintenance_is_left_alone(whole, state, verb):
    node = whole.enroll(state)
    whole.put(node, maintenance=True)

    reply = whole.ask(node, verb, **ARGUMENTS.get(verb, {}))

    assert (reply.status_int, whole.row(node).provision_state) == (400, state)


@walking("how, text", [("refuse", "the machine refuses to {}"), ("crash", "unexpected error")])
@walking("state, verb, call, ends", [
    ("enroll", "manage", "get_power_state", "enroll"),
    ("available", "active", "deploy", "deploy failed"), ("active", "rebuild", "deploy", "deploy failed"),
    ("active", "deleted", "tear_down", "error"), ("manageable", "adopt", "get_power_state", "adopt failed"),
    ("active", "rescue", "rescue", "rescue failed"), ("rescue", "unrescue", "unrescue", "unrescue failed"),
    ("manageable", "inspect", "inspect", "inspect failed"),
])
def test_a_failing_interface_ends_in_the_failed_state(whole, state, verb, call, ends, how, text):
    node = whole.enroll(state, driver="faulty-hardware", driver_info={call: how})
    expected = text.format(call)

    shown = whole.provision(node, verb, **ARGUMENTS.get(verb, {}))

    assert (shown["provision_state"], shown["reservation"]) == (ends, None)
    assert expected in shown["last_error"]
    # A deployment also shows its steps.
    errors = [event for severity, event in whole.events(node) if severity == "ERROR"]
    assert [expected in event for event in errors] == [True]
    history = whole.app.get(f"/v1/nodes/{node}/history?detail=true").json["history"]
    assert (history[-1]["severity"], history[-1]["conductor"]) == ("ERROR", "conductor-1")


def test_an_error_is_forgotten_with_the_next_success(whole):
    node = whole.enroll("available", driver="faulty-hardware", driver_info={"deploy": "refuse"})
    assert whole.provision(node, "active")["last_error"]
    whole.put(node, driver_info={})

    assert whole.provision(node, "active")["last_error"] is None


@pytest.mark.parametrize("ask", [
    lambda app, node: app.put_json(f"/v1/nodes/{node}/states/provision", {"target": "manage"}),
    lambda app, node: app.put_json(f"/v1/nodes/{node}/states/power", {"target": "power on"}),
    lambda app, node: app.get(f"/v1/nodes/{node}/validate"),
])
def test_a_node_of_a_group_that_nobody_serves_is_refused_at_once(whole, ask):
    node = whole.enroll()
    whole.put(node, conductor_group="rack-9")

    with in_time():
        reply = ask(whole.app, node)

    assert reply.status_int == 503
    assert "No conductor" in fault(reply)


@pytest.mark.parametrize(("reported", "ends"), [
    ([], "active"), (["52:54:00:AA:00:01", "52:54:00:aa:00:02"], "active"), (["52:54:00:aa:00:02"], "adopt failed")])
def test_a_machine_is_adopted_only_if_its_bmc_is_not_that_of_another_one(whole, monkeypatch, reported, ends):
    monkeypatch.setattr(FakeManagement, "get_mac_addresses", lambda management, task: reported)
    node = whole.enroll("manageable")
    address = {"node_uuid": node, "address": "52:54:00:aa:00:01"}
    port = whole.app.post_json("/v1/ports", address).json["uuid"]

    shown = whole.provision(node, "adopt")

    assert shown["provision_state"] == ends
    assert ("52:54:00:aa:00:02" in (shown["last_error"] or "")) is (ends == "adopt failed")
    whole.put(node, maintenance=True)
    assert whole.app.delete(f"/v1/ports/{port}").status_int == 204
