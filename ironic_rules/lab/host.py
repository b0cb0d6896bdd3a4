"""The host of the lab: what it must have, and the namespaces in which everything runs.

All processes of the lab are in one PID namespace, whose first process the kernel ends when the command ends, also by
SIGKILL; with them go the network and the mounts. Only a folder can be left, which the next lab deletes.
"""

from __future__ import annotations

import fcntl
import os
import platform
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

from ironic_rules.exceptions import ConfigurationError

PATH = "/opt/ironic-rules/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
INSTALLATION = Path("/opt/ironic-rules")
#: Command -> its package on Debian.
PROGRAMS = {
    "unshare": "util-linux", "setpriv": "util-linux", "ip": "iproute2", "dnsmasq": "dnsmasq-base",
    "nginx": "nginx-light", "qemu-system-x86_64": "qemu-system-x86", "qemu-img": "qemu-utils",
    "libvirtd": "libvirt-daemon-system", "virsh": "libvirt-clients", "systemd-sysusers": "systemd",
    "grub-mkstandalone": "grub-common", "mformat": "mtools", "sgdisk": "gdisk",
}
#: File -> its package.
FILES = {"/usr/lib/ipxe/ipxe.efi": "ipxe", "/usr/share/OVMF/OVMF_CODE_4M.fd": "ovmf",
         "/usr/lib/grub/x86_64-efi/modinfo.sh": "grub-efi-amd64-bin"}
#: Command that needs of the kernel what the lab needs.
TRIAL = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c",
         "ip link add probe type bridge && ip tuntap add probe-tap mode tap && mount -t tmpfs tmpfs /mnt"]
#: MiB of disk space that a run needs for a time.
DISK_MIB = 2000
#: MiB of memory that a run needs besides that of the machine.
MEMORY_MIB = 700
#: Addresses of a pair of interfaces, by which the host reaches the lab that is kept.
OUTSIDE, INSIDE = "198.51.100.1", "198.51.100.2"
LINK = "ironic-lab"
#: Folders of the host that are seen in the lab, and written to a layer that disappears with it.
_LAYERED = ("/etc", "/var", "/opt")
_MADE = Path("/run/lab")


class LabError(Exception):
    """The lab cannot run, or a step of it failed; the text is for the user."""


def problems(folder: Path, *, memory_mib: int) -> Iterator[str]:
    """Yield why the lab cannot run here.

    :param folder: of the lab; it or a parent exists
    """
    if os.geteuid() != 0:
        yield "it needs root, for namespaces, network interfaces and mounts: run it as root, or with sudo."
        return
    if platform.machine() != "x86_64":
        yield f"its machines and their ramdisk are for x86_64, and this one is {platform.machine()}."
    lacking = {package: name for name, package in PROGRAMS.items() if shutil.which(name, path=PATH) is None}
    lacking |= {package: name for name, package in FILES.items() if not Path(name).exists()}
    if lacking:
        yield f"{', '.join(lacking.values())} missing: apt-get install --no-install-recommends {' '.join(lacking)}"
        return
    tried = subprocess.run(TRIAL, capture_output=True, text=True, env={"PATH": PATH}, timeout=60)
    if tried.returncode:
        yield f"namespaces, bridges or mounts are not permitted here: {_last(tried.stderr)}"
    if "overlay" not in Path("/proc/filesystems").read_text(encoding="ascii"):
        yield "the kernel has no overlay file system (modprobe overlay)."
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    free = shutil.disk_usage(existing).free // 2**20
    if free < DISK_MIB:
        yield f"{existing} has {free} MiB of free space, and {DISK_MIB} are needed: choose another --folder."
    available = next(int(line.split()[1]) // 1024 for line in Path("/proc/meminfo").read_text().splitlines()
                     if line.startswith("MemAvailable:"))
    if available < memory_mib + MEMORY_MIB:
        yield (f"{available} MiB of memory are available, and {memory_mib + MEMORY_MIB} are needed: a machine has "
               f"{memory_mib} (--memory), which its ramdisk needs.")


def full(folder: Path) -> str:
    """Return that the file system of a folder is full, or nearly; empty if it is not."""
    free = shutil.disk_usage(folder).free // 2**20
    return f"The disk is full, which may be the reason: {folder} has {free} MiB of free space." if free < 16 else ""


def is_kernel(file: Path) -> bool:
    """Return whether a file is a kernel for x86-64 (Linux, Documentation/arch/x86/boot.rst: header, xloadflags)."""
    with file.open("rb") as opened:
        head = opened.read(0x238)
    return head[0x202:0x206] == b"HdrS" and bool(head[0x236] & 1)


def has_kvm() -> bool:
    """Return whether QEMU can use KVM here. A device without the extensions of the processor is one of an emulation."""
    flags = next((line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("flags")), "")
    return bool({"vmx", "svm"} & set(flags.split())) and os.access("/dev/kvm", os.R_OK | os.W_OK)


def locked(file: Path) -> IO[str]:
    """Return the file that only one lab of this computer may hold; the kernel releases it when the process ends.

    :raises ConfigurationError: another lab runs
    """
    holder = file.open("a+", encoding="ascii")
    try:
        fcntl.flock(holder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as exc:
        holder.seek(0)
        number = holder.read().strip() or "unknown"
        holder.close()
        raise ConfigurationError(f"Another lab runs on this computer (process {number}): its networks have the same "
                                 "addresses. Wait until it ends.") from exc
    holder.truncate(0)
    holder.write(f"{os.getpid()}\n")
    holder.flush()
    return holder


def outer_command(command: Sequence[str]) -> list[str]:
    """Return a command that runs ``command`` in namespaces of its own, which end with the process that starts it."""
    return ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "--mount", "--propagation", "private", "--pid",
            "--uts", "--ipc", "--fork", "--kill-child", "--mount-proc", *command]


