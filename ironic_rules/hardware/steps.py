"""Deploy steps that interfaces have: how they are declared, found and run."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from ironic_rules.exceptions import InvalidParameterValue, IronicRulesError
from ironic_rules.hardware import step_values
from ironic_rules.models import pointer, states
from ironic_rules.models.steps import MAX_PRIORITY, STEP_INTERFACES
from ironic_rules.models.task import Task

if TYPE_CHECKING:  # its interfaces have steps
    from ironic_rules.hardware.base import Interface

#: What a method that is a deploy step keeps about itself.
_MARK = "_deploy_step"
_NAME = re.compile(r"[a-z_][a-z0-9_]*")

Method = TypeVar("Method", bound=Callable[..., "str | None"])


@dataclass(frozen=True, slots=True)
class StepInfo:
    """What an interface says of one of its deploy steps.

    ``interface`` is its kind, ``step`` the method's name; ``priority`` 0 means that it does not run by default.
    ``argsinfo`` is ``{argument: {"description": text, "required": bool}}``, with the ``schema`` of the value where the
    interface gives one. A ``rerunnable`` step can be run again by the conductor that takes over from a dead one. A
    ``core`` step can be left out, and never moved. ``configured`` says that the priority is the operator's.
    """

    interface: str
    step: str
    priority: int
    argsinfo: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    rerunnable: bool = False
    core: bool = False
    configured: bool = False

    @property
    def name(self) -> str:
        """The name as options and messages have it, e.g. ``raid.create_configuration``."""
        return f"{self.interface}.{self.step}"

    def to_wire(self) -> dict[str, Any]:
        """Return all but ``interface``, as conductors register it."""
        return {"step": self.step, "priority": self.priority, "argsinfo": dict(self.argsinfo),
                "rerunnable": self.rerunnable, "core": self.core, "configured": self.configured}

    @classmethod
    def from_wire(cls, interface: str, wire: Mapping[str, Any]) -> StepInfo:
        """Return what :meth:`to_wire` was made of."""
        return cls(interface, **wire)


@dataclass(frozen=True, slots=True)
class _Declaration:
    priority: int
    argsinfo: Mapping[str, Mapping[str, Any]]
    rerunnable: bool
    core: bool


def deploy_step(priority: int, argsinfo: Mapping[str, Mapping[str, Any]] | None = None, rerunnable: bool = False,
                *, core: bool = False) -> Callable[[Method], Method]:
    """Declare that a method ``(self, task, **arguments)`` of an interface is a deploy step.

    The method returns None when it is done, or ``states.DEPLOYWAIT`` when the machine goes on with it. A method that
    overrides it is the same step, unless it is declared anew; ``name = None`` in a class takes the step away.

    :param priority: when it runs by default, the highest first; 0: only where somebody asks for it
    :param argsinfo: ``{argument: {"description": text, "required": bool, "schema": JSON schema}}``; ``required`` is
        false by default, and without a schema any value is taken
    :param rerunnable: it is safe to run it again where a dead conductor may have begun it
    :param core: the deployment is none without it: it can be left out, and never moved
    :raises TypeError: the declaration does not fit the method; when its module is imported
    """
    args = {name: {"description": info["description"], "required": info.get("required", False),
                   **({"schema": info["schema"]} if "schema" in info else {})}
            for name, info in (argsinfo or {}).items()}

    def declare(method: Method) -> Method:
        if not _NAME.fullmatch(method.__name__) or not 0 <= priority <= MAX_PRIORITY:
            raise TypeError(f"{method.__qualname__}: the priority must be 0...{MAX_PRIORITY}, "
                            "and the name that of a step")
        _check_parameters(method, args)
        for info in args.values():
            step_values.check_schema(info.get("schema", {}))
        setattr(method, _MARK, _Declaration(priority, args, rerunnable, core))
        return method

    return declare


def _check_parameters(method: Callable[..., Any], args: Mapping[str, Mapping[str, Any]]) -> None:
    """Refuse a method that can not be called with what its declaration promises."""
    parameters = list(inspect.signature(method).parameters.values())[2:]
    named = {parameter.name: parameter for parameter in parameters if parameter.kind is not parameter.VAR_KEYWORD}
    takes_any = len(named) < len(parameters)
    if (undeclared := set(named) - set(args)) or (set(args) - set(named) and not takes_any):
        odd = ", ".join(sorted(undeclared | (set(args) - set(named))))
        raise TypeError(f"{method.__qualname__}: parameters and argsinfo differ in {odd}")
    for name, parameter in named.items():
        if parameter.default is parameter.empty and not args[name]["required"]:
            raise TypeError(f"{method.__qualname__}: {name} needs a default, or argsinfo says that it is required")


def steps_of(interface: Interface | type[Interface]) -> list[StepInfo]:
    """Return the deploy steps of an interface (or of its class), by priority descending, then name."""
    cls = interface if isinstance(interface, type) else type(interface)
    if cls.kind not in STEP_INTERFACES:
        return []
    found = []
    for name in dir(cls):
        declared = _declaration(cls, name)
        if declared is not None:
            found.append(StepInfo(cls.kind, name, declared.priority, declared.argsinfo, declared.rerunnable,
                                  declared.core))
    return sorted(found, key=lambda info: (-info.priority, info.step))


def with_priorities(infos: Iterable[StepInfo], priorities: Mapping[str, int]) -> list[StepInfo]:
    """Return ``infos`` with the priorities of the configuration: ``{"bios.apply_configuration": 50, …}``."""
    return [replace(info, priority=priorities[info.name], configured=True) if info.name in priorities else info
            for info in infos]


def execute(interface: Interface, task: Task, step: str, args: Mapping[str, Any]) -> str | None:
    """Run a step of ``interface``.

    :returns: None when it is done, ``states.DEPLOYWAIT`` when the machine goes on with it
    :raises InvalidParameterValue: the interface has no such step, or the step does not take these arguments
    :raises IronicRulesError: it failed, as the text says
    """
    declared = _declaration(type(interface), step)
    if declared is None:
        raise InvalidParameterValue(f"{interface.kind}.{step}: the node's {interface.kind} interface does not offer "
                                    "this step.")
    if wrong := wrong_arguments(declared.argsinfo, args):
        raise InvalidParameterValue("; ".join(f"{pointer.format(('args', *place))}: {text}" for place, text in wrong))
    ends: str | None = getattr(interface, step)(task, **args)
    if ends not in (None, states.DEPLOYWAIT):
        raise IronicRulesError(f"{interface.kind}.{step} ended in no state that a deploy step can end in.")
    return ends


def wrong_arguments(argsinfo: Mapping[str, Mapping[str, Any]], args: Mapping[str, Any]) -> list[step_values.Wrong]:
    """Return place and text of each argument that the step does not have, that is missing, or has a wrong value."""
    wrong: list[step_values.Wrong] = [((name,), "the step has no such argument") for name in args
                                      if name not in argsinfo]
    for name, info in argsinfo.items():
        if name not in args:
            wrong += [((name,), "the step requires this argument")] * info["required"]
        elif "schema" in info:
            wrong += [((name, *place), text) for place, text in step_values.problems(info["schema"], args[name])]
    return wrong


def _declaration(cls: type[Interface], name: str) -> _Declaration | None:
    """Return how ``name`` is declared in ``cls``, or else in what it overrides; None if it is no step."""
    if not callable(getattr(cls, name, None)):
        return None
    for base in cls.__mro__:
        declared = getattr(base.__dict__.get(name), _MARK, None)
        if isinstance(declared, _Declaration):
            return declared
    return None
