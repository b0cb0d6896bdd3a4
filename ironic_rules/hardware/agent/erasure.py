"""How the agent's clean steps erase disks: options of ``[deploy]``, which it reads of ``driver_internal_info``."""

from __future__ import annotations

from typing import Any

from ironic_rules.models.internal_keys import AGENT_ERASURE
from ironic_rules.models.task import Task


def tell(task: Task, conf: Any) -> None:
    """Write the values of the options where the agent reads them."""
    for key, option in AGENT_ERASURE.items():
        task.node.driver_internal_info[key] = conf.deploy[option]
