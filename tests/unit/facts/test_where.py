"""The short form of conditions: what each operator becomes, and the place of each error."""

from __future__ import annotations

from typing import Any

import pytest

from ironic_rules import rules
from ironic_rules.facts import where
from ironic_rules.facts.where import And, Condition, Name, Or, Tree, WhereError
from tests.walking import walking

NAMES = {
    "vendor": Name("{fact[vendor]}", "text"), "memory_gib": Name("{fact[memory_gib]}", "integer", unit="GiB"),
    "load": Name("{fact[load]}", "number"), "virtual": Name("{fact[virtual]}", "boolean"),
    "gpus": Name("{fact[gpus]}", "text", many=True), "macs": Name("{fact[macs]}", "mac", many=True),
    "bmc_address": Name("{fact[bmc_address]}", "address"), "owner": Name("{fact[owner]}", "text"),
}
_MAC = "aa:bb:cc:dd:ee:ff"


def _values(op: str, template: str, value: Any) -> dict[str, Any]:
    return {"op": op, "args": {"values": [template, value]}}


def _regex(op: str, template: str, regex: str) -> dict[str, Any]:
    return {"op": op, "args": {"value": template, "regex": regex}}


def _alone(op: str, template: str) -> dict[str, Any]:
    return {"op": op, "args": {"value": template}}


_VENDOR, _MEMORY, _GPUS, _BMC = "{fact[vendor]}", "{fact[memory_gib]}", "{fact[gpus]}", "{fact[bmc_address]}"


@walking("text, conditions", [
    ("vendor = Dell and memory_gib >= 512 and not traits has CUSTOM_GPU and load > 0.5", [
        _values("eq", _VENDOR, "Dell"), _values("ge", _MEMORY, 512),
        _regex("!contains", "{node[traits]}", "^CUSTOM_GPU$"), _values("gt", "{fact[load]}", 0.5)]),
    ('vendor="Dell Inc."', [_values("eq", _VENDOR, "Dell Inc.")]),
    ("vendor == 'a \\'b\\' \\\\ \\d'", [_values("eq", _VENDOR, "a 'b' \\ \\d")]),
    # No word of the grammar is one where a value is expected.
    ("vendor = and AND vendor != not", [_values("eq", _VENDOR, "and"), _values("ne", _VENDOR, "not")]),
    ("memory_gib<1e3 and memory_gib<=-5", [_values("lt", _MEMORY, 1000.0), _values("le", _MEMORY, -5)]),
    ("vendor = 512 and vendor = true", [_values("eq", _VENDOR, "512"), _values("eq", _VENDOR, "true")]),
    ("virtual = TRUE and not maintenance = false", [
        _values("eq", "{fact[virtual]}", True), _values("ne", "{node[maintenance]}", False)]),
    ("vendor in (Dell, 'HPE') and not memory_gib in (1,2) and vendor not in (x)", [
        {"op": "one-of", "args": {"value": _VENDOR, "values": ["Dell", "HPE"]}},
        {"op": "!one-of", "args": {"value": _MEMORY, "values": [1, 2]}},
        {"op": "!one-of", "args": {"value": _VENDOR, "values": ["x"]}}]),
    # Braces are no templates.
    ("vendor = '{x}' and gpus has '{x}' and vendor matches '{x}{2}[{]\\p{Lu}\\{'", [
        _values("eq", _VENDOR, "{{x}}"), _regex("contains", _GPUS, "^\\{x\\}$"),
        _regex("matches", _VENDOR, "\\{x\\}{2}[\\{]\\p{Lu}\\{")]),
    ("vendor starts 'De.l' and gpus contains '^H1'", [
        _regex("contains", _VENDOR, "^De\\.l"), _regex("contains", _GPUS, "^H1")]),
    ("vendor is empty and not vendor is absent and gpus is absent and ports is not empty", [
        _alone("is-empty", _VENDOR), _alone("!is-none", _VENDOR), _alone("is-empty", _GPUS),
        _alone("!is-empty", "{ports}")]),
    ("bmc_address in-net 10.0.0.0/8 and bmc_address = 2001:DB8:0::1", [
        {"op": "in-net", "args": {"address": _BMC, "subnet": "10.0.0.0/8"}}, _values("eq", _BMC, "2001:db8::1")]),
    *[(f"macs has {mac}", [_regex("contains", "{fact[macs]}", f"^{_MAC}$")])
      for mac in (_MAC, "AA-BB-CC-DD-EE-FF", "aabb.ccdd.eeff", "AABBCCDDEEFF")],
    (f"ports has {_MAC} and not ports has {_MAC} and ports starts AA-bb", [
        {**_values("eq", "{item[address]}", _MAC), "loop": "{ports}", "multiple": "any"},
        {**_values("ne", "{item[address]}", _MAC), "loop": "{ports}", "multiple": "all"},
        {**_regex("contains", "{item[address]}", "^aa:bb"), "loop": "{ports}", "multiple": "any"}]),
    ("owner = a and node[owner] = b and state = manageable", [
        _values("eq", "{fact[owner]}", "a"), _values("eq", "{node[owner]}", "b"),
        _values("eq", "{node[provision_state]}", "manageable")]),
    ("inspection_finished_at < 2026-03-01T01:00+01:00", [
        _values("lt", "{node[inspection_finished_at]}", "2026-03-01T00:00:00+00:00")]),
    # Inversions of a whole expression.
    ("not (vendor = a or not (memory_gib < 5 and not virtual = true))", [
        _values("ne", _VENDOR, "a"), _values("lt", _MEMORY, 5), _values("ne", "{fact[virtual]}", True)]),
])
def test_a_clause_is_the_conditions_of_a_rule(text, conditions):
    tree = where.parse(text, NAMES)
    found = where.conditions_of(tree)

    assert found == conditions
    if "fact[" not in str(found):
        assert rules.validate({"conditions": found, "actions": [{"op": "log", "args": {"msg": "x"}}]}) == []


