"""Configuration: the options by group; nothing is read at import."""

from __future__ import annotations

from oslo_config import cfg

from ironic_rules.conf import (
    api,
    conductor,
    database,
    default,
    deploy,
    hardware,
    inspection,
    inspector,
    pxe_filter,
)

#: The groups of the service's own options, with them; an empty name is the group DEFAULT.
GROUPS: tuple[tuple[cfg.OptGroup | str, list[cfg.Opt]], ...] = (
    ("", default.OPTS),
    (api.GROUP, api.OPTS),
    (inspection.DISCOVERY_GROUP, inspection.DISCOVERY_OPTS),
    (default.AUDIT_GROUP, default.AUDIT_OPTS),
    (conductor.GROUP, conductor.OPTS),
    (database.GROUP, database.OPTS),
    (deploy.GROUP, deploy.OPTS),
    (default.EVENTS_GROUP, default.EVENTS_OPTS),
    (inspection.FACTS_GROUP, inspection.FACTS_OPTS),
    (inspection.HISTORY_GROUP, inspection.HISTORY_OPTS),
    (inspection.JOURNAL_GROUP, inspection.JOURNAL_OPTS),
    (inspection.RULES_GROUP, inspection.RULES_OPTS),
    (inspector.GROUP, inspector.OPTS),
    (inspection.INVENTORY_GROUP, inspection.INVENTORY_OPTS),
    (hardware.IPMI_GROUP, hardware.IPMI_OPTS),
    (inspection.LEGACY_RULES_GROUP, inspection.LEGACY_RULES_OPTS),
    (deploy.PXE_GROUP, deploy.PXE_OPTS),
    (pxe_filter.GROUP, pxe_filter.OPTS),
    (hardware.REDFISH_GROUP, hardware.REDFISH_OPTS),
    (default.TRACING_GROUP, default.TRACING_OPTS),
)


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register every option of the service with ``conf``, and those of oslo.db."""
    database.register_opts(conf)
    for group, options in GROUPS:
        conf.register_opts(options, group=group or None)
