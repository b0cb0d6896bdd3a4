"""Plug-ins (hooks, actions, steps, interfaces) that raise what ends a process, hang, or write what they must not."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time

import pytest

from ironic_rules.conductor import recovery
from ironic_rules.hardware.fake import FakeDeploy
from ironic_rules.inspection import early
from ironic_rules.rules import ACTIONS, InspectionRuleActionBase
from tests.functional.faulty import FaultyInspect
from tests.functional.processes import wait_for
from tests.functional.rows import hooks
from tests.functional.whole import running

#: Errors that are no ``Exception``, and would end a thread or a process.
ENDINGS = [SystemExit, KeyboardInterrupt, asyncio.CancelledError, GeneratorExit]
SECRET = "swordfish-4711"
MARK = {"op": "set-attribute", "args": {"path": "/extra/mark", "value": SECRET}}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with running(tmp_path_factory.mktemp("misbehaving"), "[conductor]\nworkers_pool_size = 4\n"
                 "[auto_discovery]\nenabled = true\ndriver = fake-hardware\n") as service:
        yield service


@pytest.fixture
def whole(service):
    yield service
    service.app.delete("/v1/inspection_rules")


@pytest.fixture
def behave():
    """The work of the action ``misbehave``: a function of the task and the rule, to be replaced."""
    class Misbehave(InspectionRuleActionBase):
        """Do what the test wants."""

        formatted_params = ["value"]
        supports_early = True
        work = staticmethod(lambda task, rule: None)

        def __call__(self, task, rule, value=None):
            type(self).work(task, rule)

        def call_early(self, rule, value=None):
            type(self).work(None, rule)

    ACTIONS.add("misbehave", Misbehave)
    yield Misbehave
    del ACTIONS._operations["misbehave"], ACTIONS._objects["misbehave"]


def rule(whole, *actions, **fields):
    reply = whole.app.post_json("/v1/inspection_rules", {"actions": list(actions), **fields})
    assert reply.status_int == 201, reply.text
    return reply.json["uuid"]


def raising(error, calls):
    def work(*arguments, **named):
        calls.append(error)
        raise error(SECRET)

    return work


def assert_failed_once(whole, shown, calls, *parts):
    assert (shown["provision_state"], shown["reservation"]) == ("inspect failed", None)
    for part in parts:
        assert part in shown["last_error"]
    assert recovery.resume_orphans(whole.conductor) == 0
    assert len(calls) == 1


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_hook_that_raises_what_ends_a_process_fails_the_inspection_once(whole, ending):
    calls = []
    with hooks.added(whole, hooks.Calling(raising(ending, calls))):
        shown = whole.inspect(whole.enroll("manageable"), whole.machine()[1])

    assert_failed_once(whole, shown, calls, f"Inspection hook added-0 failed: {ending.__name__}: {SECRET}")


@pytest.mark.parametrize("sensitive", [False, True])
@pytest.mark.parametrize("ending", ENDINGS)
def test_an_action_that_raises_what_ends_a_process_fails_its_rule_once(whole, behave, caplog, ending, sensitive):
    calls = []
    behave.work = raising(ending, calls)
    uuid = rule(whole, MARK, {"op": "misbehave", "args": {"value": SECRET}}, sensitive=sensitive)

    shown = whole.inspect(whole.enroll("manageable"), whole.machine()[1])

    assert_failed_once(whole, shown, calls, f"Inspection rule {uuid} failed at /actions/1: ")
    assert (SECRET in shown["last_error"]) is not sensitive
    if sensitive:
        assert SECRET not in caplog.text


@pytest.mark.parametrize("ending", ENDINGS)
def test_an_early_action_that_raises_what_ends_a_process_refuses_the_machine(whole, behave, ending):
    calls = []
    behave.work = raising(ending, calls)
    rule(whole, {"op": "misbehave", "args": {}}, phase="early")

    reply = whole.app.post_json("/v1/continue_inspection", whole.machine()[1])

    assert (reply.status_int, len(calls)) == (404, 1)


@pytest.mark.parametrize("sensitive", [False, True])
def test_an_early_action_that_hangs_refuses_the_machine_and_holds_no_request(
        whole, behave, monkeypatch, caplog, sensitive):
    gate, reached = threading.Event(), threading.Semaphore(0)

    def work(task, rule):
        reached.release()
        assert gate.wait(60)

    behave.work = work
    uuid = rule(whole, {"op": "misbehave", "args": {}}, {"op": "misbehave", "args": {}}, phase="early",
                sensitive=sensitive)
    monkeypatch.setattr(early, "MOST_MISSING", 2)
    early_rules = early.EarlyRules(0.2)
    run = early.EarlyRules.run
    monkeypatch.setattr(early.EarlyRules, "run", lambda _, *arguments: run(early_rules, *arguments))

    replies = [whole.app.post_json("/v1/continue_inspection", whole.machine()[1]).status_int for _ in range(3)]

    assert replies == [404, 404, 503]
    assert f"Inspection rule {uuid} failed at /actions/0: it has not ended within 0.2 seconds" in caplog.text
    gate.set()
    wait_for("the return of the threads", lambda: not early_rules._missing)
    assert sum(reached.acquire(blocking=False) for _ in range(10)) == 2  # the second action was not begun
    behave.work = lambda task, rule: None
    assert whole.app.post_json("/v1/continue_inspection", whole.machine()[1]).status_int == 200


@pytest.mark.parametrize("method", ["continue_inspection", "finish"])
@pytest.mark.parametrize("ending", ENDINGS)
def test_an_inspect_interface_that_raises_what_ends_a_process_fails_the_inspection_once(
        whole, monkeypatch, caplog, ending, method):
    calls = []
    rule(whole, MARK, sensitive=True)
    monkeypatch.setattr(FaultyInspect, method, raising(ending, calls))

    shown = whole.inspect(whole.enroll("manageable", driver="faulty-hardware"), whole.machine()[1])

    assert_failed_once(whole, shown, calls)
    if method == "finish":
        assert f"{ending.__name__}; details are withheld" in shown["last_error"]
        assert SECRET not in caplog.text


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_step_that_raises_what_ends_a_process_fails_the_deployment_once(whole, monkeypatch, ending):
    calls = []
    monkeypatch.setattr(FakeDeploy, "deploy", raising(ending, calls))
    node = whole.enroll("available")

    shown = whole.provision(node, "active")

    assert (shown["provision_state"], shown["reservation"]) == ("deploy failed", None)
    assert "Deploy step deploy.deploy" in shown["last_error"]
    assert recovery.resume_orphans(whole.conductor) == 0
    assert len(calls) == 1


class Hanging:
    """Work that hangs until the test ends; the clock of the watchdog is the test's."""

    def __init__(self, workers):
        self.workers = workers
        self.gate, self.reached = threading.Event(), threading.Semaphore(0)
        self.written_off = workers.written_off

    def __call__(self, task, *arguments, **named):
        self.reached.release()
        assert self.gate.wait(60)
        task.node.extra["late"] = SECRET

    def pass_time(self, seconds, begun=1):
        """Let time pass while ``begun`` workers hang."""
        for _ in range(begun):
            assert self.reached.acquire(timeout=60)
        self.workers.look()
        now = self.workers._clock()
        self.workers._clock = lambda: now + seconds
        self.workers.look()

    def end(self):
        self.gate.set()
        wait_for("the return of the workers", lambda: not self.workers.missing, interval_s=0.005)


