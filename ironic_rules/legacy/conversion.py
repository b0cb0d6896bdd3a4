"""Legacy rules as inspection rules, each with a verdict, and all that differs.

``exact`` says that an inspection with either rule gives the same node, for every report whose fields have the types
that ramdisks and out-of-band inspection send. What a rule has set stays when it no longer matches: inspection rules
undo nothing, which ``Conversion.not_undone`` names.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ironic_rules.exceptions import Problem
from ironic_rules.legacy import compiler, converted_actions, converted_conditions
from ironic_rules.legacy import plugins as plugin_module
from ironic_rules.legacy.counterparts import NoCounterpart
from ironic_rules.legacy.plugins import Plugins
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.rules import LegacyRule
from ironic_rules.rules import compiler as rule_compiler
from ironic_rules.rules.limits import DEFAULT, Limits
from ironic_rules.rules.rule_fields import MAX_TEXT, from_wire

SCOPE = ("The scope is compared with the field inspection_scope of the node; properties/inspection_scope, which "
         "legacy rules read as well, is not read.")
SHORTENED = f"Only the first {MAX_TEXT} characters are kept."
_PART = re.compile(r"/(conditions|actions)/([0-9]+)(.*)", re.DOTALL)


class Verdict(enum.StrEnum):
    """How the inspection rule compares with the legacy rule."""

    EXACT = "exact"
    NOTED = "exact with a note"
    NOT_CONVERTIBLE = "not convertible"


@dataclass(frozen=True, slots=True)
class Conversion:
    """A legacy rule and its counterpart.

    :ivar rule: the inspection rule as a client sends it; None if there is none
    :ivar notes: what differs, or what it depends on: full sentences, each with the pointer to the part of the legacy
        rule
    :ivar problems: why there is none, each with its pointer
    :ivar not_undone: pointers to the actions whose effect a legacy rule takes back when it no longer matches, and an
        inspection rule does not
    """

    rule: JSONObject | None
    notes: tuple[Problem, ...] = ()
    problems: tuple[Problem, ...] = ()
    not_undone: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """The verdict in one word."""
        if self.rule is None:
            return Verdict.NOT_CONVERTIBLE
        return Verdict.NOTED if self.notes else Verdict.EXACT

    def to_wire(self) -> JSONObject:
        """Return the conversion as the API shows it."""
        def shown(problems: tuple[Problem, ...]) -> list[JSONObject]:
            return [{"pointer": problem.where, "text": problem.text} for problem in problems]

        return {"verdict": str(self.verdict), "rule": self.rule, "notes": shown(self.notes),
                "problems": shown(self.problems), "not_undone": list(self.not_undone)}


def convert_body(body: Any, *, limits: Limits = DEFAULT, plugins: Plugins = plugin_module.NONE) -> Conversion:
    """Convert a rule as a user writes it.

    :param body: any JSON value
    :raises InvalidRule: it is no valid legacy rule; with every problem
    """
    return convert(compiler.parse(body, limits=limits, plugins=plugins), limits=limits)


def convert(rule: LegacyRule, *, limits: Limits = DEFAULT) -> Conversion:
    """Convert a valid rule.

    :param limits: those of inspection rules
    """
    notes: dict[Problem, None] = {}
    problems: list[Problem] = []
    made: dict[str, list[JSONObject]] = {"conditions": [], "actions": []}
    #: for each part of the new rule the index of the part of the legacy rule from which it comes
    origins: dict[str, list[int]] = {"conditions": [], "actions": []}

    for kind, parts in (("conditions", rule.conditions), ("actions", rule.actions)):
        for number, part in enumerate(parts):
            where = f"/{kind}/{number}"

            def note(text: str, where: str = where) -> None:
                notes[Problem(where, text)] = None

            try:
                if kind == "conditions":
                    converted = converted_conditions.convert(part, note)
                else:
                    converted = [converted_actions.convert(part, note)]
            except NoCounterpart as exc:
                problems.append(Problem(where, str(exc)))
                continue
            # Two conditions of a rule may need the same guard.
            converted = [each for each in converted if kind == "actions" or each not in made[kind]]
            made[kind] += converted
            origins[kind] += [number] * len(converted)
    new: JSONObject = {**_heading(rule, notes), **made}
    if not problems:
        problems = [_traced(problem, origins) for problem in rule_compiler.validate(from_wire(new), limits=limits)]
    if problems:
        return Conversion(None, problems=tuple(problems))
    undone = (f"/actions/{number}" for number, action in enumerate(rule.actions) if action["action"] != "fail")
    return Conversion(new, tuple(notes), not_undone=tuple(undone))


def _heading(rule: LegacyRule, notes: dict[Problem, None]) -> JSONObject:
    """Return the fields besides conditions and actions."""
    fields: JSONObject = {"uuid": rule.uuid} if rule.uuid else {}
    if rule.description is not None:
        fields["description"] = rule.description[:MAX_TEXT]
        if len(rule.description) > MAX_TEXT:
            notes[Problem("/description", SHORTENED)] = None
    if rule.scope:
        fields["scope"] = rule.scope
        notes[Problem("/scope", SCOPE)] = None
    return fields


def _traced(problem: Problem, origins: Mapping[str, list[int]]) -> Problem:
    """Return a problem of the new rule at the part of the legacy rule from which it comes."""
    found = _PART.fullmatch(problem.where)
    if found is None or int(found[2]) >= len(origins[found[1]]):
        return problem
    where = f"/{found[1]}/{origins[found[1]][int(found[2])]}"
    return Problem(where, f"as an inspection rule, its {found[3].lstrip('/') or 'form'} {problem.text}")
