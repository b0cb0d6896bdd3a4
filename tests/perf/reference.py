"""Ironic 39, the reference service, from a separate virtual environment.

``IRONIC_RULES_REFERENCE`` names that environment (``python3 -m venv X && X/bin/pip install ironic==39.0.0``).
It runs in its fastest configuration: one process, SQLite, no message broker.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.functional.processes import free_port
from tests.perf import loads
from tests.perf.processes import Measured

_CONFIG = """\
[DEFAULT]
state_path = {folder}
my_ip = 127.0.0.1
host = reference
auth_strategy = noauth
rpc_transport = none
enabled_hardware_types = fake-hardware
enabled_bios_interfaces = fake,no-bios
enabled_boot_interfaces = fake
enabled_console_interfaces = fake,no-console
enabled_deploy_interfaces = fake
enabled_firmware_interfaces = fake,no-firmware
enabled_inspect_interfaces = agent,no-inspect,fake
enabled_management_interfaces = fake,noop
enabled_network_interfaces = noop
enabled_power_interfaces = fake
enabled_raid_interfaces = fake,no-raid
enabled_rescue_interfaces = fake,no-rescue
enabled_storage_interfaces = fake,noop
enabled_vendor_interfaces = fake,no-vendor
default_inspect_interface = agent
log_file = {folder}/ironic.log
use_stderr = false
[api]
host_ip = 127.0.0.1
port = {port}
public_endpoint = http://127.0.0.1:{port}
[conductor]
automated_clean = false
sync_power_state_interval = -1
send_sensor_data = false
check_provision_state_interval = 0
[database]
connection = sqlite:///{folder}/ironic.sqlite
[dhcp]
dhcp_provider = none
[inspector]
require_managed_boot = false
[inventory]
data_backend = database
[service_catalog]
endpoint_override = http://127.0.0.1:{port}
[deploy]
http_url = http://127.0.0.1:18080
http_root = {folder}/http
[oslo_policy]
enforce_scope = false
enforce_new_defaults = false
[oslo_concurrency]
lock_path = {folder}/locks
"""


def environment() -> Path | None:
    """Return the virtual environment that has the reference service, None if there is none."""
    path = os.environ.get("IRONIC_RULES_REFERENCE")
    return Path(path) if path else None


@contextlib.contextmanager
def running(folder: Path, venv: Path) -> Iterator[Measured]:
    """Run the reference service with an empty database."""
    port = free_port()
    for name in ("http", "locks"):
        (folder / name).mkdir(parents=True)
    config = folder / "ironic.conf"
    config.write_text(_CONFIG.format(folder=folder, port=port))
    subprocess.run([venv / "bin/ironic-dbsync", "--config-file", config, "create_schema"], check=True, cwd=folder,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with (folder / "output").open("wb") as output:
        # A separate session: the service forks its worker.
        process = subprocess.Popen([venv / "bin/ironic", "--config-file", config], cwd=folder, stdout=output,
                                   stderr=subprocess.STDOUT, start_new_session=True)
        try:
            endpoint = f"http://127.0.0.1:{port}"
            yield Measured(endpoint, process.pid, loads.first_answer(endpoint))
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(10)
