"""The reference of extra specs and image properties in reStructuredText."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ironic_rules.extra_specs.registry import Registered
from ironic_rules.extra_specs.views import text_of, value_of

_TYPES = {"int": "an integer", "bool": "a boolean", "str": "a text"}
_FORMATS = {
    "cpu-map": "a CPU map: CPUs and ranges, each with ``^`` to exclude it, such as ``0-3,^2``",
    "page-size": "``large``, ``small``, ``any``, or a number with or without a unit",
    "scheduler-operators": "a text, or an operator of the scheduler and what it compares with",
}


def page(items: Iterable[Registered]) -> str:
    """Return the text of definitions, one after another, as a definition list."""
    return "\n".join(line for item in items for line in [*_entry(item), ""])


def _entry(item: Registered) -> Iterator[str]:
    validator = item.validator
    yield f"``{validator.name}``"
    yield f"   {text_of(validator.description)}"
    yield ""
    yield f"   :Value: {_value(item)}"
    for parameter in item.template.parameters:
        described = text_of(parameter.description) if parameter.description else f"``{parameter.pattern}``"
        yield f"   :``{{{parameter.name}}}``: {described}"
    if validator.removed:
        yield f"   :Status: Removed in {validator.removed}.{_instead(item)}"
    elif validator.deprecated:
        yield f"   :Status: Deprecated.{_instead(item)}"
    if validator.drivers:
        yield f"   :Drivers: {', '.join(validator.drivers)}"
    if validator.requires:
        yield f"   :Together with: {', '.join(f'``{name}``' for name in validator.requires)}"
    if validator.see_also:
        yield f"   :See also: ``{validator.see_also}``"
    if item.origin:
        yield f"   :Package: {item.origin}"


def _value(item: Registered) -> str:
    value = value_of(item)
    kind = _FORMATS.get(value.get("format", ""), _TYPES[value["type"]])
    if "enum" in value:
        kind = f"one of {', '.join(f'``{choice}``' for choice in value['enum'])}"
    if "aliases" in value:
        others = ", ".join(f"``{alias}`` for ``{choice}``" for alias, choice in value["aliases"].items())
        kind += f", in upper or lower case{f'; also {others}' if others else ''}"
    bounds = [f"{words} {value[key]}" for key, words in (("min", "at least"), ("max", "at most")) if key in value]
    if bounds:
        kind += f", {' and '.join(bounds)}"
    if "pattern" in value:
        kind += f" that matches ``{value['pattern']}``"
    description = f" {text_of(value['description'])}" if value["description"] else ""
    return f"{kind[0].upper()}{kind[1:]}.{description}"


def _instead(item: Registered) -> str:
    validator = item.validator
    instead = f" Use ``{validator.replaced_by}`` instead." if validator.replaced_by else ""
    return f"{instead} {text_of(validator.advice)}" if validator.advice else instead
