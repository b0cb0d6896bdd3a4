"""The conversion of legacy rules to inspection rules, each with a verdict and all differences, and their texts.

``exact`` says that an inspection with either rule gives the same node, for every report whose fields have the types
that ramdisks and out-of-band inspection send. A value that a legacy rule has set is taken back when the rule no longer
matches; inspection rules undo nothing, which ``Conversion.not_undone`` names.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ironic_rules.exceptions import Problem
from ironic_rules.legacy import actions, compiler, counterparts
from ironic_rules.legacy import plugins as plugin_module
from ironic_rules.legacy.counterparts import Counterpart, Kind, NoCounterpart, literal
from ironic_rules.legacy.paths import field_text
from ironic_rules.legacy.plugins import Plugins
from ironic_rules.legacy.values import message_parts
from ironic_rules.models import json_text
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.rules import LegacyRule
from ironic_rules.rules import compiler as rule_compiler
from ironic_rules.rules import strict_yaml, template
from ironic_rules.rules.limits import DEFAULT, Limits
from ironic_rules.rules.rule_fields import MAX_TEXT, from_wire

Note = Callable[[str], None]

CLEANUP = "cleanup is left out: inspection rules do nothing if they do not match."
APPENDED = "Each inspection appends the value once more; a legacy rule takes its own value back before. See unique."
APPENDED_BY_PATH = "Each inspection appends the value once more; a legacy rule takes its own value back before."
INSERTED = "The item of a list at this index is replaced; ironic-inspector inserted the value before it."
DRIVER = ("Interfaces of the node that the new driver offers, too, are kept, and the others get its defaults; legacy "
          "rules and ironic-inspector reset all of them.")
TYPE_KEPT = "A number, true and false keep their type; ironic-inspector wrote text."
NULLABLE = ("Where the field is null, ironic-inspector wrote the text None, or failed; here null is written, or the "
            "inspection fails.")

#: The pointer of the parameter that gives the path, by its two names.
_PATHS = ("path", "key")


def convert_actions(action: Mapping[str, Any], note: Note) -> JSONObject:
    """Return the equivalent of a valid action without a plug-in.

    :param note: called with each sentence on what differs
    :raises NoCounterpart: there is none; the text says why
    """
    name = action["action"]
    converter = _MADE.get(name)
    if converter is None:
        raise NoCounterpart(f"the action {name} is a plug-in: write one for inspection rules "
                            "(entry point group ironic.inspection_rules.actions)" if name not in actions.ACTIONS
                            else f"the action {name} has no counterpart")
    return converter(action, note)


def _set_attribute(action: Mapping[str, object], note: Note) -> JSONObject:
    if "cleanup" in action:
        note(CLEANUP)
    path = _path(action)
    if path == "/driver":
        note(DRIVER)
    if path.endswith("/-"):
        note(APPENDED_BY_PATH)
    elif path.rpartition("/")[2].isdecimal():
        note(INSERTED)
    return {"op": "set-attribute", "args": {"path": path, "value": _value(action["value"], note)}}


def _extend_attribute(action: Mapping[str, object], note: Note) -> JSONObject:
    if "cleanup" in action:
        note(CLEANUP)
    unique = action.get("unique", False)
    if not unique:
        note(APPENDED)
    return {"op": "extend-attribute", "args": {
        "path": _path(action), "value": _value(action["value"], note), **({"unique": True} if unique else {})}}


def _set_capability(action: Mapping[str, object], note: Note) -> JSONObject:
    name, value = literal(action["name"]), action.get("value")
    if value is None:
        return {"op": "unset-capability", "args": {"name": name}}
    return {"op": "set-capability", "args": {"name": name, "value": _value(value, note, as_text=True)}}


def _fail(action: Mapping[str, Any], note: Note) -> JSONObject:
    if action.get("maintenance"):
        raise NoCounterpart("inspection rules cannot put a node in maintenance and fail its inspection")
    return {"op": "fail", "args": {"msg": _text(message_parts(action["message"]), note, as_text=True)}}


def _trait(action: Mapping[str, object], note: Note) -> JSONObject:
    return {"op": action["action"], "args": {"name": literal(action["name"])}}


_MADE: Mapping[str, Callable[[Mapping[str, Any], Note], JSONObject]] = {
    "set-attribute": _set_attribute, "append-attribute": _extend_attribute, "extend-attribute": _extend_attribute,
    "set-capability": _set_capability, "fail": _fail, "add-trait": _trait, "remove-trait": _trait,
}


def _path(action: Mapping[str, Any]) -> str:
    path = next(action[name] for name in _PATHS if name in action)
    return str(literal("/" + path.strip("/")))


def _value(value: object, note: Note, *, as_text: bool = False) -> Any:
    """Return a value with the templates of inspection rules.

    :param as_text: whether the action makes a text of it anyway
    """
    if isinstance(value, str):
        return _text(template.parse(value), note, as_text)
    if isinstance(value, list):
        return [_value(item, note) for item in value]
    if isinstance(value, dict):
        return {_key(key): _value(item, note) for key, item in value.items()}
    return value


def _key(key: str) -> str:
    parts = template.parse(key) if "{" in key or "}" in key else (key,)
    if any(isinstance(part, template.Field) for part in parts):
        raise NoCounterpart("the keys of an object cannot be templates")
    return "".join(part for part in parts if isinstance(part, str))


def _text(parts: Sequence[str | template.Field], note: Note, as_text: bool) -> str:
    fields = [part for part in parts if isinstance(part, template.Field)]
    read = [counterparts.of("data", part.steps) for part in fields]
    for counterpart in read:
        for sentence in counterpart.notes:
            note(sentence)
    is_whole = len(parts) == 1 and bool(read)
    # Where null is missing, both rules fail, unless null itself is written.
    if any(not counterpart.null_is_missing or (is_whole and not as_text and counterpart.kind is not Kind.WHOLE)
           for counterpart in read):
        note(NULLABLE)
    if is_whole:
        return _whole(read[0], note, as_text)
    rest = iter(read)
    return "".join(literal(part) if isinstance(part, str) else _template(next(rest)) for part in parts)


def _template(counterpart: Counterpart) -> str:
    return field_text(counterpart.root, counterpart.steps)


def _whole(counterpart: Counterpart, note: Note, as_text: bool) -> str:
    """Return a template that is the whole value."""
    if as_text or counterpart.kind in (Kind.TEXT, Kind.LIST, Kind.OBJECT):
        return _template(counterpart)
    if counterpart.kind is Kind.WHOLE:
        # This makes a number the text that ironic-inspector wrote.
        return f"{_template(counterpart)[:-1]}|lower}}"
    note(TYPE_KEPT)
    return _template(counterpart)


SCOPE = ("The scope is compared with the field inspection_scope of the node; properties/inspection_scope, which "
         "legacy rules read as well, is not read.")
SHORTENED = f"Only the first {MAX_TEXT} characters are kept."
_PART = re.compile(r"/(conditions|actions)/([0-9]+)(.*)", re.DOTALL)


class Verdict(enum.StrEnum):
    """The verdict on an inspection rule, compared with the legacy rule."""

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


def convert_body(body: object, *, limits: Limits = DEFAULT, plugins: Plugins = plugin_module.NONE) -> Conversion:
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
    rule_parts: dict[str, list[JSONObject]] = {"conditions": [], "actions": []}
    #: for each part of the new rule the index of the part of the legacy rule from which it comes
    origins: dict[str, list[int]] = {"conditions": [], "actions": []}

    for kind, parts in (("conditions", rule.conditions), ("actions", rule.actions)):
        for number, part in enumerate(parts):
            where = f"/{kind}/{number}"

            def note(text: str, where: str = where) -> None:
                notes[Problem(where, text)] = None

            try:
                if kind == "conditions":
                    converted = counterparts.convert(part, note)
                else:
                    converted = [convert_actions(part, note)]
            except NoCounterpart as exc:
                problems.append(Problem(where, str(exc)))
                continue
            # Two conditions of a rule may need the same guard.
            converted = [item for item in converted if kind == "actions" or item not in rule_parts[kind]]
            rule_parts[kind] += converted
            origins[kind] += [number] * len(converted)
    new: JSONObject = {**_heading(rule, notes), **rule_parts}
    if not problems:
        problems = [_traced(problem, origins) for problem in rule_compiler.validate(from_wire(new), limits=limits)]
    if problems:
        return Conversion(None, problems=tuple(problems))
    undone = (f"/actions/{number}" for number, action in enumerate(rule.actions) if action["action"] != "fail")
    return Conversion(new, tuple(notes), not_undone=tuple(undone))


def _heading(rule: LegacyRule, notes: dict[Problem, None]) -> JSONObject:
    """Return the fields other than conditions and actions."""
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
    match = _PART.fullmatch(problem.where)
    if match is None or int(match[2]) >= len(origins[match[1]]):
        return problem
    where = f"/{match[1]}/{origins[match[1]][int(match[2])]}"
    return Problem(where, f"as an inspection rule, its {match[3].lstrip('/') or 'form'} {problem.text}")


class BadRuleFile(ValueError):
    """A text has no rules. The message says why, and quotes nothing."""


@dataclass(frozen=True, slots=True)
class GivenRule:
    """A rule as its author has written it.

    :ivar place: where it is in the text: ``document 2, /rules/0``; empty if the text is that rule
    """

    place: str
    body: Any

    @property
    def name(self) -> str:
        """The name of the rule for a reader: its description, else its UUID; empty without both."""
        named = self.body if isinstance(self.body, dict) else {}
        return next((str(named[key]) for key in ("description", "uuid") if named.get(key)), "")


def parse(text: str) -> list[GivenRule]:
    """Return the rules of a text.

    :param text: JSON, or YAML with one or more documents; each a rule, a list of rules, or a reply of ``GET
        /v1/rules``, ``{"rules": [...]}``
    :raises BadRuleFile: it is neither, or has no rules
    """
    try:
        documents = [json_text.parse(text, strict_yaml.MAX_DEPTH)]
    except ValueError:
        try:
            documents = strict_yaml.load_all(text)
        except strict_yaml.BadYaml as exc:
            raise BadRuleFile(f"neither JSON nor YAML: {exc}") from None
    rules = [rule for number, document in enumerate(documents, 1)
             for rule in _of_document(document, f"document {number}" if len(documents) > 1 else "")]
    if not rules:
        raise BadRuleFile("it contains no rules")
    return rules


def _of_document(document: object, place: str) -> Iterator[GivenRule]:
    if document is None:
        return
    pointer = ""
    if isinstance(document, dict) and isinstance(document.get("rules"), list):
        document, pointer = document["rules"], "/rules"
    if isinstance(document, list):
        for index, rule in enumerate(document):
            yield GivenRule(", ".join(filter(None, (place, f"{pointer}/{index}"))), rule)
    elif isinstance(document, dict):
        yield GivenRule(place, document)
    else:
        raise BadRuleFile("a rule is an object")
