"""Rules that are not stored, in an operation: what a dry run of many nodes is made with."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from ironic_rules import rules
from ironic_rules.inspection.rule_cache import RuleCache
from ironic_rules.models.inspection_rules import Rule
from ironic_rules.models.json_values import JSONObject
from ironic_rules.rules import CompiledRule, Limits, RuleSet


@dataclass(frozen=True, slots=True)
class Changes:
    """How a set of rules differs from the stored one.

    :ivar removed: UUIDs
    :ivar added: rules that are valid
    :ivar only: there are no others, not even built-in ones
    """

    removed: Sequence[str]
    added: Sequence[Rule]
    only: bool

    def to_json(self) -> JSONObject:
        """Return what :func:`rule_set` reads."""
        added = [{**rule.said(), "position": rule.position} for rule in self.added]
        return {"removed": list(self.removed), "added": added, "only": self.only}


@functools.lru_cache(maxsize=4)
def _compiled(added: bytes, limits: Limits) -> Sequence[CompiledRule]:
    """Return compiled rules: those of an operation are the same for each of its nodes."""
    return [rules.compile(rule, limits=limits) for rule in map(Rule.of, orjson.loads(added)) if rule.enabled]


def rule_set(said: JSONObject, cache: RuleCache) -> RuleSet:
    """Return the rules of an operation."""
    settings = cache.settings
    compiled = _compiled(orjson.dumps(said["added"]), settings.limits)
    return settings.rule_set(compiled) if said["only"] else cache.as_if(said["removed"], compiled)
