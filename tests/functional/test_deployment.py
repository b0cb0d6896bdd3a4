"""Deployment: from traits and requests to executed steps, over HTTP, in one process."""

from __future__ import annotations

import datetime
import re

import pytest

from ironic_rules.conductor import recovery
from ironic_rules.db import deploy_templates, nodes
from ironic_rules.hardware.fake import FakeConsole, FakeRAID
from ironic_rules.models.steps import Step
from tests.functional.processes import wait_for
from tests.functional.whole import fault, running

CALLBACK = {"callback_url": "http://192.0.2.7:9999"}
CORE = ["deploy.deploy", "deploy.write_image", "deploy.prepare_instance_boot", "deploy.tear_down_agent",
        "deploy.switch_to_tenant_network", "deploy.boot_instance"]
KEPT = ("deploy_steps", "deploy_step_index", "deploy_step_state", "user_deploy_steps")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    with running(tmp_path_factory.mktemp("deployment")) as service:
        yield service


def pretend(priority=50, interface="raid", **args):
    return {"interface": interface, "step": "pretend", "args": args, "priority": priority}


def template(whole, name, *steps):
    reply = whole.app.post_json("/v1/deploy_templates", {"name": name, "steps": list(steps)})
    assert reply.status_int == 201, reply.text
    return reply.json["uuid"]


def node_with(whole, *traits, requested=None, state="available", **fields):
    """Return a node with these traits, of which its instance requests ``requested`` (all of them)."""
    node = whole.enroll(state, raid_interface="fake", bios_interface="fake", **fields)
    assert whole.app.put_json(f"/v1/nodes/{node}/traits", {"traits": list(traits)}).status_int == 204
    whole.put(node, instance_info={"traits": list(traits) if requested is None else requested})
    return node


def finished(whole, node):
    """Return the steps that have finished according to the history, in their order."""
    pattern = re.compile(r"Deploy step (\S+) \(.*\) finished after \d+\.\d s\.")
    return [found[1] for _, event in whole.events(node) if (found := pattern.fullmatch(event))]


def assert_forgotten(row):
    assert row.deploy_step == {}
    assert not set(KEPT) & set(row.driver_internal_info)


def beat(whole, node, token=None):
    """Send a heartbeat as the node's ramdisk; return its token."""
    if token is None:
        token = whole.app.get(f"/v1/lookup?node_uuid={node}").json["config"]["agent_token"]
    reply = whole.app.post_json(f"/v1/heartbeat/{node}", {**CALLBACK, "agent_token": token})
    assert reply.status_int == 202, reply.text
    return token


def wait_for_machine(whole, *steps, **fields):
    """Deploy a node until it waits for its machine; return it."""
    node = node_with(whole, **fields)
    shown = whole.provision(node, "active", deploy_steps=list(steps) or [pretend(asynchronous=True)])
    assert (shown["provision_state"], shown["target_provision_state"]) == ("wait call-back", "active")
    return node


def test_a_deployment_without_templates_runs_the_default_steps(whole):
    node = node_with(whole)

    shown = whole.provision(node, "active")

    assert (shown["provision_state"], shown["target_provision_state"], shown["last_error"]) == ("active", None, None)
    assert (shown["power_state"], shown["reservation"]) == ("power on", None)
    assert finished(whole, node) == CORE
    assert_forgotten(whole.row(node))


def test_each_step_is_in_the_history_with_its_place_and_its_source(whole):
    template(whole, "CUSTOM_HISTORY", pretend(90, seconds=0.2))
    node = node_with(whole, "CUSTOM_HISTORY")

    whole.provision(node, "active")

    events = whole.events(node)
    assert {severity for severity, _ in events} == {"INFO"}
    texts = [event for _, event in events]
    assert texts[0] == ("The deployment begins; steps: deploy.deploy, raid.pretend, "
                        f"{', '.join(CORE[1:])}.")
    took = re.fullmatch(r"Deploy step raid.pretend \(2 of 7, template CUSTOM_HISTORY\) finished after (\S+) s\.",
                        texts[2])
    assert took is not None
    assert float(took[1]) >= 0.2
    assert texts[-1] == "The deployment is finished."


