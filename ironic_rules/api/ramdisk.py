"""What the three endpoints that ramdisks call have in common."""

from __future__ import annotations

from oslo_config import cfg

from ironic_rules.exceptions import NotFound


def require_endpoints(conf: cfg.ConfigOpts) -> None:
    """Check that this API serves ramdisks (``[api]enable_ramdisk_endpoints``).

    :raises NotFound: 404
    """
    if not conf.api.enable_ramdisk_endpoints:
        raise NotFound()
