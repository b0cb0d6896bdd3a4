"""Compile legacy rules to the conditions that inspection rules have, and to actions on the same drafts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ironic_rules.exceptions import Problem, RuleFailed
from ironic_rules.legacy import plugins as plugin_module
from ironic_rules.legacy.plugins import Plugins
from ironic_rules.models.legacy_rules import LegacyRule
from ironic_rules.rules.limits import DEFAULT, Limits


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class CompiledLegacyRule:
    """A rule ready to be evaluated; immutable, shared by threads and rule sets.

    :ivar disabled: why it does nothing: a plug-in that it uses cannot be loaded; None if it works
    """

    uuid: str
    description: str | None
    scope: str | None
    position: int
    conditions: tuple[Any, ...]
    actions: tuple[Any, ...]
    disabled: str | None = None


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class BrokenLegacyRule:
    """A stored rule that cannot be compiled: it would be wrong to inspect a node in its scope without it."""

    uuid: str
    scope: str | None
    position: int
    problems: tuple[Problem, ...]

    def failure(self) -> RuleFailed:
        """Return the error that an inspection ends with."""
        raise NotImplementedError


def parse(body: Any, *, limits: Limits = DEFAULT, plugins: Plugins = plugin_module.NONE) -> LegacyRule:
    """Return the rule that a request body describes, in the document's or ironic-inspector's form.

    :param body: any JSON value
    :returns: the rule, not stored yet (no times, position and revision), with ``invert`` and ``multiple`` filled in
    :raises InvalidRule: with every problem and its JSON pointer
    """
    raise NotImplementedError


def compile_rule(rule: LegacyRule, *, limits: Limits = DEFAULT,
                 plugins: Plugins = plugin_module.NONE) -> CompiledLegacyRule:
    """Compile a rule.

    :raises InvalidRule: with every problem
    """
    raise NotImplementedError


def compile_stored(rule: LegacyRule, *, limits: Limits = DEFAULT,
                   plugins: Plugins = plugin_module.NONE) -> CompiledLegacyRule | BrokenLegacyRule:
    """Compile a rule that was valid when it was stored."""
    raise NotImplementedError