def test_the_history_of_a_node_stays_bounded(whole):
    template(whole, "CUSTOM_LONG", *[pretend(90) for _ in range(10)])
    node = node_with(whole, "CUSTOM_LONG")

    with whole.option("conductor", "node_history_max_entries", 5):
        whole.provision(node, "active")

    assert len(whole.events(node)) == 5


def test_requested_steps_go_on_top_of_templates_and_defaults(whole):
    template(whole, "CUSTOM_TWICE", pretend(95), pretend(5), {
        "interface": "bios", "step": "apply_configuration", "priority": 94,
        "args": {"settings": [{"name": "VMX", "value": "from the template"}]}})
    node = node_with(whole, "CUSTOM_TWICE")

    shown = whole.provision(node, "active", deploy_steps=[
        {"interface": "bios", "step": "apply_configuration", "priority": 96,
         "args": {"settings": [{"name": "VMX", "value": "from the request"}]}},
        {"interface": "deploy", "step": "write_image", "priority": 0, "args": {}}])

    assert shown["provision_state"] == "active"
    assert finished(whole, node) == ["deploy.deploy", "bios.apply_configuration", "raid.pretend", *CORE[2:],
                                     "raid.pretend"]
    assert whole.row(node).driver_internal_info["fake_bios_settings"] == {"VMX": "from the request"}


def test_a_later_deployment_does_not_have_the_steps_of_an_earlier_request(whole):
    node = node_with(whole)
    whole.provision(node, "active", deploy_steps=[pretend()])

    whole.provision(node, "rebuild")

    assert finished(whole, node).count("raid.pretend") == 1


def test_a_failing_step_is_named_and_stops_the_deployment(whole):
    template(whole, "CUSTOM_FAILS", pretend(70, error="the controller smokes"))
    node = node_with(whole, "CUSTOM_FAILS")

    shown = whole.provision(node, "active")

    assert (shown["provision_state"], shown["target_provision_state"]) == ("deploy failed", "active")
    assert shown["last_error"] == (
        "Deploy step raid.pretend (3 of 7, template CUSTOM_FAILS) failed: raid.pretend fails as requested: the "
        "controller smokes (IR-2087)")
    assert finished(whole, node) == CORE[:2]
    assert whole.events(node)[-1] == ("ERROR", shown["last_error"])
    assert_forgotten(whole.row(node))


def test_a_step_that_leaves_what_can_not_be_saved_is_named_too(whole, monkeypatch):
    node = node_with(whole)
    monkeypatch.setattr(FakeRAID, "delete_volumes", lambda raid, task: task.node.extra.update(bad=object()))

    shown = whole.provision(node, "active", deploy_steps=[
        {"interface": "raid", "step": "delete_configuration", "args": {}, "priority": 95}])

    assert (shown["provision_state"], shown["extra"]) == ("deploy failed", {})
    assert shown["last_error"] == (
        "Deploy step raid.delete_configuration (2 of 7, request) failed: it left a value that cannot be stored: "
        "/extra/bad of the node is of type object (IR-2087)")


def test_what_the_steps_before_a_failing_one_did_is_kept(whole):
    node = node_with(whole)
    settings = {"interface": "bios", "step": "apply_configuration", "priority": 96,
                "args": {"settings": [{"name": "VMX", "value": "on"}]}}

    whole.provision(node, "active", deploy_steps=[settings, pretend(95, error="no")])

    assert whole.row(node).driver_internal_info["fake_bios_settings"] == {"VMX": "on"}


@pytest.mark.parametrize(("option", "ends"), [(True, "power off"), (False, "power on")])
def test_a_failed_machine_is_switched_off_if_that_is_wanted(whole, option, ends):
    node = node_with(whole)

    with whole.option("deploy", "power_off_after_deploy_failure", option):
        shown = whole.provision(node, "active", deploy_steps=[pretend(1, error="no")])

    assert (shown["provision_state"], shown["power_state"]) == ("deploy failed", ends)


