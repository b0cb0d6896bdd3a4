"""The conversion of rules as people have them, and what both kinds make of the machine of the vectors."""

from __future__ import annotations

import copy
from typing import Any

from ironic_rules import rules
from ironic_rules.exceptions import RuleFailed
from ironic_rules.inspection.hooks import loader
from ironic_rules.inspection.pipeline import Pipeline
from ironic_rules.legacy import conversion
from ironic_rules.rules.rule_fields import from_wire
from tests.unit.legacy.test_field_rules import MACHINE, cases, data_of
from tests.unit.legacy.world import Machine, rule_set
from tests.walking import walking

#: All that the notes name.
HOOKS = Pipeline(loader.load(["validate-interfaces", "parse-lldp", "extra-hardware", "root-device"]))
WORDS = {"exact": "exact", "exact with a note": "note", "not convertible": "not convertible"}


def report_of(case: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return inventory and plug-in data of a case, as ``data_of`` makes them."""
    report = copy.deepcopy(MACHINE)
    for name, value in case.get("inventory", {}).items():
        found = report["inventory"].get(name)
        report["inventory"][name] = {**found, **value} if value and isinstance(found, dict) else value
    return report["inventory"], {**report["plugin_data"], **case.get("plugin_data", {})}


def converted(case: dict[str, Any], made: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the node after an inspection with inspection rules; None if they fail it."""
    machine, (inventory, sent) = Machine(case.get("node")), report_of(case)
    scratch, task = machine.task(), machine.task()
    scratch.begin_inspection((), lambda: None)
    plugin_data = HOOKS.run(scratch, inventory, sent).plugin_data
    compiled = [rules.compile(rules.Rule.of({
        **from_wire(rule), "position": number, "uuid": f"00000000-0000-4000-8000-{number:012}"}))
        for number, rule in enumerate(made)]
    try:
        rules.RuleSet(compiled).run("main", rules.Facts(task, inventory, plugin_data))
    except RuleFailed:
        return None
    traits = task.node.trait_changes()
    machine.node.update(task.node.changes())
    machine.traits = machine.traits if traits is None else traits
    return machine.state()


@walking("case", cases())
def test_the_verdict_is_that_of_the_vector_and_the_nodes_differ_only_where_it_says(case):
    found = [conversion.convert_body(rule) for rule in case["rules"]]

    assert [WORDS[each.verdict] for each in found] == case["conversion"], found
    made = [each.rule for each in found if each.rule is not None]
    if len(made) < len(found):
        return
    machine = Machine(case.get("node"))
    failed = machine.inspect(rule_set(case["rules"]), data_of(machine, case)).failure is not None
    node = converted(case, made)
    assert (node is None) is failed
    state = machine.state()
    assert [f"/{name}" for name in state if node is not None and node[name] != state[name]] == case.get("differs", [])
    assert "differs" not in case or "note" in case["conversion"]
