"""Access policies: one module per resource, each with a list of documented defaults."""

from __future__ import annotations

import itertools
from typing import Any

from ironic_rules.policies import (
    allocations,
    base,
    chassis,
    conductors,
    deploy_templates,
    drivers,
    flavors,
    inspection_journal,
    inspection_rules,
    metrics,
    nodes,
    operations,
    portgroups,
    ports,
    ramdisk,
    rules,
    runbooks,
    shards,
    volume,
)
from ironic_rules.policies.base import Policy

MODULES = (
    base, nodes, chassis, allocations, ports, portgroups, drivers, conductors, volume, inspection_rules, rules,
    deploy_templates, runbooks, shards, operations, ramdisk, inspection_journal, metrics, flavors)


def policies() -> list[Policy]:
    """Return every policy of the service."""
    return list(itertools.chain.from_iterable(module.RULES for module in MODULES))


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