def test_a_node_that_is_torn_down_forgets_its_network_interfaces(whole):
    node = node_with(whole)
    groups = whole.app.post_json("/v1/portgroups", {"node_uuid": node, "address": "52:54:00:aa:00:01"})
    for number, group in ((2, groups.json["uuid"]), (3, None)):
        reply = whole.app.post_json("/v1/ports", {
            "node_uuid": node, "address": f"52:54:00:aa:00:0{number}", "portgroup_uuid": group})
        assert reply.status_int == 201, reply.text
    for vif in ("first", "second", "third"):
        assert whole.app.post_json(f"/v1/nodes/{node}/vifs", {"id": vif}).status_int == 204
    whole.provision(node, "active")
    assert len(whole.app.get(f"/v1/nodes/{node}/vifs").json["vifs"]) == 3

    whole.provision(node, "deleted")

    assert whole.app.get(f"/v1/nodes/{node}/vifs").json == {"vifs": []}


def test_the_console_of_an_instance_ends_with_it(whole, monkeypatch):
    node = node_with(whole, state="active")
    whole.put(node, console_enabled=True)

    shown = whole.provision(node, "deleted")

    assert (shown["provision_state"], shown["console_enabled"]) == ("available", False)
    whole.put(node, provision_state="active", console_enabled=True)
    monkeypatch.setattr(FakeConsole, "stop_console", lambda console, task: 1 / 0)
    shown = whole.provision(node, "deleted")
    assert (shown["provision_state"], shown["console_enabled"], shown["last_error"]) == ("available", True, None)
    assert [event for _, event in whole.events(node) if event.startswith("The console could not be stopped")]


@pytest.mark.parametrize("verb", ["active", "rebuild", "deleted"])
def test_a_failed_deployment_can_be_followed_by_another_one_or_by_the_end(whole, verb):
    node = node_with(whole)
    whole.provision(node, "active", deploy_steps=[pretend(error="no")])

    shown = whole.provision(node, verb)

    assert (shown["provision_state"], shown["last_error"]) == ("available" if verb == "deleted" else "active", None)


def test_a_rebuild_applies_templates_too(whole):
    template(whole, "CUSTOM_REBUILT", pretend(90))
    node = node_with(whole, "CUSTOM_REBUILT", state="active")

    assert whole.provision(node, "rebuild")["provision_state"] == "active"

    assert "raid.pretend" in finished(whole, node)


def test_an_asynchronous_step_waits_for_the_machine(whole):
    node = wait_for_machine(whole, pretend(50, asynchronous=True, seconds=0), pretend(25))

    shown = whole.show(node)
    assert shown["deploy_step"] == pretend(50, asynchronous=True, seconds=0)
    assert shown["reservation"] is None
    internal = shown["driver_internal_info"]
    assert [f"{step['interface']}.{step['step']}" for step in internal["deploy_steps"]] == [
        *CORE[:3], "raid.pretend", *CORE[3:5], "raid.pretend", CORE[5]]
    assert internal["deploy_step_index"] == 3
    assert finished(whole, node) == CORE[:3]

    beat(whole, node)

    row = whole.at_rest(node)
    assert (row.provision_state, row.target_provision_state, row.last_error) == ("active", None, None)
    assert finished(whole, node) == [*CORE[:3], "raid.pretend", *CORE[3:5], "raid.pretend", CORE[5]]
    assert_forgotten(row)
    assert row.agent_token_hash is None


def test_the_ramdisk_keeps_its_token_from_step_to_step(whole):
    node = wait_for_machine(whole, pretend(50, asynchronous=True), pretend(45), pretend(25, asynchronous=True))
    token = beat(whole, node)
    assert whole.at_rest(node).provision_state == "wait call-back"

    beat(whole, node, token)

    assert whole.at_rest(node).provision_state == "active"


def test_a_waiting_deployment_can_be_torn_down(whole):
    node = wait_for_machine(whole)

    shown = whole.provision(node, "deleted")

    assert (shown["provision_state"], shown["power_state"], shown["instance_info"]) == ("available", "power off", {})
    assert_forgotten(whole.row(node))


