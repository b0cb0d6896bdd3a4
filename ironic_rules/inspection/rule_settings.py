"""What ``[inspection_rules]`` says to the rule engine, which reads no configuration itself."""

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
    """What every process that validates or compiles rules needs.

    :ivar limits: for ``rules.validate``, ``rules.compile`` and ``rules.rule_schema``
    :ivar http_get: for ``rules.RuleSet``; None where rules may call no service
    :ivar mask_secrets: always, never or sensitive
    :ivar default_scope: scope of rules that do not set one; not of built-in ones
    :ivar built_in: in the order of the files, as ``rules.built_in.load`` gives them
    """

    limits: Limits = field(default_factory=Limits)
    mask_secrets: str = "always"
    default_scope: str | None = None
    built_in: tuple[Rule, ...] = ()
    http_get: HttpGet | None = None

    def rule_set(self, rules: Iterable[CompiledRule]) -> RuleSet:
        """Return a set of these rules, which runs them as is configured."""
        return RuleSet(rules, mask_secrets=self.mask_secrets, http_get=self.http_get)


def prepare(conf: cfg.ConfigOpts) -> RuleSettings:
    """Make this process ready for rules: load actions of other packages, read the built-in rules.

    Called at start, before anything validates or compiles a rule. Once more changes nothing.

    :raises ConfigurationError: an action cannot be loaded, a host is none, or with every problem of the built-in rules
    """
    load_plugins()
    allowed = limits(conf)
    return RuleSettings(
        limits=allowed, http_get=HttpxGet() if allowed.hosts.entries else None,
        mask_secrets=conf.inspection_rules.mask_secrets,
        default_scope=conf.inspection_rules.default_scope or None, built_in=_built_in(conf))


def limits(conf: cfg.ConfigOpts) -> Limits:
    """Return what rules may do, and how large they and their work may get.

    :raises ConfigurationError: a host that they may call is none
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
        LOG.warning("%s has built-in inspection rules and can be written by others than its owner.", place)
    LOG.info("%d built-in inspection rules from %s", len(rules), path)
    return tuple(rules)
