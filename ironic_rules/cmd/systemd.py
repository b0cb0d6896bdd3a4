"""systemd: notifications about the state of the process (sd_notify(3)), and the command ``ironic-rules-units``.

Without systemd the notifications do nothing. The command writes units, and what belongs to them, for the installation
that it is part of. Exit status: 0 all files are there, 2 they are not, for the printed reasons.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import re
import socket
import stat
import sys
import sysconfig
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from ironic_rules.cmd import lifecycle
from ironic_rules.exceptions import ConfigurationError


def notify(state: str) -> None:
    """Send ``state``, such as ``READY=1``, to the service manager if there is one.

    :raises OSError: it no longer listens
    """
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    if address.startswith("@"):  # the abstract namespace
        address = "\0" + address[1:]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as connection:
        connection.sendto(state.encode(), address)


def tell(state: str) -> None:
    """Send ``state`` if the service manager listens: while it is being restarted, it does not."""
    with contextlib.suppress(OSError):
        notify(state)


def watchdog_interval_s() -> float | None:
    """Return the interval in seconds for watchdog notifications: half the service manager's limit; None if unset."""
    limit_us = os.environ.get("WATCHDOG_USEC", "")
    pid = os.environ.get("WATCHDOG_PID", "")
    if not limit_us.isdigit() or int(limit_us) == 0 or (pid and pid != str(os.getpid())):
        return None
    return int(limit_us) / 2e6


def ready(is_well: Callable[[], bool] = lambda: True) -> None:
    """Tell the service manager that the process serves, and notify its watchdog from now on, if it has one.

    :param is_well: called before each notification, which is only sent if it returns true; without notifications, the
        service manager restarts the process
    """
    tell("READY=1")
    interval_s = watchdog_interval_s()
    if interval_s is not None:
        threading.Thread(target=_stay_alive, args=(interval_s, is_well), name="systemd-watchdog", daemon=True).start()


def _stay_alive(interval_s: float, is_well: Callable[[], bool]) -> None:
    never = threading.Event()
    while True:
        if is_well():
            tell("WATCHDOG=1")
        never.wait(interval_s)


PROG = "ironic-rules-units"
#: Commands that units start.
COMMANDS = ("ironic-rules", "ironic-rules-api", "ironic-rules-conductor", "ironic-pxe-filter")

_NEXT = """\
Next:
  systemd-sysusers
  systemctl daemon-reload
  systemctl enable --now UNIT...   ({units})"""
#: Folders with the samples, and where their files belong; whether they are the operator's, who changes them.
_FOLDERS = (("systemd", "etc/systemd/system", False), ("sysusers.d", "etc/sysusers.d", False),
            ("logrotate.d", "etc/logrotate.d", False), ("dnsmasq", "etc", True))
#: Folders in the configuration of dnsmasq beside the PXE filter, and those of dnsmasq beside the one-process service.
_OF_ONE_PROCESS = {"/var/lib/ironic-pxe-filter/hosts": "/var/lib/ironic-rules/dhcp-hosts",
                   "/var/lib/ironic-inspection-dnsmasq": "/var/lib/ironic-rules-dnsmasq",
                   "/run/ironic-inspection-dnsmasq": "/run/ironic-rules-dnsmasq"}
#: Folders that services have their own of (PrivateTmp), or none of (ProtectHome).
_HIDDEN = ("/home", "/root", "/run/user", "/tmp", "/var/tmp")
#: Characters that systemd takes literally in a path.
_PLAIN = re.compile(r"/[A-Za-z0-9/._+@-]*")
_MARK = re.compile(r"# Written by ironic-rules-units ([0-9a-f]{16})\b.*\n")
_MARK_LINE = "# Written by ironic-rules-units {checksum}. {advice}\n"


class File(NamedTuple):
    """A file to write. ``is_the_operators``: it is written only if it does not exist."""

    path: Path
    text: str
    is_the_operators: bool


def files(root: Path, scripts: str, dnsmasq: str) -> list[File]:
    """Return the files for a machine.

    :param root: where its ``/`` is;  scripts: folder of the commands;  dnsmasq: path of the program
    """
    samples = resources.files("ironic_rules.samples") / "host"
    hardening = (samples / "hardening.conf").read_text(encoding="utf-8")
    targets = []
    for folder, target, is_the_operators in _FOLDERS:
        for entry in sorted((samples / folder).iterdir(), key=lambda entry: entry.name):
            text = entry.read_text(encoding="utf-8").replace("@BIN@", scripts).replace("@DNSMASQ@", dnsmasq)
            if "@HARDENING@" in text:
                own = set(re.findall(r"^(\w+)=", text, re.MULTILINE))
                text = text.replace("@HARDENING@\n", "".join(
                    line for line in hardening.splitlines(keepends=True) if line.partition("=")[0] not in own))
            if not is_the_operators:
                advice = (f"Put changes into a drop-in: systemctl edit {entry.name}" if folder == "systemd" else
                          f"Put changes into another file of {target}.")
                text = _MARK_LINE.format(checksum=_checksum(text), advice=advice) + text
            targets.append(File(root / target / entry.name, text, is_the_operators))
            if folder == "dnsmasq":
                for ours, theirs in _OF_ONE_PROCESS.items():
                    text = text.replace(ours, theirs)
                targets.append(File(root / target / "ironic-rules-dnsmasq.conf", text, is_the_operators))
    return targets


