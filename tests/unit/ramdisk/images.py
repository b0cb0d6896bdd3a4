"""Small files that are taken for a kernel and a ramdisk, and images of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ironic_rules.ramdisk import iso
from ironic_rules.ramdisk.recipe import EPOCH

needs_programs = pytest.mark.skipif(
    any(not program.is_there for program in iso.PROGRAMS),
    reason="needs " + ", ".join(sorted({program.package for program in iso.PROGRAMS if not program.is_there})))


def kernel() -> bytes:
    """Return the header of a kernel for x86-64, and some bytes."""
    head = bytearray(4096)
    head[0x1fe:0x200] = b"\x55\xaa"
    head[0x202:0x208] = b"HdrS\x0f\x02"
    head[0x236] = 1
    return bytes(head)


def image(folder: Path, parameters: str = iso.CONSOLE) -> Path:
    """Write an image into a folder, and return its path."""
    (folder / "vmlinuz").write_bytes(kernel())
    (folder / "initrd").write_bytes(b"ramdisk" * 1000)
    work = folder / "work"
    work.mkdir()
    iso.make_iso(folder / "vmlinuz", folder / "initrd", folder / "ipa.iso", work, EPOCH, parameters)
    return folder / "ipa.iso"
