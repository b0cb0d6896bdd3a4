"""The options for ``oslo-config-generator``, by group."""

from __future__ import annotations

from typing import Any

from oslo_config import cfg

from ironic_rules.conf import GROUPS, database


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return ``(group name, options)`` of the service's own options."""
    return [(str(getattr(group, "name", group) or "DEFAULT"), options) for group, options in GROUPS]


def list_library_opts() -> list[tuple[Any, list[cfg.Opt]]]:
    """Return the options that processes read of the libraries that list others too: oslo.db and oslo.messaging."""
    return [(database.GROUP, database.LIBRARY_OPTS), *messaging_opts()]


def messaging_opts() -> list[tuple[Any, list[cfg.Opt]]]:
    """Return the options of oslo.messaging without those of Kafka, which is not used."""
    from oslo_messaging import opts  # here, because it loads the drivers

    return [(group, options) for group, options in opts.list_opts() if group in (
        None, "oslo_messaging_rabbit", "oslo_messaging_notifications")]
