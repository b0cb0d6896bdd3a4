from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.functional.pxe_filter import site as sites
from tests.functional.pxe_filter.site import Site


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with sites.site(tmp_path) as made:
        yield made
