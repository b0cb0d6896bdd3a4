"""The fields of its node that a ramdisk sees, and its settings."""

from __future__ import annotations

from typing import Any

from oslo_config import cfg

from ironic_rules.api import links
from ironic_rules.models import secrets
from ironic_rules.models.nodes import NodeFound

#: Settings that IPA reads; others have their default.
_CONFIG: dict[str, Any] = {
    "metrics": {"backend": "noop", "prepend_host": False, "prepend_uuid": False, "prepend_host_reverse": True,
                "global_prefix": None},
    "metrics_statsd": {"statsd_host": "localhost", "statsd_port": 8125},
    "agent_md5_checksum_enable": False,
    "agent_skip_bmc_detect": False,
    "disable_deep_image_inspection": False,
    "permitted_image_formats": ["raw", "gpt", "qcow2", "iso"],
    "enable_bios_bootloader_install": False,
}


#: Inspection data are matched to the node by these; a client that knows a MAC address must not learn them.
_WITHHELD = frozenset({"lookup_bmc_addresses"})


def _shown(driver_internal_info: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in driver_internal_info.items() if key not in _WITHHELD}


def lookup(node: NodeFound, token: str, conf: cfg.ConfigOpts) -> dict[str, Any]:
    """Return ``{"node": …, "config": …}`` with every secret of the node masked.

    :param token: the agent token, or ``******`` if it was already issued
    """
    return {
        "node": {
            "uuid": node.uuid,
            "properties": secrets.mask(node.properties),
            "instance_info": secrets.mask(node.instance_info),
            "driver_internal_info": secrets.mask(_shown(node.driver_internal_info)),
            "links": links.resource("nodes", node.uuid),
        },
        "config": {
            "heartbeat_timeout": conf.api.ramdisk_heartbeat_timeout, "agent_token": token, "agent_token_required": True,
            **_CONFIG,
        },
    }
