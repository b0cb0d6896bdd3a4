"""Conditions and actions of other packages, written for ironic-inspector: entry points and their signatures.

A condition has ``check(node_info, field, params)``, an action ``apply(node_info, params)`` and optionally
``cleanup(node_info, params)``. Both may have ``validate(params)``, which raises ValueError, the sets
``REQUIRED_PARAMS`` and ``OPTIONAL_PARAMS``, and the list ``FORMATTED_PARAMS``; a condition also ``ALLOW_NONE``.
Methods may accept further keyword arguments.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

CONDITIONS = "ironic_inspector.rules.conditions"
ACTIONS = "ironic_inspector.rules.actions"

_NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Plugins:
    """The plug-ins of a process.

    :ivar conditions: objects by name; ``actions`` likewise
    :ivar broken: why others cannot be used, by entry point group and name; rules that use them are disabled
    :ivar warnings: about names that are taken
    """

    conditions: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)
    actions: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)
    broken: Mapping[tuple[str, str], str] = field(default_factory=lambda: _NOTHING)
    warnings: tuple[str, ...] = ()


NONE = Plugins()


def load() -> Plugins:
    """Return the installed plug-ins; called once, at start. Nothing is raised: see ``Plugins.broken``."""
    raise NotImplementedError