@pytest.fixture
def hanging(whole):
    made = Hanging(whole.conductor.workers)
    yield made
    made.end()
    made.workers._clock = time.monotonic


def test_a_hook_that_hangs_fails_the_node_and_what_it_does_later_is_not_saved(whole, hanging, caplog):
    node, (_, body) = whole.enroll("manageable"), whole.machine()
    whole.provision(node, "inspect")
    with hooks.added(whole, hooks.Calling(hanging)):
        assert whole.callback(node, body).status_int == 200
        hanging.pass_time(59)
        assert whole.row(node).provision_state == "inspecting"
        hanging.pass_time(2, begun=0)
        row = whole.at_rest(node)

    assert (row.provision_state, row.power_state) == ("inspect failed", "power off")
    assert row.last_error == ("Inspection failed: Inspection hook added-0 failed: it has not ended within 60 seconds "
                              "([inspector]hook_timeout) (IR-1030)")
    assert whole.inventories(node) == ["failed"]
    assert hanging.workers.written_off == hanging.written_off + 1
    assert "Written off since the start of this process: " in caplog.text
    # The same process works on the node while the thread still hangs, and its lock has the same owner.
    assert whole.inspect(node, body)["provision_state"] == "manageable"
    before = whole.row(node)
    hanging.end()
    assert "what it did is discarded" in caplog.text
    assert whole.row(node) == before
    assert "late" not in before.extra


