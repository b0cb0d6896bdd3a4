"""One service, one web server and one emulator with machines; every test uses its own machines."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.functional.hardware import bmcs
from tests.functional.hardware.services import Service, service
from tests.functional.processes import free_port

MACHINES = 60


@pytest.fixture(scope="package")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("hardware")
    (folder / "web").mkdir()
    for name in ("ipa.iso", "ipa.kernel", "ipa.initramfs", "live.iso", "system.raw"):
        (folder / "web" / name).write_bytes(name.encode() * 100)
    return folder


@pytest.fixture(scope="package")
def web(folder) -> Iterator[str]:
    with bmcs.web_server(folder / "web") as url:
        yield url


@pytest.fixture(scope="package")
def bmc(folder) -> Iterator[bmcs.Emulator]:
    with bmcs.emulator(folder, MACHINES) as emulator:
        yield emulator


@pytest.fixture(scope="package")
def ironic(folder, web) -> Iterator[Service]:
    with service(folder, web, free_port()) as running:
        yield running


_numbers = itertools.count(1)


@pytest.fixture
def machine() -> int:
    """A machine of the emulator that no other test uses."""
    number = next(_numbers)
    assert number <= MACHINES
    return number
