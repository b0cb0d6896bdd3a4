"""Output of commands: warnings about rules (standard error), changes of a rule set, progress of an operation."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TextIO

from cliff import columns

from ironic_rules.client import upstream


def show_warnings(reply: Mapping[str, Any], located: Callable[[str], str] = str) -> None:
    """Print the warnings of a reply of the service.

    :param located: returns the text for a JSON pointer into what was sent
    """
    for warning in reply.get("warnings") or ():
        nearest = f" (nearest: {warning['nearest']})" if warning.get("nearest") else ""
        parts = ("warning", located(warning["pointer"]), warning["text"] + nearest)
        print(": ".join(filter(None, parts)), file=sys.stderr)


class _Rules(upstream.RuleManager):  # type: ignore[misc]
    """Creates and changes rules as python-ironicclient does, and prints the warnings that it does not know of."""

    def create(self, **fields: Any) -> Any:
        rule = super().create(**fields)
        show_warnings(rule.to_dict())
        return rule

    def update(self, *args: Any, **kwargs: Any) -> Any:
        rule = super().update(*args, **kwargs)
        show_warnings(rule.to_dict())
        return rule


@contextlib.contextmanager
def warnings_shown(app: Any) -> Iterator[None]:
    """Print the warnings that requests of python-ironicclient's commands cause in the block."""
    client = app.client_manager.baremetal
    silent, client.inspection_rule = client.inspection_rule, _Rules(client.inspection_rule.api)
    try:
        yield
    finally:
        client.inspection_rule = silent


#: The lists of a reply, as the rows are ordered.
KINDS = ("created", "changed", "replaced", "removed", "unchanged")
_SIGNS = {"add": "+", "remove": "-", "replace": "~", "move": ">"}

Rows = tuple[tuple[str, ...], list[tuple[Any, ...]]]


class Patch(columns.FormattableColumn):  # type: ignore[type-arg]  # not generic in earlier versions of cliff
    """Operations of RFC 6902; a line for each in a table, as they are in JSON and YAML."""

    def human_readable(self) -> str:
        return "\n".join(_line(operation) for operation in self._value)


def changes_table(reply: Mapping[str, Any], patches: bool) -> Rows:
    """Return a row for each rule, and print the sum of them on the standard error output.

    :param patches: with the operations that lead from each stored rule to the new one
    """
    counts = ", ".join(f"{len(reply[kind])} {kind}" for kind in KINDS)
    title = "Dry run against revision" if reply["dry_run"] else "Revision"
    print(f"{title} {reply['revision']}: {counts}", file=sys.stderr)
    names = ("uuid", "name", "description", "change", *(("patch",) if patches else ()))
    return names, [
        (rule["uuid"], rule["name"], rule["description"], kind, *((Patch(rule.get("patch", [])),) if patches else ()))
        for kind in KINDS for rule in reply[kind]]


def changes_any(reply: Mapping[str, object]) -> bool:
    """Return whether the request has changed any rule, or would have without ``dry_run``."""
    return any(reply[kind] for kind in KINDS if kind != "unchanged")


def _line(operation: Mapping[str, Any]) -> str:
    if "from" in operation:
        return f"{_SIGNS[operation['op']]} {operation['path']}: from {operation['from']}"
    value = f": {json.dumps(operation['value'], ensure_ascii=False)}" if "value" in operation else ""
    return f"{_SIGNS[operation['op']]} {operation['path']}{value}"


#: Seconds between two questions.
PAUSE_S = 1.0
_WIDTH = 30


def progress_line(counts: Mapping[str, int]) -> str:
    """Return the numbers of an operation in a line."""
    return (f"{counts['done']} of {counts['total']} nodes done, {counts['changed']} changed, "
            f"{counts['failed']} failed")


def wait_for_operation(operation: dict[str, Any], ask: Callable[[], dict[str, Any]], stream: TextIO) -> dict[str, Any]:
    """Wait until an operation has ended; return it as it is then.

    On a terminal one line is written again and again, elsewhere a new one when a number has changed.

    :param operation: as it is now
    :param ask: returns it as it is later
    :param stream: gets the progress
    """
    is_terminal = stream.isatty()
    written = ""
    while True:
        counts = operation["progress"]
        filled = _WIDTH * counts["done"] // counts["total"] if counts["total"] else _WIDTH
        line = progress_line(counts)
        text = f"[{'#' * filled}{'.' * (_WIDTH - filled)}] {line}" if is_terminal else line
        if text != written:
            stream.write(f"\r{text.ljust(len(written))}" if is_terminal else f"{text}\n")
            stream.flush()
            written = text
        if operation["status"] != "running":
            break
        time.sleep(PAUSE_S)
        operation = ask()
    if is_terminal:
        stream.write("\n")
    return operation
