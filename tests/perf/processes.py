"""A service under measurement: its URL, its start-up time, its memory."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

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
        times = psutil.Process(self.pid).cpu_times()
        return times.user, times.system

    def processor_s(self) -> float:
        """Return the processor time of the process so far, without its descendants."""
        return processor_s(self.pid)


def processor_s(pid: int) -> float:
    """Return the processor time of a process so far, without its descendants."""
    # Linux: the clock of another process, as clock_getcpuclockid() returns it. /proc counts in steps of 10 ms.
    return time.clock_gettime(~pid << 3 | 2)


def all_s(pid: int) -> float:
    """Return the processor time so far of a process, its descendants, and its children that have ended."""
    living = 0.0
    for each in family(pid):
        with contextlib.suppress(OSError):  # it has just ended, and is one of the others
            living += processor_s(each)
    ended = psutil.Process(pid).cpu_times()
    return living + float(ended.children_user + ended.children_system)


def listener(port: int) -> list[int]:
    """Return the processes of this machine that listen on a TCP port: none if they run elsewhere, or are not shown."""
    return sorted({each.pid for each in psutil.net_connections("tcp")
                   if each.status == psutil.CONN_LISTEN and each.laddr.port == port and each.pid is not None})


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
