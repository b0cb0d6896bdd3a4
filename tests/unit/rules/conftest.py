"""Fixtures of tests of rules: the web of their world, without requests so far."""

from __future__ import annotations

import pytest

from tests.unit.rules import world


@pytest.fixture
def web() -> world.Web:
    world.WEB.asked.clear()
    return world.WEB
