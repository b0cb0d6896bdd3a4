"""Warnings about valid rules, and templates that can never have a value: ``tests/vectors/warnings``."""

from __future__ import annotations

import re
from typing import Any

from ironic_rules import rules
from ironic_rules.models.inventories import Catalogue, shipped_paths
from ironic_rules.rules import regex
from ironic_rules.rules.values import MAX_WARNINGS
from tests.functional.processes import in_time
from tests.unit.rules import world
from tests.walking import walking

STORED = {"vendor": {"slot": 1, "bays": [{"name": "a"}]}, "by_mac": {"52:54:00:00:00:01": {"speed": 1}}}
CASES = world.vectors("warnings")


def known_paths() -> Catalogue:
    return Catalogue((*shipped_paths(), *Catalogue(shipped_paths()).new(STORED)))


def known_names() -> dict[str, set[str]]:
    return {"driver": {"ipmi", "redfish"}, "boot_interface": {"pxe", "ipxe"}, "raid_interface": set()}


def checked(rule: dict[str, Any], **options: Any) -> rules.Checked:
    return rules.check(world.rule(**rule), limits=world.LIMITS, known_paths=known_paths, known_names=known_names,
                       **options)


def rule_of(case: dict[str, Any]) -> dict[str, Any]:
    return {name: case[name] for name in ("conditions", "actions", "phase") if name in case}


@walking("vector", CASES)
def test_warnings_and_problems_are_as_written(vector: Any) -> None:
    _, case = vector
    found = checked(rule_of(case))
    problems, warnings = case.get("problems", {}), case.get("warnings", [])
    assert {problem.where for problem in found.problems} == problems.keys()
    for where, text in problems.items():
        assert text in " | ".join(problem.text for problem in found.problems if problem.where == where)
    assert [(warning.where, text if text in warning.text else warning.text, warning.nearest)
            for warning, (_, text, _) in zip(found.warnings, warnings, strict=True)] == [tuple(w) for w in warnings]
    assert "hunter" not in str(found)


@walking("vector", CASES)
def test_validation_finds_the_same_problems_and_what_has_none_compiles(vector: Any) -> None:
    _, case = vector
    problems = world.validate(world.rule(**rule_of(case)))
    assert problems == checked(rule_of(case)).problems
    if not problems:
        world.compiled(world.rule(**rule_of(case)))


def test_only_the_parts_that_are_asked_for_are_warned_of() -> None:
    args = {"op": "log", "args": ["x"]}
    rule = {"conditions": [{"op": "eq", "args": [1, 2]}] * (MAX_WARNINGS + 5), "actions": [args]}
    assert [warning.where for warning in checked(rule, warn_of=("actions",)).warnings] == ["/actions/0/args"]
    assert checked(rule, warn_of=()).warnings == []


def test_warnings_are_bounded() -> None:
    found = checked({"conditions": [{"op": "eq", "args": [1, 2]}] * 99}).warnings
    assert len(found) == MAX_WARNINGS + 1
    assert (found[-1].where, str(found[-1])) == ("", found[-1].text)


def test_without_known_paths_none_is_warned_of() -> None:
    rule = world.rule(conditions=[{"op": "is-none", "args": {"value": "{inventory[zzz]}"}}])
    assert rules.check(rule).warnings == []
    assert rules.check(rule, known_paths=lambda: Catalogue(["/**"])).warnings == []


def test_what_ramdisks_send_is_known_without_a_look_at_the_stored_paths() -> None:
    def refuse() -> Catalogue:
        raise AssertionError("the stored paths were read")

    rule = world.rule(conditions=[{"op": "is-none", "args": {"value": "{inventory[cpu][count]}"}}])
    assert rules.check(rule, known_paths=refuse).warnings == []


@walking("escape", [r"\w", r"\W", r"\d", r"\D", r"\s", r"\S"])
def test_the_unicode_forms_match_what_python_does(escape: str) -> None:
    caution, = regex.cautions(escape)
    form = caution.rpartition(" is ")[2]
    ours = regex.compile_regex(form)
    # Letters, digits, marks and spaces of several scripts; not the control characters that only Python calls spaces.
    for character in "aZé\u00df\u4e2d\u0416_-.09\u0663\u00b2\u2167 \t\n\x0b\u00a0\u2003\u3000€\u0301":
        same = bool(ours.fullmatch(character.encode())) is bool(re.fullmatch(escape, character))
        assert same, (escape, form, character)


def test_long_expressions_are_looked_at_in_linear_time() -> None:
    # Text with a template is not limited to what RE2 accepts. Quadratic time would be minutes.
    with in_time():
        for text in ("[" * 60_000, r"\Q" * 30_000, "[[:a" * 15_000, "[]" * 30_000, "\\" * 60_001):
            list(regex.cautions(text))
