"""The fields of an object as a table, from its JSON schema."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

HEAD = """\
.. list-table::
   :header-rows: 1
   :widths: 24 34 30 12

   * - Field
     - Type
     - Limits
     - Required"""

TYPES = {"array": "list", "null": "``null``"}
#: Keyword of the fewest, keyword of the most, and what is counted.
RANGES = (("minimum", "maximum", ""), ("minLength", "maxLength", " characters"), ("minItems", "maxItems", " items"),
          ("minProperties", "maxProperties", " members"))


class Row(NamedTuple):
    """One field; ``path`` has ``[]`` where a list has items, e.g. ``actions[].op``."""

    path: str
    type: str
    limits: str
    required: bool


def rows(schema: Mapping[str, Any], above: str = "") -> Iterator[Row]:
    """Yield the fields of an object in their order, each before those of its items."""
    for name, shape in schema["properties"].items():
        path = f"{above}{name}"
        alternatives = shape.get("anyOf", [shape])
        yield Row(path, _joined(itertools.chain.from_iterable(map(_types, alternatives))),
                  "; ".join(filter(None, map(_limits, alternatives))), name in schema["required"])
        if "properties" in shape.get("items", {}):
            yield from rows(shape["items"], f"{path}[].")


def table(schema: Mapping[str, Any], described: Mapping[str, str]) -> str:
    """Return the reStructuredText of the fields of an object.

    :param described: path -> text that stands in place of type and limits, for fields that refer to another page
    """
    lines = [HEAD]
    for row in rows(schema):
        shown = (described[row.path], "") if row.path in described else (row.type, row.limits)
        lines += [f"   * - ``{row.path}``", *(f"     - {cell}" for cell in (*shown, "yes" if row.required else ""))]
    return "\n".join(lines)


def _types(shape: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a value may be, the first one with what is said of it."""
    if "enum" in shape:
        yield "one of " + ", ".join("``null``" if value is None else f"``{value}``" for value in shape["enum"])
        return
    first, *others = [shape["type"]] if isinstance(shape["type"], str) else shape["type"]
    yield TYPES.get(first, first) + (f" ({shape['description']})" if "description" in shape else "")
    yield from (TYPES.get(kind, kind) for kind in others)


def _joined(words: Iterable[str]) -> str:
    *others, last = words
    return f"{', '.join(others)} or {last}" if others else last


def _limits(shape: Mapping[str, Any]) -> str:
    found = []
    for least, most, what in RANGES:
        if least in shape and most in shape:
            found.append(f"{shape[least]:,} to {shape[most]:,}{what}")
        elif most in shape:
            found.append(f"at most {shape[most]:,}{what}")
        elif least in shape:
            found.append(f"at least {shape[least]:,}{what}")
    return ", ".join(found)
