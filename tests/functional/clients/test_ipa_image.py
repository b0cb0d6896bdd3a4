"""ironic-python-agent writes an image: the real agent, its API server, and its tools, on a loop device.

It runs in namespaces where it sees no other disk; see ``ipa_namespace.py``. Where there can be none (not root, no loop
devices, or no parted and sgdisk), ``tests/functional/test_direct_deployment.py`` has the commands only.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ironic_rules.simulator.inventories import SimulatedMachine
from tests.functional.clients import ipa_namespace, machines
from tests.functional.hardware.bmcs import web_server
from tests.functional.processes import free_port, standalone, wait_for

HERE = Path(__file__).parent
MIB = 2**20
TOOLS = ("unshare", "losetup", "lsblk", "setpriv", "parted", "partprobe", "sgdisk", "wipefs", "blockdev", "hexdump")

pytestmark = pytest.mark.slow


def image() -> bytes:
    """Return a disk image with a master boot record and one partition with some data."""
    entry = struct.pack("<B3sB3sII", 0x80, b"\0" * 3, 0x83, b"\0" * 3, 2048, 2048)
    head = b"boot".ljust(440, b"\0") + struct.pack("<IH", 0x1F0D15C5, 0) + entry.ljust(64, b"\0") + b"\x55\xaa"
    return head.ljust(MIB, b"\0") + b"a system".ljust(MIB, b".")


@contextlib.contextmanager
def disk(folder: Path) -> Iterator[str]:
    """Attach a loop device of 200 MiB; yield its path."""
    file = folder / "disk"
    with file.open("wb") as opened:
        opened.truncate(200 * MIB)
    made = subprocess.run(["losetup", "--show", "--find", "--partscan", str(file)], capture_output=True, text=True,
                          check=False)
    if made.returncode:
        pytest.skip(f"no loop devices: {made.stderr.strip()}")
    path = made.stdout.strip()
    try:
        yield path
    finally:
        subprocess.run(["losetup", "--detach", path], check=True)


def isolated(loop: str, shown: str, folder: Path, *program: str) -> list[str]:
    return ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable,
            str(HERE / "ipa_namespace.py"), loop, shown, str(folder), *program]


@pytest.fixture(scope="module", autouse=True)
def namespaces() -> None:
    if missing := [tool for tool in TOOLS if shutil.which(tool) is None]:
        assert os.environ.get("IRONIC_RULES_TEST_REQUIRE_SERVERS") != "1", f"not installed: {', '.join(missing)}"
        pytest.skip(f"not installed: {', '.join(missing)}")
    tried = subprocess.run(["unshare", "--mount", "--pid", "--fork", "--mount-proc", "true"], capture_output=True,
                           check=False)
    if tried.returncode:
        pytest.skip("namespaces need root")


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("images")
    (folder / "system.raw").write_bytes(image())
    with web_server(folder) as url:
        yield url


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    config = "[deploy]\nimage_url_denied_networks =\nagent_power_off_timeout = 1\n"
    with standalone(tmp_path_factory.mktemp("ipa"), config=config) as (_, url):
        yield url


@contextlib.contextmanager
def ramdisk(endpoint: str, machine: SimulatedMachine, folder: Path, loop: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run the agent on the machine with that disk."""
    folder.mkdir()
    (folder / "machine.json").write_bytes(machine.content)
    with (folder / "machine.json").open("rb") as stdin, (folder / "log").open("ab") as log:
        process = subprocess.Popen(
            isolated(loop, loop, folder, sys.executable, str(HERE / "ipa_image_driver.py"), endpoint, str(free_port()),
                     str(folder), loop), stdin=stdin, stdout=log, stderr=log, env={**os.environ, "TMPDIR": str(folder)})
    try:
        yield process
    finally:
        process.kill()
        process.wait(60)


