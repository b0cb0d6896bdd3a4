"""The registry of actions. Plug-ins add theirs to it (``action_plugins.load_plugins``)."""

from __future__ import annotations

from typing import Any

from ironic_rules.rules.base import InspectionRuleActionBase
from ironic_rules.rules.registry import BadOperation, Operation, Registry, read_parameters


def _read(name: str, cls: Any) -> Operation:
    if not (isinstance(cls, type) and issubclass(cls, InspectionRuleActionBase)):
        raise BadOperation(f"action {name!r} is not a subclass of InspectionRuleActionBase")
    if cls.__abstractmethods__:
        raise BadOperation(f"action {name!r} does not define __call__")
    if cls.supports_early and cls.call_early is InspectionRuleActionBase.call_early:
        raise BadOperation(f"action {name!r} supports the early phase but does not define call_early")
    parameters = read_parameters(cls.__call__, skip=3)
    unknown = sorted(set(cls.formatted_params) - {parameter.name for parameter in parameters})
    if unknown and not any(parameter.variadic == "keyword" for parameter in parameters):
        raise BadOperation(f"action {name!r}: __call__ does not accept the formatted_params {', '.join(unknown)}")
    return Operation(name, cls(), parameters, cls.__doc__ or "", frozenset(cls.formatted_params), cls.supports_early)


ACTIONS = Registry("action", _read)
