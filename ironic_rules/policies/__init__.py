"""Access policies: lists of documented defaults."""

from __future__ import annotations

from typing import Any

from ironic_rules.policies import base, nodes, rules, templates
from ironic_rules.policies.base import Policy

_POLICIES = (
    *base.RULES, *nodes.RULES, *nodes.CHASSIS_RULES, *nodes.ALLOCATION_RULES, *nodes.PORT_RULES, *nodes.PORTGROUP_RULES,
    *nodes.DRIVER_RULES, *nodes.CONDUCTOR_RULES, *nodes.VOLUME_RULES, *rules.INSPECTION_RULES, *rules.LEGACY_RULES,
    *templates.TEMPLATE_RULES, *templates.RUNBOOK_RULES, *nodes.SHARD_RULES, *rules.OPERATION_RULES, *rules.FACT_RULES,
    *base.RAMDISK_RULES, *rules.WEBHOOK_RULES, *rules.JOURNAL_RULES, *base.METRICS_RULES, *templates.FLAVOR_RULES)


def policies() -> list[Policy]:
    """Return every policy of the service."""
    return list(_POLICIES)


def by_name() -> dict[str, Policy]:
    """Return every policy by its name."""
    return {entry.name: entry for entry in policies()}


def list_rules() -> list[Any]:
    """Return every policy as a default of oslo.policy; the ``oslo.policy.policies`` entry point."""
    from oslo_policy import policy  # here, because many installations enforce no policies

    return [
        policy.DocumentedRuleDefault(entry.name, entry.check, entry.description,
                                     [{"method": method, "path": path} for method, path in entry.operations])
        if entry.operations else policy.RuleDefault(entry.name, entry.check, entry.description)
        for entry in policies()
    ]
