"""Legacy rules do what ironic-inspector 12.5.0 did: its recorded decisions, and the listed ones that differ."""

from __future__ import annotations

import json
from typing import Any

import yaml

from ironic_rules import legacy
from ironic_rules.exceptions import InvalidRule
from tests.unit.legacy.world import VECTORS, Machine, rule
from tests.walking import walking

RECORDED: dict[str, Any] = json.loads((VECTORS / "recorded.json").read_text(encoding="utf-8"))
DEVIATIONS: dict[str, dict[str, Any]] = {
    case: said for said in yaml.safe_load((VECTORS / "deviations.yaml").read_text(encoding="utf-8"))
    for case in said["cases"]}


def test_every_deviation_is_of_a_recorded_case() -> None:
    assert DEVIATIONS.keys() <= {case["id"] for case in RECORDED["results"]}
    assert all(said["why"] for said in DEVIATIONS.values())


@walking("name, case", [(case["id"], case) for case in RECORDED["results"]])
def test_recorded(name: str, case: dict[str, Any]) -> None:
    differs = DEVIATIONS.get(case["id"], {})
    refused: list[str] = []
    made = []
    for number, body in enumerate(case["rules"], 1):
        try:
            made.append(rule(**body, number=number))
        except InvalidRule as exc:
            refused += [problem.where for problem in exc.problems]
    if not differs:
        assert bool(refused) == any(created != "ok" for created in case["created"])
    assert refused == differs.get("refused", refused)
    if refused:
        return

    machine = Machine(case["node"])
    before = machine.state()
    data = {**RECORDED["data"], **case["data_changes"]}
    outcome = machine.inspect(legacy.LegacyRuleSet(map(legacy.compile_rule, made)), data)

    # Where ironic-inspector refused the rule, it recorded no result.
    matched, failed = differs.get("matched"), differs.get("failed")
    if not differs:
        matched, failed = case["matched"], case["error"]
        assert (outcome.failure is not None) == (failed is not None)
    found = {trace.uuid for trace in outcome.traces}
    if matched is not None:
        assert [each.uuid in found for each in made] == matched
    if failed is not None:
        assert outcome.failure is not None
        assert machine.state() == before
        return
    assert outcome.failure is None
    expected = {**case["node"], **case["node_after"], **differs.get("node", {})}
    if "whole" in differs:
        expected["extra"] = {**case["node"]["extra"], "introspection_data": data}
    if matched == [False]:
        expected = case["node"]
    expected["traits"] = case["traits_after"]
    assert {name: machine.state()[name] for name in expected} == expected


@walking("op, regex, value, expected", [
    # Of alternatives, only the last one has to match the end of the text: "$" was appended to it.
    ("matches", "x86|aarch64", "x86_64", True), ("matches", "aarch64|x86", "x86_64", False),
    ("matches", "x86|aarch64", "aarch64_be", False), ("matches", "(x86|aarch64)", "x86_64", False),
    ("matches", "a|b$", "axe", True), ("matches", r"5\$", "5$ each", True), ("matches", "x.*", "x86_64", True),
    ("matches", "86", "x86", False), ("matches", "(?im)X86", "x86\n64", True), ("matches", "x86$", "x86_64", False),
    # The text of other values is that of Python.
    ("contains", "SSD", [{"model": "SSD A"}], True), ("contains", "'model': 'SSD", [{"model": "SSD A"}], True),
    ("contains", "HDD", [{"model": "SSD A"}], False), ("contains", "^b", ["a", "b"], False),
    ("contains", "'b'", ["a", "b"], True), ("contains", "^0x", {"vendor": "0x15b3"}, False),
    ("contains", "0x15b3", {"vendor": "0x15b3"}, True), ("matches", "{.*", {}, True),
    (r"matches", r"\[1, .*", [1, 2.5, True, None], True), ("contains", "2.5, True, None", [1, 2.5, True, None], True),
    ("matches", "None", None, True), ("matches", "x", None, False), ("contains", "x", None, False),
    ("matches", "True", True, True), ("contains", "5", 2.5, True)])
def test_expressions_have_the_verdict_of_ironic_inspector(op: str, regex: str, value: Any, expected: bool) -> None:
    hit = {"action": "set-attribute", "path": "/extra/hit", "value": True}
    for field, data in (("a", {"a": value}), ("l[*]", {"l": [value]})):
        for is_inverted in (False, True):
            # In an index with others, as all rules are.
            made = legacy.LegacyRuleSet(legacy.compile_rule(rule(
                [{"field": field, "op": op, "value": text, "invert": is_inverted}], [hit], number=number))
                for number, text in enumerate((regex, "no|thing", "nothing"), 1))
            outcome = Machine().inspect(made, data)
            found = {trace.uuid for trace in outcome.traces}
            assert ("00000000-0000-4000-8000-000000000001" in found) is (expected is not is_inverted)
            assert len(found) == (expected, 3 - expected)[is_inverted]
