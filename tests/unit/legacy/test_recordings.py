"""Legacy rules do what ironic-inspector 12.5.0 did: its recorded decisions, and the listed ones that differ."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from ironic_rules import legacy
from ironic_rules.exceptions import InvalidRule
from tests.unit.legacy.world import VECTORS, Machine, rule

RECORDED: dict[str, Any] = json.loads((VECTORS / "recorded.json").read_text(encoding="utf-8"))
DEVIATIONS: dict[str, dict[str, Any]] = {
    case: said for said in yaml.safe_load((VECTORS / "deviations.yaml").read_text(encoding="utf-8"))
    for case in said["cases"]}


def test_every_deviation_is_of_a_recorded_case() -> None:
    assert DEVIATIONS.keys() <= {case["id"] for case in RECORDED["results"]}
    assert all(said["why"] for said in DEVIATIONS.values())


@pytest.mark.parametrize("case", [
    pytest.param(case, id=case["id"]) for case in RECORDED["results"]])
def test_recorded(case: dict[str, Any]) -> None:
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
