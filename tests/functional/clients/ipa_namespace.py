"""Runs a program where it sees one disk only, a loop device, and cannot switch the computer off or set its clock.

It must be the first process of a PID namespace and of a mount namespace of its own::

    unshare --mount --pid --fork --kill-child --mount-proc python ipa_namespace.py DISK SHOWN FOLDER PROGRAM...

DISK is the loop device, such as ``/dev/loop3``. SHOWN are the devices that are made visible, separated by commas: a
test of the refusal shows another loop device. If ``lsblk`` then lists anything but DISK, the status is 3 and PROGRAM is
not started. Programs that would shut down, reboot or set the clock are replaced by one that writes its name to
``FOLDER/recorded``.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path

REFUSED = 3
_SYSTEM = ("shutdown", "poweroff", "reboot", "halt", "hwclock", "udevadm")
#: Switches that a process could write to; they take anything, and do nothing.
_SWITCHES = ("/proc/sysrq-trigger", "/proc/sys/vm/drop_caches")
_CHARACTER = {"null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8), "urandom": (1, 9), "tty": (5, 0)}
_DROPPED = "-mknod,-sys_boot,-sys_time,-sys_module,-sys_rawio"
_BLOCK_FOLDERS = ("/sys/block", "/sys/class/block", "/sys/dev/block")


def mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)


def hide(shown: list[str], folder: Path) -> None:
    """Replace what shows the computer's devices by folders with those that are shown."""
    devices = {name: Path(f"/sys/block/{name}").resolve(strict=True) for name in shown}
    numbers = {name: (path / "dev").read_text().strip() for name, path in devices.items()}
    for place in _BLOCK_FOLDERS:
        mount("-t", "tmpfs", "tmpfs", place)
    mount("-t", "tmpfs", "tmpfs", "/dev")
    for name, (major, minor) in _CHARACTER.items():
        os.mknod(f"/dev/{name}", 0o666 | stat.S_IFCHR, os.makedev(major, minor))
    os.symlink("/proc/self/fd", "/dev/fd")
    for name, path in devices.items():
        show(name, path, numbers[name])
        os.symlink(path, f"/sys/block/{name}")
    (folder / "partitions").write_text("major minor  #blocks  name\n\n")
    mount("--bind", str(folder / "partitions"), "/proc/partitions")
    for switch in filter(os.path.exists, _SWITCHES):
        mount("--bind", "/dev/null", switch)


def show(name: str, path: Path, number: str) -> None:
    """Make a disk or a partition visible."""
    os.mknod(f"/dev/{name}", 0o600 | stat.S_IFBLK, os.makedev(*map(int, number.split(":"))))
    os.symlink(path, f"/sys/class/block/{name}")
    os.symlink(path, f"/sys/dev/block/{number}")


def record(folder: Path) -> None:
    """Put the recorder in the place of what would stop the computer."""
    recorder = folder / "recorder"
    recorder.write_text(f'#!/bin/sh\necho "$(basename "$0")" >> {folder}/recorded\n')
    recorder.chmod(0o755)
    (folder / "bin").mkdir()
    real = {os.path.realpath(found) for name in _SYSTEM if (found := shutil.which(name))}
    for path in real:
        mount("--bind", str(recorder), path)
    for name in _SYSTEM:
        shutil.copy(recorder, folder / "bin" / name)
    os.environ["PATH"] = f"{folder / 'bin'}:{os.environ['PATH']}"


def is_alone(disk: str) -> bool:
    """Return whether ``lsblk`` and ``/dev`` show this disk, and no other block device."""
    listed = json.loads(subprocess.run(["lsblk", "--all", "--json"], check=True, capture_output=True).stdout)
    nodes = [entry.name for entry in os.scandir("/dev") if stat.S_ISBLK(entry.stat(follow_symlinks=False).st_mode)]
    return [device["name"] for device in listed["blockdevices"]] == [disk] == nodes


def main(disk: str, shown: str, folder: str, *program: str) -> int:
    name = Path(disk).name
    hide([Path(device).name for device in shown.split(",")], Path(folder))
    record(Path(folder))
    if os.getpid() != 1 or not is_alone(name):
        print("refused: this is not a namespace with one disk", file=sys.stderr)
        return REFUSED
    running = subprocess.Popen(["setpriv", "--bounding-set", _DROPPED, *program], stdin=sys.stdin)
    known: dict[str, str] = {}
    while running.poll() is None:
        # The kernel's own folder of devices is hidden, so partitions must be shown as they come and go.
        found = {path.parent.name: path.read_text().strip()
                 for path in Path(f"/sys/block/{name}").glob(f"{name}p*/dev")}
        for gone in known.items() - found.items():
            Path(f"/dev/{gone[0]}").unlink()
            Path(f"/sys/class/block/{gone[0]}").unlink()
            Path(f"/sys/dev/block/{gone[1]}").unlink()
        for part, number in found.items() - known.items():
            show(part, Path(f"/sys/block/{name}").resolve() / part, number)
        known = found
        time.sleep(0.02)
    return running.returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
