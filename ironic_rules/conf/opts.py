"""What ``oslo-config-generator`` reads: every option group with its options."""

from __future__ import annotations

from oslo_config import cfg

from ironic_rules.conf import MODULES


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return ``(group name, options)`` of the service itself; libraries list theirs."""
    return [entry for module in MODULES for entry in module.list_opts().items()]
