from __future__ import annotations

import subprocess

import pytest

from ironic_rules.hardware.boot import media
from tests.functional.hardware.bmcs import floppy_file
from tests.walking import walking

NAME, LABEL = "parameters.txt", "ir-vfd-dev"


@walking("size", [1, 511, 512, 513, 1024, 5000, 300_000])
def test_the_file_is_there(size):
    content = bytes(number * 7 % 251 for number in range(size))

    image = media.floppy_image(LABEL, NAME, content)

    assert len(image) == 1_474_560
    assert floppy_file(image, NAME) == content


def test_the_label_is_what_the_ramdisk_looks_for(tmp_path):
    """util-linux reads it, as ironic-python-agent does."""
    (tmp_path / "image").write_bytes(media.floppy_image(LABEL, NAME, b"a=b\n"))

    told = subprocess.run(["blkid", "-p", "-o", "export", str(tmp_path / "image")], check=True, capture_output=True,
                          text=True).stdout.splitlines()

    assert {"LABEL=ir-vfd-dev", "TYPE=vfat", "VERSION=FAT12"} <= set(told)


@walking("label, name, content", [
    ("twelve-chars", NAME, b"x"), (LABEL, "n" * 27, b"x"), (LABEL, NAME, b""), (LABEL, NAME, b"x" * 1_457_665),
])
def test_what_does_not_fit_is_refused(label, name, content):
    with pytest.raises(ValueError, match="too long"):
        media.floppy_image(label, name, content)


def test_as_much_as_a_disk_holds_fits():
    content = b"x" * 1_457_664

    assert floppy_file(media.floppy_image(LABEL, NAME, content), NAME) == content
