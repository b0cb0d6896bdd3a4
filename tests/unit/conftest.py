"""Fixtures of every unit test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import certifi
import pytest


@pytest.fixture(scope="session", autouse=True)
def _one_authority(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Trust one authority instead of all: every HTTP client reads them, which takes longer than most of the tests."""
    certificate, end, _ = Path(certifi.where()).read_text(encoding="utf-8").partition("-----END CERTIFICATE-----\n")
    file = tmp_path_factory.mktemp("authorities") / "one.pem"
    file.write_text(certificate + end, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(file))
        yield
