"""What rules read: the roots of templates, made when first asked for, with or without their secrets.

Nothing is masked as a whole. A template's getter knows its keys and hides a secret one itself; only a dict or list
that it ends at is copied without secrets, once until its root changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ironic_rules.models import secrets

MODES = ("always", "never", "sensitive")


class View(dict[str, Any]):
    """Roots by name, as they are; reading a key makes it. ``item`` is set by loops.

    :param sources: a function per root that gives its current plain data
    :param masked: whether secrets read as ``******``: for getters, see ``values.path_getter``
    :param made: where the roots that were made are noted
    """

    __slots__ = ("_made", "_shown", "_sources", "masked")

    def __init__(self, sources: Mapping[str, Callable[[], Any]], masked: bool, made: set[str]) -> None:
        super().__init__()
        self.masked = masked
        self._sources = sources
        self._made = made
        self._shown: dict[str, dict[str, Any]] = {}

    def __missing__(self, root: str) -> Any:
        value = self[root] = self._sources[root]()
        self._made.add(root)
        return value

    def shown(self, root: str, path: str, value: Any) -> Any:
        """Return a dict or list as rules may see it.

        :param path: where ``value`` was found below ``root``
        """
        if not self.masked:
            return value
        known = self._shown.setdefault(root, {})
        if path not in known:
            known[path] = secrets.mask(value)
        return known[path]

    def forget(self, root: str) -> None:
        """Make ``root`` anew when it is read next."""
        self.pop(root, None)
        self._shown.pop(root, None)


class Views:
    """The two views of one inspection, and which of them a rule gets.

    :param mode: ``[inspection_rules]mask_secrets``: always, never, or sensitive (only sensitive rules see secrets)
    """

    __slots__ = ("_masked", "_mode", "_open", "made", "written")

    def __init__(self, sources: Mapping[str, Callable[[], Any]], mode: str) -> None:
        #: roots that were read since they changed
        self.made: set[str] = set()
        #: how much actions were given to write until now, in characters
        self.written = 0
        self._masked = View(sources, True, self.made)
        self._open = View(sources, False, self.made)
        self._mode = mode

    def of(self, sensitive: bool) -> View:
        """Return the view for a rule."""
        if self._mode == "never" or (self._mode == "sensitive" and sensitive):
            return self._open
        return self._masked

    def forget(self, roots: Iterable[str]) -> None:
        """Make these roots anew when they are read next: an action changed what they come from."""
        for root in roots:
            self._masked.forget(root)
            self._open.forget(root)
            self.made.discard(root)
