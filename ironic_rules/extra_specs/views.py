"""Extra specs and image properties as JSON-like data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ironic_rules.extra_specs.registry import Registered

_VALUE_KEYS = ("min", "max", "enum", "pattern", "format")


def describe(found: Registered) -> dict[str, Any]:
    """Return what there is to know about one extra spec or image property.

    Names of libraries that a parameter can be, such as the standard traits, are left out: ``enum`` of the parameter is
    true where there are some.
    """
    validator = found.validator
    return {
        "name": validator.name,
        "namespace": validator.namespace,
        "description": text_of(validator.description),
        "status": validator.status,
        "removed": validator.removed or None,
        "replaced_by": validator.replaced_by or None,
        "advice": validator.advice or None,
        "value": value_of(found),
        "parameters": [
            {"name": parameter.name, "description": text_of(parameter.description), "pattern": parameter.pattern,
             "enum": parameter.choices is not None}
            for parameter in found.template.parameters],
        "drivers": [str(driver) for driver in validator.drivers],
        "requires": [str(name) for name in validator.requires],
        "see_also": validator.see_also or None,
        "origin": found.origin or None,
    }


def value_of(found: Registered) -> dict[str, Any]:
    """Return what the value of an extra spec must be: its type, its description, and its limits if it has any."""
    described = found.validator.value
    value: dict[str, Any] = {"type": described["type"].__name__, "description": text_of(described.get("description"))}
    for key in _VALUE_KEYS:
        if described.get(key) is not None:
            value[key] = list(described[key]) if key == "enum" else described[key]
    if described.get("aliases") is not None:
        value["aliases"] = dict(described["aliases"])
    return value


def matching(items: Iterable[Registered], namespace: str | None = None, type_: str | None = None,
             status: str | None = None, text: str | None = None) -> list[Registered]:
    """Return those of a namespace, with values of a type, with a status, with a text in their name or description.

    :param text: in upper or lower case
    """
    wanted = text.casefold() if text else ""
    return [
        item for item in items
        if (namespace is None or item.validator.namespace == namespace)
        and (type_ is None or item.validator.value["type"].__name__ == type_)
        and (status is None or item.validator.status == status)
        and (not wanted or wanted in item.validator.name.casefold()
             or wanted in item.validator.description.casefold())]


def text_of(text: object) -> str:
    """Return a description of a plug-in or of this package as one line."""
    return " ".join(str(text or "").split())
