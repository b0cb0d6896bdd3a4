"""Tests of rules in files: rules, data of machines, and what is expected of an inspection. Without any service.

A file is a mapping: ``rules`` (the name of a file or folder, or a list of rules), ``built_in`` (the name of a file or
folder with built-in rules), ``hooks`` (names; none by default), and ``cases``, a list of mappings:

``name``
    what the case is about
``node``, ``traits``, ``ports``
    fields of the node, its traits, and a list of ports
``report``
    what the ramdisk sends, or the name of a file (JSON or YAML) with it
``previous``
    what the ramdisk sent in the last inspection before, in the same form; by default there was none
``expect``
    any of ``outcome``, ``matched`` and ``not_matched`` (names, descriptions or UUIDs of rules), ``node`` (the whole
    patch, in any order), ``changes`` (operations that are part of it), ``traits`` (those added, all of them),
    ``added_traits`` (some of them), ``plugin_data``, ``failure``
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from ironic_rules import rules
from ironic_rules.exceptions import ConfigurationError, Invalid, InvalidInventory, Problem
from ironic_rules.inspection import payload, trial_machines, trials
from ironic_rules.inspection.hook_settings import HookSettings
from ironic_rules.inspection.hooks import loader
from ironic_rules.inspection.pipeline import Pipeline
from ironic_rules.inspection.trials import RulesToTry, TrialSetting
from ironic_rules.models.documents import JSONObject, same
from ironic_rules.models.draft import NodeDraft, PortDraft
from ironic_rules.models.rules import Rule
from ironic_rules.rules import Checked, built_in, strict_yaml
from ironic_rules.rules.built_in import Found

_KEYS = frozenset({"rules", "built_in", "hooks", "cases"})
_CASE = frozenset({"name", "node", "traits", "ports", "report", "previous", "expect"})
_EXPECTED = ("outcome", "matched", "not_matched", "node", "changes", "traits", "added_traits", "plugin_data",
             "failure")
_NODE = {"driver": "fake-hardware", "inspect_interface": "agent"}


class BadCase(ConfigurationError):
    """A file with cases cannot be used; the text has its name and the reason."""


@dataclass(slots=True)
class CaseResult:
    """The result of a case: ``problems`` is empty if it is as expected."""

    file: Path
    name: str
    problems: list[str]
    seconds: float = 0.0


@dataclass(slots=True)
class Coverage:
    """Outcomes of each condition: by rule and pointer, ``{True, False}`` at best."""

    outcomes: dict[tuple[str, str], set[bool]] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)

    def expect(self, many: Sequence[Rule]) -> None:
        """Add the conditions of rules. Conditions of sensitive rules are not shown, so they are not measured."""
        for rule in many:
            self.names[rule.uuid] = rule.name or rule.description or rule.uuid
            for number in range(len(rule.conditions) if not rule.sensitive else 0):
                self.outcomes.setdefault((rule.uuid, f"/conditions/{number}"), set())

    def add(self, steps: Sequence[JSONObject]) -> None:
        """Add the outcomes of a case: of the conditions that an inspection evaluates, too."""
        for step in steps:
            for condition in step.get("conditions", ()):
                if not condition["short_circuited"]:
                    place = step["rule"], condition["pointer"]
                    self.outcomes.setdefault(place, set()).add(bool(condition["outcome"]))

    def missing(self) -> Iterator[str]:
        """Yield each condition that no case made true, or none made false."""
        for (uuid, pointer), seen in self.outcomes.items():
            for outcome in (True, False):
                if outcome not in seen:
                    yield f"{self.names.get(uuid, uuid)} {pointer}: no case made it {str(outcome).lower()}"

    @property
    def share(self) -> float:
        """The covered part, from 0 to 1."""
        return sum(map(len, self.outcomes.values())) / (2 * len(self.outcomes)) if self.outcomes else 1.0


def files(place: Path) -> list[Path]:
    """Return the files with cases: ``place`` itself, or the ``*.yaml`` at any depth of that folder.

    :raises BadCase: there is no such file or folder, or a file cannot be read
    """
    if not place.exists():
        raise BadCase(f"{place}: there is no such file or folder")
    return [file for file in (sorted(place.rglob("*.yaml")) if place.is_dir() else [place])
            if isinstance(document := _load(file), dict) and "cases" in document]


def run(file: Path, coverage: Coverage, clock: Callable[[], float]) -> Iterator[CaseResult]:
    """Yield the results of the cases of a file.

    :param clock: returns seconds
    :raises BadCase: the file cannot be used
    """
    document = _load(file)
    _known(file, "", document, _KEYS)
    checked = _rules(file, document)
    stored_rules = [rule for rule, _ in checked]
    coverage.expect(stored_rules)
    try:
        setting = TrialSetting(Pipeline(loader.load(document.get("hooks") or ()), HookSettings()))
    except (ConfigurationError, TypeError) as error:
        raise BadCase(f"{file}: /hooks: {error}") from error
    compiled = RulesToTry(rules.RuleSet([checked_rule.of(rule) for rule, checked_rule in checked if rule.enabled]))
    cases = document["cases"]
    if not isinstance(cases, list):
        raise BadCase(f"{file}: /cases: must be a list")
    for number, case in enumerate(cases):
        where = f"/cases/{number}"
        _known(file, where, case, _CASE)
        expected = case.get("expect") or {}
        _known(file, f"{where}/expect", expected, frozenset(_EXPECTED))
        began = clock()
        try:
            sent = payload.split(_report(file, where, case.get("report")))
            machine = _machine(file, where, case)
            result = trials.try_rules(setting, machine, sent.to_store(), compiled,
                                      traces=True, early=True)
        except Invalid as error:
            raise BadCase(f"{file}: {where}: {error}") from error
        coverage.add(result.shown["steps"])
        yield CaseResult(file, str(case.get("name") or number), list(_problems(expected, result.shown, stored_rules)),
                         clock() - began)


def _machine(file: Path, where: str, case: Mapping[str, Any]) -> trial_machines.Machine:
    node, traits, ports = case.get("node") or {}, case.get("traits") or [], case.get("ports") or []
    for name, items in (("traits", traits), ("ports", ports)):
        if not isinstance(items, list):
            raise BadCase(f"{file}: {where}/{name}: must be a list")
    _check(file, f"{where}/node", node, NodeDraft)
    for number, port in enumerate(ports):
        _check(file, f"{where}/ports/{number}", port, PortDraft)
    if reason := NodeDraft.value_problem("traits", traits):
        raise BadCase(f"{file}: {where}/traits: {reason}")
    previous = None
    if case.get("previous") is not None:
        try:
            previous = payload.split(_report(file, where, case["previous"], "previous")).inventory
        except InvalidInventory as error:
            raise BadCase(f"{file}: {where}/previous: {error}") from error
    return trial_machines.imagined_machine({**_NODE, **node}, traits, ports, previous)


def _check(file: Path, where: str, values: Any, draft: type[NodeDraft | PortDraft]) -> None:
    """Check the fields of a node or a port."""
    _known(file, where, values, frozenset(draft.fields))
    for name, value in values.items():
        if reason := draft.value_problem(name, value):
            raise BadCase(f"{file}: {where}/{name}: {reason}")


def _problems(expected: Mapping[str, Any], shown: JSONObject, stored_rules: Sequence[Rule]) -> Iterator[str]:
    # A failure can be that of an inspection, or that of an early rule, which refuses it.
    failing = (trials.FAILED, trials.REFUSED) if expected.get("failure") else (trials.FINISHED,)
    outcomes = (expected["outcome"],) if "outcome" in expected else failing
    if shown["outcome"] not in outcomes:
        expected_text = ' or '.join(map(str, outcomes))
        yield f"outcome: expected {expected_text}, found {shown['outcome']}: {_text(shown['failure'])}"
        return
    verdicts = {step["rule"]: step["matched"] for step in shown["steps"] if "rule" in step}
    for must_match, key in ((True, "matched"), (False, "not_matched")):
        for name in expected.get(key) or ():
            uuids = [rule.uuid for rule in stored_rules if name in (rule.uuid, rule.name, rule.description)]
            if not uuids:
                yield f"{key}: there is no rule {name}"
            elif any(bool(verdicts.get(uuid)) is not must_match for uuid in uuids):
                yield f"{key}: {name} {'did not match' if must_match else 'matched'}{_why(shown, uuids)}"
    patch = shown.get("node", {}).get("patch", [])
    if "node" in expected and not _equal(expected["node"], patch):
        yield f"node: expected {_text(expected['node'])}, found {_text(patch)}"
    for operation in expected.get("changes") or ():
        if not any(same(operation, change) for change in patch):
            yield f"changes: {_text(operation)} is not part of {_text(patch)}"
    added = shown.get("traits", {}).get("added", [])
    some = expected.get("added_traits") or []
    if not isinstance(some, list):
        yield f"added_traits: must be a list of traits, not {_text(some)}"
    elif missing := [trait for trait in some if trait not in added]:
        yield f"added_traits: {_text(missing)} are not part of {_text(added)}"
    for key, actual in (("traits", added),
                        ("plugin_data", shown.get("plugin_data", {}).get("patch", []))):
        if key in expected and not _equal(expected[key], actual):
            yield f"{key}: expected {_text(expected[key])}, found {_text(actual)}"
    for key, value in (expected.get("failure") or {}).items():
        if not same((shown["failure"] or {}).get(key), value):
            yield f"failure: expected {key} {_text(value)}, found {_text(shown['failure'])}"


def _why(shown: JSONObject, uuids: Sequence[str]) -> str:
    reasons = [f"{condition['pointer']} ({condition['op']}): {condition['why']}"
               + (f" {condition['detail']}" if condition["detail"] else "")
               for step in shown["steps"] if step.get("rule") in uuids
               for condition in step.get("conditions", ()) if not condition["outcome"]]
    return f": {'; '.join(reasons)}" if reasons else ""


def _equal(expected: Any, actual: Sequence[Any]) -> bool:
    """Return whether two lists have the same items, in any order."""
    remaining = list(actual)
    if not isinstance(expected, list) or len(expected) != len(remaining):
        return False
    for item in expected:
        place = next((index for index, other in enumerate(remaining) if same(item, other)), None)
        if place is None:
            return False
        del remaining[place]
    return True


def _text(value: Any) -> str:
    return orjson.dumps(value, default=str).decode()


def _rules(file: Path, document: JSONObject) -> list[tuple[Rule, Checked]]:
    loaded = []
    if "rules" in document or "built_in" not in document:
        loaded = _stored(file, document.get("rules"))
    if "built_in" in document:
        if not isinstance(document["built_in"], str):
            raise BadCase(f"{file}: /built_in: must be the name of a file or folder")
        try:
            loaded += built_in.load(file.parent / document["built_in"])
        except ConfigurationError as error:
            raise BadCase(f"{file}: /built_in: {error}") from error
    return loaded


def _stored(file: Path, source: object) -> list[tuple[Rule, Checked]]:
    """Return rules as a service stores them, in their order, compiled."""
    problems: list[str] = []
    if isinstance(source, str):
        written = built_in.read(file.parent / source, problems)
    elif isinstance(source, list):
        written = [Found(file, f"/rules/{number}", rules.from_wire(rule) if isinstance(rule, dict) else rule)
                   for number, rule in enumerate(source)]
    else:
        raise BadCase(f"{file}: /rules: must be the name of a file or folder, or a list of rules")
    checked = [rules.check(entry.rule, warn_of=()) for entry in written]
    problems += [entry.told(problem) for entry, result in zip(written, checked, strict=True)
                 for problem in result.problems]
    if not problems:
        problems += _repeated(written)
    if problems:
        raise BadCase(f"{file}: /rules: these rules cannot be stored:\n" + "\n".join(problems))
    return [(Rule.of({"uuid": f"00000000-0000-4000-8000-{number:012d}", **entry.rule, "position": number}), result)
            for number, (entry, result) in enumerate(zip(written, checked, strict=True))]


def _repeated(written: Sequence[Found]) -> Iterator[str]:
    seen = set()
    for entry in written:
        for key, group in (("uuid", None), ("name", entry.rule["bundle"])):
            identity = key, group, entry.rule.get(key)
            if identity in seen and entry.rule.get(key) is not None:
                yield entry.told(Problem(f"/{key}", "another rule has it, too"))
            seen.add(identity)


def _report(file: Path, where: str, source: object, key: str = "report") -> Any:
    if isinstance(source, str):
        try:
            return _load(file.parent / source)
        except BadCase as error:
            raise BadCase(f"{file}: {where}/{key}: {error}") from error
    if not isinstance(source, dict):
        raise BadCase(f"{file}: {where}/{key}: must be a mapping, or the name of a file")
    return source


def _load(file: Path) -> Any:
    try:
        return strict_yaml.load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadCase(f"{file}: {error.strerror}") from error
    except ValueError as error:
        raise BadCase(f"{file}: {error}") from error


def _known(file: Path, where: str, mapping: object, keys: frozenset[str]) -> None:
    if not isinstance(mapping, dict):
        raise BadCase(f"{file}: {where or '/'}: must be a mapping")
    if unknown := sorted(key for key in mapping if key not in keys):
        raise BadCase(f"{file}: {where}/{unknown[0]}: is not known; known: {', '.join(sorted(keys))}")

