"""A machine with systemd as process 1: this one's files below a layer that is discarded, in namespaces of their own.

Processes, mounts, host name, System V IPC and control groups are separate; kernel settings are read-only, and systemd
lacks the privileges to set the clock, to load modules and to restart the machine. The network is that of this machine,
so that servers on 127.0.0.1 can be reached.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import site
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

import ironic_rules
from tests.functional.processes import wait_for
from tests.functional.pxe_filter.network import _PATH, _require

SYSTEMD = "/lib/systemd/systemd"
#: Folders with the interpreter and the libraries of this one: services see nothing of /root and /home.
PYTHON, LIBRARIES = Path("/opt/python"), Path("/opt/libraries")
INSTALLATION = Path("/opt/ironic-rules")

_SCRIPT = """\
set -e
mount -t tmpfs -o mode=755 tmpfs "$FOLDER"
cd "$FOLDER"
mkdir upper work root
mount -t overlay overlay -o lowerdir=/,upperdir=upper,workdir=work root
mount -t proc proc root/proc
for part in sys bus fs irq sysrq-trigger; do
    [ -e root/proc/$part ] || continue
    mount --bind root/proc/$part root/proc/$part
    mount -o remount,bind,ro root/proc/$part
done
mount -t sysfs -o ro sysfs root/sys
mount -t cgroup2 cgroup2 root/sys/fs/cgroup
mount -t tmpfs -o mode=755 tmpfs root/dev
for device in null zero full random urandom tty; do
    touch root/dev/$device
    mount --bind /dev/$device root/dev/$device
done
mkdir root/dev/pts root/dev/shm
mount -t devpts -o newinstance,ptmxmode=0666 devpts root/dev/pts
ln -s pts/ptmx root/dev/ptmx
ln -s /proc/self/fd root/dev/fd
mount -t tmpfs -o mode=755 tmpfs root/run
mount -t tmpfs tmpfs root/tmp
# The services of this machine are not started.
mount -t tmpfs -o mode=755 tmpfs root/etc/systemd/system
for unit in systemd-journald-audit.socket dev-hugepages.mount sys-fs-fuse-connections.mount systemd-timesyncd.service \
        getty.target dbus.service dbus.socket; do
    ln -s /dev/null root/etc/systemd/system/$unit
done
rm -f root/etc/fstab
# Without an id, it would be the first start, at which systemd enables everything.
tr -d - < /proc/sys/kernel/random/uuid > root/etc/machine-id
mkdir -p root/run/netns "root$PYTHON" "root$LIBRARIES"
if [ -d /run/netns ]; then mount --rbind /run/netns root/run/netns; fi
mount --bind "$BASE" "root$PYTHON"
mount --bind "$SITE" "root$LIBRARIES"
mkdir root/before
cd root
pivot_root . before
umount -l /before
hostname machine
exec env -i container=test PATH=/usr/sbin:/usr/bin:/sbin:/bin setpriv \
    --bounding-set=-sys_boot,-sys_time,-sys_module,-sys_rawio,-syslog,-wake_alarm,-audit_control,-mac_admin \
    --inh-caps=-all "$SYSTEMD" --system --unit=basic.target --log-target=journal