def test_workers_that_hang_are_replaced_all_of_them(whole, hanging):
    nodes = [whole.enroll("manageable") for _ in range(5)]
    for node in nodes:
        whole.provision(node, "inspect")
    with hooks.added(whole, hooks.Calling(hanging)):
        for node in nodes[:4]:
            assert whole.callback(node, whole.machine()[1]).status_int == 200
        hanging.pass_time(61, begun=4)
        for node in nodes[:4]:
            assert whole.at_rest(node).provision_state == "inspect failed"

    assert whole.callback(nodes[4], whole.machine()[1]).status_int == 200
    assert whole.at_rest(nodes[4]).provision_state == "manageable"
    assert (hanging.workers.written_off - hanging.written_off, hanging.workers.missing) == (4, 4)


@pytest.mark.parametrize("sensitive", [False, True])
def test_an_action_that_hangs_fails_its_rule(whole, behave, hanging, sensitive):
    behave.work = hanging
    uuid = rule(whole, MARK, {"op": "misbehave", "args": {}}, sensitive=sensitive)
    node = whole.enroll("manageable")
    whole.provision(node, "inspect")
    assert whole.callback(node, whole.machine()[1]).status_int == 200

    hanging.pass_time(61)

    row = whole.at_rest(node)
    assert row.last_error == (f"Inspection failed: Inspection rule {uuid} failed at /actions/1: it has not ended "
                              "within 60 seconds ([inspection_rules]action_timeout) (IR-1027)")
    hanging.end()
    assert whole.row(node).extra == {}


def test_each_item_of_a_loop_has_the_time_of_an_action(whole, behave, hanging):
    ended = []

    def work(task, rule):
        with contextlib.suppress(IndexError):
            ended.append(None)
            hanging.reached.release()
            assert hanging.gate.wait(60)

    behave.work = work
    rule(whole, {"op": "misbehave", "args": {"value": "{item}"}, "loop": [1, 2, 3]})
    node = whole.enroll("manageable")
    whole.provision(node, "inspect")
    assert whole.callback(node, whole.machine()[1]).status_int == 200
    for number in range(3):
        hanging.pass_time(40)
        assert len(ended) == number + 1
        gate, hanging.gate = hanging.gate, threading.Event()
        gate.set()

    assert whole.at_rest(node).provision_state == "manageable"


def test_a_step_that_hangs_fails_the_deployment(whole, monkeypatch, hanging):
    monkeypatch.setattr(FakeDeploy, "deploy", lambda interface, task: hanging(task))
    node = whole.enroll("available")
    assert whole.ask(node, "active").status_int == 202

    hanging.pass_time(3601)

    row = whole.at_rest(node)
    assert (row.provision_state, row.deploy_step) == ("deploy failed", {})
    assert row.last_error.startswith("Deploy step deploy.deploy (1 of ")
    assert row.last_error.endswith(" failed: it has not ended within 3600 seconds ([conductor]step_timeout) (IR-2087)")
    hanging.end()
    assert whole.row(node) == row


WRITES = [("uuid", "zzz"), ("provision_state", "available"), ("reservation", None), ("instance_uuid", "x"), ("id", 99)]


@pytest.mark.parametrize(("name", "value"), WRITES)
def test_a_hook_that_writes_what_it_may_not_fails_and_the_node_stays_reachable(whole, name, value):
    node = whole.enroll("manageable")
    with hooks.added(whole, hooks.Calling(lambda task, *_: setattr(task.node, name, value))):
        shown = whole.inspect(node, whole.machine()[1])

    assert (shown["uuid"], shown["provision_state"], shown["reservation"]) == (node, "inspect failed", None)
    assert shown["last_error"] == ("Inspection failed: Inspection hook added-0 failed: "
                                   f"it wrote /{name} of the node, which hooks may not write (IR-1030)")


