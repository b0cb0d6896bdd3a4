"""The options for ``oslo-config-generator``, by group."""

from __future__ import annotations

from oslo_config import cfg

from ironic_rules.conf import MODULES


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return ``(group name, options)`` of the service's own options; libraries list theirs."""
    return [entry for module in MODULES for entry in module.list_opts().items()]