def test_a_waiting_deployment_that_is_aborted_has_failed_and_is_not_cleaned(whole):
    node = wait_for_machine(whole)

    shown = whole.provision(node, "abort")

    assert (shown["provision_state"], shown["target_provision_state"]) == ("deploy failed", "active")
    assert shown["last_error"] == "The deployment was aborted by request in deploy step raid.pretend. (IR-2084)"
    assert_forgotten(whole.row(node))
    assert whole.provision(node, "active")["provision_state"] == "active"


def wait_long(whole, node, **values):
    whole.put(node, **values)
    whole.put(node, provision_updated_at=datetime.datetime.now(datetime.UTC) - datetime.timedelta(hours=1))


def test_a_machine_that_never_calls_back_fails_the_deployment(whole):
    node, patient = wait_for_machine(whole), wait_for_machine(whole)
    wait_long(whole, node)

    with whole.option("conductor", "deploy_callback_timeout", 1800):
        recovery.fail_overdue(whole.conductor)

    row = whole.at_rest(node)
    assert (row.provision_state, row.target_provision_state) == ("deploy failed", "active")
    assert row.power_state == "power off"
    assert row.last_error == ("Timeout reached while waiting for the machine's call-back in deploy step raid.pretend "
                              "(1800 seconds, [conductor]deploy_callback_timeout). Its power state is 'power off'. "
                              "No ramdisk has looked the node up. (IR-2085)")
    assert whole.events(node)[-1] == ("ERROR", row.last_error)
    assert_forgotten(row)
    assert row.agent_token_hash is None
    assert whole.row(patient).provision_state == "wait call-back"


@pytest.mark.parametrize("values", [{"maintenance": True}, {"conductor_group": "rack-9"}, {"reservation": "other"}])
def test_which_machine_may_take_longer(whole, values):
    node = wait_for_machine(whole)
    wait_long(whole, node, **values)

    recovery.fail_overdue(whole.conductor)

    assert whole.row(node).provision_state == "wait call-back"


def test_a_machine_may_take_for_ever(whole):
    node = wait_for_machine(whole)
    wait_long(whole, node)

    with whole.option("conductor", "deploy_callback_timeout", 0):
        recovery.fail_overdue(whole.conductor)

    assert whole.row(node).provision_state == "wait call-back"


@pytest.mark.parametrize(("steps", "text"), [
    ([pretend(args=1, interface="vendor")], "does not offer"),
    ([{"interface": "raid", "step": "make_coffee", "args": {}, "priority": 1}], "raid.make_coffee"),
    ([pretend(loudness=11)], "/args/loudness"), ([pretend(seconds=-1)], "/args/seconds: must be a number from 0"),
    ([{"interface": "deploy", "step": "deploy", "args": {}, "priority": 7}], "core step"),
])
def test_steps_that_the_node_can_not_run_are_refused(whole, steps, text):
    node = node_with(whole, vendor_interface="no-vendor")

    reply = whole.ask(node, "active", deploy_steps=steps)

    assert (reply.status_int, whole.row(node).provision_state) == (400, "available")
    assert text in fault(reply)


def test_a_template_that_the_node_can_not_run_keeps_it_from_being_deployed(whole):
    template(whole, "CUSTOM_NOT_HERE", {"interface": "raid", "step": "make_coffee", "args": {}, "priority": 1})
    node = node_with(whole, "CUSTOM_NOT_HERE", requested=[])

    shown = whole.app.get(f"/v1/nodes/{node}/validate").json
    reply = whole.ask(node, "active")

    assert shown["deploy"]["result"] is False
    assert "deploy template CUSTOM_NOT_HERE, /steps/0 (raid.make_coffee)" in shown["deploy"]["reason"]
    assert shown["raid"] == {"result": True}
    assert (reply.status_int, whole.row(node).provision_state) == (400, "available")
    assert "CUSTOM_NOT_HERE" in fault(reply)


def test_a_trait_that_the_node_lacks_keeps_it_from_being_deployed(whole):
    node = node_with(whole, "CUSTOM_HAS", requested=["CUSTOM_HAS", "CUSTOM_HAS_NOT"])

    shown = whole.app.get(f"/v1/nodes/{node}/validate").json
    reply = whole.ask(node, "active")

    assert "/instance_info/traits/1" in shown["deploy"]["reason"]
    assert (reply.status_int, whole.row(node).provision_state) == (400, "available")
    assert "CUSTOM_HAS_NOT" in fault(reply)


