"""Settings of ``[inspection_rules]`` for both kinds of rules, whose engines do not read the configuration."""

from __future__ import annotations

import functools
import weakref
from collections import OrderedDict
from collections.abc import Iterable, MutableMapping, Sequence
from dataclasses import dataclass, field

from oslo_config import cfg
from oslo_log import log as logging

from ironic_rules import legacy
from ironic_rules.db import inspection_rules, inventory
from ironic_rules.db.session import Database
from ironic_rules.exceptions import ConfigurationError
from ironic_rules.hardware import destinations
from ironic_rules.legacy import BrokenLegacyRule, CompiledLegacyRule, LegacyRuleSet, Plugins
from ironic_rules.models.inventories import Catalogue
from ironic_rules.models.rules import LegacyRule
from ironic_rules.rules import (
    BrokenRule,
    Checked,
    CompiledRule,
    Limits,
    Rule,
    RuleSet,
    RuleWarning,
    built_in,
    compile_stored,
    load_plugins,
)
from ironic_rules.rules.base import HttpGet
from ironic_rules.rules.limits import AllowedHosts
from ironic_rules.text import enumeration, printable

LOG = logging.getLogger(__name__)

#: Maximum number of rules that were checked and stored, and are not in the set yet.
_MOST_KEPT = 1000


@dataclass(frozen=True, slots=True)
class RuleSettings:
    """Settings that every process that validates or compiles rules requires.

    :ivar limits: of both kinds of rules: for ``rules.validate``, ``rules.compile`` and ``rules.rule_schema``
    :ivar http_get: for ``rules.RuleSet``; None if rules may not call any service
    :ivar mask_secrets: always, never or sensitive
    :ivar default_scope: scope of rules that do not set one, except built-in ones and those of phase early
    :ivar built_in: in the order of the files, as returned by ``rules.built_in.load``
    :ivar plugins: conditions and actions of other packages, for legacy rules
    :ivar compiled: stored rules in use, by UUID and revision, for all rule sets of the process
    """

    limits: Limits = field(default_factory=Limits)
    mask_secrets: str = "always"
    default_scope: str | None = None
    built_in: tuple[Rule, ...] = ()
    http_get: HttpGet | None = None
    plugins: Plugins = field(default_factory=Plugins)
    compiled: MutableMapping[tuple[str, int], CompiledRule | BrokenRule] = field(
        default_factory=weakref.WeakValueDictionary, compare=False, repr=False)
    _checked: OrderedDict[tuple[str, int], Checked] = field(default_factory=OrderedDict, compare=False, repr=False)
    compiled_legacy: MutableMapping[tuple[str, int], CompiledLegacyRule | BrokenLegacyRule] = field(
        default_factory=weakref.WeakValueDictionary, compare=False, repr=False)

    def compile(self, rule: Rule) -> CompiledRule | BrokenRule:
        """Return a stored rule compiled: once for all that need this revision of it."""
        key = rule.uuid, rule.revision
        known = self.compiled.get(key)
        if known is None:
            known = self.compiled[key] = compile_stored(
                rule, limits=self.limits, checked=self._checked.pop(key, None))
        return known

    def keep(self, uuid: str, revision: int, checked: Checked) -> None:
        """Keep what was compiled to check a rule, until it is needed for the rule as it was stored then."""
        while len(self._checked) >= _MOST_KEPT:
            self._checked.popitem(last=False)
        self._checked[uuid, revision] = checked

    def forget(self) -> None:
        """Forget what is compiled: the same revisions may be those of other rules."""
        self.compiled.clear()
        self._checked.clear()

    def rule_set(self, rules: Iterable[CompiledRule | BrokenRule]) -> RuleSet:
        """Return a set of these rules, which runs them as configured."""
        return RuleSet(rules, mask_secrets=self.mask_secrets, http_get=self.http_get)

    def compile_legacy(self, rule: LegacyRule) -> CompiledLegacyRule | BrokenLegacyRule:
        """Return a stored legacy rule compiled, as :meth:`compile` does."""
        known = self.compiled_legacy.get((rule.uuid, rule.revision))
        if known is None:
            known = self.compiled_legacy[rule.uuid, rule.revision] = legacy.compile_stored(
                rule, limits=self.limits, plugins=self.plugins)
        return known

    def legacy_rule_set(self, rules: Iterable[CompiledLegacyRule | BrokenLegacyRule]) -> LegacyRuleSet:
        """Return a set of these legacy rules, which runs them as configured."""
        return LegacyRuleSet(rules, mask_secrets=self.mask_secrets)


