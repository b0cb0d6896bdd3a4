"""Settings of ``[inspection_rules]`` for the rule engine, which does not read the configuration itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from oslo_config import cfg
from oslo_log import log as logging

from ironic_rules.inspection.http_get import HttpxGet
from ironic_rules.rules import CompiledRule, Limits, Rule, RuleSet, built_in, load_plugins
from ironic_rules.rules.base import HttpGet
from ironic_rules.rules.hosts import AllowedHosts

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RuleSettings:
    """Settings that every process that validates or compiles rules requires.

    :ivar limits: for ``rules.validate``, ``rules.compile`` and ``rules.rule_schema``
    :ivar http_get: for ``rules.RuleSet``; None if rules may not call any service
    :ivar mask_secrets: always, never or sensitive
    :ivar default_scope: scope of rules that do not set one, except built-in ones
    :ivar built_in: in the order of the files, as returned by ``rules.built_in.load``
    """

    limits: Limits = field(default_factory=Limits)
    mask_secrets: str = "always"
    default_scope: str | None = None
    built_in: tuple[Rule, ...] = ()
    http_get: HttpGet | None = None

    def rule_set(self, rules: Iterable[CompiledRule]) -> RuleSet:
        """Return a set of these rules, which runs them as configured."""
        return RuleSet(rules, mask_secrets=self.mask_secrets, http_get=self.http_get)


def prepare(conf: cfg.ConfigOpts) -> RuleSettings:
    """Prepare this process for rules: load actions of other packages, read the built-in rules.

    Called at start, before any rule is validated or compiled. Calling it again changes nothing.

    :raises ConfigurationError: an action cannot be loaded, a host is invalid, or with all problems of built-in rules
    """
    load_plugins()
    allowed = limits(conf)
    return RuleSettings(
        limits=allowed, http_get=HttpxGet() if allowed.hosts.entries else None,
        mask_secrets=conf.inspection_rules.mask_secrets,
        default_scope=conf.inspection_rules.default_scope or None, built_in=_built_in(conf))


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


def _built_in(conf: cfg.ConfigOpts) -> tuple[Rule, ...]:
    path = conf.inspection_rules.built_in
    if not path:
        return ()
    rules = built_in.load(path, limits=limits(conf))
    for place in built_in.writable_by_others(path):
        LOG.warning("%s contains built-in inspection rules and can be written by users other than its owner.", place)
    LOG.info("%d built-in inspection rules from %s", len(rules), path)
    return tuple(rules)