"""


class Machine:
    """The machine, from ``start`` to ``end``. ``root`` is its folder ``/`` as this one sees it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "machine"
        self._folder.mkdir()
        self._log = folder / "machine.log"
        self._group = _control_groups() / f"irt-{secrets.token_hex(4)}"
        self._outer: subprocess.Popen[bytes] | None = None
        self._init = 0

    def start(self) -> None:
        """Start systemd, and wait until its basic services run."""
        self._group.mkdir()
        joined = f'echo $$ > {self._group}/cgroup.procs && exec "$@"'
        with self._log.open("wb") as log:
            self._outer = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "bash", "-c", joined, "join", "unshare", "--pid", "--fork",
                 "--kill-child", "--mount", "--uts", "--ipc", "--cgroup", "--propagation", "private",
                 "bash", "-c", _SCRIPT],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={
                    "PATH": _PATH, "FOLDER": str(self._folder), "SYSTEMD": SYSTEMD, "PYTHON": str(PYTHON),
                    "LIBRARIES": str(LIBRARIES), "BASE": sys.base_prefix, "SITE": site.getsitepackages()[0]})
        self._init = wait_for("the first process", self._find)
        wait_for(f"systemd; {self._log.read_text()}", self._is_running, 60, 0.2)

    def _find(self) -> int | None:
        assert self._outer is not None
        assert self._outer.poll() is None, self._log.read_text()
        children = Path(f"/proc/{self._outer.pid}/task/{self._outer.pid}/children").read_text().split()
        for child in children:
            if Path(f"/proc/{child}/comm").read_text().strip() == "systemd":
                return int(child)
        return None

    def _is_running(self) -> bool:
        return self.run("systemctl", "is-system-running", check=False).stdout.strip() in ("running", "degraded")

    @property
    def root(self) -> Path:
        return Path(f"/proc/{self._init}/root")

    def namespaces(self) -> dict[str, bool]:
        """Return by kind whether the machine has a namespace of its own."""
        return {kind: os.readlink(f"/proc/{self._init}/ns/{kind}") != os.readlink(f"/proc/self/ns/{kind}")
                for kind in ("pid", "mnt", "uts", "ipc", "cgroup")}

    def run(self, *command: str, check: bool = True, timeout_s: float = 120) -> subprocess.CompletedProcess[str]:
        """Run a command on the machine."""
        done = subprocess.run(
            ["nsenter", "-t", str(self._init), "-m", "-u", "-i", "-p", "-C", "--", "env", "-i", f"PATH={_PATH}",
             "SYSTEMD_PAGER=cat", "HOME=/root", *command],
            capture_output=True, text=True, timeout=timeout_s, stdin=subprocess.DEVNULL)
        assert not check or done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def shell(self, text: str, timeout_s: float = 300) -> str:
        """Run commands as they are typed into a shell of root, one after another; return their output."""
        return self.run("bash", "-e", "-c", text, timeout_s=timeout_s).stdout

    def property(self, unit: str, name: str) -> str:
        return self.run("systemctl", "show", unit, f"--property={name}", "--value").stdout.strip()

    def journal(self, unit: str) -> str:
        return self.run("journalctl", "--no-pager", "-o", "cat", "-u", unit, check=False).stdout

    def install(self) -> None:
        """Install the package in a virtual environment, of the interpreter and with the libraries of this process."""
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        # Where the interpreter was built, services do not see its library.
        (self.root / "etc/ld.so.conf.d/00-python.conf").write_text(f"{PYTHON}/lib\n")
        self.run("ldconfig")
        self.run(f"{PYTHON}/bin/{version}", "-m", "venv", "--without-pip", str(INSTALLATION))
        below = self.root / INSTALLATION.relative_to("/")
        libraries = below / "lib" / version / "site-packages"
        shutil.copytree(Path(ironic_rules.__file__).parent, libraries / "ironic_rules",
                        ignore=shutil.ignore_patterns("__pycache__"))
        (libraries / "libraries.pth").write_text(f"{LIBRARIES}\n")
        for point in metadata.distribution("ironic-rules").entry_points:
            if point.group == "console_scripts":
                script = below / "bin" / point.name
                script.write_text(f"#!{INSTALLATION}/bin/python\nimport sys\nfrom {point.module} import {point.attr}\n"
                                  f"sys.exit({point.attr}())\n")
                script.chmod(0o755)

    def end(self) -> None:
        """End all its processes, which end with the first one, and remove its control groups."""
        if self._outer is not None:
            if self._init:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self._init, 9)
            else:
                self._outer.kill()
            self._outer.wait(60)
        if self._group.exists():
            for path, _, _ in os.walk(self._group, topdown=False):
                wait_for("the processes to end", lambda path=path: not _members(Path(path)))  # type: ignore[misc]
                os.rmdir(path)


def _members(group: Path) -> str:
    return (group / "cgroup.procs").read_text()


def _control_groups() -> Path:
    """Return where control groups of version 2 are mounted."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields, _, kind = line.partition(" - ")
        if kind.startswith("cgroup2 "):
            return Path(fields.split()[4])
    pytest.skip("no control groups of version 2 are mounted")


def missing() -> str | None:
    """Return what this machine lacks for such a machine, None if nothing."""
    if os.geteuid() != 0:
        return "namespaces need root"
    for program in (SYSTEMD, "unshare", "nsenter", "setpriv", "systemctl", "pivot_root"):
        if shutil.which(program, path=_PATH) is None:
            return f"{program} is not installed"
    return None if "overlay" in Path("/proc/filesystems").read_text() else "the kernel has no overlay file system"


@contextlib.contextmanager
def machine(folder: Path) -> Iterator[Machine]:
    """Yield a machine; skip the test if this one cannot have any."""
    lack = missing()
    _require(lack is None, lack or "")
    made = Machine(folder)
    try:
        made.start()
        yield made
    finally:
        made.end()
