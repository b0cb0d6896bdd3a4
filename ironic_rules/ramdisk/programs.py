"""Programs of the machine that builds: which are missing, and running them."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ironic_rules.exceptions import ConfigurationError
from ironic_rules.text import printable

#: Lines of a failed program's output that an error shows.
_LINES = 12
#: Text of the C library's error for a full disk, in the output of any program.
_FULL = "No space left on device"
#: Command that runs another one in a mount and PID namespace, which end with it, and it ends with this process.
_CONTAINED = ("setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--propagation", "private", "--pid", "--fork",
              "--kill-child", "--mount-proc")
#: Seconds that a program may take to remove its files when it is interrupted.
_PATIENCE_S = 30.0
#: Signals that interrupt a build.
_INTERRUPTIONS = (signal.SIGINT, signal.SIGTERM)


class Program(NamedTuple):
    """A program, or a file with its absolute path, and the package of Debian that has it."""

    name: str
    package: str

    @property
    def is_there(self) -> bool:
        """Whether it is on this machine."""
        return Path(self.name).exists() if self.name.startswith("/") else shutil.which(self.name) is not None


def check(programs: Iterable[Program]) -> None:
    """Check that all are there.

    :raises ConfigurationError: with all that are not, and the packages to install
    """
    missing = [program for program in programs if not program.is_there]
    if missing:
        packages = sorted({program.package for program in missing})
        raise ConfigurationError(f"Missing on this machine: {', '.join(program.name for program in missing)}. On "
                                 f"Debian and Ubuntu: apt-get install {' '.join(packages)}")


@contextlib.contextmanager
def held_interruptions() -> Iterator[Callable[[], None]]:
    """Hold interruptions back while a program starts: one that nothing knows yet would outlive this process.

    The yielded function ends that, and raises KeyboardInterrupt if an interruption has come.
    """
    early: list[int] = []
    handlers = {number: signal.signal(number, lambda received, _: early.append(received)) for number in _INTERRUPTIONS}

    def release() -> None:
        while handlers:
            signal.signal(*handlers.popitem())
        if early:
            raise KeyboardInterrupt

    try:
        yield release
    finally:
        release()


def run(command: Sequence[str], environment: Mapping[str, str], *, log: Path | None = None,
        stdin: int = subprocess.DEVNULL, is_contained: bool = False) -> str:
    """Run a program to its end, and return its output. If this process is interrupted, so is the program.

    :param environment: further variables than those of this process;  log: file to which the output is appended
    :param is_contained: run it in namespaces of its own, as far as they are permitted: then its processes and mounts
        end with it, and with this process, whatever ends that
    :raises ConfigurationError: it fails, with the last lines of its output, or the disk is full
    """
    outer = _CONTAINED if is_contained and _can_contain() else ()
    with held_interruptions() as release, subprocess.Popen(
            [*outer, *command], stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
            env={**os.environ, "LC_ALL": "C.UTF-8", **environment}) as process:
        try:
            release()
            output = process.communicate()[0].decode(errors="replace")
        except BaseException:  # an interruption, too
            _end(process, is_contained=bool(outer))
            raise
    if log is not None:
        with log.open("a", encoding="utf-8") as file:
            file.write(output)
    if process.returncode:
        raise ConfigurationError(failure(command[0], process.returncode, output))
    return output


def _can_contain() -> bool:
    return subprocess.run([*_CONTAINED, "true"], stdin=subprocess.DEVNULL, capture_output=True).returncode == 0


def _end(process: subprocess.Popen[bytes], *, is_contained: bool) -> None:
    """End a program with its processes, and wait for them."""
    first = _children(process.pid) if is_contained else []
    for child in first:  # with the first process of a namespace, the kernel ends all others, before that has ended
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
    for number in () if first else (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_PATIENCE_S)
            break
    process.wait()


def _children(process: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    except OSError:
        return []


def failure(name: str, status: int, output: str) -> str:
    """Return the text about a failed program."""
    name = name.rpartition("/")[2]
    if _FULL in output:
        return f"{name} failed, because the disk is full: {_FULL}."
    lines = [printable(line, 200) for line in output.splitlines() if line.strip()][-_LINES:]
    return "\n".join([f"{name} failed with status {status}. Its last lines:", *(f"  {line}" for line in lines)])
