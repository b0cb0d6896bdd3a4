"""The record of an inspection in the history."""

from __future__ import annotations

from typing import Any

import orjson

from ironic_rules import rules
from ironic_rules.inspection import records
from ironic_rules.models import inspections
from ironic_rules.models.inspections import Inspection
from tests.unit.rules import world
from tests.walking import walking


def setting(path: str, value: Any = "{inventory[hostname]}") -> dict[str, Any]:
    return {"actions": [{"op": "set-attribute", "args": {"path": path, "value": value}}]}


def history(many: list[dict[str, Any]], sent: dict[str, Any] | None = None, **options: Any) -> list[dict[str, Any]]:
    """Return the entries of rules that run in this order."""
    made = [world.compiled(world.rule(position=number, **each)) for number, each in enumerate(many)]
    given = world.facts(inventory=sent)
    traces = rules.RuleSet(made, **options).run("main", given)
    assert given.task is not None
    entry = Inspection()
    records.describe(entry, given.task, traces, ())
    return inspections.rules({"rules": orjson.loads(entry.rules)})


@walking("length, are_shown", [(680, True), (700, False)])
def test_the_limit_of_a_history_is_that_of_what_is_shown(length: int, are_shown: bool) -> None:
    found = history([{**setting(f"/extra/{number}", "x" * length), "uuid": f"00000000-0000-4000-8000-{number:012}"}
                     for number in range(80)])
    assert len(found) == 80
    assert len(orjson.dumps(found)) < 64 * 1024
    assert all((rule["changes"] is not None) is are_shown for rule in found)


def test_what_a_rule_makes_of_a_secret_is_masked_and_what_others_write_is_not() -> None:
    many = [setting("/extra/read", "it is {inventory[bmc][password]}"), setting("/extra/guess", "it is s3cret")]
    found = history([{**each, "uuid": f"00000000-0000-4000-8000-{number:012}"} for number, each in enumerate(many)],
                    {"bmc": {"password": "s3cret"}}, mask_secrets="never")
    assert [operation["value"] for rule in found for operation in rule["changes"]["node"]] == ["******", "it is s3cret"]
