"""Declarations of steps by interfaces: how they are found, and the JSON schemas of their arguments.

Arguments are validated by their names and their values; the schemas are part of offers.
"""

from __future__ import annotations

import datetime
import functools
import inspect
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol, TypeVar

import jsonschema
from jsonschema.protocols import Validator

from ironic_rules.models.documents import JSONObject
from ironic_rules.models.steps import MAX_PRIORITY, STEP_INTERFACES, NamedStep
from ironic_rules.steps.procedures import CLEANING, DEPLOYMENT, SERVICE, Procedure

#: The location below the value, and the problem there. Never contains the value: it may be a secret.
Wrong = tuple[tuple[str, ...], str]

#: The problem of an argument that is missing.
REQUIRED = "the step requires this argument"

#: Schemas that many steps need.
BOOLEAN_ARGUMENT = {"description": "true or false", "type": "boolean"}
TEXT_ARGUMENT = {"description": "a text of one or more characters", "type": "string", "minLength": 1}

# 100.0 is not an integer here, because it would be sent to a BMC unchanged.
_TYPES = jsonschema.Draft202012Validator.TYPE_CHECKER.redefine(
    "integer", lambda checker, value: isinstance(value, int) and not isinstance(value, bool))
_VALIDATOR = jsonschema.validators.extend(jsonschema.Draft202012Validator, type_checker=_TYPES)
_FORMATS = jsonschema.FormatChecker(formats=())


@_FORMATS.checks("date-time", raises=ValueError)
def _is_time(value: object) -> bool:
    return not isinstance(value, str) or datetime.datetime.fromisoformat(value).tzinfo is not None


def one_of(values: Iterable[str]) -> JSONObject:
    """Return the schema of a text that is one of ``values``."""
    choices = list(values)
    return {"description": f"one of {', '.join(choices)}", "enum": choices}


def check_schema(schema: Mapping[str, object]) -> None:
    """Check that ``schema`` is a JSON schema.

    :raises TypeError: it is not
    """
    try:
        _check_text(json.dumps(schema, sort_keys=True))
    except jsonschema.SchemaError as exc:
        raise TypeError(f"argsinfo has an invalid schema: {exc.message}") from exc


# The steps of the interfaces have few different schemas, and checks would slow down each process's start.
@functools.cache
def _check_text(schema: str) -> None:
    _VALIDATOR.check_schema(json.loads(schema))


def argument_problems(schema: Mapping[str, object], value: object) -> list[Wrong]:
    """Return the problems of ``value``, sorted by location.

    A schema's ``description`` completes "must be …".
    """
    validator = _validator(json.dumps(schema, sort_keys=True))
    problems = {wrong for error in validator.iter_errors(value) for wrong in _problems(error)}
    return sorted(problems)


def wrong_arguments(argsinfo: Mapping[str, Mapping[str, Any]], args: Mapping[str, object]) -> list[Wrong]:
    """Return location and text of each argument that the step does not have, that is missing or has a wrong value."""
    wrong: list[Wrong] = [((name,), "the step has no such argument") for name in args if name not in argsinfo]
    for name, info in argsinfo.items():
        if name not in args:
            wrong += [((name,), REQUIRED)] * info["required"]
        elif "schema" in info:
            wrong += [((name, *place), text) for place, text in argument_problems(info["schema"], args[name])]
    return wrong


@functools.lru_cache(maxsize=256)
def _validator(schema: str) -> Validator:
    validator: Validator = _VALIDATOR(json.loads(schema), format_checker=_FORMATS)
    return validator


def _problems(error: jsonschema.ValidationError) -> Iterator[Wrong]:
    place = tuple(map(str, error.absolute_path))
    schema: Any = error.schema
    if error.validator == "required":
        yield from (((*place, name), "is required") for name in schema["required"] if name not in error.instance)
    elif error.validator == "additionalProperties":
        properties = schema.get("properties", {})
        yield from (((*place, name), f"is not one of {', '.join(sorted(properties))}")
                    for name in error.instance if name not in properties)
    else:
        yield place, f"must be {schema['description']}" if "description" in schema else "is not accepted by the step"


#: Attribute of a method that is a step: its declaration by the name of the procedure.
_MARK = "_steps"
_NAME = re.compile(r"[a-z_][a-z0-9_]*")

