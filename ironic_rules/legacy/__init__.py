"""Rules of ironic-inspector (document 002), on top of the rule engine and as pure as that.

``parse`` a rule as a user writes it, ``compile_rule`` it once, add it to a ``LegacyRuleSet`` and ``run`` that over the
task of each inspection.
"""

from ironic_rules.legacy.compiler import BrokenLegacyRule, CompiledLegacyRule, compile_rule, compile_stored, parse
from ironic_rules.legacy.ownership import Forgotten, Taken, take_back
from ironic_rules.legacy.plugins import Plugins
from ironic_rules.legacy.plugins import load as load_plugins
from ironic_rules.legacy.rule_set import DataSource, LegacyFailure, LegacyOutcome, LegacyRuleSet

__all__ = [
    "BrokenLegacyRule", "CompiledLegacyRule", "DataSource", "Forgotten", "LegacyFailure", "LegacyOutcome",
    "LegacyRuleSet", "Plugins", "Taken", "compile_rule", "compile_stored", "load_plugins", "parse", "take_back",
]
