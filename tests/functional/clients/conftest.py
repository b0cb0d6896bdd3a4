"""A running service for each module of tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.functional.installations import served


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of the whole service as commands. Its pages are so short that clients have to follow links."""
    with served(tmp_path_factory.mktemp("service"), "[api]\nmax_limit = 2\n") as url:
        yield url
