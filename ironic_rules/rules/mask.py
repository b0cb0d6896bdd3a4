"""What rules read: the roots of templates, made when first asked for, with or without their secrets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ironic_rules.models import secrets

MODES = ("always", "never", "sensitive")


class View(dict[str, Any]):
    """Roots by name; reading a key makes it. ``item`` is set by loops.

    :param sources: a function per root that gives its current plain data
    :param masked: whether secrets read as ``******``
    """

    __slots__ = ("_masked", "_sources")

    def __init__(self, sources: Mapping[str, Callable[[], Any]], masked: bool) -> None:
        super().__init__()
        self._sources = sources
        self._masked = masked

    def __missing__(self, root: str) -> Any:
        value = self._sources[root]()
        if self._masked:
            value = secrets.mask(value)
        self[root] = value
        return value


class Views:
    """The two views of one inspection, and which of them a rule gets.

    :param mode: ``[inspection_rules]mask_secrets``: always, never, or sensitive (only sensitive rules see secrets)
    """

    __slots__ = ("_masked", "_mode", "_open")

    def __init__(self, sources: Mapping[str, Callable[[], Any]], mode: str) -> None:
        self._masked = View(sources, masked=True)
        self._open = View(sources, masked=False)
        self._mode = mode

    def of(self, sensitive: bool) -> View:
        """Return the view for a rule."""
        if self._mode == "never" or (self._mode == "sensitive" and sensitive):
            return self._open
        return self._masked

    def forget(self, roots: Iterable[str]) -> None:
        """Make these roots anew when they are read next: an action changed what they come from."""
        for root in roots:
            self._masked.pop(root, None)
            self._open.pop(root, None)
