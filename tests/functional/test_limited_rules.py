"""Rules with ``max_nodes``: what is counted, and that the limit holds however many nodes are inspected at once."""

from __future__ import annotations

import pytest

from ironic_rules.conductor import state_machine
from ironic_rules.db import rule_records
from ironic_rules.hardware.agent.inspect import AgentInspect
from ironic_rules.inspection.pipeline import Pipeline
from ironic_rules.models.inventories import InspectionData
from tests.functional.whole import fault, running

RULES = "/v1/inspection_rules"
OTHERS = [f"00000000-0000-4000-8000-{number:012}" for number in range(30)]


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with running(tmp_path_factory.mktemp("limited")) as made:
        yield made


@pytest.fixture
def whole(service):
    yield service
    service.app.delete(RULES)


def setting(key, value=True):
    return {"op": "set-attribute", "args": {"path": f"/extra/{key}", "value": value}}


def rule(whole, *actions, **fields):
    reply = whole.app.post_json(RULES, {"actions": list(actions), **fields})
    assert reply.status_int == 201, reply.text
    return reply.json["uuid"]


def patch(whole, uuid, **values):
    return whole.app.patch_json(f"{RULES}/{uuid}", [
        {"op": "replace", "path": f"/{name}", "value": value} for name, value in values.items()])


def counted(whole, uuid):
    return whole.app.get(f"{RULES}/{uuid}").json["nodes_counted"]


def inspected(whole, node=None, body=None):
    """Inspect a node, by default a new one; return it."""
    return whole.inspect(node or whole.enroll("manageable"), body or whole.machine()[1])


@pytest.mark.parametrize("fields", [{}, {"sensitive": True}, {"phase": "preprocess"}])
def test_a_rule_runs_on_so_many_nodes_and_on_those_again(whole, fields):
    uuid = rule(whole, setting("a"), max_nodes=2, **fields)
    rule(whole, setting("all"))

    bodies = [whole.machine()[1] for _ in range(3)]
    nodes = [inspected(whole, None, body) for body in bodies]

    assert [node["extra"] for node in nodes] == [{"a": True, "all": True}, {"a": True, "all": True}, {"all": True}]
    assert uuid in whole.events(nodes[1]["uuid"])[-1][1]
    assert uuid not in whole.events(nodes[2]["uuid"])[-1][1]
    for node, body, again in zip(nodes, bodies, [True, True, None], strict=True):
        whole.put(node["uuid"], extra={})
        assert inspected(whole, node["uuid"], body)["extra"].get("a") is again
    assert counted(whole, uuid) == 2
    assert whole.app.delete(f"/v1/nodes/{nodes[0]['uuid']}").status_int == 204
    assert inspected(whole)["extra"] == {"all": True}
    assert patch(whole, uuid, max_nodes=3).json["nodes_counted"] == 2
    assert inspected(whole)["extra"] == {"a": True, "all": True}
    assert inspected(whole)["extra"] == {"all": True}


def test_an_operator_starts_again_by_removing_the_limit(whole):
    uuid = rule(whole, setting("a"), max_nodes=1)
    assert [inspected(whole)["extra"] for _ in range(2)] == [{"a": True}, {}]
    assert patch(whole, uuid, max_nodes=None).json["nodes_counted"] == 0
    assert patch(whole, uuid, max_nodes=1).json["nodes_counted"] == 0
    assert [inspected(whole)["extra"] for _ in range(2)] == [{"a": True}, {}]


def test_the_number_of_nodes_is_shown_even_to_those_who_know_the_rule(whole):
    uuid = rule(whole, setting("a"), max_nodes=5)
    free = rule(whole, setting("b"))
    tags = {each: {"If-None-Match": whole.app.get(f"{RULES}/{each}").headers["ETag"]} for each in (uuid, free)}
    inspected(whole)

    assert whole.app.get(f"{RULES}/{uuid}", headers=tags[uuid]).json["nodes_counted"] == 1
    assert whole.app.get(f"{RULES}/{free}", headers=tags[free]).status_int == 304
    listed = whole.app.get(f"{RULES}?fields=nodes_counted").json["inspection_rules"]
    assert [found["nodes_counted"] for found in listed] == [1, 0]
    refused = patch(whole, uuid, nodes_counted=0)
    assert (refused.status_int, "/nodes_counted" in fault(refused)) == (400, True)


def test_nodes_that_fail_are_not_counted(whole):
    uuid = rule(whole, setting("a"), max_nodes=1, priority=9)
    later = rule(whole, {"op": "fail", "args": ["no"]})
    assert inspected(whole)["provision_state"] == "inspect failed"
    assert counted(whole, uuid) == 0
    # The result cannot be saved.
    whole.enroll(name="taken")
    patch(whole, later, actions=[{"op": "set-attribute", "args": {"path": "/name", "value": "taken"}}])
    assert inspected(whole)["provision_state"] == "inspect failed"
    assert counted(whole, uuid) == 0
    whole.app.delete(f"{RULES}/{later}")
    assert (inspected(whole)["extra"], counted(whole, uuid)) == ({"a": True}, 1)