def prepare(conf: cfg.ConfigOpts, db: Database | None = None) -> RuleSettings:
    """Prepare this process for rules: load actions of other packages, read the built-in rules.

    Called at start, before any rule is validated or compiled. Calling it again changes nothing. Warnings about built-in
    rules are logged, and stored early rules whose scope is ignored.

    :param db: without it, the paths of the inventory that built-in rules read are not checked, nor stored rules
    :raises ConfigurationError: an action cannot be loaded, a host is invalid, or with all problems of built-in rules
    """
    load_plugins()
    allowed = limits(conf)
    if db is not None:
        _log_scopes(db)
    made = _built_in(conf, db, allowed)
    settings = RuleSettings(
        limits=allowed, http_get=_http_get(conf) if allowed.hosts.entries else None,
        mask_secrets=conf.inspection_rules.mask_secrets,
        plugins=_legacy_plugins(),
        default_scope=conf.inspection_rules.default_scope or None, built_in=tuple(rule for rule, _ in made))
    for rule, checked in made:
        settings.keep(rule.uuid, rule.revision, checked)
    return settings


def _legacy_plugins() -> Plugins:
    plugins = legacy.load_plugins()
    for text in plugins.warnings:
        LOG.warning("%s", text)
    for (group, name), reason in plugins.broken.items():
        LOG.error("The plug-in %s of %s cannot be used, and legacy rules with it are disabled: %s", name, group, reason)
    return plugins


def _http_get(conf: cfg.ConfigOpts) -> HttpGet:
    # 5 MiB, which a service without such hosts does not need.
    from ironic_rules.inspection.http_get import HttpxGet

    return HttpxGet(destinations.denied_networks(conf))


def limits(conf: cfg.ConfigOpts) -> Limits:
    """Return the limits of rules: the hosts that they may call, and the size of rules and of their results.

    :raises ConfigurationError: a host that they may call is invalid
    """
    group = conf.inspection_rules
    return Limits(
        conditions=group.max_conditions, actions=group.max_actions, loop_items=group.max_loop_items,
        depth=group.max_depth, text=group.max_text_size, result=group.max_result_size,
        subject=group.max_regex_subject, written=group.max_written_size,
        hosts=AllowedHosts.of(group.api_call_allowed_hosts))


def _built_in(conf: cfg.ConfigOpts, db: Database | None, allowed: Limits) -> list[tuple[Rule, Checked]]:
    path = conf.inspection_rules.built_in
    if not path:
        return []
    known_paths = None if db is None else functools.partial(_known_paths, db)
    try:
        rules = built_in.load_checked(path, limits=allowed, known_paths=known_paths)
    except ConfigurationError as exc:
        problems = str(exc).splitlines()[1:]  # after a line about all of them
        raise ConfigurationError("\n".join(f"[inspection_rules]built_in: {problem}" for problem in problems)) from exc
    for place in built_in.writable_by_others(path):
        LOG.warning("%s contains built-in inspection rules and can be written by users other than its owner.", place)
    for rule, checked in rules:
        _log_warnings(rule, checked.warnings)
    LOG.info("%d built-in inspection rules from %s", len(rules), path)
    return rules


def _log_warnings(rule: Rule, found: Sequence[RuleWarning]) -> None:
    if found and rule.sensitive:
        LOG.warning("Built-in inspection rule %s has warnings (%d), not shown because it is sensitive", rule.uuid,
                    len(found))
        return
    for warning in found:
        LOG.warning("Built-in inspection rule %s: %s", rule.uuid, printable(warning))


def _log_scopes(db: Database) -> None:
    with db.reader() as conn:
        found = inspection_rules.early_with_scope(conn)
    if found:
        LOG.warning("These inspection rules of phase early have a scope, which is ignored: they run for every "
                    "callback. Set their scope to null, or another phase: %s", enumeration(found))


def _known_paths(db: Database) -> Catalogue:
    with db.reader() as conn:
        return inventory.known_paths(conn)
