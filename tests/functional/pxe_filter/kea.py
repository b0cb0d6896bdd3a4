"""Kea from Debian's packages, with its own schema in PostgreSQL, on a network of the tests."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from tests.functional.databases import temporary_database
from tests.functional.processes import wait_for

_SCRIPTS = Path("/usr/share/kea/scripts")
PATH = os.pathsep.join((os.environ.get("PATH", ""), "/usr/local/sbin", "/usr/sbin", "/sbin"))
_DROP_UNKNOWN = [{"name": "DROP", "test": "member('UNKNOWN')"}]


def require() -> None:
    """Skip the test if Kea is not installed; fail if it must be."""
    lacking = [name for name in ("kea-dhcp4", "kea-dhcp6") if shutil.which(name, path=PATH) is None]
    if not lacking and _SCRIPTS.is_dir():
        return
    if os.environ.get("IRONIC_RULES_TEST_REQUIRE_SERVERS") == "1" and os.geteuid() == 0:
        raise AssertionError(f"Kea is not installed: {lacking or _SCRIPTS}")
    pytest.skip("Kea is not installed")


def check(program: str, config: Path) -> None:
    """Let the server check a configuration file; fail with what it says."""
    done = subprocess.run([program, "-t", str(config)], capture_output=True, text=True, timeout=60, check=False,
                          env={**os.environ, "PATH": PATH, "KEA_LOCKFILE_DIR": str(config.parent)})
    assert done.returncode == 0, done.stdout + done.stderr


@contextlib.contextmanager
def host_database() -> Iterator[str]:
    """Yield the URL of a new database of PostgreSQL with the schema of the installed Kea."""
    require()
    with temporary_database("postgresql") as url:
        parsed = sa.make_url(url)
        command = ["psql", "-q", "-1", "-h", str(parsed.host), "-p", str(parsed.port or 5432), "-U",
                   str(parsed.username), "-d", str(parsed.database)]
        with (_SCRIPTS / "pgsql" / "dhcpdb_create.pgsql").open() as lines:
            subprocess.run(command, stdin=lines, check=True, stdout=subprocess.DEVNULL, timeout=300,
                           env={**os.environ, "PGPASSWORD": str(parsed.password or "")})
        yield url


class Door:
    """A socket in the file system that leads to a server on TCP: Kea is in a network namespace of its own."""

    def __init__(self, path: Path, host: str, port: int) -> None:
        self._to = (host, port)
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(path))
        self._listening.listen(16)
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listening.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                threading.Thread(target=_connect, args=(client, self._to), daemon=True).start()


def _connect(client: socket.socket, address: tuple[str, int]) -> None:
    """Pass on what either end says, until one of them closes."""
    with client, socket.create_connection(address) as server, contextlib.suppress(OSError):
        while True:
            for one in select.select([client, server], [], [])[0]:
                data = one.recv(65536)
                if not data:
                    return
                (server if one is client else client).sendall(data)


class Kea:
    """``kea-dhcp4`` or ``kea-dhcp6`` in the namespace of the server.

    :param policy: ``open`` or ``closed``
    :param text: a configuration with the interface and control socket of the sample files; empty: one of the tests
    """

    def __init__(self, version: int, namespace: str, interface: str, folder: Path, url: str, policy: str,
                 text: str = "") -> None:
        self.folder = folder
        self.control = folder / f"control{version}"
        self._program = f"kea-dhcp{version}"
        self._log = folder / f"{self._program}.log"
        parsed = sa.make_url(url)
        mysql = parsed.get_backend_name() == "mysql"
        door = folder / (f"mysql{version}" if mysql else ".s.PGSQL.5432")
        self._door = None if door.exists() else Door(door, str(parsed.host), parsed.port or (3306 if mysql else 5432))
        self._config = folder / f"{self._program}.json"
        text = text.replace("enp1s0", interface).replace(f"/run/kea/kea{version}-ctrl-socket", str(self.control))
        self._config.write_text(text or json.dumps(self._configuration(version, interface, parsed, policy)))
        self._command = ["ip", "netns", "exec", namespace, "env", f"MYSQL_UNIX_PORT={door}",
                         f"KEA_PIDFILE_DIR={folder}", f"KEA_LOCKFILE_DIR={folder}", self._program, "-c",
                         str(self._config)]
        self._popen: subprocess.Popen[bytes] | None = None
        self._starts = 0

    def _configuration(self, version: int, interface: str, url: sa.URL, policy: str) -> dict[str, Any]:
        mysql = url.get_backend_name() == "mysql"
        subnet = {4: {"id": 1, "subnet": "198.51.100.0/24", "pools": [{"pool": "198.51.100.50-198.51.100.250"}]},
                  6: {"id": 1, "subnet": "2001:db8::/64", "interface": interface,
                      "pools": [{"pool": "2001:db8::1000-2001:db8::2000"}]}}[version]
        own: dict[str, Any] = {
            "interfaces-config": {
                # Relays send to an address, which a DHCPv6 server listens on only if it is configured.
                "interfaces": [interface, f"{interface}/2001:db8::1"] if version == 6 else [interface]},
            "control-socket": {"socket-type": "unix", "socket-name": str(self.control)},
            "lease-database": {"type": "memfile", "persist": False},
            "hosts-database": {
                "type": "mysql" if mysql else "postgresql", "host": "localhost" if mysql else str(self.folder),
                "name": url.database, "user": url.username, "password": url.password or ""},
            "host-reservation-identifiers": ["hw-address", "duid", *(["client-id"] if version == 4 else [])],
            "reservations-global": True, "reservations-in-subnet": False, "early-global-reservations-lookup": True,
            "valid-lifetime": 120, f"subnet{version}": [subnet],
            "loggers": [{"name": self._program, "severity": "INFO", "output_options": [{"output": "stdout"}]}]}
        if policy == "closed":
            own["client-classes"] = _DROP_UNKNOWN
        if version == 6:
            own["mac-sources"] = ["client-link-addr-option", "ipv6-link-local", "duid"]
            own["data-directory"] = str(self.folder)  # for the server's DUID
        return {f"Dhcp{version}": own}

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._popen = subprocess.Popen(self._command, stdout=log, stderr=log, env={**os.environ, "PATH": PATH})
        self._starts += 1
        wait_for("Kea to start or fail", lambda: self._popen.poll() is not None or
                 self.text().count("_STARTED") == self._starts, timeout_s=60)
        assert self._popen.poll() is None, self.text()

    @property
    def pid(self) -> int:
        """The process id; ``ip netns exec`` and ``env`` become the server."""
        assert self._popen is not None
        return self._popen.pid

    def text(self) -> str:
        return self._log.read_text(errors="replace")

    def stop(self) -> None:
        if self._popen is not None:
            self._popen.terminate()
            self._popen.wait(60)
            self._popen = None
            self.control.unlink(missing_ok=True)

    def close(self) -> None:
        """Stop it, and what it reaches the database through."""
        self.stop()
        if self._door is not None:
            self._door.close()
