"""Configuration: the options by group; nothing is read at import."""

from __future__ import annotations

from oslo_config import cfg

from ironic_rules.conf import (
    api,
    auto_discovery,
    conductor,
    database,
    default,
    deploy,
    inspection_history,
    inspection_journal,
    inspection_rules,
    inspector,
    inventory,
    ipmi,
    legacy_rules,
    pxe_filter,
    redfish,
)

#: The groups of the service's own options, with them; an empty name is the group DEFAULT.
GROUPS: tuple[tuple[cfg.OptGroup | str, list[cfg.Opt]], ...] = (
    ("", default.OPTS),
    (api.GROUP, api.OPTS),
    (auto_discovery.GROUP, auto_discovery.OPTS),
    (conductor.GROUP, conductor.OPTS),
    (database.GROUP, database.OPTS),
    (deploy.GROUP, deploy.OPTS),
    (inspection_history.GROUP, inspection_history.OPTS),
    (inspection_journal.GROUP, inspection_journal.OPTS),
    (inspection_rules.GROUP, inspection_rules.OPTS),
    (inspector.GROUP, inspector.OPTS),
    (inventory.GROUP, inventory.OPTS),
    (ipmi.GROUP, ipmi.OPTS),
    (legacy_rules.GROUP, legacy_rules.OPTS),
    (pxe_filter.GROUP, pxe_filter.OPTS),
    (redfish.GROUP, redfish.OPTS),
)


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register every option of the service with ``conf``, and those of oslo.db."""
    database.register_opts(conf)
    for group, options in GROUPS:
        conf.register_opts(options, group=group or None)
