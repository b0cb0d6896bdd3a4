import subprocess

import httpx
import pytest
import sqlalchemy as sa
from oslo_db import exception as db_exc

from ironic_rules import rules
from ironic_rules.exceptions import ConfigurationError, HookFailed, InvalidInventory, RuleFailed
from ironic_rules.inspection import records
from ironic_rules.inspection.hook_settings import HookSettings
from ironic_rules.inspection.hooks.base import InspectionHook
from ironic_rules.inspection.pipeline import Pipeline
from ironic_rules.models.inspections import Inspection
from tests.unit.inspection.tasks import make_task
from tests.walking import walking


class Recorder(InspectionHook):
    """Records when it runs."""

    def __init__(self, name):
        self.name = name

    def preprocess(self, task, inventory, plugin_data):
        plugin_data.setdefault("order", []).append(f"{self.name} preprocess")

    def __call__(self, task, inventory, plugin_data):
        plugin_data["order"].append(self.name)


class Custom(InspectionHook):
    """Calls the function that it is given."""

    def __init__(self, work):
        self.work = work

    def __call__(self, task, inventory, plugin_data):
        self.work(task, inventory, plugin_data)


def rule(phase, op="extend-plugin-data", *, sensitive=False, **args):
    return rules.compile(rules.Rule(
        uuid="8b7ee0c6-1f5c-4c1f-8a3e-6f2d9c0a4b11", phase=phase, sensitive=sensitive,
        actions=[{"op": op, "args": args}]))


def note(phase):
    return rule(phase, path="/order", value=f"{phase} rules")


def run_custom(work, inventory=None, task=None):
    return Pipeline([("custom", Custom(work))]).run(task or make_task(), inventory or {"cpu": {"flags": ["a"]}})


def test_hooks_and_rules_alternate():
    pipeline = Pipeline([("a", Recorder("a")), ("b", Recorder("b"))])

    outcome = pipeline.run(make_task(), {}, {}, rules.RuleSet([note("main"), note("preprocess")]))

    assert outcome.plugin_data["order"] == [
        "a preprocess", "b preprocess", "preprocess rules", "a", "b", "main rules"]
    assert [trace.matched for trace in outcome.traces] == [True, True]


@walking("interface, ran", [("agent", 1), ("inspector", 1), ("agent2", 0), ("redfish", 0), (None, 0)])
def test_rules_run_where_the_whole_name_of_the_interface_matches(interface, ran):
    rule_set = rules.RuleSet([rule("main", "set-plugin-data", path="/x", value=1)])

    outcome = Pipeline([]).run(make_task({"inspect_interface": interface}), {}, {}, rule_set)

    assert len(outcome.traces) == ran


def test_a_bad_expression_for_interfaces_is_refused():
    with pytest.raises(ConfigurationError, match="supported_interfaces"):
        Pipeline([], HookSettings(supported_interfaces="("))


def test_the_plugin_data_of_the_caller_stay_as_they_are():
    sent = {"list": [1]}

    Pipeline([("custom", Custom(lambda task, inventory, data: data["list"].append(2)))]).run(make_task(), {}, sent)

    assert sent == {"list": [1]}


@walking("change", [
    lambda inventory: inventory["cpu"]["flags"].append("b"),
    lambda inventory: inventory.pop("cpu"),
    lambda inventory: inventory["cpu"].update(flags=object()),
    lambda inventory: inventory["cpu"].update(flags=["A"]),
])
def test_a_hook_that_changes_the_inventory_fails(change):
    with pytest.raises(HookFailed, match="hook custom failed: it changed the inventory"):
        run_custom(lambda task, inventory, data: change(inventory))


def test_a_failing_hook_passes_its_error_on():
    def fail(task, inventory, data):
        raise HookFailed(hook="custom", reason="no")

    with pytest.raises(HookFailed, match=r"^Inspection hook custom failed: no$"):
        run_custom(fail)


def test_an_error_of_the_service_gets_the_name_of_the_hook():
    def fail(task, inventory, data):
        raise InvalidInventory(node="n", where="/cpu is missing")

    with pytest.raises(HookFailed, match="hook custom failed: The inventory of node n is not usable: /cpu is missing"):
        run_custom(fail)


def test_data_that_a_hook_does_not_expect_fail_with_its_name():
    with pytest.raises(HookFailed, match="hook custom failed: KeyError: 'disks'"):
        run_custom(lambda task, inventory, data: inventory["disks"])


@pytest.mark.parametrize("error", [
    subprocess.CalledProcessError(3, ["smartctl"]), httpx.ConnectTimeout("slow"), Exception("odd"), StopIteration()])
def test_whatever_a_hook_raises_has_its_name_and_a_traceback_in_the_log(caplog, error):
    def fail(task, inventory, data):
        raise error

    with pytest.raises(HookFailed, match=f"hook custom failed: {type(error).__name__}: "):
        run_custom(fail)

    assert ("Traceback" in caplog.text, "hook custom failed" in caplog.text) == (True, True)


