"""Runs ironic-python-agent as a ramdisk does, with its API server, on a machine whose hardware is read from a file.

It is a separate process, which runs until it is terminated. Only the code that reads the hardware is replaced, and the
code that would shut down this computer's network. The machine has steps that write their arguments to a file.
Usage::

    python ipa_deploy_driver.py ENDPOINT PORT FOLDER < MACHINE     # JSON: a body of POST /v1/continue_inspection
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from ipa_driver import Manager
from ironic_python_agent import agent, config, errors, hardware, tls_utils
from ironic_python_agent.extensions import rescue


class DeployManager(Manager):
    """A machine with steps of its own, which write notes."""

    def __init__(self, inventory: dict[str, Any], folder: Path) -> None:
        super().__init__(inventory, broken=False)
        self._folder = folder

    def get_version(self) -> dict[str, str]:
        return {"name": "DeployManager", "version": "1"}

    def wait_for_disks(self) -> None:
        pass

    def generate_tls_certificate(self, address: str) -> tls_utils.TlsCertificate:
        paths = str(self._folder / "agent.crt"), str(self._folder / "agent.key")
        return tls_utils.TlsCertificate(tls_utils._generate_tls_certificate(*paths, "machine", address), *paths)

    def get_deploy_steps(self, node: dict[str, Any], ports: list[dict[str, Any]]) -> list[dict[str, Any]]:
        text = {"text": {"description": "What to write.", "required": True}}
        return [
            {"interface": "deploy", "step": "write_system", "priority": 80, "reboot_requested": False},
            {"interface": "deploy", "step": "write_more", "priority": 0, "reboot_requested": False, "argsinfo": text},
            {"interface": "deploy", "step": "take_long", "priority": 0, "reboot_requested": False},
            {"interface": "raid", "step": "break_down", "priority": 0, "reboot_requested": False},
        ]

    def get_clean_steps(self, node: dict[str, Any], ports: list[dict[str, Any]]) -> list[dict[str, Any]]:
        text = {"text": {"description": "What to write.", "required": True}}
        return [
            {"interface": "deploy", "step": "note_cleaned", "priority": 30, "reboot_requested": False,
             "abortable": True},
            {"interface": "deploy", "step": "write_more", "priority": 0, "reboot_requested": False, "argsinfo": text},
            {"interface": "raid", "step": "break_down", "priority": 0, "reboot_requested": False},
            {"interface": "deploy", "step": "take_long", "priority": 0, "reboot_requested": False, "abortable": True},
        ]

    get_service_steps = get_clean_steps

    def note_cleaned(self, node: dict[str, Any], ports: list[dict[str, Any]]) -> None:
        self._note(f"cleaned {node['uuid']}")

    def write_system(self, node: dict[str, Any], ports: list[dict[str, Any]]) -> None:
        self._note(f"system of {node['uuid']} with {ports[0]['address']}")

    def write_more(self, node: dict[str, Any], ports: list[dict[str, Any]], text: str) -> str:
        time.sleep(0.5)
        self._note(text)
        return "written"

    def take_long(self, node: dict[str, Any], ports: list[dict[str, Any]]) -> None:
        self._note("long")
        time.sleep(600)

    def break_down(self, node: dict[str, Any], ports: list[dict[str, Any]]) -> None:
        raise errors.DeploymentError("the machine smokes")

    def _note(self, text: str) -> None:
        with (self._folder / "ran").open("a") as file:
            file.write(text + "\n")


class RamdiskAgent(agent.IronicPythonAgent):
    """The agent, without shutting down the network of this computer when it ends."""

    def _lockdown_system(self) -> None:
        sys.exit("locked down")


def main(endpoint: str, port: str, folder: str) -> None:
    config.CONF([], project="ironic-python-agent", default_config_files=[], default_config_dirs=[])
    machine = DeployManager(json.load(sys.stdin)["inventory"], Path(folder))
    hardware._global_managers = [{"name": "DeployManager", "manager": machine, "support": 3}]
    # Machines may be slow, tests may not.
    agent.IronicPythonAgentHeartbeater.min_heartbeat_interval = 0.2
    # Files of the rescue system belong into the folder of the machine, not into /etc of this computer.
    rescue.open = lambda path, mode: Path(folder, Path(path).name).open(mode)  # noqa: SIM115
    here = agent.Host("127.0.0.1", int(port))
    RamdiskAgent(endpoint, here, here, 1, 1, None, 30, 1, False, None).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
