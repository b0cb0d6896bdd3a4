"""Plug-ins by entry point: the classes that a group provides under the names that the operator has enabled."""

from __future__ import annotations

import functools
import importlib.metadata
import sys
from collections.abc import Iterable, Sequence
from importlib.metadata import EntryPoint, EntryPoints
from typing import Any, TypeVar

from stevedore import NamedExtensionManager

from ironic_rules.exceptions import ConfigurationError

T = TypeVar("T")

#: The groups of what operators enable by name; that of the interfaces of a kind is ``INTERFACES.KIND``.
HARDWARE_TYPES = "ironic_rules.hardware.types"
INTERFACES = "ironic_rules.hardware.interfaces"
HOOKS = "ironic_rules.inspection.hooks"


def load(group: str, names: Sequence[str], base: type[T], option: str) -> dict[str, type[T]]:
    """Return the classes of the entry point group ``group`` with the names ``names``, in that order.

    :param base: class that each of them must be derived from
    :param option: configuration option that the names come from, for messages
    :raises ConfigurationError: a name is unknown, repeated or provided twice, or its entry point is not usable
    """
    if repeated := {name for name in names if names.count(name) > 1}:
        raise ConfigurationError(f"{option} names {_quoted(repeated)} more than once.")
    failures: dict[str, BaseException] = {}

    def failed(manager: object, entry_point: EntryPoint, error: BaseException) -> None:
        failures[entry_point.name] = error

    manager: NamedExtensionManager[Any] = NamedExtensionManager(
        group, list(names), on_missing_entrypoints_callback=None, on_load_failure_callback=failed)
    for name, error in failures.items():
        raise ConfigurationError(f"{option}: '{name}' cannot be loaded: {error!r}") from error
    classes: dict[str, type[T]] = {}
    for extension in manager:
        if not (isinstance(extension.plugin, type) and issubclass(extension.plugin, base)):
            raise ConfigurationError(f"{option}: '{extension.name}' ({extension.entry_point_target}) is not a class "
                                     f"derived from {base.__module__}.{base.__name__}.")
        if classes.setdefault(extension.name, extension.plugin) is not extension.plugin:
            raise ConfigurationError(f"{option}: several packages offer '{extension.name}' in {group}.")
    if missing := set(names) - classes.keys():
        raise ConfigurationError(f"{option} names {_quoted(missing)}, which nothing installed offers in {group}. "
                                 f"Installed: {_quoted(manager.entry_points_names())}.")
    return {name: classes[name] for name in names}


def not_installed(group: str, names: Iterable[str]) -> list[str]:
    """Return those of ``names`` that nothing installed offers in ``group``. Loads nothing."""
    # Reading only our own entry points is faster, and usually they are enough.
    own = _own().select(group=group).names
    missing = [name for name in dict.fromkeys(names) if name not in own]
    return [name for name in missing if name not in installed(group)]


def installed(group: str) -> list[str]:
    """Return the names that installed packages offer in ``group``, sorted."""
    return sorted({point.name for point in in_group(group)})


def in_group(group: str) -> EntryPoints:
    """Return the entry points of installed packages in ``group``."""
    return _all(tuple(sys.path)).select(group=group)


_all = functools.lru_cache(maxsize=2)(lambda path: importlib.metadata.entry_points())
_own = functools.cache(lambda: importlib.metadata.distribution("ironic-rules").entry_points)


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in sorted(set(names))) or "nothing"
