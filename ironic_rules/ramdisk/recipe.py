"""The ramdisk's recipe: packages of Debian, packages of the agent, and files of its own.

The files are those below ``root``; which package is there for what is said in ``PACKAGES``. Equal recipes have equal
digests, by which built ramdisks are cached. A recipe does not name the versions of Debian's packages, unless its mirror
is a snapshot: https://snapshot.debian.org/.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import resources
from importlib.resources.abc import Traversable
from typing import NamedTuple

from ironic_rules.exceptions import ConfigurationError
from ironic_rules.models import boot_parameters

#: Debian's name of the only architecture of this recipe, and that of machines and of inventories.
ARCHITECTURE, MACHINE = "amd64", "x86_64"
#: Release of Debian -> version of its Python, for which the agent's packages are chosen.
SUITES = {"trixie": "3.13", "bookworm": "3.11"}
MIRROR, SECURITY_MIRROR = "http://deb.debian.org/debian", "http://deb.debian.org/debian-security"
_SNAPSHOT = "http://snapshot.debian.org/archive"
_STAMP = re.compile(r"[0-9]{8}T[0-9]{6}Z")
_PACKAGE = re.compile(r"[a-z0-9][a-z0-9+.-]+")
_URL = re.compile(r"(?:https?|file|copy)://?[^\s\"'\[\]]+")
#: Seconds since 1970 of everything in the ramdisk: 2026-11-01. systemd sets a clock that is behind it to it.
EPOCH = 1793491200

#: Purpose -> packages.
PACKAGES = {
    "kernel and start": ("linux-image-amd64", "systemd-sysv", "udev", "kmod", "dbus"),
    "network": ("iproute2", "systemd-resolved", "ethtool", "ca-certificates", "iputils-ping", "curl"),
    "clock": ("systemd-timesyncd", "ntpsec-ntpdate", "util-linux-extra"),
    "agent": ("python3", "psmisc", "file", "bsdextrautils", "procps", "gzip", "bzip2", "xz-utils", "zstd"),
    "inventory": ("lshw", "dmidecode", "pciutils", "usbutils", "numactl", "lsscsi", "ipmitool"),
    "disks": ("gdisk", "parted", "fdisk", "qemu-utils", "hdparm", "nvme-cli", "smartmontools", "sg3-utils", "mdadm",
              "multipath-tools", "e2fsprogs", "dosfstools"),
    "firmware's boot entries": ("efibootmgr",),
    "rescue": ("openssh-server", "sudo", "passwd", "less", "vim-tiny"),
}
#: Component and packages of firmware, for network cards and controllers whose driver loads it. Not free software.
FIRMWARE_COMPONENT = "non-free-firmware"
FIRMWARE = ("firmware-bnx2", "firmware-bnx2x", "firmware-qlogic", "firmware-misc-nonfree")

#: Files of packages that the ramdisk does not need: documentation, and drivers of what servers do not have.
EXCLUDED = (
    "/usr/share/man/*", "/usr/share/info/*", "/usr/share/locale/*", "/usr/share/doc/*", "/usr/share/lintian/*",
    "/usr/share/bash-completion/*", "/usr/share/zsh/*", "/usr/share/vim/*/doc/*",
    *(f"{root}/lib/modules/*/kernel/{drivers}/*" for root in ("", "/usr") for drivers in (
        "sound", "drivers/media", "drivers/staging", "drivers/bluetooth", "net/bluetooth", "drivers/net/wireless",
        "net/wireless", "net/mac80211", "drivers/net/can", "net/can", "drivers/isdn", "drivers/iio", "drivers/comedi",
        "drivers/gpu/drm/amd", "drivers/gpu/drm/i915", "drivers/gpu/drm/xe", "drivers/gpu/drm/nouveau",
        "drivers/gpu/drm/radeon", "drivers/input/joystick", "drivers/input/touchscreen", "drivers/thunderbolt")),
)
INCLUDED = ("/usr/share/doc/*/copyright",)

#: Paths whose packages are not installed by the system's own tools: those of the agent.
AGENT = "/usr/local/lib/ironic-python-agent"
_EXECUTABLE = ("/usr/local/bin/", "/usr/local/lib/")
_UNIT = "/etc/systemd/system/"
#: Unit -> what wants it.
_ENABLED = {
    f"{_UNIT}ironic-python-agent.service": "multi-user.target", f"{_UNIT}ramdisk-ssh-keys.service": "ssh.service",
    "/usr/lib/systemd/system/systemd-networkd.service": "multi-user.target",
    "/usr/lib/systemd/system/systemd-resolved.service": "multi-user.target",
    "/usr/lib/systemd/system/systemd-timesyncd.service": "sysinit.target",
}
#: Units that packages enable, and that would work on disks or listen, before the agent is asked to.
_MASKED = ("ssh.service", "ssh.socket", "mdmonitor.service", "mdcheck_start.timer", "mdcheck_continue.timer",
           "smartmontools.service", "smartd.service", "apt-daily.timer", "apt-daily-upgrade.timer", "fstrim.timer",
           "e2scrub_all.timer", "e2scrub_reap.service", "dpkg-db-backup.timer", "systemd-networkd-wait-online.service")


class File(NamedTuple):
    """A file of the ramdisk. ``target`` is that of a symbolic link, whose content is empty."""

    content: bytes = b""
    mode: int = 0o644
    target: str | None = None


def requirements() -> str:
    """Return the requirements of the agent that the package has: all versions are fixed."""
    return (resources.files(__package__) / "agent-requirements.txt").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Recipe:
    """All that decides what a ramdisk contains.

    :ivar suite: one of ``SUITES``;  mirror, security_mirror: URLs of Debian's archive
    :ivar packages: of Debian, in addition to ``PACKAGES``;  has_firmware: whether ``FIRMWARE`` is added
    :ivar requirements: of pip, with the agent and all that it needs
    :ivar certificates, keys: certificates (PEM) that the agent trusts; SSH keys that may log in as root
    """

    suite: str = "trixie"
    mirror: str = MIRROR
    security_mirror: str = SECURITY_MIRROR
    packages: tuple[str, ...] = ()
    has_firmware: bool = False
    requirements: str = field(default_factory=requirements)
    certificates: str = ""
    keys: str = ""
    epoch: int = EPOCH

    def __post_init__(self) -> None:
        """:raises ConfigurationError: a value is not one that the ramdisk can be built with"""
        if self.suite not in SUITES:
            raise ConfigurationError(f"--suite: {self.suite} is not one of {', '.join(SUITES)}.")
        for option, url in (("--mirror", self.mirror), ("--security-mirror", self.security_mirror)):
            if not _URL.fullmatch(url):
                raise ConfigurationError(f"{option}: {url} is not a URL of an archive.")
        for name in self.packages:
            if not _PACKAGE.fullmatch(name):
                raise ConfigurationError(f"--package: {name} is not the name of a package.")
        if self.certificates and "-----BEGIN CERTIFICATE-----" not in self.certificates:
            raise ConfigurationError("--ca-file: it has no certificate in PEM format.")
        if self.keys and not re.search(r"(?m)^[^#\n]*\b(?:ssh|ecdsa|sk)-\S+ AAAA", self.keys):
            raise ConfigurationError("--authorized-keys: it has no key of SSH.")
        if not any(line.strip() and not line.lstrip().startswith("#") for line in self.requirements.splitlines()):
            raise ConfigurationError("--agent-requirements: it names no package.")

    @property
    def python(self) -> str:
        """Version of its Python, such as ``3.13``."""
        return SUITES[self.suite]

    def all_packages(self) -> list[str]:
        """Return the names of all packages of Debian that are requested, sorted."""
        requested = {name for names in PACKAGES.values() for name in names} | set(self.packages)
        return sorted(requested | set(FIRMWARE if self.has_firmware else ()))

    def sources(self) -> list[str]:
        """Return the lines of apt's ``sources.list``."""
        components = f"main {FIRMWARE_COMPONENT}" if self.has_firmware else "main"
        check = "[check-valid-until=no] " if self.mirror.startswith(_SNAPSHOT) else ""
        return [f"deb {check}{self.mirror} {self.suite} {components}",
                f"deb {check}{self.mirror} {self.suite}-updates {components}",
                f"deb {check}{self.security_mirror} {self.suite}-security {components}"]

    def files(self) -> dict[str, File]:
        """Return the ramdisk's own files and links, by their paths."""
        files = {path: File(content, 0o755 if path.startswith(_EXECUTABLE) else 0o644)
                 for path, content in _files_below(resources.files(__package__) / "root")}
        for unit, wanted_by in _ENABLED.items():
            files[f"{_UNIT}{wanted_by}.wants/{unit.rpartition('/')[2]}"] = File(target=unit)
        masked = [name for name in _MASKED if not (self.keys and name == "ssh.service")]
        # The rescue starts the SSH server; nothing else does if no one may log in.
        files |= {f"{_UNIT}{name}": File(target="/dev/null") for name in masked if name != "ssh.service"}
        if self.keys:
            files["/root/.ssh/authorized_keys"] = File(self.keys.encode(), 0o600)
            files[f"{_UNIT}multi-user.target.wants/ssh.service"] = File(target="/usr/lib/systemd/system/ssh.service")
        if self.certificates:
            files["/usr/local/share/ca-certificates/operator.crt"] = File(self.certificates.encode())
        return files | {
            "/init": File(target="/usr/lib/systemd/systemd"),
            "/etc/hostname": File(b"ramdisk\n"), "/etc/hosts": File(b"127.0.0.1 localhost ramdisk\n::1 localhost\n"),
            "/etc/machine-id": File(), "/etc/resolv.conf": File(target="/run/systemd/resolve/stub-resolv.conf"),
            # systemd takes the time of this file for the earliest one that the clock can have.
            "/usr/lib/clock-epoch": File(),
        }

    def digest(self) -> str:
        """Return a name for it: equal recipes have equal ones."""
        parts = [ARCHITECTURE, *self.sources(), *self.all_packages(), *EXCLUDED, *INCLUDED, self.requirements,
                 str(self.epoch), *(repr(item) for item in sorted(self.files().items())), *_modules()]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def snapshot(stamp: str) -> tuple[str, str]:
    """Return the mirrors of a snapshot of Debian's archive, and of that of its security updates.

    :param stamp: its time, such as ``20261101T000000Z``
    :raises ConfigurationError: it is not one
    """
    if not _STAMP.fullmatch(stamp):
        raise ConfigurationError(f"--snapshot: {stamp} is not a time such as 20261101T000000Z.")
    return f"{_SNAPSHOT}/debian/{stamp}", f"{_SNAPSHOT}/debian-security/{stamp}"


def _modules() -> Iterator[str]:
    """Yield the code that makes the files: with other code, they are others."""
    for package in (__package__, boot_parameters.__package__):
        for entry in sorted(resources.files(package).iterdir(), key=lambda entry: entry.name):
            if entry.name.endswith(".py") and (package == __package__ or entry.name == "boot_parameters.py"):
                yield entry.read_text(encoding="utf-8")


def _files_below(folder: Traversable, path: str = "") -> Iterator[tuple[str, bytes]]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            yield from _files_below(entry, f"{path}/{entry.name}")
        else:
            yield f"{path}/{entry.name}", entry.read_bytes()
