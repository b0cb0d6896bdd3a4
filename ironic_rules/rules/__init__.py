"""The rule engine: applies rules to drafts, without configuration, database, RPC or clock.

``check`` a rule as a user writes it (or ``validate`` it, without warnings), ``compile`` it once, add it to a
``RuleSet`` and ``run`` that over the ``Facts`` of each inspection.
"""

from ironic_rules.exceptions import Problem
from ironic_rules.models.rules import MAX_PRIORITY, PHASES, Rule
from ironic_rules.rules.actions import ACTIONS, load_plugins
from ironic_rules.rules.base import ActiveRule, InspectionRuleActionBase
from ironic_rules.rules.compiled import BrokenRule, CompiledRule
from ironic_rules.rules.compiler import (
    Checked,
    changed_meanings,
    check,
    compile,
    compile_stored,
    reads_groups,
    validate,
)
from ironic_rules.rules.engine import ActionTrace, ConditionTrace, Facts, RuleSet, SpentRules, Trace, evaluate
from ironic_rules.rules.errors import ActionError
from ironic_rules.rules.limits import Limits
from ironic_rules.rules.operators import OPERATORS
from ironic_rules.rules.phase import RuleRuns
from ironic_rules.rules.reference import rule_schema, vocabulary
from ironic_rules.rules.rule_fields import from_wire
from ironic_rules.rules.values import RuleWarning

__all__ = [
    "ACTIONS", "MAX_PRIORITY", "OPERATORS", "PHASES", "ActionError", "ActionTrace", "ActiveRule", "BrokenRule",
    "Checked", "CompiledRule", "ConditionTrace", "Facts", "InspectionRuleActionBase", "Limits", "Problem", "Rule",
    "RuleRuns", "RuleSet", "RuleWarning", "SpentRules", "Trace", "changed_meanings", "check",
    "compile", "compile_stored", "evaluate", "from_wire", "load_plugins", "reads_groups", "rule_schema", "validate",
    "vocabulary",
]