def test_a_template_that_went_bad_after_the_request_fails_the_deployment(whole, monkeypatch):
    template(whole, "CUSTOM_CHANGING", pretend(90))
    node = node_with(whole, "CUSTOM_CHANGING")
    take = nodes.reserve

    def change_first(conn, *arguments, **known):
        found = deploy_templates.get(conn, "CUSTOM_CHANGING")
        deploy_templates.update(conn, found, {}, [Step("raid", "make_coffee", {}, 1)])
        return take(conn, *arguments, **known)

    monkeypatch.setattr(nodes, "reserve", change_first)
    shown = whole.provision(node, "active")

    assert shown["provision_state"] == "deploy failed"
    assert "raid.make_coffee" in shown["last_error"]


def test_a_template_with_a_step_that_is_not_allowed_any_more(whole):
    template(whole, "CUSTOM_FORBIDDEN", pretend(90))
    node = node_with(whole, "CUSTOM_FORBIDDEN")

    with whole.option("api", "disallow_deploy_steps", ["raid.pretend"]):
        shown = whole.app.get(f"/v1/nodes/{node}/validate").json["deploy"]
        preview = whole.app.get(f"/v1/nodes/{node}/deploy_steps").json["problems"]
        listed, = whole.app.get("/v1/deploy_templates/CUSTOM_FORBIDDEN/nodes").json["nodes"]
        reply = whole.ask(node, "active")

    text = "deploy template CUSTOM_FORBIDDEN, /steps/0 (raid.pretend): the step is not allowed"
    assert (reply.status_int, whole.row(node).provision_state) == (400, "available")
    for told in (shown["reason"], preview[0], listed["problems"][0], fault(reply)):
        assert text in told


def test_a_step_that_is_forbidden_after_the_request_does_not_run(whole, monkeypatch):
    template(whole, "CUSTOM_FORBIDDEN_LATE", pretend(90))
    node = node_with(whole, "CUSTOM_FORBIDDEN_LATE")
    take = nodes.reserve

    def forbid_first(*arguments, **known):
        whole.conf.set_override("disallow_deploy_steps", ["raid.pretend"], group="api")
        return take(*arguments, **known)

    monkeypatch.setattr(nodes, "reserve", forbid_first)
    with whole.option("api", "disallow_deploy_steps", []):
        shown = whole.provision(node, "active")

    assert (shown["provision_state"], finished(whole, node)) == ("deploy failed", [])
    assert "deploy template CUSTOM_FORBIDDEN_LATE, /steps/0 (raid.pretend)" in shown["last_error"]


def test_a_template_that_changes_does_not_change_a_deployment_that_has_begun(whole):
    uuid = template(whole, "CUSTOM_CHANGED", pretend(90, asynchronous=True), pretend(10))
    node = node_with(whole, "CUSTOM_CHANGED")
    whole.provision(node, "active")
    assert whole.app.delete(f"/v1/deploy_templates/{uuid}").status_int == 204

    beat(whole, node)

    assert whole.at_rest(node).provision_state == "active"
    assert finished(whole, node).count("raid.pretend") == 2


def test_secrets_of_steps_are_hidden_wherever_the_node_shows_them(whole):
    secret = "correct horse"
    template(whole, "CUSTOM_SECRET", {"interface": "vendor", "step": "pretend", "priority": 50,
                                      "args": {"asynchronous": True}},
             pretend(1, "vendor", error={"password": secret}))
    node = node_with(whole, "CUSTOM_SECRET", vendor_interface="fake")
    assert whole.provision(node, "active")["provision_state"] == "wait call-back"

    shown = whole.app.get(f"/v1/nodes/{node}").text + whole.app.get(f"/v1/lookup?node_uuid={node}").text
    assert secret not in shown
    assert secret in str(whole.row(node).driver_internal_info)
    whole.provision(node, "deleted")

    history = whole.app.get(f"/v1/nodes/{node}/history?detail=true").text
    assert secret not in history
    assert secret not in str(whole.row(node))