def deploy(endpoint: str, web: str, machine: SimulatedMachine, loop: str, checksum: str, **arguments: Any) -> None:
    machines.call(endpoint, "POST", "nodes", {
        "uuid": machine.uuid, "driver": "fake-hardware", "deploy_interface": "direct", "automated_clean": False,
        "properties": {"root_device": {"serial": "the-only-one", "name": loop}}, "instance_info": {
            "image_source": f"{web}/system.raw", "image_checksum": checksum, "image_disk_format": "raw"}})
    machines.call(endpoint, "POST", "ports", {"node_uuid": machine.uuid, "address": machine.pxe_mac})
    for target, state in (("manage", "manageable"), ("provide", "available")):
        machines.call(endpoint, "PUT", f"nodes/{machine.uuid}/states/provision", {"target": target})
        machines.wait_for_state(endpoint, machine.uuid, state)
    machines.call(endpoint, "PUT", f"nodes/{machine.uuid}/states/provision", {"target": "active", **arguments})


def ended(endpoint: str, machine: SimulatedMachine, agent: subprocess.Popen[bytes], folder: Path) -> dict[str, Any]:
    """Return the machine's node when its deployment has ended."""

    def look() -> dict[str, Any] | None:
        found = machines.node(endpoint, machine.uuid)
        if found["provision_state"] in ("active", "deploy failed"):
            return found
        assert agent.poll() is None, (folder / "log").read_text()
        return None

    shown = wait_for("the end of the deployment", look)
    assert shown is not None
    return shown


def test_a_program_is_not_started_where_another_disk_is_visible(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    with disk(tmp_path / "a") as one, disk(tmp_path / "b") as two:
        alone = subprocess.run(isolated(one, one, tmp_path / "a", "true"), capture_output=True, text=True, check=False)
        both = subprocess.run(isolated(one, f"{one},{two}", tmp_path / "b", "touch", str(tmp_path / "started")),
                              capture_output=True, text=True, check=False)

    assert (alone.returncode, alone.stderr) == (0, "")
    assert (both.returncode, (tmp_path / "started").exists()) == (ipa_namespace.REFUSED, False)


def test_the_agent_writes_an_image_and_a_config_drive(endpoint, web, tmp_path):
    machine, written = machines.machine(71), tmp_path / "disk"
    with disk(tmp_path) as loop:
        deploy(endpoint, web, machine, loop, hashlib.sha256(image()).hexdigest(),
               configdrive={"meta_data": {"hostname": "seventy-one"}})
        with ramdisk(endpoint, machine, tmp_path / "ramdisk", loop) as agent:
            shown = ended(endpoint, machine, agent, tmp_path / "ramdisk")

    log = (tmp_path / "ramdisk" / "log").read_text()
    assert (shown["provision_state"], shown["last_error"]) == ("active", None), log
    content = written.read_bytes()
    # All but the partition table, to which the config drive's partition was added.
    assert (content[:440], content[512:2 * MIB]) == (image()[:440], image()[512:])
    start, length = struct.unpack_from("<II", content, 446 + 16 + 8)
    drive = content[start * 512:(start + length) * 512]
    assert (drive[32769:32774], drive[32808:32816], b"seventy-one" in drive) == (b"CD001", b"config-2", True)
    assert "poweroff" in (tmp_path / "ramdisk" / "recorded").read_text().split()
    history = machines.call(endpoint, "GET", f"nodes/{machine.uuid}/history?detail=true&limit=1000")["history"]
    assert [entry["event"].split()[2] for entry in history if " finished after " in entry["event"]] == [
        "deploy.deploy", "deploy.write_image", "deploy.prepare_instance_boot", "deploy.tear_down_agent",
        "deploy.switch_to_tenant_network", "deploy.boot_instance"]


def test_an_image_with_another_checksum_fails_the_deployment(endpoint, web, tmp_path):
    machine = machines.machine(72)
    with disk(tmp_path) as loop:
        deploy(endpoint, web, machine, loop, "d" * 64)
        with ramdisk(endpoint, machine, tmp_path / "ramdisk", loop) as agent:
            shown = ended(endpoint, machine, agent, tmp_path / "ramdisk")

    assert (shown["provision_state"], shown["power_state"]) == ("deploy failed", "power off")
    assert shown["last_error"].startswith("Deploy step deploy.write_image (2 of 6, code) failed: The agent reports: ")
    assert "verify" in shown["last_error"]
