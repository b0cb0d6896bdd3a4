from __future__ import annotations

from typing import Any

import jsonschema

from ironic_rules import rules
from ironic_rules.models.rules import RULE, WRITABLE
from tests.unit.rules import world
from tests.walking import walking

ACTIONS = [{"op": "log", "args": {"msg": "hi"}}]
CONDITIONS = [{"op": "is-true", "args": [True]}]
LIMITS = rules.Limits(conditions=3, actions=4)
VALIDATOR = jsonschema.Draft202012Validator(rules.rule_schema())
UUID = "1BE26C0B-03F2-4D2E-AE87-C02D7F33C123"

#: Values at the edges of what some field takes, and of wrong types. No whole floats: JSON schema has them as integers.
VALUES: list[Any] = [
    None, True, False, -1, 0, 9999, 10000, 1.5, "", "x", "x" * 255, "x" * 256, {}, {"op": "fail"}, [], ["x"],
    "5", "+5", "-5", "-0", "000009999", "0000009999", "10000", "1.5", "true", "YES", "Off", "1", "maybe", "yes ",
    *rules.PHASES, "Main", UUID, UUID + "\n", UUID[1:],
    *(CONDITIONS * number for number in (1, 3, 4)), *(ACTIONS * number for number in (1, 4, 5)),
]


def test_defaults_are_filled_in() -> None:
    assert rules.from_wire({"actions": ACTIONS}) == {
        "actions": ACTIONS, "name": None, "bundle": None, "description": None, "enabled": True, "priority": 0,
        "phase": "main", "scope": None, "max_nodes": None, "sensitive": False, "conditions": [],
    }


def test_each_rule_gets_conditions_of_its_own() -> None:
    rules.from_wire({})["conditions"].append(1)
    assert rules.from_wire({})["conditions"] == []


@walking("sent, stored", [
    ({"priority": "5"}, {"priority": 5}), ({"priority": "-5"}, {"priority": -5}), ({"sensitive": "true"},
    {"sensitive": True}),
    ({"sensitive": "False"}, {"sensitive": False}), ({"sensitive": None}, {"sensitive": False}),
    ({"conditions": None}, {"conditions": []}), ({"enabled": "off"}, {"enabled": False}),
    ({"enabled": None}, {"enabled": True}), ({"max_nodes": "12"}, {"max_nodes": 12}),
    ({"uuid": "1BE26C0B-03F2-4D2E-AE87-C02D7F33C123"}, {"uuid": "1be26c0b-03f2-4d2e-ae87-c02d7f33c123"}),
])
def test_spellings_of_clients_are_understood(sent: dict[str, Any], stored: dict[str, Any]) -> None:
    rule = rules.from_wire({"actions": ACTIONS, **sent})
    assert {key: rule[key] for key in stored} == stored


def test_null_uuid_is_an_absent_one() -> None:
    assert "uuid" not in rules.from_wire({"actions": ACTIONS, "uuid": None})


@walking("sent", [
    {"priority": "x"}, {"priority": True}, {"priority": None}, {"priority": "1.5"}, {"priority": "-1"},
    {"priority": ""},
    {"sensitive": "maybe"}, {"sensitive": 1}, {"phase": None}, {"actions": None}, {"nosuch": 1}, {"conditions": "x"},
    {"conditions": [{"op": "eqq", "args": []}]}, {"actions": [{"op": "log", "args": {"nosuch": 1}}]}, {"actions": []},
    {"conditions": [{"op": "in-net", "args": {"address": "x", "subnet": 5}}]}, {"uuid": "x"}, {"scope": ""},
    {"enabled": 0}, {"max_nodes": 0}, {"max_nodes": True}, {"max_nodes": 2**31}, {"max_nodes": 1.0},
    {"max_nodes": 1, "phase": "early"}, {"name": ""}, {"name": " a"}, {"name": "a\nb"}, {"bundle": ""}, {"bundle": 1},
    {"bundle": "b" * 256},
])
def test_what_can_not_be_understood_is_refused(sent: dict[str, Any]) -> None:
    assert world.validate(rules.from_wire({"actions": ACTIONS, **sent})) != []


@walking("sent", [
    {"priority": "5"}, {"priority": 5}, {"sensitive": "true"}, {"sensitive": None}, {"conditions": None},
    {"uuid": None},
    {"scope": None}, {"scope": "x"}, {"description": None}, {"phase": "early"},
    {"conditions": [{"op": "! eq", "args": ["a", "b"]}, {"op": "!eq", "args": {"values": ["a"]}, "loop": "{ports}"}]},
])
def test_schema_accepts_what_is_valid(sent: dict[str, Any]) -> None:
    body = {"actions": ACTIONS, **sent}
    assert world.validate(rules.from_wire(body)) == []
    VALIDATOR.validate(body)


@walking("sent", [
    {"priority": True}, {"priority": None}, {"priority": 10000}, {"sensitive": 1}, {"phase": None}, {"actions": None},
    {"nosuch": 1}, {"built_in": True}, {"conditions": "x"}, {"conditions": [{"op": "eqq"}]}, {"uuid": "x"},
    {"scope": ""},
    {"actions": [{"op": "log", "args": {"nosuch": 1}}]}, {"actions": [{"op": "log", "args": {}}]}, {"actions": []},
    {"conditions": [{"op": "eq", "args": {"values": 5}}]}, {"conditions": [{"op": "eq", "loop": 5}]},
    {"uuid": "1be26c0b-03f2-4d2e-ae87-c02d7f33c123\n"},
])
def test_schema_refuses(sent: dict[str, Any]) -> None:
    assert not VALIDATOR.is_valid({"actions": ACTIONS, **sent})


def test_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(rules.rule_schema())


def test_schema_and_check_know_the_same_fields() -> None:
    schema = rules.rule_schema()
    assert tuple(schema["properties"]) == WRITABLE
    assert tuple(schema["required"]) == RULE.required


def test_schema_and_check_agree_on_the_fields_of_a_rule() -> None:
    validator = jsonschema.Draft202012Validator(rules.rule_schema(LIMITS))
    bodies = [{}, {"nosuch": 1}, *({"actions": ACTIONS, name: value} for name in WRITABLE for value in VALUES)]
    answers = [(body, rules.validate(rules.from_wire(body), limits=LIMITS) == []) for body in bodies]

    assert {valid for _, valid in answers} == {True, False}
    assert [body for body, valid in answers if validator.is_valid(body) != valid] == []


@walking("folder", ["operators", "actions"])
def test_schema_accepts_every_valid_vector(folder: str) -> None:
    field = {"operators": "conditions", "actions": "actions"}[folder]
    refused = []
    for op, case in world.vectors(folder):
        operation = {"op": op, **{key: case[key] for key in ("args", "loop", "multiple") if key in case}}
        body = {"actions": ACTIONS, field: [operation], "phase": case.get("phase", "main")}
        if "problems" not in case and not VALIDATOR.is_valid(body):
            refused.append((op, case["name"]))
    assert refused == []
