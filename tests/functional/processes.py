"""The service as an operator runs it: real processes, real servers, terminated by process id."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from tests.functional import forking

T = TypeVar("T")

#: Runs modules with ``-m``. As those of the installed commands, the processes look for no modules in the folder in
#: which they start. If they did, stevedore would read the entry points of all packages for each folder: 0.1 s.
PYTHON = (sys.executable, "-P")

#: Folder of the tests, for processes that run some of their code.
TREE = str(Path(__file__).parents[2])
#: Maximum number of seconds for an operation of a process on a busy machine.
PATIENCE_S = 60.0


def wait_for(what: str, probe: Callable[[], T], timeout_s: float = PATIENCE_S, interval_s: float = 0.05) -> T:
    """Return the first true value of ``probe()``; fail with ``what`` on timeout."""
    deadline = time.monotonic() + timeout_s
    while True:
        value = probe()
        if value:
            return value
        assert time.monotonic() < deadline, f"waited {timeout_s} s for {what}"
        time.sleep(interval_s)


@contextlib.contextmanager
def in_time(limit_s: float = PATIENCE_S) -> Iterator[None]:
    """Fail if the block hangs.

    A limit that tells a slow block from a fast one would tell a busy machine from another. So what a block must not
    wait for takes longer than ``limit_s``.
    """
    began = time.monotonic()
    yield
    took_s = time.monotonic() - began
    assert took_s < limit_s, f"took {took_s:.1f} s"


class Process:
    """One started command with its output in a file."""

    def __init__(self, module: str, arguments: Sequence[str], folder: Path, name: str,
                 environment: dict[str, str] | None = None, *, imports_itself: bool = False) -> None:
        """Start it.

        :param imports_itself: it is no fork of a process that has imported more: for tests of its memory, and for
            processes that start others by their own command line
        """
        self.output = folder / f"{name}.out"
        self.output.write_bytes(b"")
        changed = environment or {}
        everything = {**os.environ, "PYTHONUNBUFFERED": "1", **changed}
        self._popen: forking.Forked | subprocess.Popen[bytes]
        read_at_start = {"PYTHONPATH": os.environ.get("PYTHONPATH", ""), **changed}
        if not imports_itself and forking.can_start(module, read_at_start):
            self._popen = forking.Forked(module, arguments, folder, self.output, self.output, everything)
            return
        # Warnings of libraries are errors in the test process only; the service runs as for users.
        with self.output.open("ab") as file:
            self._popen = subprocess.Popen([*PYTHON, "-m", module, *arguments], cwd=folder, stdout=file,
                                           stderr=subprocess.STDOUT, env=everything)

    @property
    def pid(self) -> int:
        return self._popen.pid

    def text(self) -> str:
        """Return what the process has printed so far."""
        return self.output.read_text(errors="replace")

    def printed(self, pattern: str, timeout_s: float = PATIENCE_S) -> re.Match[str]:
        """Wait until the output matches ``pattern``."""

        def look() -> re.Match[str] | None:
            match = re.search(pattern, self.text())
            if match is None and self._popen.poll() is not None:
                raise AssertionError(f"ended with status {self._popen.returncode}:\n{self.text()}")
            return match

        return wait_for(f"the output {pattern!r}; got:\n{self.text()}", look, timeout_s)

    def is_running(self) -> bool:
        return self._popen.poll() is None

    def kill(self) -> None:
        """Kill the process, as a power failure would."""
        self._popen.send_signal(signal.SIGKILL)
        self._popen.wait(PATIENCE_S)

    def terminate(self) -> None:
        """Send SIGTERM and wait for the end of the process; kill it, and fail, if it hangs."""
        self._popen.terminate()
        try:
            self._popen.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise

    @property
    def status(self) -> int | None:
        return self._popen.returncode

    def close(self) -> None:
        """End the process if it still runs."""
        if self.is_running():
            self.kill()


#: Ports that systems do not give to outgoing connections, nor to servers that accept any port: such a one could be in
#: use again when the process for which it was chosen has started.
_PORTS = range(12_000, 28_000)


def free_port() -> int:
    """Return a TCP port of 127.0.0.1 that is not in use at the moment."""
    while True:
        port = secrets.choice(_PORTS)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def answers(url: str) -> bool:
    """Return whether ``url`` answers with a status below 500."""
    try:
        with urllib.request.urlopen(url, timeout=5) as response:
            return bool(response.status < 500)
    except urllib.error.HTTPError as exc:
        return exc.code < 500
    except OSError:
        return False


@contextlib.contextmanager
def standalone(folder: Path, *arguments: str, config: str = "",
               name: str = "ironic-rules", port: int = 0, imports_itself: bool = False,
               **faults: str) -> Iterator[tuple[Process, str]]:
    """Run ``ironic-rules`` (port 0: on a free one) with its state in ``folder``; yield the process and its URL.

    Unmanaged boot is allowed, as fake hardware needs; ``config`` is additional text for the configuration file.
    ``faults`` are variables of the environment, those of ``faults/launcher.py``; ``imports_itself`` is Process's.
    """
    file = folder / f"{name}.conf"
    file.write_text("[inspector]\nrequire_managed_boot = false\n" + config)
    options = ["--config-file", str(file), "--state-dir", str(folder / "state"), "--port", str(port), *arguments]
    command = "ironic_rules.cmd.standalone"
    process = Process(command, options, folder, name, imports_itself=imports_itself) if not faults else Process(
        "tests.functional.faults.launcher", [command, *options], folder, name, {
            **faults, "PYTHONPATH": os.pathsep.join(filter(None, (TREE, os.environ.get("PYTHONPATH"))))})
    try:
        url = process.printed(r"listens on (http://\S+)").group(1)
        yield process, url
    finally:
        process.close()


class Cluster:
    """API and conductor processes with one configuration, a broker and a database server."""

    def __init__(self, folder: Path, database_url: str, transport_url: str, config: str = "", *,
                 import_themselves: bool = False) -> None:
        self.folder = folder
        self._import_themselves = import_themselves
        self._base = (
            f"[DEFAULT]\ntransport_url = {transport_url}\n"
            # Two runs at once with several processes each must not need more connections than servers have by default.
            f"[database]\nconnection = {database_url}\nmax_pool_size = 8\nmax_overflow = 4\n"
            "[inspector]\nrequire_managed_boot = false\n"
            "[conductor]\nheartbeat_interval = 1\nheartbeat_timeout = 4\nrecovery_interval = 1\n" + config)
        self._processes: list[Process] = []

    def configuration(self, name: str, extra: str = "") -> str:
        """Write a configuration file for the process ``name`` and return its path."""
        path = self.folder / f"{name}.conf"
        own = f"[DEFAULT]\nhost = {name}\nlog_file = {self.folder}/{name}.log\n"
        path.write_text(self._base.replace("[DEFAULT]\n", own, 1) + extra)
        return str(path)

    def run(self, module: str, *arguments: str, name: str) -> Process:
        """Start a command of the package."""
        return self.start(module, self.configuration(name), name, *arguments)

    def start(self, module: str, file: str, name: str, *arguments: str,
              environment: dict[str, str] | None = None, launcher: str | None = None) -> Process:
        """Start a command of the package with the configuration in ``file``.

        :param launcher: module that runs the command, whose name is then its first argument
        """
        arguments = ("--config-file", file, *arguments)
        process = Process(launcher or module, (module, *arguments) if launcher else arguments, self.folder, name,
                          environment, imports_itself=self._import_themselves)
        self._processes.append(process)
        return process

    def sync_database(self) -> None:
        """Create the schema with ``ironic-rules-dbsync``."""
        process = self.run("ironic_rules.cmd.dbsync", "upgrade", name="dbsync")
        process.printed("is at revision")

    def conductor(self, name: str) -> Process:
        """Start a conductor and wait until it is ready."""
        process = self.run("ironic_rules.cmd.conductor", name=name)
        process.printed("is running")
        return process

    def api(self, name: str) -> tuple[Process, str]:
        """Start an API process; return it and its URL."""
        process = self.run("ironic_rules.cmd.api", "--port", "0", name=name)
        return process, process.printed(r"listens on (http://\S+)").group(1)

    def close(self) -> None:
        for process in self._processes:
            process.close()