@pytest.mark.parametrize(("name", "value"), WRITES)
def test_an_action_that_writes_what_it_may_not_fails_its_rule(whole, behave, name, value):
    behave.work = lambda task, rule: setattr(task.node, name, value)
    uuid = rule(whole, {"op": "misbehave", "args": {}})

    shown = whole.inspect(whole.enroll("manageable"), whole.machine()[1])

    assert shown["last_error"] == (f"Inspection failed: Inspection rule {uuid} failed at /actions/0: "
                                   f"it wrote /{name} of the node, which rules may not write (IR-1027)")


@pytest.mark.parametrize(("name", "value"), WRITES)
def test_a_step_that_writes_what_it_may_not_fails_the_deployment(whole, monkeypatch, name, value):
    monkeypatch.setattr(FakeDeploy, "deploy", lambda interface, task: setattr(task.node, name, value))
    node = whole.enroll("available")

    shown = whole.provision(node, "active")

    assert (shown["uuid"], shown["provision_state"]) == (node, "deploy failed")
    assert shown["last_error"].endswith(f" failed: it wrote /{name} of the node, which steps may not write (IR-2087)")


@pytest.mark.parametrize("method", ["inspect_hardware", "continue_inspection", "finish"])
def test_an_inspect_interface_that_writes_what_it_may_not_fails_the_inspection(whole, monkeypatch, method):
    original = getattr(FaultyInspect, method)

    def write(interface, task, *args):
        task.node.uuid = "zzz"
        return original(interface, task, *args)

    node = whole.enroll("manageable", driver="faulty-hardware")
    with monkeypatch.context() as patch:
        patch.setattr(FaultyInspect, method, write)
        whole.provision(node, "inspect")
        if method != "inspect_hardware":
            assert whole.callback(node, whole.machine()[1]).status_int == 200
        row = whole.at_rest(node)

    assert (row.provision_state, row.uuid) == ("inspect failed", node)
    assert "it wrote /uuid of the node, which interfaces may not write" in row.last_error


def test_an_error_without_a_text_has_the_name_of_its_type(whole, behave):
    class Silent(Exception):
        def __str__(self):
            raise ZeroDivisionError

    def fail(*arguments):
        raise Silent

    behave.work = fail
    uuid = rule(whole, {"op": "misbehave", "args": {}}, phase="preprocess")
    of_rule = whole.inspect(whole.enroll("manageable"), whole.machine()[1])["last_error"]
    with hooks.added(whole, hooks.Calling(fail)):
        behave.work = lambda *arguments: None
        of_hook = whole.inspect(whole.enroll("manageable"), whole.machine()[1])["last_error"]

    assert of_rule.endswith(f"Inspection rule {uuid} failed at /actions/0: Silent: Silent without a text (IR-1027)")
    assert of_hook.endswith("Inspection hook added-0 failed: Silent: Silent without a text (IR-1030)")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), {1}, b"x", {1: 2}, "\ud800"],
                         ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("where", ["node", "data"])
def test_a_value_that_can_not_be_stored_is_told_with_rule_action_and_path(whole, behave, where, value):
    def work(task, rule):
        target = task.node.extra if where == "node" else rule.plugin_data
        target["site"] = {"rack": [1, value]}

    behave.work = work
    uuid = rule(whole, MARK, {"op": "misbehave", "args": {}})

    shown = whole.inspect(whole.enroll("manageable"), whole.machine()[1])

    assert shown["last_error"].startswith(
        f"Inspection failed: Inspection rule {uuid} failed at /actions/1: it left a value that cannot be stored: ")
    path = "/extra/site/rack/1" if where == "node" else "/site/rack/1"
    assert f"{path}{'/1' if isinstance(value, dict) else ''} of the " in shown["last_error"]


def test_a_hook_that_leaves_nan_is_told_with_the_path(whole):
    with hooks.added(whole, hooks.Calling(lambda task, inventory, data: data.update(fans=[{"rpm": float("nan")}]))):
        shown = whole.inspect(whole.enroll("manageable"), whole.machine()[1])

    assert shown["last_error"] == (
        "Inspection failed: Inspection hook added-0 failed: it left a value that cannot be stored: /fans/0/rpm of the "
        "plug-in data is not a finite number (IR-1030)")
