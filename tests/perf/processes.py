"""A service under measurement: its URL, its start-up time, its memory."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.functional.processes import free_port
from tests.perf import loads


@dataclass
class Measured:
    """A running service; ``started_s`` is the time from its start to its first answer."""

    endpoint: str
    pid: int
    started_s: float

    def resident_mib(self) -> float:
        """Return the resident memory of the process and all its descendants in MiB."""
        return sum(_kib(pid, "VmRSS") for pid in family(self.pid)) / 1024

    def peak_mib(self) -> float:
        """Return the largest resident memory of the process so far in MiB, without its descendants."""
        return _kib(self.pid, "VmHWM") / 1024

    def times_s(self) -> tuple[float, float]:
        """Return the processor time of the process outside of and in the kernel, in steps of 10 ms."""
        user, kernel, _, _ = _times_s(self.pid)
        return user, kernel

    def processor_s(self) -> float:
        """Return the processor time of the process so far, without its descendants."""
        return processor_s(self.pid)


def processor_s(pid: int) -> float:
    """Return the processor time of a process so far, without its descendants."""
    # Linux: the clock of another process, as clock_getcpuclockid() returns it. /proc counts in steps of 10 ms.
    return time.clock_gettime(~pid << 3 | 2)


def all_s(pid: int) -> float:
    """Return the processor time so far of a process, its descendants, and its children that have ended."""
    return sum(map(processor_s, family(pid))) + sum(_times_s(pid)[2:])


def _times_s(pid: int) -> tuple[float, float, float, float]:
    """Return user and kernel time of a process, and those of its children that have ended, in steps of 10 ms."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    user, kernel, of_children, kernel_of_children = (int(each) / os.sysconf("SC_CLK_TCK") for each in fields[11:15])
    return user, kernel, of_children, kernel_of_children


def listener(port: int) -> list[int]:
    """Return the processes of this machine that listen on a TCP port: none if they run elsewhere, or are not shown."""
    inodes = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and int(fields[1].rpartition(":")[2], 16) == port:
                inodes.add(f"socket:[{fields[9]}]")
    return [int(folder.name) for folder in Path("/proc").iterdir() if folder.name.isdecimal() and _has(folder, inodes)]


def _has(process: Path, names: set[str]) -> bool:
    with contextlib.suppress(OSError):
        return any(os.readlink(file) in names for file in (process / "fd").iterdir())
    return False


def _kib(pid: int, name: str) -> int:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1])
    return 0


def family(pid: int) -> list[int]:
    """Return a process and its descendants."""
    found = [pid]
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += family(int(child))
    return found


@contextlib.contextmanager
def ours(folder: Path, text: str = "") -> Iterator[Measured]:
    """Run ``ironic-rules`` with an empty state folder; ``text`` is added to its configuration file."""
    port = free_port()
    config = folder / "ironic-rules.conf"
    config.write_text("[inspector]\nrequire_managed_boot = false\n" + text)
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "ironic_rules.cmd.standalone", "--config-file", str(config), "--state-dir",
             str(folder / "state"), "--port", str(port)], cwd=folder, stdout=output, stderr=subprocess.STDOUT)
        try:
            endpoint = f"http://127.0.0.1:{port}"
            yield Measured(endpoint, process.pid, loads.first_answer(endpoint))
        finally:
            process.terminate()
            process.wait(10)
