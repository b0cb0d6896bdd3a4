import pytest

from ironic_rules import rules
from ironic_rules.exceptions import ConfigurationError, HookFailed, InvalidInventory, RuleFailed
from ironic_rules.inspection.hooks.base import InspectionHook
from ironic_rules.inspection.pipeline import Pipeline
from ironic_rules.inspection.settings import Settings
from tests.unit.inspection.tasks import make_task


class Recorder(InspectionHook):
    """Writes down when it runs."""

    def __init__(self, name):
        self.name = name

    def preprocess(self, task, inventory, plugin_data):
        plugin_data.setdefault("order", []).append(f"{self.name} preprocess")

    def __call__(self, task, inventory, plugin_data):
        plugin_data["order"].append(self.name)


class Custom(InspectionHook):
    """Does what it is given."""

    def __init__(self, work):
        self.work = work

    def __call__(self, task, inventory, plugin_data):
        self.work(task, inventory, plugin_data)


def rule(phase, op="extend-plugin-data", **args):
    return rules.compile({
        "uuid": "8b7ee0c6-1f5c-4c1f-8a3e-6f2d9c0a4b11", "phase": phase, "actions": [{"op": op, "args": args}]})


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


@pytest.mark.parametrize(
    ("interface", "ran"), [("agent", 1), ("inspector", 1), ("agent2", 0), ("redfish", 0), (None, 0)])
def test_rules_run_where_the_whole_name_of_the_interface_matches(interface, ran):
    rule_set = rules.RuleSet([rule("main", "set-plugin-data", path="/x", value=1)])

    outcome = Pipeline([]).run(make_task({"inspect_interface": interface}), {}, {}, rule_set)

    assert len(outcome.traces) == ran


def test_a_bad_expression_for_interfaces_is_refused():
    with pytest.raises(ConfigurationError, match="supported_interfaces"):
        Pipeline([], Settings(supported_interfaces="("))


def test_the_plugin_data_of_the_caller_stay_as_they_are():
    sent = {"list": [1]}

    Pipeline([("custom", Custom(lambda task, inventory, data: data["list"].append(2)))]).run(make_task(), {}, sent)

    assert sent == {"list": [1]}


@pytest.mark.parametrize("change", [
    lambda inventory: inventory["cpu"]["flags"].append("b"),
    lambda inventory: inventory.pop("cpu"),
    lambda inventory: inventory["cpu"].update(flags=object()),
    lambda inventory: inventory["cpu"].update(flags=["A"]),
], ids=["deep", "removed", "no JSON", "replaced"])
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
