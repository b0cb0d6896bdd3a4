"""ISO images of a kernel and a ramdisk. Whether firmware boots them is seen in the lab."""

from __future__ import annotations

import io
import re
import subprocess

import pycdlib
import pytest

from ironic_rules.exceptions import ConfigurationError
from ironic_rules.models import boot_parameters
from ironic_rules.ramdisk import iso
from ironic_rules.ramdisk.recipe import EPOCH
from tests.unit.ramdisk.images import image, kernel, needs_programs
from tests.walking import walking


def content(disc: pycdlib.PyCdlib, path: str) -> bytes:
    out = io.BytesIO()
    disc.get_file_from_iso_fp(out, rr_path=path)
    return out.getvalue()


@needs_programs
def test_an_image_has_what_firmware_and_grub_look_for_and_is_the_same_again(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    made = image(tmp_path / "one", "console=ttyS0")

    disc = pycdlib.PyCdlib()
    disc.open(str(made))
    assert content(disc, "/boot/vmlinuz") == kernel()
    assert content(disc, "/boot/initrd") == b"ramdisk" * 1000
    file = content(disc, f"/{boot_parameters.PATH}")
    assert boot_parameters.read(file) == ("x86_64", "console=ttyS0")
    assert f"source ($root)/{boot_parameters.PATH}" in content(disc, "/boot/grub/grub.cfg").decode()
    assert "vmlinuz $of_image $of_node\n" in content(disc, "/boot/grub/grub.cfg").decode()
    (mark,) = re.findall(r"/boot/(ironic-rules-\w+)", content(disc, "/EFI/debian/grub.cfg").decode())
    assert content(disc, f"/boot/{mark}") == b""
    disc.close()
    raw = made.read_bytes()
    # El Torito: entries of a platform of a PC (0) and of UEFI (0xef); as a disk: a partition of the type 0xef.
    command = ["xorriso", "-indev", str(made), "-report_el_torito", "plain", "-report_system_area", "plain"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert [line.split()[6] for line in told.splitlines() if re.match(r"El Torito boot img : +\d ", line)] == [
        "BIOS", "UEFI"]
    (start, sectors) = re.search(r"MBR partition +: +2 +0x\w+ +0xef +(\d+) +(\d+)", told).groups()
    partition = tmp_path / "efi.img"
    partition.write_bytes(raw[int(start) * 512:(int(start) + int(sectors)) * 512])
    for name, source in (("EFI/BOOT/BOOTX64.EFI", iso.SHIM), ("EFI/BOOT/grubx64.efi", iso.GRUB)):
        found = subprocess.run(["mtype", "-i", str(partition), f"::/{name}"], capture_output=True, check=True)
        assert (name, found.stdout == source.read_bytes()) == (name, True)
    assert raw[510:512] == b"\x55\xaa"
    is_same = image(tmp_path / "two", "console=ttyS0").read_bytes() == raw
    assert is_same


@walking("head, text", [
    (b"#!/bin/sh\n", "it is not a Linux kernel"), (b"", "it is not a Linux kernel"),
    (b"\x1f\x8b\x08" + bytes(1000), "it is compressed as a whole"),
    (b"MZ" + bytes(54) + b"ARMd" + bytes(900), "it is a kernel for 64-bit ARM machines"),
    (kernel()[:0x236] + bytes(500), "it is a kernel for 32-bit x86 machines"),
])
def test_a_kernel_that_an_image_cannot_boot_is_refused(head, text, tmp_path):
    (tmp_path / "vmlinuz").write_bytes(head)

    with pytest.raises(ConfigurationError, match=text):
        iso.make_iso(tmp_path / "vmlinuz", tmp_path / "initrd", tmp_path / "out.iso", tmp_path, EPOCH)

    assert not (tmp_path / "out.iso").exists()


@walking("parameters, text", [("a" * 2048, "2049 characters, and the kernel reads 2047"), ("a='b'", "not allowed"),
                              ("a\nb", "not allowed"), ("a$b", "not allowed"), ("ü", "not allowed")])
def test_parameters_that_an_image_cannot_pass_are_refused(parameters, text, tmp_path):
    with pytest.raises(ConfigurationError, match=text):
        iso.make_iso(tmp_path / "vmlinuz", tmp_path / "initrd", tmp_path / "out.iso", tmp_path, EPOCH, parameters)
