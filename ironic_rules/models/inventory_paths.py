"""Which paths inventories have: a bounded catalogue, by which a misspelt path in a rule is noticed.

A path is the keys from the top of an inventory to a value, ``/interfaces/*/name``. ``*`` is any index of a list, and
any key that is data rather than a name, such as a MAC address. ``/extra/**`` says that nothing is known of what is
below ``/extra``: the senders of inventories choose their keys, and neither many of them nor many levels may fill the
catalogue. The elements of a long list are taken to be like the first ones.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ironic_rules import samples
from ironic_rules.models.json_values import JSON
from ironic_rules.text import is_uuid, nearest

Steps = tuple[str, ...]

ANY = "*"
OPEN = "**"
#: Maximum number of paths that inventories add; more than that, and nothing is known of any inventory.
MAX_PATHS = 2000
#: Maximum number of paths that one inventory adds.
MAX_NEW = 100
#: Maximum number of keys of one object, and of levels.
MAX_KEYS = 64
MAX_LEVELS = 8
#: Maximum number of characters of a path.
MAX_LENGTH = 255
#: Maximum number of elements of a list, and of values of one inventory, that are looked at.
MAX_ITEMS = 256
MAX_VALUES = 20_000

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_MAC = re.compile(r"[0-9A-Fa-f]{2}(-[0-9A-Fa-f]{2})+")
_CONTAINERS = frozenset({dict, list})


class _Level(dict[str, "_Level"]):
    """The steps that are known at one place, each with those below it."""

    __slots__ = ()


class Catalogue:
    """Known paths. Immutable, shared by threads.

    :param paths: as ``/interfaces/*/name``
    """

    __slots__ = ("_top",)

    def __init__(self, paths: Iterable[str] = ()) -> None:
        self._top = _Level()
        for path in paths:
            level = self._top
            for step in filter(None, path.split("/")):
                level = level.setdefault(step, _Level())

    @property
    def is_full(self) -> bool:
        """Whether nothing is known, because there were too many paths."""
        return OPEN in self._top

    def unknown_step(self, steps: Steps) -> int | None:
        """Return the number of the first step by which a path leaves the catalogue; None if it is, or may be, known."""
        level = self._top
        for number, step in enumerate(steps):
            if OPEN in level:
                return None
            below = level.get(step)
            if below is None:
                below = level.get(_generic(step))
            if below is None:
                return number
            level = below
        return None

    def nearest(self, steps: Steps) -> Steps | None:
        """Return the known path that is probably meant by an unknown one; None if none is similar."""
        number = self.unknown_step(steps)
        if number is None:
            return None
        level = self._top
        for step in steps[:number]:
            level = level[step if step in level else _generic(step)]
        sibling = nearest(steps[number], (name for name in level if name != ANY))
        if sibling is not None:
            meant = (*steps[:number], sibling, *steps[number + 1:])
            left = self.unknown_step(meant)
            return meant if left is None else meant[:max(left, number + 1)]
        # A name that exists at another place: close by, or only there.
        found = [path for path in _below(self._top, ()) if path[-1] == steps[-1] != ANY and path != steps[:len(path)]]
        if len(found) > 1:
            found = [path for path in found if path[0] == steps[0]]
        return min(found, key=lambda path: (-_common(path, steps), len(path), path), default=None)

    def has_all(self, inventory: Mapping[str, JSON]) -> bool:
        """Return whether every path of an inventory is known; false as well if it has too many values to look at."""
        return _Look().is_known(inventory, self._top)

    def new(self, inventory: Mapping[str, JSON]) -> list[str]:
        """Return the paths to add for an inventory, sorted, at most ``MAX_NEW``: too many are summarised by ``**``."""
        seen = _Level()
        _Look().collect(inventory, seen, 0)
        found = {path if len(path) <= MAX_LENGTH else _summary(path, path.count("/", 0, MAX_LENGTH - 4) - 1)
                 for path in _differences(seen, self._top, "")}
        for levels in range(MAX_LEVELS, 0, -1):
            if len(found) <= MAX_NEW:
                break
            found = {_summary(path, levels) for path in found}
        return sorted(found)


@functools.cache
def shipped_paths() -> tuple[str, ...]:
    """Return the paths of what ironic-python-agent and the inspect interfaces of this package send."""
    return tuple(samples.inventory_paths())


@functools.cache
def shipped() -> Catalogue:
    """Return the catalogue of ``shipped_paths``."""
    return Catalogue(shipped_paths())


class _Look:
    """One look at the values of an inventory, at most ``MAX_VALUES`` of them."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = MAX_VALUES

    def is_known(self, value: Any, level: _Level) -> bool:
        if OPEN in level:
            return True
        if value.__class__ is list:
            value = value[:MAX_ITEMS]
            self._left -= len(value)
            if self._left < 0 or (value and ANY not in level):
                return False
            return all(self.is_known(item, level[ANY]) for item in value if item.__class__ in _CONTAINERS)
        self._left -= len(value)
        if self._left < 0:
            return False
        for key, item in value.items():
            below = level.get(key)
            if below is None:
                below = level.get(_generic(key))
                if below is None:
                    return False
            if item.__class__ in _CONTAINERS and not self.is_known(item, below):
                return False
        return True

    def collect(self, value: Any, level: _Level, depth: int) -> None:
        """Add the steps of ``value`` and of what is below it to ``level``."""
        if OPEN in level:
            return
        items = value.items() if value.__class__ is dict else [(ANY, item) for item in value[:MAX_ITEMS]]
        self._left -= len(items)
        if self._left < 0 or depth == MAX_LEVELS:
            _open(level)
            return
        for key, item in items:
            below = level.setdefault(_generic(key), _Level())
            if len(level) > MAX_KEYS:
                _open(level)
                return
            if item.__class__ in _CONTAINERS:
                self.collect(item, below, depth + 1)


def _is_name(key: str) -> bool:
    """Return whether a key is a name rather than data: a MAC address, a UUID, an interface's name, a number."""
    if _NAME.fullmatch(key) is None or _MAC.fullmatch(key) is not None or is_uuid(key):
        return False
    return key.isalpha() or "_" in key or not any(map(str.isdigit, key))


def _generic(step: str) -> str:
    return step if _is_name(step) else ANY


def _open(level: _Level) -> None:
    level.clear()
    level[OPEN] = _Level()


def _differences(seen: _Level, known: _Level, path: str) -> Iterator[str]:
    if OPEN in known:
        return
    if len(seen.keys() | known.keys()) > MAX_KEYS:
        yield f"{path}/{OPEN}"
        return
    for step, below in seen.items():
        if step not in known and not below:
            yield f"{path}/{step}"
        else:
            yield from _differences(below, known.get(step, _NONE), f"{path}/{step}")


_NONE = _Level()


def _summary(path: str, levels: int) -> str:
    """Return a path of more levels as ``**`` below the first ones."""
    steps = path.split("/")
    return path if len(steps) <= levels + 1 else "/".join((*steps[:levels + 1], OPEN))


def _below(level: _Level, path: Steps) -> Iterator[Steps]:
    for step, below in level.items():
        yield (*path, step)
        yield from _below(below, (*path, step))


def _common(one: Steps, other: Steps) -> int:
    return next((number for number, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
                min(len(one), len(other)))
