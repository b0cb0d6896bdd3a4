"""``[database]``: oslo.db's options, with this service's defaults."""

from __future__ import annotations

from oslo_config import cfg
from oslo_db import options

#: A conductor's threads sometimes use this many; with oslo.db's 5, connections would often be opened and discarded.
_MAX_POOL_SIZE = 20


def set_defaults() -> None:
    """Change the library's defaults, for this process; ``oslo-config-generator`` calls it too."""
    cfg.set_defaults(options.database_opts, max_pool_size=_MAX_POOL_SIZE)


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options."""
    set_defaults()
    conf.register_opts(options.database_opts, group="database")
