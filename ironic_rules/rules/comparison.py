"""The comparison of a request's rules with those that are stored: the changes that it makes in the rule set."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import jsonpatch
import orjson

from ironic_rules.exceptions import Problem
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.rules import WRITABLE, Rule

#: Fields that are compared.
_COMPARED = tuple(name for name in WRITABLE if name != "uuid")


class Entry(NamedTuple):
    """One rule of a comparison.

    :ivar old: as it is stored; None if it is created
    :ivar new: all fields that are written; None if it is removed
    :ivar place: of the rule in the request; None if it is not there
    :ivar version: the version that it gets back, with its UUID, time and place of creation
    """

    old: Rule | None
    new: JSONObject | None
    place: int | None = None
    version: Rule | None = None

    def patch(self) -> list[JSONObject]:
        """Return the operations (RFC 6902) that make the new rule of the stored one; neither may be sensitive."""
        assert self.old is not None and self.new is not None
        new = {name: self.new[name] for name in _COMPARED}
        operations: list[JSONObject] = jsonpatch.make_patch(_fields(self.old), new).patch
        return operations


@dataclass(slots=True)
class Comparison:
    """The rules by what happens to them, in the order of the request; removed ones in that of their creation.

    ``replaced`` are the rules that are or become sensitive: they are written whether or not they differ, so that no one
    learns by a guess what they contain.
    """

    created: list[Entry] = field(default_factory=list)
    changed: list[Entry] = field(default_factory=list)
    replaced: list[Entry] = field(default_factory=list)
    unchanged: list[Entry] = field(default_factory=list)
    removed: list[Entry] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.created or self.changed or self.replaced or self.removed)

    @property
    def written(self) -> list[Entry]:
        """The rules that are created or written again."""
        return [*self.created, *self.changed, *self.replaced]

    def summary(self) -> str:
        """Return the numbers of rules in one line."""
        changed = len(self.changed) + len(self.replaced)
        return f"created {len(self.created)}, changed {changed}, removed {len(self.removed)} rules"


def request_problems(rules: Sequence[object], bundle: str | None) -> list[Problem]:
    """Return the problems of the rules of one request with each other and with its bundle.

    :param rules: as clients send them
    """
    problems: list[Problem] = []
    values_of: dict[str, set[str]] = {"uuid": set(), "name": set()}
    for index, rule in enumerate(rules):
        if not isinstance(rule, Mapping):
            continue
        for key, values in values_of.items():
            value = rule.get(key)
            if not isinstance(value, str):
                continue
            value = value.lower() if key == "uuid" else value
            if value in values:
                problems.append(Problem(f"/rules/{index}/{key}", "another rule of the request has it, too"))
            values.add(value)
        if "bundle" in rule and rule["bundle"] != bundle:
            problems.append(Problem(f"/rules/{index}/bundle", "is not the bundle of the request; it can be left out"))
    return problems


def apply(rules: Mapping[int, JSONObject], stored: Sequence[Rule], *, prune: bool,
          elsewhere: Mapping[str, str]) -> tuple[Comparison, list[Problem]]:
    """Return what makes the rules of a bundle those that are given, and the problems of that.

    A rule is matched by ``uuid``, else by ``name``; without either by equal content with a rule without a name, each
    stored rule once.

    :param rules: by place in the request; with defaults (``from_wire``), and with the bundle
    :param stored: all rules of the bundle, in the order of their creation
    :param elsewhere: why UUIDs that are given and not in the bundle cannot be used
    """
    result, problems = Comparison(), []
    unmatched = {rule.uuid: rule for rule in stored}
    matches = _matches(rules, unmatched)
    for place, new in rules.items():
        old = matches.get(place)
        if old is None and (reason := elsewhere.get(str(new.get("uuid")))):
            problems.append(Problem(f"/rules/{place}/uuid", reason))
        if new["sensitive"] is True and not (new.get("uuid") or new["name"]):
            problems.append(Problem(f"/rules/{place}", "a sensitive rule needs a uuid or a name by which it is found"))
        if old is not None and old.sensitive and new["sensitive"] is not True:
            problems.append(Problem(f"/rules/{place}/sensitive", "a sensitive rule cannot be made non-sensitive"))
        _add(result, Entry(old, new, place))
    if prune:
        result.removed = [Entry(rule, None) for rule in unmatched.values()]
    else:
        names = {rule.name: rule for rule in unmatched.values() if rule.name is not None}
        for place, new in rules.items():
            if isinstance(new["name"], str) and (other := names.get(new["name"])):
                problems.append(Problem(f"/rules/{place}/name", f"is the name of rule {other.uuid}"))
    return result, problems


def rollback(then: Sequence[Rule], stored: Sequence[Rule]) -> Comparison:
    """Return what makes the stored rules those of a revision.

    Each keeps its UUID, and gets back its time and place of creation. A rule that is sensitive stays sensitive.

    :param then: ``revision`` of each is that of its version
    """
    result = Comparison()
    unmatched = {rule.uuid: rule for rule in stored}
    for rule in then:
        old = unmatched.pop(rule.uuid, None)
        if old is not None and old.revision == rule.revision:
            result.unchanged.append(Entry(old, None))
            continue
        sensitive = rule.sensitive or (old is not None and old.sensitive)
        entry = Entry(old, _fields(replace(rule, sensitive=sensitive)), version=rule)
        if old is not None and (old.created_at, old.position) != (rule.created_at, rule.position) and not sensitive:
            # It was deleted and created again: even with equal content, another one.
            result.changed.append(entry)
        else:
            _add(result, entry)
    result.removed = [Entry(rule, None) for rule in unmatched.values()]
    return result


def _matches(rules: Mapping[int, JSONObject], unmatched: dict[str, Rule]) -> dict[int, Rule]:
    """Return the stored rule for each place that has one, and remove it from ``unmatched``."""
    matches: dict[int, Rule] = {}

    def match(place: int, uuid: object) -> None:
        if isinstance(uuid, str) and uuid in unmatched:
            matches[place] = unmatched.pop(uuid)

    for place, rule in rules.items():
        match(place, rule.get("uuid"))
    names = {rule.name: rule.uuid for rule in unmatched.values()}
    for place, rule in rules.items():
        if "uuid" not in rule and isinstance(rule["name"], str):
            match(place, names.get(rule["name"]))
    contents = defaultdict(list)
    for stored in reversed(unmatched.values()):
        if stored.name is None and not stored.sensitive:
            contents[_content(_fields(stored))].append(stored.uuid)
    for place, rule in rules.items():
        if "uuid" not in rule and rule["name"] is None and (same := contents.get(_content(rule))):
            match(place, same.pop())
    return matches


def _add(result: Comparison, entry: Entry) -> None:
    """Add a rule that the request has."""
    old, new = entry.old, entry.new
    assert new is not None
    if old is None:
        result.created.append(entry)
    elif old.sensitive or new["sensitive"] is True:
        result.replaced.append(entry)
    elif _content(_fields(old)) == _content(new):
        result.unchanged.append(entry)
    else:
        result.changed.append(entry)


def _fields(rule: Rule) -> JSONObject:
    return {name: getattr(rule, name) for name in _COMPARED}


def _content(rule: Mapping[str, Any]) -> bytes:
    """Return everything but the UUID; of a rule that is given, also what it must not have."""
    return orjson.dumps({name: value for name, value in rule.items() if name != "uuid"}, option=orjson.OPT_SORT_KEYS)
