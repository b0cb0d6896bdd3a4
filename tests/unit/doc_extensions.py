"""The Sphinx extensions of the documentation, for tests."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "doc" / "ext"


def extension(name: str) -> Any:
    """Return a module of ``doc/ext``, which finds its neighbours there as it does under Sphinx."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))
        return importlib.import_module(name)