def _told(tree: Tree) -> str:
    if isinstance(tree, Condition):
        return str(tree.written["args"]["values"][1])
    sign = " & " if isinstance(tree, And) else " | "
    return f"({sign.join(map(_told, tree.parts))})"


@walking("text, told", [
    ("vendor = a or vendor = b and vendor = c", "(a | (b & c))"),
    ("(vendor = a or vendor = b) and vendor = c", "((a | b) & c)"),
    ("vendor = a and (vendor = b and (vendor = c))", "(a & b & c)"),
    ("not (vendor = a and vendor = b)", "(a | b)"),
    ("not not vendor = a", "a"),
])
def test_and_is_stronger_than_or(text, told):
    assert _told(where.parse(text, NAMES)) == told


def test_an_alternative_is_no_condition_of_a_rule():
    tree = where.parse("virtual = true and (vendor = a or vendor = b)", NAMES)

    assert isinstance(tree, And) and isinstance(tree.parts[1], Or)
    with pytest.raises(WhereError, match=r"^column 21: .*use NAME in \(a, b\)"):
        where.conditions_of(tree)


_LIMIT = "nested deeper than 50 levels"


@walking("text, error", [
    ("", "The clause is empty."), (" \n", "The clause is empty."),
    ("vendor = a\0", "The clause must not contain NUL and lone surrogate characters."),
    ("vendor = \ud800", "The clause must not contain NUL and lone surrogate characters."),
    ("vendor = " + "a" * 10240, "The clause is longer than 10240 characters."),
    ("load=1 or " * 1000 + "load=1", "The clause has more than 1000 conditions."),
    ("not " * 51 + "load=1", _LIMIT), ("(" * 51 + "load=1" + ")" * 51, _LIMIT),
    ("(" * 9000, "column 9001: expected a name"),
    ("vendr = Dell", "column 1: there is no fact or field of nodes with this name; did you mean 'vendor'?"),
    ("vendor = a and (fact[stat] = b or node[vendor] = c)", "column 17: there is no fact or field of nodes"),
    ("node[driver_info] = x", "column 1: there is no fact or field"),
    ("inventory[cpu] = x", "column 1: only fact[..] and node[..] have names in brackets"),
    ("vendor Dell", "column 8: expected an operator (=, !=, <, <=, >, >=, in, has, starts, contains, matches"),
    ("vendor hass Dell", "did you mean 'has'?"),
    ("vendor = ", "column 9: expected a value"), ("= a", "column 1: expected a name or '('"),
    ("vendor = Dell Inc.", "column 15: expected 'and' or 'or'; a value with other characters"),
    ("vendor = a)", "column 11: expected the end"), ("(vendor = a", "column 12: a '(' is not closed; expected ')'"),
    ("vendor = 'Dell", "column 10: this quote is not closed"),
    ("vendor = ‘Dell’", "column 10: expected a value"),
    ("vendor is there", "column 11: expected empty or absent"),
    ("memory_gib > 512G", "column 14: expected a number of GiB, without a unit and quotes"),
    ("memory_gib > '512'", "column 14: expected a number of GiB"), ("load > 1e999", "column 8: expected a number"),
    ("memory_gib = 99999999999999999999", "column 14: a number has at most 64 bits"),
    ("virtual = yes", "column 11: expected true or false"),
    ("virtual > true", "column 1: it is a boolean, which > does not compare"),
    ("memory_gib contains 5", "column 1: it is a number, which contains does not compare"),
    ("gpus = H100", "column 1: it has several values, which = does not compare; use has"),
    ("vendor has Dell", "column 1: it has one value; use ="),
    ("macs has aa:bb", "column 10: expected a MAC address of the form"),
    ("vendor matches '('", "column 16: not a regular expression that RE2 accepts: missing )"),
    ("vendor matches '(?=a)'", "RE2 has no look-around"), ("vendor contains " + "a" * 4097, "at most 4096 characters"),
    ("bmc_address in-net 10.0.0.0/99", "column 20: must be a network in CIDR form"),
    ("updated_at > yesterday", "column 14: expected a time like"),
    ("updated_at > 0001-01-01T00:00+23:00", "column 14: the time is too far away"),
])
def test_an_error_has_its_column(text, error):
    with pytest.raises(WhereError) as caught:
        where.parse(text, NAMES)

    assert error in str(caught.value)


def test_all_names_that_are_unknown_are_listed_up_to_a_limit():
    with pytest.raises(WhereError) as caught:
        where.parse(" or ".join(f"x{number}=1" for number in range(900)), NAMES)

    assert len(caught.value.problems) == 20
