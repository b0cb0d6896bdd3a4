"""The problems of extra specs, all at once, as data; and warnings, which refuse nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from ironic_rules.extra_specs import installed
from ironic_rules.extra_specs.registry import Registered, SpecRegistry, foreign_character
from ironic_rules.extra_specs.values import (
    DEPRECATED,
    MAX_LENGTH,
    PATTERN,
    RANGE,
    TYPE,
    UNKNOWN,
    SpecProblem,
    ValueFault,
    problem_of,
)
from ironic_rules.text import printable

#: Keys that are not known and values that are not allowed are problems.
STRICT = "strict"
#: Values that are not allowed are problems; keys that are not known are warnings.
PERMISSIVE = "permissive"
#: Nothing is checked.
OFF = "off"
MODES = (STRICT, PERMISSIVE, OFF)
_SHOWN = 64
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def validate(name: str, value: object, mode: str = STRICT, registry: SpecRegistry | None = None,
             pointer: str = "") -> SpecProblem | None:
    """Return the first problem of one extra spec, None if it has none. Never raises, whatever the name and value are.

    :param mode: one of ``MODES``; any other text is as strict as ``STRICT``
    :param registry: what is known; by default all extra specs of this installation
    :param pointer: JSON pointer to the object that the extra spec is in
    """
    if mode == OFF:
        return None
    if registry is None:
        registry = installed.extra_specs()
    if type(name) is str:
        registered = registry.plain.get(name)
        if registered is None:
            lookup = registry.find(name)
            registered = lookup[0] if lookup else None
        # Most values are short, with nothing to refuse.
        if (registered and not registered.is_removed and type(value) is str and len(value) <= MAX_LENGTH
                and value.isprintable() and registered.rule.accepts(value)):
            return None
        return _problem(name, value, mode != PERMISSIVE, registry, registered, pointer)
    return problem_of(name, pointer, TYPE, f"The name of an {registry.noun} is a text.")


def check(specs: object, mode: str = STRICT, registry: SpecRegistry | None = None,
          pointer: str = "") -> list[SpecProblem]:
    """Return all problems of extra specs, in their order. Never raises, whatever they are.

    :param specs: values by key, normally texts
    """
    if mode == OFF:
        return []
    if not isinstance(specs, Mapping):
        return [SpecProblem("", pointer, TYPE, "Extra specs are an object of names and values.")]
    problems = (validate(name, value, mode, registry, pointer) for name, value in specs.items())
    return [problem for problem in problems if problem]


def warnings(specs: object, mode: str = STRICT, registry: SpecRegistry | None = None,
             pointer: str = "") -> list[SpecProblem]:
    """Return the warnings about extra specs that are not refused, in their order.

    Keys that are deprecated or removed, of kind ``deprecated``; where the mode is permissive also keys that are not
    known, of kind ``unknown``. Nothing where checks are off.
    """
    if mode == OFF or not isinstance(specs, Mapping):
        return []
    if registry is None:
        registry = installed.extra_specs()
    problems = []
    for name in specs:
        lookup = registry.find(name) if isinstance(name, str) else None
        if lookup and (lookup[0].is_removed or lookup[0].validator.deprecated):
            if mode == PERMISSIVE or not lookup[0].is_removed:
                problems.append(problem_of(name, pointer, DEPRECATED, _outdated(lookup[0], registry)))
        elif lookup is None and mode == PERMISSIVE and isinstance(name, str):
            problems.append(_unknown(name, registry, pointer))
    return problems


def _problem(name: str, value: object, strict: bool, registry: SpecRegistry, registered: Registered | None,
             pointer: str) -> SpecProblem | None:
    """Return the problem of an extra spec that may have one."""
    if not name or len(name) > MAX_LENGTH:
        reason = f"The name of an {registry.noun} has 1 to {MAX_LENGTH} characters; this one has {len(name)}."
        return problem_of(name, pointer, UNKNOWN, reason)
    if strict and registered is None:
        return _unknown(name, registry, pointer)
    if strict and registered and registered.is_removed:
        return problem_of(name, pointer, UNKNOWN, _outdated(registered, registry))
    fault = _fault_of_text(value)
    if (fault is None and type(value) is str and registered and not registered.is_removed
            and not registered.rule.accepts(value)):
        fault = registered.rule.fault(value, strict, f"'{printable(value, _SHOWN)}'")
        if fault and _is_secret(name, registered):
            # Reasons quote the value, or parts of it.
            fault = replace(fault, reason=f"is not what the {registry.noun} must have.")
    if fault is None:
        return None
    reason = f"The value of '{printable(name, _SHOWN)}' {fault.reason}"
    return problem_of(name, pointer, fault.kind, reason, fault.allowed, fault.find_nearest)


def _fault_of_text(value: object) -> ValueFault | None:
    """Return the problem of what can be the value of no extra spec."""
    if type(value) is not str:
        return ValueFault(TYPE, f"is {_type_name(value)}; values are texts.")
    if len(value) > MAX_LENGTH:
        return ValueFault(RANGE, f"has {len(value)} characters; at most {MAX_LENGTH} are allowed.")
    control = _CONTROL.search(value)
    if control:
        return ValueFault(PATTERN, f"has a control character, U+{ord(control[0]):04X}, in place {control.start() + 1}.")
    return None


def _unknown(name: str, registry: SpecRegistry, pointer: str) -> SpecProblem:
    reason = f"There is no {registry.noun} '{printable(name, _SHOWN)}'."
    foreign = foreign_character(name)
    return problem_of(name, pointer, UNKNOWN, f"{reason} {foreign}" if foreign else reason,
                      find_nearest=lambda: registry.hints.nearest(name))


def _outdated(registered: Registered, registry: SpecRegistry) -> str:
    validator = registered.validator
    text = (f"The {registry.noun} '{validator.name}' was removed in {validator.removed}." if validator.removed
            else f"The {registry.noun} '{validator.name}' is deprecated.")
    if validator.replaced_by:
        text += f" Use '{validator.replaced_by}' instead."
    return f"{text} {validator.advice}" if validator.advice else text


def _is_secret(name: str, registered: Registered) -> bool:
    """Return whether a value must not be shown: its key seems to be secret, and is not one of this package."""
    # oslo.utils takes longer to import than everything here, and most programs never get here.
    from ironic_rules.models.secrets import is_secret_key
    return bool(registered.origin or registered.validator.refinable) and is_secret_key(name)


def _type_name(value: object) -> str:
    names = {bool: "a boolean", int: "a number", float: "a number", list: "a list", dict: "an object",
             type(None): "null"}
    return names.get(type(value), "of another type")
