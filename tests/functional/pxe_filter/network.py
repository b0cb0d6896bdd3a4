"""dnsmasq and DHCP clients on a separate network: two network namespaces and a virtual cable between them."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.functional.processes import wait_for
from tests.functional.pxe_filter.kea import Kea

_PATH = os.pathsep.join((os.environ.get("PATH", ""), "/usr/local/sbin", "/usr/sbin", "/sbin"))


def _require(condition: bool, what_is_missing: str) -> None:
    if condition:
        return
    if os.environ.get("IRONIC_RULES_TEST_REQUIRE_SERVERS") == "1" and os.geteuid() == 0:
        raise AssertionError(what_is_missing)
    pytest.skip(what_is_missing)


def _run(*command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, check=check, capture_output=True, text=True, timeout=60,
                          env={**os.environ, "PATH": _PATH})


class Dnsmasq:
    """One dnsmasq that watches ``hostsdir``; it may answer immediately (no ping), and keeps its files in ``folder``."""

    def __init__(self, namespace: str, interface: str, subnet: str, folder: Path, hostsdir: Path,
                 options: Sequence[str] = ()) -> None:
        self.log = folder / "dnsmasq.log"
        self.pid_file = folder / "dnsmasq.pid"
        self._command = [
            "ip", "netns", "exec", namespace, "dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--port=0",
            "--no-ping", "--user=root", "--log-dhcp", "--log-facility=-", f"--interface={interface}",
            "--bind-interfaces", f"--dhcp-range={subnet}.50,{subnet}.200,120",
            "--dhcp-range=2001:db8::1000,2001:db8::2000,64,120", f"--dhcp-hostsdir={hostsdir}",
            f"--dhcp-leasefile={folder / 'leases'}", f"--pid-file={self.pid_file}", *options]
        self._popen: subprocess.Popen[bytes] | None = None

    def use(self, text: str) -> None:
        """Use only the configuration ``text``, whose interface and files are set to those of the tests."""
        file = self.pid_file.with_suffix(".conf")
        file.write_text(re.sub(r"^pid-file=.*$", f"pid-file={self.pid_file}", text, flags=re.MULTILINE))
        self._command = [*self._command[:self._command.index("dnsmasq")], "dnsmasq", "--keep-in-foreground",
                         f"--conf-file={file}", "--no-ping", "--user=root", "--log-facility=-"]

    def start(self) -> None:
        """Start it and wait until it has read the folder."""
        with self.log.open("ab") as log:
            self._popen = subprocess.Popen(self._command, stdout=log, stderr=log, env={**os.environ, "PATH": _PATH})
        wait_for("dnsmasq to start", lambda: "IP range" in self.text() and self.pid_file.exists())

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
            self._popen.wait(60)
            self._popen = None


class Wire:
    """Clients with any addresses in one namespace (``wire.py``), which request offers and take no leases."""

    def __init__(self, namespace: str, interface: str) -> None:
        self._popen = subprocess.Popen(
            ["ip", "netns", "exec", namespace, sys.executable, str(Path(__file__).with_name("wire.py")), interface],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "PATH": _PATH})
        assert self._popen.stdout is not None
        assert self._popen.stdout.readline() == "ready\n"

    def ask(self, *requests: dict[str, Any]) -> list[bool]:
        """Send requests at once; return which of them got an offer, in their order."""
        return [answer["offered"] for answer in self.answers(*requests)]

    def answers(self, *requests: dict[str, Any]) -> list[dict[str, Any]]:
        """Send requests at once; return the answers, in the order of the requests."""
        for number, request in enumerate(requests):
            self.send({**request, "number": number})
        return sorted(self.receive(len(requests)), key=lambda answer: int(answer["number"]))

    def send(self, request: dict[str, Any]) -> None:
        """Send a request; its ``number`` tells the answers apart."""
        assert self._popen.stdin is not None
        self._popen.stdin.write(json.dumps(request) + "\n")
        self._popen.stdin.flush()

    def receive(self, count: int) -> list[dict[str, Any]]:
        """Return that many answers, in the order in which they arrived."""
        assert self._popen.stdout is not None
        return [json.loads(self._popen.stdout.readline()) for _ in range(count)]

    def stop(self) -> None:
        assert self._popen.stdin is not None
        self._popen.stdin.close()
        self._popen.terminate()
        self._popen.wait(60)
        assert self._popen.stdout is not None
        self._popen.stdout.close()


class Network:
    """The server's end and the clients' end."""

    def __init__(self, folder: Path) -> None:
        name = secrets.token_hex(3)
        self._server, self._clients = f"irt-s-{name}", f"irt-c-{name}"
        self._server_end, self._client_end = f"irs{name}", f"irc{name}"
        self._folder = folder
        self._dnsmasqs: list[Dnsmasq] = []
        self._keas: list[Kea] = []
        self._wire: Wire | None = None

    def make(self) -> None:
        for namespace in (self._server, self._clients):
            _run("ip", "netns", "add", namespace)
        _run("ip", "link", "add", self._server_end, "type", "veth", "peer", "name", self._client_end)
        _run("ip", "link", "set", self._server_end, "netns", self._server)
        _run("ip", "link", "set", self._client_end, "netns", self._clients)
        _run("ip", "-n", self._server, "addr", "add", "198.51.100.1/24", "dev", self._server_end)
        for number, (namespace, interface) in enumerate(
                ((self._server, self._server_end), (self._clients, self._client_end)), 1):
            # An address is usable at once: no other host can have it.
            _run("ip", "netns", "exec", namespace, "sh", "-c",
                 f"echo 0 > /proc/sys/net/ipv6/conf/{interface}/accept_dad")
            _run("ip", "-n", namespace, "addr", "add", f"2001:db8::{number}/64", "dev", interface)
            _run("ip", "-n", namespace, "link", "set", "lo", "up")
            _run("ip", "-n", namespace, "link", "set", interface, "up")

    def remove(self) -> None:
        if self._wire is not None:
            self._wire.stop()
        self.stop_keas()
        for dnsmasq in self._dnsmasqs:
            dnsmasq.stop()
        for namespace in (self._server, self._clients):
            _run("ip", "netns", "del", namespace, check=False)

    @property
    def server_side(self) -> tuple[str, str]:
        """The namespace of servers, and the interface in it, with the address 198.51.100.1."""
        return self._server, self._server_end

    def dnsmasq(self, hostsdir: Path, *options: str, text: str = "") -> Dnsmasq:
        """Start a dnsmasq on the network, with more options; only one at a time answers there.

        :param text: a configuration with the interface of the network, instead of the options of the tests
        """
        folder = self._folder / f"dnsmasq-{len(self._dnsmasqs)}"
        folder.mkdir()
        server = Dnsmasq(self._server, self._server_end, "198.51.100", folder, hostsdir, options)
        if text:
            server.use(text)
        self._dnsmasqs.append(server)
        server.start()
        return server

    def kea(self, version: int, url: str, policy: str, text: str = "") -> Kea:
        """Start a Kea on the network that reads the host database ``url``; ``text`` as of ``Kea``."""
        made = Kea(version, self._server, self._server_end, self._folder, url, policy, text)
        self._keas.append(made)
        made.start()
        return made

    def stop_keas(self) -> None:
        """Stop them before their database is dropped."""
        while self._keas:
            self._keas.pop().close()

    @property
    def wire(self) -> Wire:
        """The clients of ``wire.py``; the clients' end also has the addresses of a relay."""
        if self._wire is None:
            _run("ip", "-n", self._clients, "addr", "add", "198.51.100.2/24", "dev", self._client_end)
            self._wire = Wire(self._clients, self._client_end)
        return self._wire

    @property
    def mac(self) -> str:
        """The address of the clients' end."""
        return _run("ip", "netns", "exec", self._clients, "cat", f"/sys/class/net/{self._client_end}/address"
                    ).stdout.strip()

    def gets(self, mac: str) -> bool:
        """Return whether a client with that address gets a lease, however slow the server is."""
        return self.ask(mac, tries=20)

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
    overridden: dict[str, bool] = {}
    for text in lines(folder).values():
        for line in text.splitlines():
            mac, *words = line.split(",")
            table = overridden if "tag:!ironic-pxe-filter" in words else found
            table["*" if mac.startswith("*") else mac] = "ignore" not in words
    return found | overridden