def test_a_rule_counts_only_where_it_runs(whole):
    uuid = rule(whole, setting("a"), max_nodes=1, scope="rack", enabled=False,
                conditions=[{"op": "eq", "args": ["{node.extra[wanted]}", 1]}])

    def extra(**fields):
        return inspected(whole, whole.enroll("manageable", **fields))["extra"]

    fits = {"inspection_scope": "rack", "extra": {"wanted": 1}}
    assert "a" not in extra(**fits)
    patch(whole, uuid, enabled=True)
    assert "a" not in extra(extra={"wanted": 1})
    assert "a" not in extra(inspection_scope="rack")
    assert counted(whole, uuid) == 0
    assert "a" in extra(**fits)
    patch(whole, uuid, enabled=False)
    patch(whole, uuid, enabled=True)
    assert ("a" in extra(**fits), counted(whole, uuid)) == (False, 1)


def test_a_rule_of_phase_early_has_no_limit(whole):
    problem = "/max_nodes: a rule of the early phase runs before there is a node to count"
    made = whole.app.post_json(RULES, {"actions": [setting("a")], "phase": "early", "max_nodes": 1})
    assert (made.status_int, problem in fault(made)) == (400, True)
    late, early = (rule(whole, {"op": "log", "args": ["hi"]}, **fields)
                   for fields in ({"max_nodes": 1}, {"phase": "early"}))
    for changed in (patch(whole, late, phase="early"), patch(whole, early, max_nodes=1)):
        assert (changed.status_int, problem in fault(changed)) == (400, True)


@pytest.fixture
def overtaken(monkeypatch, whole):
    """Let other conductors count other nodes for rules, each between the run of all rules and the save."""
    waiting = []
    run = Pipeline.run

    def run_and_wait(self, task, *arguments, **options):
        outcome = run(self, task, *arguments, **options)
        if waiting:
            uuid = waiting.pop(0)
            whole.db.write(lambda conn: rule_records.count_node(conn, OTHERS[len(waiting)], [uuid]))
        return outcome

    monkeypatch.setattr(Pipeline, "run", run_and_wait)
    return waiting


def test_an_inspection_that_was_overtaken_is_repeated_without_the_rule(whole, overtaken):
    first, second = (rule(whole, setting(key), max_nodes=1) for key in "ab")
    rule(whole, setting("all"))
    overtaken += [first, second]

    node = inspected(whole)

    assert (node["provision_state"], node["extra"], overtaken) == ("manageable", {"all": True}, [])
    assert (counted(whole, first), counted(whole, second)) == (1, 1)
    assert whole.inventories(node["uuid"]) == ["processed"]
    assert [event[0] for event in whole.events(node["uuid"])] == ["INFO"]


def test_a_bmc_is_not_read_again_when_its_inspection_is_repeated(whole, overtaken, monkeypatch):
    read = []

    def inspect_hardware(self, task):
        read.append(task)
        task.node.driver_internal_info["read"] = len(read)
        return InspectionData(whole.machine()[1]["inventory"])

    monkeypatch.setattr(AgentInspect, "inspect_hardware", inspect_hardware)
    first, kept = rule(whole, setting("a"), max_nodes=1), rule(whole, setting("b"), max_nodes=1)
    overtaken.append(first)
    node = whole.enroll("manageable")

    shown = whole.provision(node, "inspect")

    assert (shown["provision_state"], shown["extra"]) == ("manageable", {"b": True})
    assert (len(read), shown["driver_internal_info"]["read"]) == (1, 1)
    assert (counted(whole, first), counted(whole, kept)) == (1, 1)
    assert whole.inventories(node) == ["processed"]


def test_an_inspection_is_not_repeated_for_ever(whole, overtaken, monkeypatch):
    monkeypatch.setattr(state_machine, "MAX_REPETITIONS", 2)
    overtaken += [rule(whole, setting(str(number)), max_nodes=1) for number in range(3)]
    last = overtaken[-1]

    shown = inspected(whole)

    assert (shown["provision_state"], shown["extra"]) == ("inspect failed", {})
    assert f"Inspection rule {last} has been applied to max_nodes other nodes (1)" in shown["last_error"]


def test_of_nodes_that_are_inspected_at_once_as_many_as_may_get_the_rule(whole):
    uuids = [rule(whole, setting(key), max_nodes=limit) for key, limit in (("a", 3), ("b", 7))]
    nodes = [whole.enroll("manageable") for _ in range(10)]
    for node in nodes:
        whole.provision(node, "inspect")
    for node in nodes:
        assert whole.callback(node, whole.machine()[1]).status_int == 200
    for node in nodes:
        assert whole.at_rest(node).provision_state == "manageable"

    extras = [whole.show(node)["extra"] for node in nodes]
    assert [sum(key in extra for extra in extras) for key in "ab"] == [3, 7]
    assert [counted(whole, uuid) for uuid in uuids] == [3, 7]
