"""The data that rules read: the roots of templates, created on first access, with or without their secrets.

Roots are not masked as a whole. A template's getter knows its keys and masks a secret one itself; only a dict, list or
URL at the end of its path is copied without secrets, and the copy is cached until its root changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ironic_rules.models import secrets

MODES = ("always", "never", "sensitive")


class View(dict[str, Any]):
    """Roots by name, unmasked; reading a key creates it. ``item`` is set by loops, ``match`` by conditions.

    :param sources: a function per root that returns its current plain data
    :param masked: whether secrets are read as ``******``; for getters, see ``getters.path_getter``
    :param made: the set to which the names of created roots are added
    """

    __slots__ = ("_made", "_shown", "_sources", "masked", "stable", "volatile")

    def __init__(self, sources: Mapping[str, Callable[[], Any]], masked: bool, made: set[str]) -> None:
        super().__init__()
        self.masked = masked
        self._sources = sources
        self._made = made
        self._shown: dict[str, dict[str, Any]] = {}
        #: the outcomes of checks, of which rules can change only the volatile ones
        self.stable: dict[Any, bool] = {}
        self.volatile: dict[Any, bool] = {}

    def __missing__(self, root: str) -> Any:
        value = self[root] = self._sources[root]()
        self._made.add(root)
        return value

    def shown(self, root: str, path: str, value: Any) -> Any:
        """Return a dict, list or URL as rules may see it.

        :param path: where ``value`` was found below ``root``
        """
        if not self.masked:
            return value
        known = self._shown.setdefault(root, {})
        if path not in known:
            known[path] = secrets.mask(value)
        return known[path]

    def forget(self, root: str) -> None:
        """Create ``root`` again when it is read next."""
        self.pop(root, None)
        self._shown.pop(root, None)
        self.volatile.clear()


#: A function that returns a value of the data.
Getter = Callable[[View], Any]


class Views:
    """The two views of one inspection, and the choice of the view for a rule.

    :param mode: ``[inspection_rules]mask_secrets``: always, never, or sensitive (only sensitive rules see secrets)
    """

    __slots__ = ("_masked", "_mode", "_open", "made", "written")

    def __init__(self, sources: Mapping[str, Callable[[], Any]], mode: str) -> None:
        #: roots that were read since their last change
        self.made: set[str] = set()
        #: the size of what actions have written so far, in characters
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
        """Create these roots again when they are read next: an action has changed their data."""
        for root in roots:
            self._masked.forget(root)
            self._open.forget(root)
            self.made.discard(root)