def as_first_process(work: Callable[[], int]) -> int:
    """Do the work in a child of this process, which is the first one of its namespace; return the exit status.

    The first process gets the children of processes that have ended. If it does not wait for these when they end,
    libvirt sees processes that cannot be killed.
    """
    child = os.fork()
    if child == 0:
        status = 70
        try:
            status = work()
        except BaseException:  # noqa: BLE001  (the process ends; nothing else would tell)
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    signal.signal(signal.SIGTERM, lambda number, frame: os.kill(child, number))
    while True:
        ended, status = os.waitpid(-1, 0)
        if ended == child:
            return os.waitstatus_to_exitcode(status)


def link_problems(address: str) -> Iterator[str]:
    """Yield why browsers on the host cannot reach an address of the lab."""
    process = subprocess.run(["ip", "-o", "route", "get", address], capture_output=True, text=True, env={"PATH": PATH})
    if process.stdout.startswith("local "):
        yield f"this computer has the address {address}, at which --keep would show the page of the lab's service."


def link(process: int) -> None:
    """Connect the host with the network namespace of a process, for browsers."""
    run(["ip", "link", "add", LINK, "type", "veth", "peer", "name", LINK, "netns", str(process)])
    run(["ip", "address", "add", f"{OUTSIDE}/30", "dev", LINK])
    run(["ip", "link", "set", LINK, "up"])


def route(address: str) -> None:
    """Send what is for one address of the lab through the link, with which the route ends.

    Not for the whole network: the computer may be in one of the same addresses.
    """
    run(["ip", "route", "add", f"{address}/32", "via", INSIDE, "dev", LINK])


def separate(folder: Path, mounts: Mapping[str, Path], *, hides_kvm: bool) -> None:
    """Give this process, in namespaces of its own, a view of the host's files that the lab may change.

    :param folder: of the lab, the same one as outside
    :param mounts: folders of this view -> the folders that have their files
    :param hides_kvm: whether QEMU must not find it: where it exists and does not work, libvirt tries it for a minute
    """
    if hides_kvm and Path("/dev/kvm").exists():
        run(["mount", "--bind", "/dev/null", "/dev/kvm"])
    interpreter = Path(sys.executable)
    run(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run"])
    (_MADE / "folder").mkdir(parents=True)
    run(["mount", "--bind", str(folder), str(_MADE / "folder")])
    for layered in _LAYERED:
        upper, work = (_MADE / f"{layered[1:]}-{part}" for part in ("upper", "work"))
        upper.mkdir()
        work.mkdir()
        run(["mount", "-t", "overlay", "overlay", "-o", f"lowerdir={layered},upperdir={upper},workdir={work}", layered])
    folder.mkdir(parents=True, exist_ok=True)
    run(["mount", "--bind", str(_MADE / "folder"), str(folder)])
    for target, source in mounts.items():
        source.mkdir(parents=True, exist_ok=True)
        Path(target).mkdir(parents=True, exist_ok=True)
        run(["mount", "--bind", str(source), target])
    if not interpreter.exists():
        raise LabError(f"{interpreter} is on a file system mounted below one of {', '.join(_LAYERED)}, which the lab "
                       "does not see: install the package elsewhere.")
    prefix = interpreter.parent.parent
    if prefix != INSTALLATION:
        if INSTALLATION.exists():
            INSTALLATION.rename(INSTALLATION.with_name("ironic-rules.host"))
        INSTALLATION.symlink_to(prefix)


def connect(addresses: Sequence[str], interface: str) -> None:
    """Make the network of the lab: a bridge with these addresses, to which machines are connected."""
    for command in (
            ["ip", "link", "set", "lo", "up"],
            ["ip", "link", "add", interface, "type", "bridge", "forward_delay", "0", "stp_state", "0"],
            *(["ip", "address", "add", address, "dev", interface] for address in addresses),
            ["ip", "link", "set", interface, "up"]):
        run(command)


def connect_outside() -> None:
    """Configure the inner end of :func:`link`."""
    run(["ip", "address", "add", f"{INSIDE}/30", "dev", LINK])
    run(["ip", "link", "set", LINK, "up"])


def run(command: Sequence[str], *, timeout_s: float = 600, environment: Mapping[str, str] | None = None,
        log: IO[bytes] | None = None) -> str:
    """Run a command to its end; return what it prints.

    :param log: file that gets what it prints, instead
    :raises LabError: it fails; the text has the last line that it printed
    """
    env = {"PATH": PATH, "HOME": "/root", "LANG": "C.UTF-8", **(environment or {})}
    try:
        process = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=log or subprocess.PIPE,
                                 stderr=log or subprocess.PIPE, env=env, timeout=timeout_s)
    except subprocess.TimeoutExpired as exc:
        raise LabError(f"{' '.join(command)} has not ended after {timeout_s:.0f} s.") from exc
    except OSError as exc:
        raise LabError(f"{command[0]} cannot be started: {exc.strerror}.") from exc
    if process.returncode:
        reason = _last((process.stderr or b"").decode(errors="replace")) or f"exit status {process.returncode}"
        raise LabError(f"{' '.join(command)}: {reason}")
    return (process.stdout or b"").decode(errors="replace")


def remove(folder: Path) -> None:
    """Remove the files of a lab; its mounts ended with its namespaces."""
    end = time.monotonic() + 10
    while folder.exists():
        shutil.rmtree(folder, ignore_errors=time.monotonic() < end)


def _last(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""
