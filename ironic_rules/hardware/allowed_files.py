"""Files of the conductor's machine that users name, below folders that the operator allows."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path


def find(path: str | Path, folders: Iterable[str]) -> Path | None:
    """Return the file or folder at ``path``, without links.

    None whenever it cannot be used: what leads out of ``folders``, what does not exist and what the conductor may not
    read are the same, so that users do not find out which files exist.
    """
    try:
        found = Path(path).resolve(strict=True)
        is_allowed = any(found.is_relative_to(Path(folder).resolve()) for folder in folders)
    # A NUL character, and links in a circle.
    except (OSError, ValueError, RuntimeError):
        return None
    return found if is_allowed and os.access(found, os.R_OK) else None
