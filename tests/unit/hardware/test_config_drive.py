"""Checks of config drives: the image is unpacked to be counted, and nothing of it is kept."""

from __future__ import annotations

import base64
import gzip
import random
import threading
import tracemalloc

import pytest

from ironic_rules.exceptions import InvalidParameterValue, too_many_config_drives
from ironic_rules.hardware.agent import config_drive
from tests.walking import walking
from tests.wordings import refused


def packed(content: bytes) -> str:
    return base64.b64encode(gzip.compress(content, mtime=0)).decode()


#: 87 KB, of the largest size that is accepted.
LARGEST = packed(bytes(config_drive.MAX_BYTES))


def test_an_image_of_the_largest_size_takes_little_memory():
    tracemalloc.start()
    try:
        config_drive.check(LARGEST)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 2 * 2**20


@walking("size", [1, 65535, 65536, 65537, 300_001])
def test_an_image_that_does_not_compress(size):
    config_drive.check(packed(random.Random(1).randbytes(size)))


def test_base64_may_have_lines():
    config_drive.check(base64.encodebytes(gzip.compress(b"iso" * 1000)).decode())


@walking("value, why", [
    (packed(bytes(config_drive.MAX_BYTES + 1)), "is larger than 64 MiB"),
    (packed(random.Random(1).randbytes(200_000))[:-8000], "is empty or incomplete"),
    (packed(b""), "is empty or incomplete"), (base64.b64encode(b"iso").decode(), "is neither"),
    (base64.b64encode(gzip.compress(bytes(99), mtime=0)[:10] + b"\xff" * 9).decode(), "is neither"),
    ("\u00e9", "is neither"),
])
def test_what_is_no_image(value, why):
    with pytest.raises(InvalidParameterValue, match=f"/instance_info/configdrive: {why}"):
        config_drive.check(value)


def test_a_request_does_not_wait_for_others_for_ever(monkeypatch):
    monkeypatch.setattr(config_drive, "PATIENCE_S", 0.01)

    with config_drive._one, refused(too_many_config_drives) as caught:
        config_drive.check(LARGEST)

    assert caught.value.code == 503
    config_drive.check(LARGEST)


def test_one_is_unpacked_at_a_time(monkeypatch):
    at_once, most, guard = 0, 0, threading.Lock()
    check = config_drive._check

    def counted(value):
        nonlocal at_once, most
        with guard:
            at_once += 1
            most = max(most, at_once)
        check(value)
        with guard:
            at_once -= 1

    monkeypatch.setattr(config_drive, "_check", counted)
    threads = [threading.Thread(target=config_drive.check, args=(LARGEST,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert (at_once, most) == (0, 1)
