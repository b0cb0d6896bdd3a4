"""Rules as people have them: what two inspections in a row make of a node, and a third one of changed hardware."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from ironic_rules.inspection.pipeline import legacy_data
from ironic_rules.models import documents
from tests.unit.legacy.world import VECTORS, Machine, rule_set
from tests.walking import walking

MACHINE: dict[str, Any] = yaml.safe_load((VECTORS / "machine.yaml").read_text(encoding="utf-8"))


def cases() -> Iterator[dict[str, Any]]:
    """Yield all vectors."""
    for path in sorted((VECTORS / "field").iterdir()):
        yield from yaml.safe_load(path.read_text(encoding="utf-8"))


def data_of(machine: Machine, *changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return what legacy rules read of the machine of the vectors, with changes of ``inventory`` and ``plugin_data``.

    Values are replaced, objects in the inventory changed key by key.
    """
    report = copy.deepcopy(MACHINE)
    for change in changes:
        for name, value in change.get("inventory", {}).items():
            found = report["inventory"].get(name)
            report["inventory"][name] = {**found, **value} if value and isinstance(found, dict) else value
        report["plugin_data"].update(change.get("plugin_data", {}))
    return legacy_data(machine.task(), report["inventory"], report["plugin_data"])


def _check(machine: Machine, expected: Mapping[str, Any]) -> None:
    state = machine.state()
    for path, value in expected.items():
        tokens = documents.parse_pointer(path, relative=True)
        try:
            found = documents.get(state, tokens)
        except documents.PointerError:
            found = None
        assert found == value, path


@walking("case", cases())
def test_field_rule(case: dict[str, Any]) -> None:
    machine, rules = Machine(case.get("node")), rule_set(case["rules"])
    before = machine.state()
    outcome = machine.inspect(rules, data_of(machine, case))
    if "fails" in case:
        assert outcome.failure is not None
        assert str(outcome.failure.error).endswith(case["fails"])
        assert outcome.failure.maintenance_reason == case.get("maintenance")
        assert machine.state() == before
        return
    assert outcome.failure is None, outcome.failure
    _check(machine, case["expect"])

    again = machine.inspect(rules, data_of(machine, case))
    assert not machine.is_changed
    assert not again.forgotten
    _check(machine, case["expect"])

    if "then" in case:
        machine.inspect(rules, data_of(machine, case, case["then"]))
        _check(machine, case["then"]["expect"])
    machine.inspect(rule_set([]))
    assert machine.state() == before


def test_there_are_enough_of_them() -> None:
    names = [case["name"] for case in cases()]
    assert len(set(names)) == len(names) >= 40
    assert all("conversion" in case for case in cases())
