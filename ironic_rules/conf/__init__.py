"""Configuration: one module per option group; nothing is read at import."""

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

#: Modules with the service's own options.
MODULES = (
    default,
    api,
    auto_discovery,
    conductor,
    database,
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


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register every option of the service with ``conf``."""
    for module in MODULES:
        module.register_opts(conf)
