from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ironic_rules.pxe_filter import writer
from tests.functional.pxe_filter import site as sites
from tests.functional.pxe_filter.site import Site


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with sites.site(tmp_path) as made:
        yield made


@pytest.fixture
def no_dnsmasq(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let filters not wait for a dnsmasq: a test that reads files counts as one, which then reads none for a second."""
    monkeypatch.setattr(writer, "_PATIENCE_S", 0.0)
