"""Trait names: standard ones from os-traits, or ``CUSTOM_`` ones (Placement's rules)."""

from __future__ import annotations

import functools
import re

MAX_LENGTH = 255
MAX_PER_NODE = 50
_CUSTOM = re.compile(r"CUSTOM_[A-Z0-9_]+")


@functools.cache
def _standard() -> frozenset[str]:
    import os_traits  # takes as long as several modules of this service, which can start without it

    return frozenset(os_traits.get_traits())


def is_trait(name: object) -> bool:
    """Return whether ``name`` is a standard trait or a custom one of at most 255 characters."""
    if not isinstance(name, str) or len(name) > MAX_LENGTH:
        return False
    return _CUSTOM.fullmatch(name) is not None or name in _standard()