Method = TypeVar("Method", bound=Callable[..., "str | None"])


class SteppedInterface(Protocol):
    """An object with steps; it has none unless ``kind`` is one of ``STEP_INTERFACES``."""

    kind: ClassVar[str]


@dataclass(frozen=True, slots=True)
class StepInfo(NamedStep):
    """The declaration of one step of an interface.

    ``interface`` is its kind, ``step`` the method's name; ``priority`` 0 means that it does not run by default.
    ``argsinfo`` is ``{argument: {"description": text, "required": bool}}``, with the ``schema`` of the value if the
    interface gives one. A ``rerunnable`` step can be run again by the conductor that takes over from a failed one. A
    ``core`` step can be skipped, but its order cannot be changed. ``configured`` means that the operator has set the
    priority. An ``abortable`` step may be given up while the machine continues it. One that ``requires_ramdisk`` runs
    only while the node's ramdisk runs. ``refusal`` is why a node must not run it; only what a node offers has one.
    """

    priority: int
    argsinfo: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    rerunnable: bool = False
    core: bool = False
    configured: bool = False
    abortable: bool = False
    requires_ramdisk: bool = False
    refusal: str | None = None

    def to_wire(self) -> JSONObject:
        """Return all fields except ``interface`` and ``refusal``, as conductors register them."""
        # An API process of an older release does not know the last two, which no deploy step has.
        added = {name: True for name in ("abortable", "requires_ramdisk") if getattr(self, name)}
        return {"step": self.step, "priority": self.priority, "argsinfo": dict(self.argsinfo),
                "rerunnable": self.rerunnable, "core": self.core, "configured": self.configured, **added}

    @classmethod
    def from_wire(cls, interface: str, wire: Mapping[str, Any]) -> StepInfo:
        """Return the object that :meth:`to_wire` has serialized."""
        return cls(interface, **wire)


@dataclass(frozen=True, slots=True)
class Declaration:
    """The declaration of a method that is a step."""

    priority: int
    argsinfo: Mapping[str, Mapping[str, Any]]
    rerunnable: bool
    core: bool
    abortable: bool = False
    requires_ramdisk: bool = False


def deploy_step(priority: int, argsinfo: Mapping[str, Mapping[str, Any]] | None = None, rerunnable: bool = False,
                *, core: bool = False) -> Callable[[Method], Method]:
    """Declare that a method ``(self, task, **arguments)`` of an interface is a deploy step.

    The method returns None when the step is done, or ``states.DEPLOYWAIT`` when the machine continues it. A method that
    overrides it is the same step, unless it is declared again; ``name = None`` in a class removes the step.

    :param priority: its place in the default order, the highest first; 0: it runs only on request
    :param argsinfo: ``{argument: {"description": text, "required": bool, "schema": JSON schema}}``; ``required`` is
        false by default, and without a schema any value is accepted
    :param rerunnable: it is safe to run it again after a conductor that may have begun it has failed
    :param core: an essential part of the procedure: it can be skipped, but its order cannot be changed
    :raises TypeError: the declaration does not match the method; raised when its module is imported
    """
    return _declare(DEPLOYMENT, priority, argsinfo, rerunnable, core)


def clean_step(priority: int, argsinfo: Mapping[str, Mapping[str, Any]] | None = None, rerunnable: bool = False, *,
               abortable: bool = False, requires_ramdisk: bool = True, core: bool = False,
               ) -> Callable[[Method], Method]:
    """Declare that a method of an interface is a clean step; one method may be a step of several procedures.

    As :func:`deploy_step`; priority 0 means that it runs only in manual cleaning.

    :param abortable: ``abort`` may end it while the machine continues it; otherwise the node waits for its end
    :param requires_ramdisk: it does not run with ``disable_ramdisk``
    """
    return _declare(CLEANING, priority, argsinfo, rerunnable, core, abortable, requires_ramdisk)


def service_step(priority: int, argsinfo: Mapping[str, Mapping[str, Any]] | None = None, rerunnable: bool = False, *,
                 abortable: bool = False, requires_ramdisk: bool = True, core: bool = False,
                 ) -> Callable[[Method], Method]:
    """Declare that a method of an interface is a service step, as :func:`clean_step` does for cleaning."""
    return _declare(SERVICE, priority, argsinfo, rerunnable, core, abortable, requires_ramdisk)


