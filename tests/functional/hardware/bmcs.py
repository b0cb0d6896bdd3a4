"""BMCs and their environment: sushy-tools' emulator, a web server, a BMC that does not answer, a machine that boots."""

from __future__ import annotations

import contextlib
import functools
import http.server
import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bcrypt
import httpx
from ironic_python_agent import utils as ipa

from tests.functional.processes import Process, answers, free_port, wait_for

ROOT = Path(__file__).parents[3]
USER, PASSWORD = "operator", "s3cr3t-0f-the-bmc"


class Emulator:
    """A running emulator with machines whose names are ``machine-<number>``."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._client = httpx.Client(base_url=url, auth=(USER, PASSWORD), trust_env=False)

    def system_id(self, number: int) -> str:
        return f"/redfish/v1/Systems/{_uuid(number)}"

    def system(self, number: int) -> dict[str, Any]:
        """Return the machine as the BMC represents it."""
        return dict(self._client.get(self.system_id(number)).json())

    def media(self, number: int) -> dict[str, str | None]:
        """Return the URL of the image in each virtual drive; None for an empty one."""
        shown = {name: self._client.get(f"{self.system_id(number)}/VirtualMedia/{name}").json()
                 for name in ("Cd", "Floppy")}
        return {name: drive["Image"] if drive["Inserted"] else None for name, drive in shown.items()}

    def get(self, path: str) -> dict[str, Any]:
        """Return any resource."""
        return dict(self._client.get(path).raise_for_status().json())

    def reset(self, number: int, kind: str) -> None:
        """Set the power state of the machine without the service."""
        reply = self._client.post(f"{self.system_id(number)}/Actions/ComputerSystem.Reset", json={"ResetType": kind})
        reply.raise_for_status()

    def settings(self, number: int) -> dict[str, str]:
        """Return the ``driver_info`` of a node."""
        return {"redfish_address": self.url, "redfish_username": USER, "redfish_password": PASSWORD,
                "redfish_system_id": self.system_id(number)}

    def close(self) -> None:
        self._client.close()


def mac(number: int, port: int) -> str:
    return f"52:54:00:be:{port:02x}:{number:02x}"


def _uuid(number: int) -> str:
    return f"aaaaaaaa-0000-4000-8000-{number:012}"


@contextlib.contextmanager
def emulator(folder: Path, machines: int) -> Iterator[Emulator]:
    """Run the emulator with that many machines, powered off, with two network interfaces each."""
    state = folder / "bmc"
    state.mkdir()
    password = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()
    (state / "users").write_text(f"{USER}:{password}\n")
    systems = [
        {"uuid": _uuid(number), "name": f"machine-{number}", "power_state": "Off", "external_notifier": False,
         "nics": [{"mac": mac(number, port), "ip": f"192.0.2.{number}"} for port in (1, 2)]}
        for number in range(1, machines + 1)
    ]
    drives = [{"Id": "0", "Name": "Local Storage Controller", "StorageControllers": [], "Drives": ["1"]}]
    drive = {"Id": "1", "Name": "Bay 1", "CapacityBytes": 899527000000, "Protocol": "SAS"}
    (state / "emulator.conf").write_text(
        f"SUSHY_EMULATOR_AUTH_FILE = {str(state / 'users')!r}\n"
        f"SUSHY_EMULATOR_STATE_DIR = {str(state)!r}\n"
        f"SUSHY_EMULATOR_FAKE_SYSTEMS = {systems!r}\n"
        f"SUSHY_EMULATOR_DRIVES = {({(system['uuid'], '0'): [drive] for system in systems})!r}\n"
        f"SUSHY_EMULATOR_VOLUMES = {({(system['uuid'], '0'): [] for system in systems})!r}\n"
        f"SUSHY_EMULATOR_STORAGE = {({system['uuid']: drives for system in systems})!r}\n")
    port = free_port()
    process = Process(
        "tests.functional.hardware.emulator",
        ["--fake", "--config", str(state / "emulator.conf"), "--interface", "127.0.0.1", "--port", str(port)],
        folder, "emulator", {"PYTHONPATH": str(ROOT), "TMPDIR": str(state)})
    bmc = Emulator(f"http://127.0.0.1:{port}")
    try:
        wait_for("the emulator", lambda: answers(f"{bmc.url}/redfish/v1/"))
        yield bmc
    finally:
        bmc.close()
        process.close()


@contextlib.contextmanager
def web_server(folder: Path) -> Iterator[str]:
    """Serve ``folder`` as an operator's web server does; yield the URL."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextlib.contextmanager
def silent_bmc() -> Iterator[str]:
    """Yield the URL of a BMC that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def floppy_file(image: bytes, name: str) -> bytes:
    """Return a file of a FAT12 floppy image, as a kernel that mounts it would show it."""
    sector, cluster_sectors, reserved, fats, entries, _, _, fat_sectors = struct.unpack_from("<HBHBHHBH", image, 11)
    fat = image[reserved * sector:(reserved + fat_sectors) * sector]
    root = (reserved + fats * fat_sectors) * sector
    data = root + entries * 32
    long_name = ""
    for offset in range(root, data, 32):
        entry = image[offset:offset + 32]
        if entry[0] == 0:
            break
        if entry[11] == 0x0F:
            piece = (entry[1:11] + entry[14:26] + entry[28:32]).decode("utf-16-le")
            long_name = piece.split("\0")[0].rstrip("\uffff") + long_name
            continue
        if long_name == name:
            number, size = struct.unpack_from("<HI", entry, 26)
            content = b""
            while number < 0xFF8:
                start = data + (number - 2) * cluster_sectors * sector
                content += image[start:start + cluster_sectors * sector]
                packed = int.from_bytes(fat[number * 3 // 2:number * 3 // 2 + 2], "little")
                number = packed >> 4 if number % 2 else packed & 0xFFF
            return content[:size]
        long_name = ""
    raise AssertionError(f"the floppy has no file {name}")


def ramdisk_parameters(url: str, folder: Path) -> dict[str, str]:
    """Return what ironic-python-agent reads from the virtual floppy disk at ``url``."""
    image = httpx.get(url, trust_env=False).raise_for_status().content
    file = folder / "parameters.txt"
    file.write_bytes(floppy_file(image, "parameters.txt"))
    return dict(ipa._read_params_from_file(str(file)))
