"""Processes that an operator starts with the file of another service: they end with one line for each wrong option."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

#: As in a file of Ironic: only the first three are wrong here.
CONFIG = """\
[DEFAULT]
enabled_hardware_types = ipmi,idrac
[inventory]
data_backend = swift
swift_data_container = introspection_data_container
[redfish]
auth_type = digest
[conductor]
workers_pool_size = 300
[database]
connection = sqlite:///{folder}/ironic.sqlite
"""
COMMANDS = {
    "ironic-rules": ["-m", "ironic_rules.cmd.standalone", "--config-file", "{file}"],
    "a WSGI server": ["-c", "import ironic_rules.api.wsgi"],
    "ironic-rules-status": ["-m", "ironic_rules.cmd.status", "--config-file", "{file}", "upgrade", "check"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_of_ironic_is_refused_with_what_to_set_instead(command: str, tmp_path: Path) -> None:
    file = tmp_path / "ironic.conf"
    file.write_text(CONFIG.format(folder=tmp_path))
    done = subprocess.run(
        [sys.executable, *(argument.format(file=file) for argument in COMMANDS[command])], cwd=tmp_path, text=True,
        env={"IRONIC_RULES_CONFIG_FILE": str(file)}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)

    told = " ".join("".join(done.stdout.split("|")).split())
    assert done.returncode == (1 if command == "a WSGI server" else 2), done.stdout
    assert "[inventory]data_backend = swift: one of these is required: database, none" in told
    assert "[redfish]auth_type = digest: one of these is required: auto, session, basic" in told
    assert ("use redfish or ipmi" in told) is (command != "a WSGI server")
    assert not (tmp_path / "ironic-rules-data").exists()