def test_a_database_that_is_away_is_nobodys_failure():
    def fail(task, inventory, data):
        raise db_exc.DBConnectionError

    with pytest.raises(db_exc.DBConnectionError):
        run_custom(fail)


@pytest.mark.parametrize("error", [ValueError, HookFailed, InvalidInventory, Exception])
def test_no_error_of_a_hook_quotes_what_a_sensitive_rule_wrote(caplog, error):
    def fail(task, inventory, data):
        raise error(data["secret"])

    rule_set = rules.RuleSet([rule("preprocess", "set-plugin-data", sensitive=True, path="/secret", value="swordfish")])

    with pytest.raises(HookFailed, match=f"hook custom failed: {error.__name__}; details are withheld") as caught:
        Pipeline([("custom", Custom(fail))]).run(make_task(), {}, {}, rule_set)

    assert caught.value.__suppress_context__
    assert "swordfish" not in f"{caught.value} {caplog.text}"


def copying(path, **fields):
    """Return a rule that copies and logs what is at a path."""
    actions = [{"op": "set-attribute", "args": ["/extra/copy", f"{{{path}}}"]}, {"op": "log", "args": [f"{{{path}}}"]}]
    return rules.compile(rules.Rule(uuid="11111111-1111-4111-8111-111111111111", actions=actions, **fields))


def history_of(task, outcome):
    """Return what the history of an inspection has of its rules and its messages."""
    entry = Inspection()
    records.describe(entry, task, outcome.matched, outcome.messages)
    return f"{entry.rules.decode()} {entry.messages}"


@walking("path, is_told", [
    ("plugin_data[site]", False), ("plugin_data", False), ("node[extra][moved]", False), ("node[extra]", False),
    ("node[name]", True)])
def test_what_a_sensitive_rule_wrote_is_in_no_history_wherever_hooks_and_rules_copy_it(path, is_told):
    def move(task, inventory, data):
        task.node.extra = {"moved": data["site"]}
        task.messages.append(("info", data["site"]))

    task = make_task({"name": "swordfish" if is_told else "x"})
    rule_set = rules.RuleSet([
        rule("preprocess", "set-plugin-data", sensitive=True, path="/site", value="swordfish"), copying(path)])

    outcome = Pipeline([("custom", Custom(move))]).run(task, {}, {}, rule_set)

    told = history_of(task, outcome)
    assert ("swordfish" in told) is is_told
    assert ("withheld, the rule reads a secret" in told) is not is_told
    assert "withheld, a sensitive rule matched" in told


def test_what_a_sensitive_early_rule_wrote_is_in_no_history():
    """The inspection has run before, in another process: values it may have written are known by the rule."""
    task = make_task()
    early = rule("early", "set-plugin-data", sensitive=True, path="/site", value="swordfish")
    rule_set = rules.RuleSet([early, copying("plugin_data[site]")])

    outcome = Pipeline([]).run(task, {}, {"site": "swordfish"}, rule_set)

    assert task.node.extra["copy"] == "swordfish"
    assert "swordfish" not in history_of(task, outcome)


@walking("value", [{1}, b"x", 2**80, "\ud800", {1: 2}, object()])
@walking("where", ["plugin data", "node", "new port", "port"])
def test_a_value_that_can_not_be_stored_is_told_with_the_hooks_name(where, value):
    def work(task, inventory, data):
        if where == "plugin data":
            data["deep"] = {"list": [value]}
        elif where == "node":
            task.node.extra["bad"] = value
        elif where == "port":
            task.ports[0].extra["bad"] = value
        else:
            task.add_port("52:54:00:00:00:02", extra={"bad": value})

    with pytest.raises(HookFailed, match="hook custom failed: it left a value that cannot be stored: "):
        run_custom(work, task=make_task(ports=[{"address": "52:54:00:00:00:01"}]))


def test_the_names_of_columns_may_be_a_database_librarys_texts():
    def work(task, inventory, data):
        task.node.description = "good"

    run_custom(work, task=make_task({sa.sql.quoted_name("description", True): None}))


def test_a_failing_rule_ends_the_inspection():
    with pytest.raises(RuleFailed, match="enough"):
        Pipeline([]).run(make_task(), {}, {}, rules.RuleSet([rule("main", "fail", msg="enough")]))


def test_messages_of_hooks_are_in_the_outcome():
    outcome = run_custom(lambda task, inventory, data: task.messages.append(("warning", "odd")))

    assert outcome.messages == [("warning", "odd")]


def test_a_hook_of_the_document_saves_and_that_is_fine():
    def work(task, inventory, data):
        task.node.properties["x"] = 1
        task.node.save()

    task = make_task()

    run_custom(work, task=task)

    assert task.node.changes() == {"properties": {"x": 1}}
