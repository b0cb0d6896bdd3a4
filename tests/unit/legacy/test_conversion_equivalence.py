"""A legacy rule and the inspection rule that it is converted to give the same node, wherever the verdict is exact."""

from __future__ import annotations

import copy
import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import strategies as st

from ironic_rules import rules
from ironic_rules.exceptions import InvalidRule, RuleFailed
from ironic_rules.legacy import conversion
from ironic_rules.legacy.conversion import Verdict
from ironic_rules.legacy.values import processed
from ironic_rules.rules.rule_fields import from_wire
from tests import strategies
from tests.unit.legacy.world import VECTORS, Machine, rule_set

pytestmark = pytest.mark.slow

WORDS = ["x86_64", "rack-7", "", "10.0.0.5", "2001:db8::5", "17", "{x}"]
NUMBERS = [0, 16, 17]
texts, numbers, flags = st.sampled_from(WORDS), st.sampled_from(NUMBERS), st.booleans()


def known(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return what a report has in a field of a known type: a value or null."""
    return st.one_of(*[values] * 6, st.none())


@st.composite
def fields(draw: st.DrawFn, **values: st.SearchStrategy[Any]) -> dict[str, Any]:
    """Draw an object that has most of the fields."""
    return {name: draw(value) for name, value in values.items() if draw(st.integers(0, 7))}


anything = st.recursive(
    st.one_of(texts, numbers, flags, st.none(), st.sampled_from([0.5, 4096.0, 16.5])), max_leaves=4,
    extend=lambda inner: st.one_of(st.lists(inner, max_size=2),
                                   st.dictionaries(st.sampled_from("ab"), inner, max_size=2)))
disks = st.fixed_dictionaries({
    "name": texts, "size": numbers, "serial": known(texts), "model": known(texts), "rotational": flags})
interfaces = st.fixed_dictionaries({
    "name": texts, "mac_address": texts, "ipv4_address": known(texts), "has_carrier": known(flags)})
inventories = fields(
    cpu=fields(count=known(numbers), architecture=known(texts), model_name=known(texts),
               flags=st.lists(texts, max_size=3)),
    memory=fields(physical_mb=known(numbers), total=known(numbers)), disks=st.lists(disks, max_size=3),
    interfaces=st.lists(interfaces, max_size=3), hostname=known(texts), bmc_address=known(texts), other=anything,
    system_vendor=fields(manufacturer=known(texts), product_name=known(texts)),
    boot=fields(current_boot_mode=known(texts)))
others = st.dictionaries(st.sampled_from(["a", "b"]), anything, max_size=2)

#: Fields with the values that are of interest there.
PATHS: dict[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys(["memory_mb", "data://cpus", "inventory.memory.total", "inventory.disks[0].size",
                     "inventory.disks[*].size", "inventory.disks.*.size"], numbers),
    **dict.fromkeys(["cpu_arch", "inventory.cpu.model_name", "inventory.cpu.flags[*]", "inventory.cpu.flags[0]",
                     "inventory.disks.*.model", "inventory.disks[*].serial", "inventory.interfaces[*].ipv4_address",
                     "inventory.interfaces[*].mac_address", "inventory.system_vendor.manufacturer",
                     "inventory.hostname", "inventory.bmc_address", "inventory.boot.current_boot_mode"], texts),
    **dict.fromkeys(["inventory.disks[*].rotational", "inventory.interfaces.*.has_carrier"], flags),
    **dict.fromkeys(["inventory.other", "inventory.other.a", "inventory.other[*].a", "a", "a.b", "b[*]",
                     "i.do.not.exist", "inventory.disks[*].nothing"], anything),
}
COMPARED = ["eq", "ne", "lt", "le", "gt", "ge"]
VALUES: dict[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys(["net", "in-net"], st.sampled_from(["10.0.0.0/8", "2001:db8::/32", "0.0.0.0/0"])),
    **dict.fromkeys(["matches", "contains"], st.sampled_from(
        ["x86.*", "x86|rack-7", "[0-9]{1,2}", "rack", "", "{x}", "\\{", "4$|7", "(1|6)"])),
}


@st.composite
def conditions(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a condition."""
    field = draw(st.sampled_from(list(PATHS)))
    op = draw(st.sampled_from([*COMPARED, *COMPARED, *VALUES, "is-empty"]))
    made: dict[str, Any] = {"field": field, "op": op}
    if op in COMPARED:
        usual = PATHS[field]
        made["value"] = draw(st.one_of(
            *[usual] * 6, numbers, texts, flags, st.sampled_from([0.5, 16.0, [1], {"a": 1}])))
    elif op in VALUES:
        made["value"] = draw(VALUES[op])
    for name, values in (("invert", flags), ("multiple", st.sampled_from(["any", "all", "first"]))):
        if draw(flags):
            made[name] = draw(values)
    return made


values = st.one_of(texts, numbers, flags, st.just({"a": ["{{x}}", 1]}), st.just("{{}}"),
                   st.sampled_from(["{data[memory_mb]}", "{data[cpu_arch]}", "n-{data[cpus]}",
                                    "{data[inventory][disks]}"]))
actions = st.one_of(
    st.fixed_dictionaries({"action": st.just("set-attribute"), "value": values,
                           "path": st.sampled_from(
                               ["/extra/a", "extra/b/c", "/properties/p", "/extra/{a}", "/extra/list/0"])}),
    st.fixed_dictionaries({"action": st.just("extend-attribute"), "path": st.just("/extra/list"), "value": values,
                           "unique": st.just(True)}),
    st.fixed_dictionaries({"action": st.just("set-capability"), "name": st.sampled_from(["a", "b", "old"]),
                           "value": st.one_of(values, st.none())}),
    st.fixed_dictionaries({"action": st.sampled_from(["add-trait", "remove-trait"]),
                           "name": st.sampled_from(["CUSTOM_A", "CUSTOM_OLD"])}),
    st.fixed_dictionaries({"action": st.just("fail"),
                           "message": st.sampled_from(["no", "{data[cpu_arch]}", "{1} {{}}"])}),
)
#: Most have an action by which it shows whether the rule matches.
bodies = st.fixed_dictionaries({
    "conditions": st.lists(conditions(), min_size=1, max_size=2),
    "actions": st.one_of(*[st.just([{"action": "set-attribute", "path": "/extra/hit", "value": True}])] * 2,
                         st.lists(actions, min_size=1, max_size=3))})
NODE = {"properties": {"capabilities": "old:1,b:2"}, "extra": {"list": ["a"]}, "traits": ["CUSTOM_OLD"]}
UNTOUCHED = Machine(NODE).state()


def native(body: dict[str, Any], data: dict[str, Any]) -> list[Any]:
    """Return the node after two inspections with a legacy rule; None for a failure."""
    machine, found = Machine(NODE), []
    compiled = rule_set([body])
    for _ in range(2):
        failed = machine.inspect(compiled, data).failure is not None
        found.append(None if failed else machine.state())
    return found


def converted(rule: dict[str, Any], inventory: dict[str, Any], plugin_data: dict[str, Any]) -> list[Any]:
    """Return the same with an inspection rule."""
    machine, found = Machine(NODE), []
    fields = {**from_wire(rule), "uuid": "0d2f8a52-70f4-4f3b-8b4e-8f2f7d6f3a10"}
    compiled = rules.RuleSet([rules.compile(rules.Rule.of(fields))])
    for _ in range(2):
        task = machine.task()
        try:
            compiled.run("main", rules.Facts(task, copy.deepcopy(inventory), copy.deepcopy(plugin_data)))
        except RuleFailed:
            found.append(None)
            continue
        changes, traits = task.node.changes(), task.node.trait_changes()
        machine.node.update(copy.deepcopy(changes))
        machine.traits = machine.traits if traits is None else traits
        found.append(machine.state())
    return found


@pytest.mark.parametrize("batch", strategies.batches(200))
def test_exact_is_exact(batch):
    verdicts: Counter[str] = Counter()

    def test(body, reports):
        try:
            found = conversion.convert_body(body)
        except InvalidRule:
            return
        verdicts[found.verdict] += 1
        for inventory, plugin_data in reports if found.verdict is Verdict.EXACT else ():
            expected = native(body, processed(inventory, plugin_data))
            verdicts["matched"] += expected[0] != UNTOUCHED
            assert converted(found.rule, inventory, plugin_data) == expected, found.rule

    strategies.check(batch, test, body=bodies, reports=st.lists(st.tuples(inventories, others), min_size=6, max_size=6))

    print(dict(verdicts))
    assert verdicts[Verdict.EXACT] > batch[1] / 6, verdicts
    assert verdicts["matched"] > batch[1] / 15, verdicts
    assert verdicts[Verdict.NOTED] and verdicts[Verdict.NOT_CONVERTIBLE], verdicts


def test_recorded_rules_that_are_converted_exactly_give_the_same_node():
    recorded = json.loads((VECTORS / "recorded.json").read_text(encoding="utf-8"))
    inventory = recorded["data"]["inventory"]
    sent = {name: value for name, value in recorded["data"].items() if name != "inventory"}
    compared = 0
    for case in recorded["results"]:
        for body in case["rules"]:
            try:
                found = conversion.convert_body(body)
            except InvalidRule:
                continue
            if found.verdict is Verdict.EXACT:
                compared += 1
                assert converted(found.rule, inventory, sent) == native(body, recorded["data"]), case["id"]

    assert compared > 60
