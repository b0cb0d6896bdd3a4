"""What a request has changed in the set of rules, as a table."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from cliff import columns

#: The lists of a reply, as the rows are ordered.
KINDS = ("created", "changed", "replaced", "removed", "unchanged")
_SIGNS = {"add": "+", "remove": "-", "replace": "~", "move": ">"}

Rows = tuple[tuple[str, ...], list[tuple[Any, ...]]]


class Patch(columns.FormattableColumn):  # type: ignore[type-arg]  # not generic in earlier versions of cliff
    """Operations of RFC 6902; a line for each in a table, as they are in JSON and YAML."""

    def human_readable(self) -> str:
        return "\n".join(_line(operation) for operation in self._value)


def table(reply: Mapping[str, Any], patches: bool) -> Rows:
    """Return a row for each rule, and print the sum of them on the standard error output.

    :param patches: with the operations that lead from each stored rule to the new one
    """
    counts = ", ".join(f"{len(reply[kind])} {kind}" for kind in KINDS)
    what = "Dry run against revision" if reply["dry_run"] else "Revision"
    print(f"{what} {reply['revision']}: {counts}", file=sys.stderr)
    names = ("uuid", "name", "description", "change", *(("patch",) if patches else ()))
    return names, [
        (rule["uuid"], rule["name"], rule["description"], kind, *((Patch(rule.get("patch", [])),) if patches else ()))
        for kind in KINDS for rule in reply[kind]]


def is_any(reply: Mapping[str, Any]) -> bool:
    """Return whether the request has changed any rule, or would have without ``dry_run``."""
    return any(reply[kind] for kind in KINDS if kind != "unchanged")


def _line(operation: Mapping[str, Any]) -> str:
    if "from" in operation:
        return f"{_SIGNS[operation['op']]} {operation['path']}: from {operation['from']}"
    value = f": {json.dumps(operation['value'], ensure_ascii=False)}" if "value" in operation else ""
    return f"{_SIGNS[operation['op']]} {operation['path']}{value}"
