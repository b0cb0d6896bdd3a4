"""What every process that validates or compiles legacy rules requires."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, MutableMapping
from dataclasses import dataclass, field

from oslo_log import log as logging

from ironic_rules import legacy
from ironic_rules.legacy import BrokenLegacyRule, CompiledLegacyRule, LegacyRuleSet, Plugins
from ironic_rules.models.legacy_rules import LegacyRule
from ironic_rules.rules import Limits

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LegacyRuleSettings:
    """Settings of legacy rules; their limits are those of inspection rules.

    :ivar mask_secrets: always, never or sensitive, as for inspection rules
    :ivar plugins: conditions and actions of other packages
    :ivar compiled: stored rules in use, by UUID and revision, for all rule sets of the process
    """

    limits: Limits = field(default_factory=Limits)
    mask_secrets: str = "always"
    plugins: Plugins = field(default_factory=Plugins)
    compiled: MutableMapping[tuple[str, int], CompiledLegacyRule | BrokenLegacyRule] = field(
        default_factory=weakref.WeakValueDictionary, compare=False, repr=False)

    def compile(self, rule: LegacyRule) -> CompiledLegacyRule | BrokenLegacyRule:
        """Return a stored rule compiled: once for all that need this revision of it."""
        known = self.compiled.get((rule.uuid, rule.revision))
        if known is None:
            known = self.compiled[rule.uuid, rule.revision] = legacy.compile_stored(
                rule, limits=self.limits, plugins=self.plugins)
        return known

    def rule_set(self, rules: Iterable[CompiledLegacyRule | BrokenLegacyRule]) -> LegacyRuleSet:
        """Return a set of these rules, which runs them as configured."""
        return LegacyRuleSet(rules, mask_secrets=self.mask_secrets)


def prepare(limits: Limits, mask_secrets: str) -> LegacyRuleSettings:
    """Prepare this process for legacy rules: load plug-ins, and log their problems."""
    plugins = legacy.load_plugins()
    for text in plugins.warnings:
        LOG.warning("%s", text)
    for (group, name), reason in plugins.broken.items():
        LOG.error("The plug-in %s of %s cannot be used, and legacy rules with it are disabled: %s", name, group, reason)
    return LegacyRuleSettings(limits, mask_secrets, plugins)
