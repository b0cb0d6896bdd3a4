"""Each example rule of the user guide, run with given data and an expected result: ``tests/vectors/examples``.

A case names a sample machine (``sample``), merges ``inventory`` with its report, removes ``drop`` from that, and may
set the other data of the report (``plugin_data``), and fields of the node (``node``) and its ports (``ports``, by
address). ``expect`` is complete: everything that it does not name is unchanged.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from ironic_rules import rules, samples
from ironic_rules.conf import inspection
from ironic_rules.exceptions import RuleFailed
from ironic_rules.models.draft import NodeDraft, PortDraft
from ironic_rules.models.task import Task
from ironic_rules.rules.actions import MAX_REQUESTS
from ironic_rules.rules.regex import MAX_REGEX
from tests.unit.rules import world
from tests.walking import walking

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "doc" / "source" / "user" / "examples"
GUIDE = ROOT / "doc" / "source" / "user" / "inspection-rules.rst"
FILES = sorted(path for path in EXAMPLES.iterdir() if path.suffix in (".json", ".yaml"))
CASES = world.vectors("examples")


def rules_of(stem: str) -> list[dict[str, Any]]:
    """Return the rules of an example file."""
    path, = (path for path in FILES if path.stem == stem)
    text = path.read_text(encoding="utf-8")
    return yaml.safe_load(text) if path.suffix == ".yaml" else [json.loads(text)]


def facts_of(case: dict[str, Any]) -> rules.Facts:
    """Return the facts of a case: an otherwise empty node that has the ports of the machine."""
    body = samples.inventory(case["sample"])
    body["inventory"].update(case.get("inventory", {}))
    for name in case.get("drop", ()):
        del body["inventory"][name]
    given = case.get("ports", {})
    ports = [PortDraft({"id": number, "uuid": None, "address": interface["mac_address"], "extra": {},
                        "local_link_connection": {}, "pxe_enabled": True, "physical_network": None,
                        "is_smartnic": False, "name": None, **given.get(interface["mac_address"], {})})
             for number, interface in enumerate(body["inventory"]["interfaces"])]
    node = {**world.NODE, "name": None, "driver_info": {}, "extra": {}, "properties": {}, **case.get("node", {})}
    sent = {name: value for name, value in body.items() if name != "inventory"}
    return rules.Facts(Task(NodeDraft(node), ports), body["inventory"], {**sent, **case.get("plugin_data", {})})


def run(case: dict[str, Any], rule_set: rules.RuleSet, facts: rules.Facts) -> list[rules.Trace]:
    """Run all phases, as an inspection does."""
    early = rules.Facts(None, facts.inventory, facts.plugin_data)
    return [trace for phase, given in (("early", early), ("preprocess", facts), ("main", facts))
            for trace in rule_set.run(phase, given)]


def outcome(facts: rules.Facts, sent: dict[str, Any], traces: list[rules.Trace]) -> dict[str, Any]:
    """Return the effects of the rules in the form of ``expect``; removed plugin data are None."""
    assert facts.task is not None
    data = facts.plugin_data
    found = {
        "node": facts.task.node.changes(), "traits": facts.task.node.trait_changes(),
        "ports": {port.address: port.changes() for port in facts.task.ports if port.changes()},
        "plugin_data": {name: data.get(name) for name in {**sent, **data} if data.get(name) != sent.get(name)},
        "messages": [[level, text.partition(": ")[2]] for level, text in facts.messages],
    }
    return {"matched": [trace.description for trace in traces if trace.matched],
            **{name: value for name, value in found.items() if value}}


def test_every_example_rule_is_valid() -> None:
    assert [f"{path.name}: {problem}" for path in FILES for rule in rules_of(path.stem)
            for problem in world.validate(rule)] == []


@walking("vector", CASES)
def test_an_example_does_what_it_says(vector: Any) -> None:
    stem, case = vector
    facts, rule_set = facts_of(case), rules.RuleSet(map(world.compiled, rules_of(stem)))
    sent = copy.deepcopy(facts.plugin_data)
    if "fails" in case["expect"]:
        with pytest.raises(RuleFailed) as caught:
            run(case, rule_set, facts)
        assert str(caught.value).endswith(case["expect"]["fails"])
        assert outcome(facts, sent, []) == {"matched": []}
    else:
        assert outcome(facts, sent, run(case, rule_set, facts)) == case["expect"]


def without_effect(stem: str) -> Iterator[str]:
    """Yield the rules of an example that match in no case."""
    expected = [case["expect"] for of, case in CASES if of == stem]
    done = {description for one in expected for description in one.get("matched", ())}
    failing = [rule["description"] for rule in rules_of(stem) if any(act["op"] == "fail" for act in rule["actions"])]
    idle = {rule["description"] for rule in rules_of(stem)} - done

    yield from (f"{stem}: no case for {description!r}" for description in sorted(idle.difference(failing)))
    yield from (f"{stem}: {description!r} should fail and matches" for description in sorted(set(failing) - idle))
    if len(failing) > sum("fails" in one for one in expected):
        yield f"{stem}: not as many cases that fail as rules"


def test_every_rule_of_every_example_takes_effect_in_a_case() -> None:
    assert [problem for path in FILES for problem in without_effect(path.stem)] == []


def test_every_example_is_in_the_guide() -> None:
    guide = GUIDE.read_text(encoding="utf-8")

    assert [path.name for path in FILES if f".. literalinclude:: examples/{path.name}\n" not in guide] == []


def test_the_guide_has_every_limit_with_its_default() -> None:
    lines = GUIDE.read_text(encoding="utf-8").splitlines()
    rows = [re.split(r" {2,}", line) for line in lines if re.search(r"  ``max_\w+``$", line)]
    shown = {option.strip("`"): most for _, most, option in rows}

    assert shown == {option.dest: f"{option.default:,}" for option in inspection.RULES_OPTS
                     if option.dest.startswith("max_")}
    assert any(re.match(rf"characters of a regular expression +{MAX_REGEX:,}$", line) for line in lines)
    assert any(re.match(rf"requests of ``api-call`` +{MAX_REQUESTS} ", line) for line in lines)


#: Rules of the samples and examples, by the name of what they are from.
SETS = {"samples": samples.rules(), **{path.stem: rules_of(path.stem) for path in FILES}}


def deliberate(rule_dicts: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the longest text between two values of each message with which a rule refuses machines."""
    for rule in rule_dicts:
        for action in rule["actions"]:
            if action["op"] == "fail":
                args = action["args"]
                message = str(args["msg"] if isinstance(args, dict) else args[0])
                yield max(re.split(r"\{.*?\}", message), key=len)


@walking("sample", samples.inventory_names())
@walking("stem", sorted(SETS))
def test_no_rule_breaks_the_inspection_of_a_discovered_machine(stem: str, sample: str) -> None:
    """Such a node has no name, no settings of a BMC and no properties. Rules may refuse it, but not by accident."""
    node = {"auto_discovered": True, "target_provision_state": "enroll", "provision_state": "inspecting", "name": None}
    facts = facts_of({"sample": sample, "node": node})
    rule_set = rules.RuleSet(map(world.compiled, SETS[stem]))
    try:
        run({}, rule_set, facts)
    except RuleFailed as exc:
        assert any(text in str(exc) for text in deliberate(SETS[stem])), str(exc)
