"""Commands of the package in processes that are forked from one that has imported what they import.

Imports are most of the start of a command. The process is one for each process of tests; a forked one has its own
environment, Python path, folder, arguments and output, and runs the command's ``main``. What must be as an operator
starts it, e.g. its memory, is started with ``python -m`` instead.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import multiprocessing
import os
import secrets
import subprocess
import sys
import tempfile
import threading
import types
from collections.abc import Mapping, Sequence
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import certifi

#: Modules with a ``main`` of arguments.
COMMANDS = tuple(f"ironic_rules.cmd.{name}" for name in (
    "standalone", "api", "conductor", "pxe_filter", "dbsync", "status", "simulate"))
LAUNCHER = "tests.functional.faults.launcher"
#: Modules that commands import when they need them, which most of these processes do.
_LATER = ("ironic_rules.api.app", "ironic_rules.conductor.conductor", "ironic_rules.conductor.service",
          "ironic_rules.hardware.fake", "ironic_rules.hardware.agent.deploy", "ironic_rules.hardware.agent.inspect",
          "oslo_messaging._drivers.impl_rabbit", "sqlalchemy.dialects.mysql.pymysql", "pymysql", "psycopg")


#: Variables that commands read when they run, not when they start.
_READ_LATER = ("IRONIC_RULES_", "NOTIFY_SOCKET", "WATCHDOG_")


def can_start(module: str, environment: Mapping[str, str]) -> bool:
    """Return whether ``module`` does the same when it is forked with these changes of the environment."""
    others = [name for name in environment if name != "PYTHONPATH" and not name.startswith(_READ_LATER)]
    return module in (LAUNCHER, *COMMANDS) and not others and not _has_another_service(environment)


def _new_places(environment: Mapping[str, str]) -> list[str]:
    """Return what this process lacks of the Python path of an environment."""
    known = {os.path.realpath(place) for place in sys.path if place}
    paths = filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))
    return [path for path in paths if os.path.realpath(path) not in known]


def _has_another_service(environment: Mapping[str, str]) -> bool:
    """Return whether the Python path of an environment has an installed service, of which a fork would see nothing."""
    return any(Path(place, "ironic_rules").exists() for place in _new_places(environment))


@functools.cache
def _context() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    # Then the launcher: it selects the backend of oslo.messaging, as commands do.
    context.set_forkserver_preload(["tests.functional.bytecode", LAUNCHER, __name__, *COMMANDS, *_LATER])
    return context


class Forked:
    """A running command, with the interface of ``subprocess.Popen``."""

    def __init__(self, module: str, arguments: Sequence[str], folder: Path, output: Path, errors: Path,
                 environment: Mapping[str, str]) -> None:
        """Start it.

        :param output: file that gets its output, and ``errors`` the one for messages, which may be the same
        """
        self._process: ForkServerProcess = _context().Process(
            target=_run, args=(module, list(arguments), str(folder), str(output), str(errors), dict(environment)))
        # Otherwise the process would import the main module of the tests.
        with mock.patch.dict(sys.modules, __main__=types.ModuleType("__main__")):
            self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        status = self._process.exitcode
        if status is None:
            raise subprocess.TimeoutExpired(str(self._process.name), timeout or 0)
        return status

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self._process.terminate()

    def kill(self) -> None:
        self._process.kill()


class Done(NamedTuple):
    """How a command has ended."""

    returncode: int
    stdout: str
    stderr: str


def run(module: str, arguments: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None,
        timeout_s: float = 120) -> Done:
    """Run a command in ``folder`` to its end, with these changes of the environment."""
    everything = {**os.environ, **(environment or {})}
    if _has_another_service(everything):
        done = subprocess.run([sys.executable, "-m", module, *arguments], cwd=folder, env=everything, check=False,
                              capture_output=True, text=True, errors="replace", timeout=timeout_s)
        return Done(done.returncode, done.stdout, done.stderr)
    with tempfile.TemporaryDirectory() as files:
        output, errors = Path(files) / "output", Path(files) / "errors"
        command = Forked(module, arguments, folder, output, errors, everything)
        try:
            status = command.wait(timeout_s)
        finally:
            command.kill()
        return Done(status, output.read_text(errors="replace"), errors.read_text(errors="replace"))


def _run(module: str, arguments: list[str], folder: str, output: str, errors: str,
         environment: dict[str, str]) -> None:
    """Be the process ``python -m MODULE ARGUMENTS``."""
    gc.freeze()  # what was imported stays, and is shared
    os.chdir(folder)
    for number, name in ((1, output), (2, errors)):
        file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(file, number)
        os.close(file)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(write_through=True)  # type: ignore[union-attr]
    os.environ.clear()
    os.environ.update(environment)
    # Plug-ins of a test.
    sys.path[:0] = _new_places(environment)
    importlib.invalidate_caches()
    if "SSL_CERT_FILE" in environment:
        certifi.where = lambda: environment["SSL_CERT_FILE"]  # as in the process of the tests
    # These were drawn when they were imported, for all processes.
    importlib.import_module("ironic_rules.api.v1.rule_lists")._KEY = secrets.token_bytes(32)
    command = importlib.import_module(module)
    sys.argv = [str(command.__file__), *arguments]
    try:
        sys.exit(command.main())
    finally:
        # multiprocessing ends a process without these.
        threading._shutdown()  # type: ignore[attr-defined]
        with contextlib.suppress(SystemExit):
            atexit._run_exitfuncs()
