"""The recipe of the ramdisk: what is in it, what it is called, and what it refuses."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import ironic_python_agent
import pytest

from ironic_rules.exceptions import ConfigurationError
from ironic_rules.ramdisk import recipe
from ironic_rules.ramdisk.recipe import Recipe
from tests.walking import walking

CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n"
#: Programs that the agent starts -> the package that has them.
PROGRAMS = {
    "blkdiscard": "util-linux", "blkid": "util-linux", "blockdev": "util-linux", "cp": "coreutils", "dd": "coreutils",
    "df": "coreutils", "dmesg": "util-linux", "dmidecode": "dmidecode", "du": "coreutils", "efibootmgr": "efibootmgr",
    "file": "file", "findfs": "util-linux", "findmnt": "util-linux", "fuser": "psmisc", "hdparm": "hdparm",
    "hexdump": "bsdextrautils", "hwclock": "util-linux-extra", "ip": "iproute2", "ipmitool": "ipmitool",
    "journalctl": "systemd", "lsblk": "util-linux", "lscpu": "util-linux", "lshw": "lshw", "lspci": "pciutils",
    "mdadm": "mdadm", "mkdir": "coreutils", "modprobe": "kmod", "mount": "util-linux", "multipath": "multipath-tools",
    "multipathd": "multipath-tools", "ntpdate": "ntpsec-ntpdate", "nvme": "nvme-cli", "parted": "parted",
    "partprobe": "parted", "partx": "util-linux", "qemu-img": "qemu-utils", "readlink": "coreutils",
    "sgdisk": "gdisk", "shred": "coreutils", "smartctl": "smartmontools", "sync": "coreutils", "test": "coreutils",
    "udevadm": "udev", "umount": "util-linux", "wipefs": "util-linux",
}
#: Packages that every Debian has.
ESSENTIAL = {"coreutils", "util-linux", "systemd"}
#: Programs that it starts only if they are there, or for hardware whose vendor has them.
ABSENT = {"biosdevname", "chronyc", "chronyd", "getenforce", "hardware-detect", "iscsistart", "mstconfig", "mstflint",
          "mstfwreset"}


def test_every_program_of_the_agent_is_in_the_ramdisk():
    folder = Path(ironic_python_agent.__file__).parent
    sources = [path.read_text(encoding="utf-8") for path in folder.rglob("*.py") if "tests" not in path.parts]
    started = {name for source in sources for name in re.findall(r"execute\(\s*['\"]([a-z0-9_.-]+)['\"]", source)}

    assert len(started) > 30
    assert started - set(PROGRAMS) - ABSENT == set()
    assert set(PROGRAMS.values()) - set(Recipe().all_packages()) - ESSENTIAL == set()


def test_the_agent_is_there_with_fixed_versions_and_starts():
    lines = [line for line in Recipe().requirements.splitlines() if not line.startswith("#")]
    files = Recipe().files()

    assert [line for line in lines if not re.fullmatch(r"[a-z0-9.-]+==[0-9][a-z0-9.]*", line)] == []
    assert any(line.startswith("ironic-python-agent==") for line in lines)
    wanted = "/etc/systemd/system/multi-user.target.wants/ironic-python-agent.service"
    assert files[wanted].target == "/etc/systemd/system/ironic-python-agent.service"
    assert files["/init"].target == "/usr/lib/systemd/systemd"
    assert {path for path, file in files.items() if file.mode == 0o755} == {
        "/usr/local/bin/ironic-python-agent", "/usr/local/lib/ramdisk-rescue"}
    assert b"DHCP=yes" in files["/etc/systemd/network/80-ramdisk.network"].content


def test_only_equal_recipes_have_the_same_name():
    changes = [{}, {"suite": "bookworm"}, {"mirror": "http://mirror.example.org/debian"}, {"packages": ("mstflint",)},
               {"has_firmware": True}, {"requirements": "ironic-python-agent==12.0.0\n"}, {"certificates": CERTIFICATE},
               {"keys": "ssh-ed25519 AAAA me"}, {"epoch": 1}]

    assert len({Recipe(**change).digest() for change in changes}) == len(changes)
    assert Recipe(packages=("a1", "b1")).digest() == Recipe(packages=("b1", "a1", "kmod")).digest()
    assert all(change.keys() <= {field.name for field in dataclasses.fields(Recipe)} for change in changes)


def test_what_an_operator_adds_is_there():
    found = Recipe(keys="ssh-ed25519 AAAA me\n", certificates=CERTIFICATE, has_firmware=True)

    assert found.files()["/root/.ssh/authorized_keys"] == (b"ssh-ed25519 AAAA me\n", 0o600, None)
    assert found.files()["/usr/local/share/ca-certificates/operator.crt"].content == CERTIFICATE.encode()
    assert "/etc/systemd/system/multi-user.target.wants/ssh.service" in found.files().keys() - Recipe().files().keys()
    assert found.sources()[0] == f"deb {recipe.MIRROR} trixie main non-free-firmware"
    assert set(recipe.FIRMWARE) <= set(found.all_packages())


def test_a_snapshot_is_another_mirror_whose_age_is_no_problem():
    mirror, security = recipe.snapshot("20261101T000000Z")

    assert Recipe(mirror=mirror, security_mirror=security).sources() == [
        "deb [check-valid-until=no] http://snapshot.debian.org/archive/debian/20261101T000000Z trixie main",
        "deb [check-valid-until=no] http://snapshot.debian.org/archive/debian/20261101T000000Z trixie-updates main",
        "deb [check-valid-until=no] http://snapshot.debian.org/archive/debian-security/20261101T000000Z "
        "trixie-security main"]
    with pytest.raises(ConfigurationError, match="yesterday is not a time such as"):
        recipe.snapshot("yesterday")


@walking("change, text", [
    ({"suite": "sid"}, "sid is not one of trixie, bookworm"), ({"mirror": "debian.org"}, "--mirror: debian.org is not"),
    ({"security_mirror": "http://a b"}, "--security-mirror: http://a b is not"),
    ({"packages": ("a;b",)}, "--package: a;b is not"), ({"packages": ("-o",)}, "--package: -o is not"),
    ({"certificates": "x"}, "--ca-file: it has no certificate"),
    ({"keys": "password"}, "--authorized-keys: it has no key"), ({"requirements": "# \n"}, "--agent-requirements: "),
])
def test_what_cannot_be_built_is_refused(change, text):
    with pytest.raises(ConfigurationError, match=re.escape(text)):
        Recipe(**change)
