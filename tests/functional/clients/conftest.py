"""A running service for each module of tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.functional.installations import served


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let openstacksdk read a state, and repeat a refused request, more often than each few seconds."""
    for module, name, value in (("openstack.utils", "iterate_timeout.__defaults__", (0.1,)),
                                ("keystoneauth1.session", "_EXPONENTIAL_DELAY_START", 0.01)):
        monkeypatch.setattr(f"{module}.{name}", value)


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of the whole service as commands. Its pages are so short that clients have to follow links."""
    with served(tmp_path_factory.mktemp("service"), "[api]\nmax_limit = 2\n") as url:
        yield url
