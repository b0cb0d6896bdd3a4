"""dnsmasq and DHCP clients on a separate network: two network namespaces and a virtual cable between them."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.functional.processes import wait_for

_PATH = os.pathsep.join((os.environ.get("PATH", ""), "/usr/local/sbin", "/usr/sbin", "/sbin"))


def _require(condition: bool, what_is_missing: str) -> None:
    if condition:
        return
    if os.environ.get("IRONIC_RULES_TEST_REQUIRE_SERVERS") == "1" and os.geteuid() == 0:
        raise AssertionError(what_is_missing)
    pytest.skip(what_is_missing)


def _run(*command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, check=check, capture_output=True, text=True, timeout=30,
                          env={**os.environ, "PATH": _PATH})


class Dnsmasq:
    """One dnsmasq that watches ``hostsdir``; it may answer immediately (no ping), and keeps its files in ``folder``."""

    def __init__(self, namespace: str, interface: str, subnet: str, folder: Path, hostsdir: Path) -> None:
        self.log = folder / "dnsmasq.log"
        self.pid_file = folder / "dnsmasq.pid"
        self._command = [
            "ip", "netns", "exec", namespace, "dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--port=0",
            "--no-ping", "--user=root", "--log-dhcp", "--log-facility=-", f"--interface={interface}",
            "--bind-interfaces", f"--dhcp-range={subnet}.50,{subnet}.200,120", f"--dhcp-hostsdir={hostsdir}",
            f"--dhcp-leasefile={folder / 'leases'}", f"--pid-file={self.pid_file}"]
        self._popen: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it has read the folder."""
        with self.log.open("ab") as log:
            self._popen = subprocess.Popen(self._command, stdout=log, stderr=log, env={**os.environ, "PATH": _PATH})
        wait_for("dnsmasq to start", lambda: "IP range" in self.text() and self.pid_file.exists(), timeout_s=20)

    @property
    def pid(self) -> int:
        return int(self.pid_file.read_text())

    def text(self) -> str:
        return self.log.read_text(errors="replace")

    def resident_kib(self) -> int:
        """Return the memory that it uses."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return int(next(line.split()[1] for line in lines if line.startswith("VmRSS")))

    def stop(self) -> None:
        if self._popen is not None:
            self._popen.terminate()
            self._popen.wait(20)
            self._popen = None


class Network:
    """The server's end and the clients' end."""

    def __init__(self, folder: Path) -> None:
        name = secrets.token_hex(3)
        self._server, self._clients = f"irt-s-{name}", f"irt-c-{name}"
        self._server_end, self._client_end = f"irs{name}", f"irc{name}"
        self._folder = folder
        self._dnsmasqs: list[Dnsmasq] = []

    def make(self) -> None:
        for namespace in (self._server, self._clients):
            _run("ip", "netns", "add", namespace)
        _run("ip", "link", "add", self._server_end, "type", "veth", "peer", "name", self._client_end)
        _run("ip", "link", "set", self._server_end, "netns", self._server)
        _run("ip", "link", "set", self._client_end, "netns", self._clients)
        _run("ip", "-n", self._server, "addr", "add", "198.51.100.1/24", "dev", self._server_end)
        for namespace, interface in ((self._server, self._server_end), (self._clients, self._client_end)):
            _run("ip", "-n", namespace, "link", "set", interface, "up")

    def remove(self) -> None:
        for dnsmasq in self._dnsmasqs:
            dnsmasq.stop()
        for namespace in (self._server, self._clients):
            _run("ip", "netns", "del", namespace, check=False)

    def dnsmasq(self, hostsdir: Path) -> Dnsmasq:
        """Start a dnsmasq on the network; only one at a time answers there."""
        folder = self._folder / f"dnsmasq-{len(self._dnsmasqs)}"
        folder.mkdir()
        server = Dnsmasq(self._server, self._server_end, "198.51.100", folder, hostsdir)
        self._dnsmasqs.append(server)
        server.start()
        return server

    def ask(self, mac: str, *, tries: int = 2) -> bool:
        """Let a client with that address request a lease; return whether it got one. A refusal takes ``tries`` s."""
        ip = ("ip", "-n", self._clients, "link", "set", self._client_end)
        _run(*ip, "down")
        _run(*ip, "address", mac)
        _run(*ip, "up")
        done = _run("ip", "netns", "exec", self._clients, "busybox", "udhcpc", "-i", self._client_end, "-n", "-q", "-f",
                    "-t", str(tries), "-T", "1", "-s", "/bin/true", check=False)
        output = done.stdout + done.stderr
        assert "broadcasting discover" in output or "sending discover" in output, output
        return "obtained" in output


def missing() -> str | None:
    """Return what this machine lacks for a network, None if nothing."""
    for program in ("ip", "dnsmasq", "busybox"):
        if shutil.which(program, path=_PATH) is None:
            return f"{program} is not installed"
    if os.geteuid() != 0:
        return "network namespaces need root"
    return None


@contextlib.contextmanager
def network(folder: Path) -> Iterator[Network]:
    """Yield a network; skip the test if none can be created."""
    lack = missing()
    _require(lack is None, lack or "")
    made = Network(folder)
    try:
        try:
            made.make()
        except subprocess.CalledProcessError as exc:
            _require(False, f"network namespaces are not permitted: {exc.stderr.strip()}")
        yield made
    finally:
        made.remove()


def lines(folder: Path) -> dict[str, str]:
    """Return the content of the files in a hostsdir that dnsmasq reads, by name."""
    return {path.name: path.read_text() for path in sorted(folder.iterdir()) if not path.name.startswith(".")}


def verdicts(folder: Path) -> dict[str, bool]:
    """Return which addresses a hostsdir allows; ``*`` stands for the unknown ones."""
    found: dict[str, bool] = {}
    for text in lines(folder).values():
        for line in text.splitlines():
            mac, _, ignore = line.partition(",")
            found["*" if mac.startswith("*") else mac] = not ignore
    return found
