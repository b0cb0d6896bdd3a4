"""The images, built once for all tests of containers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.containers import engine as engines
from tests.containers.engine import Engine


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    with engines.prepared() as made:
        yield made


@pytest.fixture(scope="session")
def base(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> str:
    return "" if engines.BUILT else engines.build_base(engine, tmp_path_factory.mktemp("base"))


@pytest.fixture(scope="session")
def image(engine: Engine, base: str) -> str:
    """The image of the service."""
    if not engines.BUILT:
        engine.build("Containerfile", engines.IMAGE, base, "--build-arg", "VERSION=1.2.3")
    return engines.IMAGE


@pytest.fixture(scope="session")
def servers(engine: Engine, base: str) -> str:
    """The image with Debian's servers."""
    if not engines.BUILT:
        engine.build("Containerfile.servers", engines.SERVERS, base)
    return engines.SERVERS