def test_the_example_of_mirrored_disks_and_virtualization(whole):
    """The document's example: the traits of FlavorVMXMirror select two of four templates."""
    def raid(level):
        return {"interface": "raid", "step": "create_configuration", "priority": 10, "args": {
            "logical_disks": [{"size_gb": "MAX", "raid_level": level, "is_root_volume": True}],
            "delete_configuration": True}}

    def bios(value):
        return {"interface": "bios", "step": "apply_configuration", "priority": 11,
                "args": {"settings": [{"name": "ProcVirtualization", "value": value}]}}

    prefix = "CUSTOM_BM_CONFIG_"
    template(whole, f"{prefix}RAID_DISK_MIRROR", raid("1"))
    template(whole, f"{prefix}RAID_DISK_STRIPE", raid("0"))
    template(whole, f"{prefix}BIOS_VMX_ON", bios("Enabled"))
    template(whole, f"{prefix}BIOS_VMX_OFF", bios("Disabled"))
    # The traits that Nova reads from the flavor's extra specs "trait:...=required".
    flavor = ["CUSTOM_CLASS_A", f"{prefix}BIOS_VMX_ON", f"{prefix}RAID_DISK_MIRROR"]
    node = node_with(whole, "CUSTOM_CLASS_A", f"{prefix}BIOS_VMX_ON", f"{prefix}BIOS_VMX_OFF",
                     "CUSTOM_OTHER_TRAIT_I_AM_USUALLY_IGNORED", f"{prefix}RAID_DISK_MIRROR",
                     f"{prefix}RAID_DISK_STRIPE", requested=flavor, resource_class="COMPUTE_A")

    shown = whole.provision(node, "active")

    assert shown["provision_state"] == "active"
    assert finished(whole, node) == [*CORE, "bios.apply_configuration", "raid.create_configuration"]
    assert shown["raid_config"] == {
        "logical_disks": [{"size_gb": "MAX", "raid_level": "1", "is_root_volume": True}]}
    assert shown["driver_internal_info"]["fake_bios_settings"] == {"ProcVirtualization": "Enabled"}


@pytest.mark.parametrize(("verb", "ends"), [("unhold", "active"), ("abort", "deploy failed"), ("deleted", "available")])
def test_a_deployment_is_held_by_a_step_until_a_person_decides(whole, verb, ends):
    node = node_with(whole)
    hold = {"interface": "power", "step": "hold", "args": {}, "priority": 50}

    shown = whole.provision(node, "active", deploy_steps=[hold])
    assert (shown["provision_state"], shown["target_provision_state"]) == ("deploy hold", "active")
    assert finished(whole, node) == CORE[:3]
    shown = whole.provision(node, verb)

    assert (shown["provision_state"], finished(whole, node)) == (ends, CORE if verb == "unhold" else CORE[:3])
    assert_forgotten(whole.row(node))


def test_a_template_can_have_reserved_steps(whole):
    template(whole, "CUSTOM_RESERVED", {"interface": "deploy", "step": "wait", "args": {"seconds": 0}, "priority": 50})
    node = node_with(whole, "CUSTOM_RESERVED")

    assert whole.provision(node, "active")["provision_state"] == "active"
    assert finished(whole, node)[3] == "deploy.wait"


def test_a_step_that_waits_for_a_time_has_no_worker(whole):
    node = node_with(whole)
    whole.provision(node, "active", deploy_steps=[
        {"interface": "deploy", "step": "wait", "args": {"seconds": 86400}, "priority": 50}])
    wait_for("the wait", lambda: whole.row(node).provision_state == "wait call-back"
             and whole.row(node).reservation is None, interval_s=0.01)
    stored = whole.row(node).driver_internal_info

    assert stored["step_poll"]["interface"] == "clock"
    past = stored["step_poll"]["begun_at"]
    whole.put(node, driver_internal_info={**stored, "step_poll": {**stored["step_poll"], "until": past}})

    wait_for("the end", lambda: whole.row(node).provision_state == "active", interval_s=0.01)
    assert finished(whole, node)[3] == "deploy.wait"
