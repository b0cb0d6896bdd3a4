"""A 1.44 MB floppy image with a FAT12 file system, for a BMC's virtual floppy disk or USB stick. No side effects.

https://www.ecma-international.org/publications-and-standards/standards/ecma-107/ defines the format; long names are
Microsoft's extension of it.
"""

from __future__ import annotations

import struct

SECTOR = 512
SECTORS = 2880
_FAT_SECTORS = 9
_ROOT_ENTRIES = 224
_ROOT_SECTORS = _ROOT_ENTRIES * 32 // SECTOR
_DATA_START = 1 + 2 * _FAT_SECTORS + _ROOT_SECTORS
_MAX_CONTENT = (SECTORS - _DATA_START) * SECTOR
_LAST = 0xFFF


def image(label: str, name: str, content: bytes) -> bytes:
    """Return an image with one file.

    :param label: at most 11 ASCII characters
    :param name: of the file, at most 26 ASCII characters
    :raises ValueError: an argument is too long
    """
    volume = label.encode("ascii")
    if len(volume) > 11 or len(name.encode("ascii")) > 26 or not 0 < len(content) <= _MAX_CONTENT:
        raise ValueError("the label, the name or the content is too long for a floppy image")
    volume = volume.ljust(11)
    clusters = -(-len(content) // SECTOR)
    chain = [0xFF0, _LAST, *range(3, clusters + 2), _LAST]
    fat = _packed(chain).ljust(_FAT_SECTORS * SECTOR, b"\0")
    short = _short_name(name)
    root = struct.pack("<11sB20x", volume, 0x08)
    root += b"".join(_long_entries(name, short))
    root += struct.pack("<11sB14xHI", short, 0x20, 2, len(content))
    parts = _boot_sector(volume) + fat + fat + root.ljust(_ROOT_SECTORS * SECTOR, b"\0") + content
    return parts.ljust(SECTORS * SECTOR, b"\0")


def _boot_sector(volume: bytes) -> bytes:
    head = struct.pack(
        "<3s8sHBHBHHBHHHIIBBBI11s8s", b"\xeb\x3c\x90", b"MSWIN4.1", SECTOR, 1, 1, 2, _ROOT_ENTRIES, SECTORS, 0xF0,
        _FAT_SECTORS, 18, 2, 0, 0, 0, 0, 0x29, 0x1F0D15C5, volume, b"FAT12   ")
    return head.ljust(SECTOR - 2, b"\0") + b"\x55\xaa"


def _packed(entries: list[int]) -> bytes:
    """Return 12-bit numbers, two in three bytes."""
    padded = [*entries, 0] if len(entries) % 2 else entries
    return b"".join(
        (low | high << 12).to_bytes(3, "little") for low, high in zip(padded[::2], padded[1::2], strict=True))


def _short_name(name: str) -> bytes:
    stem, _, extension = name.upper().rpartition(".")
    return f"{stem[:6]}~1".ljust(8).encode("ascii") + extension[:3].ljust(3).encode("ascii")


def _long_entries(name: str, short: bytes) -> list[bytes]:
    """Return the directory entries of the long name: 13 characters each, the last ones first."""
    checksum = 0
    for byte in short:
        checksum = ((checksum & 1) << 7 | checksum >> 1) + byte & 0xFF
    units = name.encode("utf-16-le")
    if len(units) % 26:
        units = (units + b"\0\0").ljust(-(-len(units) // 26) * 26, b"\xff")
    pieces = [units[start:start + 26] for start in range(0, len(units), 26)]
    return [
        struct.pack("<B10sBBB12sH4s", number | (0x40 if number == len(pieces) else 0), piece[:10], 0x0F, 0, checksum,
                    piece[10:22], 0, piece[22:])
        for number, piece in reversed(list(enumerate(pieces, 1)))
    ]
