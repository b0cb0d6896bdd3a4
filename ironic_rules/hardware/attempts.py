"""Operations at the end of work on a machine, which are all tried, whichever of them fail."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from ironic_rules.exceptions import IronicRulesError


@contextlib.contextmanager
def noting(what: str, failures: list[str]) -> Iterator[None]:
    """Add an error to ``failures`` instead of raising it, so that the next operations are still done."""
    try:
        yield
    except IronicRulesError as exc:
        failures.append(f"{what}: {exc}")
