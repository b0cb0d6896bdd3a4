"""Load the enabled hooks from entry points, in order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ironic_rules import entry_points
from ironic_rules.conf import inspector
from ironic_rules.exceptions import ConfigurationError
from ironic_rules.inspection.hook_settings import HookSettings
from ironic_rules.inspection.hooks.base import InspectionHook

GROUP = entry_points.HOOKS
OPTION = "[inspector]hooks"
ALIASES = inspector.HOOK_ALIASES
parse = inspector.hook_names

Hooks = list[tuple[str, InspectionHook]]


def load(names: Iterable[str], settings: HookSettings | None = None,
         classes: Mapping[str, type[InspectionHook]] | None = None) -> Hooks:
    """Return ``(name, hook)`` for each of ``names``, in that order.

    :param settings: the settings of the hooks
    :param classes: hooks by name, instead of the entry points
    :raises ConfigurationError: a name is unknown or repeated, a hook cannot be created, or a dependency of a hook does
        not come before it
    """
    current = [ALIASES.get(name, name) for name in names]
    if classes is None:
        classes = entry_points.load(GROUP, current, InspectionHook, OPTION)  # type: ignore[type-abstract]
    hooks: Hooks = []
    for name in current:
        hook = _make(name, classes[name])
        hook.configure(settings or HookSettings())
        _check_dependencies(name, hook, {earlier for earlier, _ in hooks})
        hooks.append((name, hook))
    return hooks


def problems(names: Iterable[str], settings: HookSettings) -> list[str]:
    """Return the problem of each option that a hook checks itself; :func:`load` raises the others."""
    problems: list[str] = []
    for name in dict.fromkeys(ALIASES.get(name, name) for name in names):
        try:
            cls = entry_points.load(GROUP, [name], InspectionHook, OPTION)[name]  # type: ignore[type-abstract]
            hook = _make(name, cls)
        except ConfigurationError:
            continue
        try:
            hook.configure(settings)
        except ConfigurationError as exc:
            problems.append(str(exc))
    return problems


def _make(name: str, cls: type[InspectionHook]) -> InspectionHook:
    try:
        return cls()
    except TypeError as exc:
        raise ConfigurationError(f"{OPTION}: the hook '{name}' cannot be created: {exc}") from exc


def _check_dependencies(name: str, hook: InspectionHook, earlier: set[str]) -> None:
    for needed in (ALIASES.get(dependency, dependency) for dependency in hook.dependencies):
        if needed not in earlier:
            raise ConfigurationError(f"{OPTION}: the hook '{name}' needs '{needed}' before it.")
