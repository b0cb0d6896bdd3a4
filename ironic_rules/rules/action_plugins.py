"""Actions of other packages, from the entry point group ``ironic.inspection_rules.actions``."""

from __future__ import annotations

from typing import Any

import stevedore

from ironic_rules.exceptions import ConfigurationError
from ironic_rules.rules.actions import ACTIONS
from ironic_rules.rules.registry import BadOperation, Registry

NAMESPACE = "ironic.inspection_rules.actions"


def load_plugins(namespace: str = NAMESPACE, registry: Registry = ACTIONS) -> list[str]:
    """Register the installed actions; called once, at start. Calling it again changes nothing.

    :returns: the names that were found
    :raises ConfigurationError: with every action that cannot be loaded, and why
    """
    failures: list[str] = []

    def failed(manager: Any, entry_point: Any, error: BaseException) -> None:
        failures.append(f"action {entry_point.name!r}: {type(error).__name__}: {error}")

    manager = stevedore.ExtensionManager(namespace, invoke_on_load=False, on_load_failure_callback=failed)
    names = []
    for extension in manager:
        try:
            registry.add(extension.name, extension.plugin)
        except BadOperation as exc:
            failures.append(str(exc))
        else:
            names.append(extension.name)
    if failures:
        raise ConfigurationError(f"[{namespace}] " + "; ".join(sorted(failures)))
    return sorted(names)
