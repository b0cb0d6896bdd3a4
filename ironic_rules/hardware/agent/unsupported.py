"""Settings of Ironic that the interfaces with a ramdisk do not take into account. They are refused, never ignored.

The API stores them, since clients may set them before they choose interfaces; ``validate`` and the operations that
would need them report the reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ironic_rules.exceptions import InvalidParameterValue, Problem
from ironic_rules.models.nodes import Node

_NETWORK = "machines are not moved between networks"
_ARCHITECTURE = "there is one ramdisk for all architectures of a conductor; set deploy_kernel and deploy_ramdisk"
_REMOVABLE = "config drives are written to the disk only"
#: of ``driver_info``
DRIVER_INFO: dict[str, str] = {
    "agent_verify_ca": "agents send their certificates themselves",
    "bootloader": "boot images are not made; use deploy_iso", "bootloader_by_arch": _ARCHITECTURE,
    "deploy_kernel_by_arch": _ARCHITECTURE, "deploy_ramdisk_by_arch": _ARCHITECTURE,
    "config_via_floppy": _REMOVABLE, "config_via_removable": _REMOVABLE,
    "external_http_url": "there is one web server for all machines: [deploy]http_url",
    **dict.fromkeys(("cleaning_network", "inspection_network", "provisioning_network", "rescuing_network",
                     "servicing_network"), _NETWORK),
}
_PARTITIONS = "whole-disk images have their own partitions"
#: of ``instance_info``, for instances on a disk
INSTANCE_INFO: dict[str, str] = {
    "boot_iso": "is booted by the deploy interface ramdisk", "kernel_append_params": (
        "the kernel parameters of an instance on a disk are those of its image"),
    "ephemeral_gb": _PARTITIONS, "preserve_ephemeral": _PARTITIONS, "swap_mb": _PARTITIONS,
    "image_pull_secret": "images of container registries are not supported",
    **dict.fromkeys(("ks_cfg", "ks_template", "stage2"), "the deploy interface anaconda is not offered"),
}
#: What requests nothing.
_NOTHING = frozenset({"", "0", "false", "none"})


def check_node(node: Node) -> None:
    """Refuse what ramdisks do not take into account of a node.

    :raises InvalidParameterValue: with every setting
    """
    problems = list(_set("/driver_info", node.driver_info, DRIVER_INFO))
    if node.network_data:
        problems.append(Problem("/network_data", "is not passed to ramdisks, which must use DHCP"))
    if node.driver_info.get("image_download_source") not in (None, "http"):
        problems.append(Problem("/driver_info/image_download_source", "must be http: the agent loads the image itself"))
    if problems:
        raise InvalidParameterValue(problems=problems)


def instance_problems(node: Node) -> Iterator[Problem]:
    """Yield what instances on a disk cannot have."""
    yield from _set("/instance_info", node.instance_info, INSTANCE_INFO)


def _set(where: str, values: Mapping[str, Any], unsupported: Mapping[str, str]) -> Iterator[Problem]:
    for key, reason in unsupported.items():
        if str(values.get(key, "")).lower() not in _NOTHING:
            yield Problem(f"{where}/{key}", f"is not supported: {reason}")