def requested_step(argsinfo: Mapping[str, Mapping[str, Any]] | None = None, rerunnable: bool = False, *,
                   abortable: bool = False) -> Callable[[Method], Method]:
    """Declare that a method is a step of every procedure that runs only on request and requires no ramdisk."""
    def declare(method: Method) -> Method:
        deploy_step(0, argsinfo, rerunnable)(method)
        clean_step(0, argsinfo, rerunnable, abortable=abortable, requires_ramdisk=False)(method)
        return service_step(0, argsinfo, rerunnable, abortable=abortable, requires_ramdisk=False)(method)
    return declare


def _declare(procedure: Procedure, priority: int, argsinfo: Mapping[str, Mapping[str, Any]] | None, rerunnable: bool,
             core: bool, abortable: bool = False, requires_ramdisk: bool = False) -> Callable[[Method], Method]:
    args = {name: {"description": info["description"], "required": info.get("required", False),
                   **({"schema": info["schema"]} if "schema" in info else {})}
            for name, info in (argsinfo or {}).items()}

    def declare(method: Method) -> Method:
        if not _NAME.fullmatch(method.__name__) or not 0 <= priority <= MAX_PRIORITY:
            raise TypeError(f"{method.__qualname__}: the priority must be 0...{MAX_PRIORITY}, "
                            "and the method's name a valid step name")
        _check_parameters(method, args)
        for info in args.values():
            check_schema(info.get("schema", {}))
        declared = Declaration(priority, args, rerunnable, core, abortable, requires_ramdisk)
        setattr(method, _MARK, {**getattr(method, _MARK, {}), procedure.name: declared})
        return method

    return declare


def _check_parameters(method: Callable[..., Any], args: Mapping[str, Mapping[str, Any]]) -> None:
    """Refuse a method that cannot be called with the arguments that it declares."""
    parameters = list(inspect.signature(method).parameters.values())[2:]
    named = {parameter.name: parameter for parameter in parameters if parameter.kind is not parameter.VAR_KEYWORD}
    takes_any = len(named) < len(parameters)
    if (undeclared := set(named) - set(args)) or (set(args) - set(named) and not takes_any):
        odd = ", ".join(sorted(undeclared | (set(args) - set(named))))
        raise TypeError(f"{method.__qualname__}: parameters and argsinfo differ in {odd}")
    for name, parameter in named.items():
        if parameter.default is parameter.empty and not args[name]["required"]:
            raise TypeError(f"{method.__qualname__}: {name} needs a default, or argsinfo says that it is required")


def steps_of(interface: SteppedInterface | type[SteppedInterface], procedure: Procedure) -> list[StepInfo]:
    """Return the steps that an interface (or its class) has for a procedure, by priority descending, then name."""
    return list(_of_class(interface if isinstance(interface, type) else type(interface), procedure))


# A deployment reads them before each of its steps, and classes do not change.
@functools.cache
def _of_class(cls: type[SteppedInterface], procedure: Procedure) -> tuple[StepInfo, ...]:
    if cls.kind not in STEP_INTERFACES:
        return ()
    infos = []
    for name in dir(cls):
        declared = declaration(cls, name, procedure)
        if declared is not None:
            infos.append(StepInfo(
                cls.kind, name, declared.priority, declared.argsinfo, declared.rerunnable, declared.core,
                abortable=declared.abortable, requires_ramdisk=declared.requires_ramdisk))
    return tuple(sorted(infos, key=lambda info: (-info.priority, info.step)))


def with_priorities(infos: Iterable[StepInfo], priorities: Mapping[str, int]) -> list[StepInfo]:
    """Return ``infos`` with the configured priorities: ``{"bios.apply_configuration": 50, …}``."""
    return [replace(info, priority=priorities[info.name], configured=True) if info.name in priorities else info
            for info in infos]


def declaration(cls: type[SteppedInterface], name: str, procedure: Procedure) -> Declaration | None:
    """Return the declaration of ``name`` in ``cls``, or else in the class that it overrides; None: it is no step."""
    if not callable(getattr(cls, name, None)):
        return None
    for base in cls.__mro__:
        declared: Declaration | None = getattr(base.__dict__.get(name), _MARK, {}).get(procedure.name)
        if declared is not None:
            return declared
    return None
