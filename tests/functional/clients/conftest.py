"""A running service for each module of tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.functional.processes import standalone


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of the whole service in one process. Its pages are so short that clients have to follow links."""
    with standalone(tmp_path_factory.mktemp("service"), config="[api]\nmax_limit = 2\n") as (_, url):
        yield url
