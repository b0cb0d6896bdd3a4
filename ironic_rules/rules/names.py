"""The nearest valid name, for "did you mean"."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the most similar of the known names; None if none is similar."""
    if len(name) > 64:
        return None
    folded = {item.lower().replace("_", "-"): item for item in known}
    found = difflib.get_close_matches(name.lower().replace("_", "-"), list(folded), n=1)
    return folded[found[0]] if found else None