def problems(targets: Sequence[File]) -> Iterator[str]:
    """Yield why files cannot be replaced: a person has written or changed them."""
    for file in targets:
        if file.is_the_operators or not file.path.exists():
            continue
        text = file.path.read_text(encoding="utf-8", errors="replace")
        mark = _MARK.match(text)
        if mark is None:
            yield f"{file.path} exists, and was not written by {PROG}: move it elsewhere."
        elif mark[1] != _checksum(text[mark.end():]):
            yield f"{file.path} was changed: move the changes to where its first line says, and delete the file."


def unusable(scripts: Path, interpreter: Path) -> Iterator[str]:
    """Yield why services could not run the commands in a folder."""
    if not _PLAIN.fullmatch(str(scripts)):
        yield f"{scripts}: systemd would not take every character of this path literally."
    missing = [name for name in COMMANDS if not os.access(scripts / name, os.X_OK)]
    if missing:
        yield f"{scripts} does not have {', '.join(missing)}."
    for subject, path in (("The commands are", scripts), ("Their interpreter is", interpreter)):
        hidden = next((folder for folder in _HIDDEN if path.is_relative_to(folder)), None)
        closed = next((parent for parent in (path, *path.parents) if not _is_open(parent)), None)
        if hidden is not None:
            yield (f"{subject} in {path}, and services see nothing of {hidden}: install the package into another "
                   "folder, such as /opt/ironic-rules, with an interpreter that is in another folder, too.")
        elif closed is not None:
            yield f"{subject} in {path}, and other users than its owner cannot read {closed}."


def _not_literal(argument: str, path: str) -> Iterator[str]:
    if not _PLAIN.fullmatch(path):
        yield f"{argument}: {path} is not an absolute path whose characters systemd takes literally."


def _is_open(path: Path) -> bool:
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return bool(mode & stat.S_IXOTH)


def write(file: File) -> str:
    """Write a file as a whole; return what was done: ``written``, ``unchanged`` or ``kept``."""
    if file.path.exists():
        if file.is_the_operators:
            return "kept"
        if file.path.read_text(encoding="utf-8") == file.text:
            return "unchanged"
    file.path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=".ironic-rules-units.", dir=file.path.parent)
    try:
        with open(descriptor, "w", encoding="utf-8") as new:
            new.write(file.text)
            os.fchmod(new.fileno(), 0o644)
        os.rename(name, file.path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
    return "written"


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=PROG, description=(
        "Writes units of systemd for the API, the conductor, the one-process service, the PXE filter and its dnsmasq, "
        "and files for systemd-sysusers, logrotate and dnsmasq. Running it again updates them. Nothing is written if "
        "a file was changed by hand, or if services could not run the commands."))
    parser.add_argument("--root", default="/", metavar="FOLDER", help="write below this folder, such as an image's")
    parser.add_argument("--prefix", metavar="FOLDER", help=(
        "the units start the commands of the virtual environment in this folder, which need not exist yet; default: "
        "those of the installation that this command is part of"))
    parser.add_argument("--dnsmasq", default="/usr/sbin/dnsmasq", metavar="FILE",
                        help="path of dnsmasq; default: /usr/sbin/dnsmasq")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Write the files; return the exit status."""
    return lifecycle.guarded(_run, argv)


def _run(argv: Sequence[str]) -> int:
    arguments = _parser().parse_args(argv)
    if arguments.prefix is None:
        scripts = Path(sysconfig.get_path("scripts"))
        reasons = list(unusable(scripts, Path(sys.executable).resolve()))
    else:
        scripts = Path(arguments.prefix) / "bin"
        reasons = list(_not_literal("--prefix", str(scripts)))
    reasons += _not_literal("--dnsmasq", arguments.dnsmasq)
    targets = files(Path(arguments.root), str(scripts), arguments.dnsmasq)
    reasons += problems(targets)
    if reasons:
        raise ConfigurationError("\n".join(reasons))
    report = []
    try:
        for file in targets:
            try:
                report.append(f"{file.path}: {write(file)}\n")
            except OSError as exc:
                raise ConfigurationError(f"{file.path} cannot be written: {exc.strerror}.") from exc
    finally:
        print(*report, sep="", end="")  # last: if no one reads it, all files are there nevertheless
    print(_NEXT.format(units=", ".join(file.path.stem for file in targets if file.path.suffix == ".service")))
    return 0


if __name__ == "__main__":
    sys.exit(main())
