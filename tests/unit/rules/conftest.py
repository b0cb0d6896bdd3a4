"""What tests of rules get: the web of their world, asked nothing yet."""

from __future__ import annotations

import pytest

from tests.unit.rules import world


@pytest.fixture
def web() -> world.Web:
    world.WEB.asked.clear()
    return world.WEB
