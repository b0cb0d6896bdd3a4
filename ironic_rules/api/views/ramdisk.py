"""The fields of its node that a ramdisk sees, and its settings."""

from __future__ import annotations

from typing import Any

from oslo_config import cfg

from ironic_rules.api import links
from ironic_rules.models import secrets
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.nodes import NodeFound

#: Settings that IPA reads; others have their default.
_CONFIG: JSONObject = {
    "metrics": {"backend": "noop", "prepend_host": False, "prepend_uuid": False, "prepend_host_reverse": True,
                "global_prefix": None},
    "metrics_statsd": {"statsd_host": "localhost", "statsd_port": 8125},
    "agent_md5_checksum_enable": False,
    "agent_skip_bmc_detect": False,
    "disable_deep_image_inspection": False,
    "permitted_image_formats": ["raw", "gpt", "qcow2", "iso"],
    "enable_bios_bootloader_install": False,
}


#: What ironic-python-agent 13.0 reads of these fields (hardware.py, utils.py). Any client that knows a MAC address of a
#: waiting node gets them: no image, config drive or BMC address.
_INSTANCE_INFO = ("root_device", "capabilities", "deploy_boot_mode")
_DRIVER_INTERNAL_INFO = (
    "agent_continue_if_ata_erase_failed", "agent_continue_if_secure_erase_failed", "agent_enable_ata_secure_erase",
    "agent_enable_discard_erase", "agent_enable_nvme_secure_erase", "agent_erase_devices_iterations",
    "agent_erase_devices_zeroize", "agent_erase_skip_read_only", "deploy_boot_mode", "disk_erasure_concurrency",
    "wipe_special_filesystems",
)


def _only(names: tuple[str, ...], info: JSONObject) -> Any:
    return secrets.mask({name: info[name] for name in names if name in info})


def lookup(base: str, node: NodeFound, token: str, conf: cfg.ConfigOpts) -> JSONObject:
    """Return ``{"node": …, "config": …}`` with what an agent needs, and every secret in it masked.

    The agent looks into ``instance_info`` without asking whether it is there.

    :param token: the agent token, or ``******`` if it was already issued
    """
    return {
        "node": {
            "uuid": node.uuid,
            "properties": secrets.mask(node.properties),
            "instance_info": _only(_INSTANCE_INFO, node.instance_info),
            "driver_internal_info": _only(_DRIVER_INTERNAL_INFO, node.driver_internal_info),
            "links": links.resource(base, "nodes", node.uuid),
        },
        "config": {
            "heartbeat_timeout": conf.api.ramdisk_heartbeat_timeout, "agent_token": token, "agent_token_required": True,
            **_CONFIG,
        },
    }
