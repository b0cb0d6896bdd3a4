"""How the agent's clean steps erase disks: options of ``[deploy]``, which it reads of ``driver_internal_info``."""

from __future__ import annotations

from typing import Any

from ironic_rules.models.task import Task

#: Key of ``driver_internal_info``, as the agent reads it -> option of ``[deploy]``, as Ironic names it.
OPTIONS = {
    "agent_continue_if_secure_erase_failed": "continue_if_disk_secure_erase_fails",
    "agent_enable_ata_secure_erase": "enable_ata_secure_erase",
    "agent_enable_nvme_secure_erase": "enable_nvme_secure_erase",
    "agent_erase_devices_iterations": "shred_random_overwrite_iterations",
    "agent_erase_devices_zeroize": "shred_final_overwrite_with_zeros",
    "agent_erase_skip_read_only": "erase_skip_read_only",
    "disk_erasure_concurrency": "disk_erasure_concurrency",
}


def tell(task: Task, conf: Any) -> None:
    """Write the values of the options where the agent reads them."""
    for key, option in OPTIONS.items():
        task.node.driver_internal_info[key] = conf.deploy[option]
