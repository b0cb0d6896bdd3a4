"""Runs ironic-python-agent as ``ipa_deploy_driver.py`` does, on a machine with one disk, to which it writes images.

It must run in the namespaces of ``ipa_namespace.py``, and refuses anything else. Usage::

    python ipa_image_driver.py ENDPOINT PORT FOLDER DISK < MACHINE
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from ipa_deploy_driver import DeployManager, RamdiskAgent
from ipa_namespace import is_alone
from ironic_python_agent import agent, config, disk_utils, hardware


class DiskManager(DeployManager, hardware.GenericHardwareManager):
    """A machine with one disk; whatever the machine itself does not replace is the agent's own code."""

    def __init__(self, inventory: dict[str, Any], folder: Path, disk: str) -> None:
        hardware.GenericHardwareManager.__init__(self)
        DeployManager.__init__(self, inventory, folder)
        self._disk = disk

    def list_hardware_info(self) -> dict[str, Any]:
        return hardware.HardwareManager.list_hardware_info(self)

    def list_block_devices(self, include_partitions: bool = False,
                           all_serial_and_wwn: bool = False) -> list[hardware.BlockDevice]:
        # The agent's own list leaves loop devices out.
        size = disk_utils.get_dev_byte_size(self._disk)
        return [hardware.BlockDevice(self._disk, "Virtual", size, False, serial="the-only-one")]

    def get_boot_info(self) -> hardware.BootInfo:
        return hardware.BootInfo(current_boot_mode="bios")

    def get_deploy_steps(self, node: dict[str, Any], ports: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return hardware.GenericHardwareManager.get_deploy_steps(self, node, ports)


def main(endpoint: str, port: str, folder: str, disk: str) -> None:
    if os.getppid() != 1 or not is_alone(Path(disk).name):
        sys.exit("this is not a namespace with one disk")
    config.CONF([], project="ironic-python-agent", default_config_files=[], default_config_dirs=[])
    config.CONF.set_override("image_download_connection_retries", 0)
    machine = DiskManager(json.load(sys.stdin)["inventory"], Path(folder), disk)
    hardware._global_managers = [{"name": "DiskManager", "manager": machine, "support": 3}]
    agent.IronicPythonAgentHeartbeater.min_heartbeat_interval = 0.2
    here = agent.Host("127.0.0.1", int(port))
    RamdiskAgent(endpoint, here, here, 1, 1, None, 30, 1, False, None).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
