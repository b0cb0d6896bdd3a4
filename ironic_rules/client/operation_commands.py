"""Commands about operations on many nodes.

Entry point group ``openstack.baremetal.v1``, which python-ironicclient defines.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any, TextIO

from cliff import columns
from osc_lib import exceptions
from osc_lib.command import command

from ironic_rules.client import progress
from ironic_rules.client.rule_requests import Requests

Rows = tuple[tuple[str, ...], list[tuple[Any, ...]]]

_SUMMARY = ("uuid", "kind", "status", "created_at", "progress")
_SHOWN = ("uuid", "kind", "status", "created_at", "updated_at", "user", "filters", "progress", "errors")
_ENDED = ("uuid", "status", "filters", "progress", "errors")


class _Progress(columns.FormattableColumn):  # type: ignore[type-arg]  # not generic in earlier versions of cliff
    """The numbers of nodes; in a table as a sentence."""

    def human_readable(self) -> str:
        return progress.line(self._value)


class _Errors(columns.FormattableColumn):  # type: ignore[type-arg]  # not generic in earlier versions of cliff
    """The nodes on which it failed; in a table one in each line."""

    def human_readable(self) -> str:
        return "\n".join(f"{item['node']}: {item['error']}" for item in self._value)


_FORMS: dict[str, Any] = {"progress": _Progress, "errors": _Errors}


class ListOperations(command.Lister):
    """List operations on many nodes, the oldest first, also those that have ended."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("--limit", metavar="<limit>", type=int, default=0,
                            help="Maximum number of operations; 0 for all, which is the default.")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        if parsed_args.limit < 0:
            raise exceptions.CommandError(f"Expected non-negative --limit, got {parsed_args.limit}")
        return _SUMMARY, [row(each, _SUMMARY) for each in Requests(self.app).operations(parsed_args.limit)]


class ShowOperation(command.ShowOne):
    """Show an operation: how many nodes are done, and on which it failed.

    With --wait the exit status is 1 if it was cancelled, or failed on any node.
    """

    _failed = False

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("operation", metavar="<operation>", help="UUID of the operation.")
        parser.add_argument("--wait", action="store_true",
                            help="Wait until it has ended, and show its progress on the standard error.")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...], tuple[Any, ...]]:
        requests = Requests(self.app)
        found = requests.operation(parsed_args.operation)
        if parsed_args.wait:
            found = progress.wait(found, lambda: requests.operation(parsed_args.operation), sys.stderr)
            self._failed = found["status"] != "finished" or bool(found["progress"]["failed"])
        return _SHOWN, row(found, _SHOWN)

    def run(self, parsed_args: argparse.Namespace) -> int:
        return super().run(parsed_args) or int(self._failed)


class CancelOperations(command.Command):
    """Cancel operations: nodes that are left stay as they are, those that are done stay done."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("operations", metavar="<operation>", nargs="+", help="UUID(s) of the operation(s).")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        requests = Requests(self.app)
        for operation in parsed_args.operations:
            before = requests.operation(operation)["status"]
            requests.cancel_operation(operation)
            print(f"Cancelled operation {operation}." if before == "running" else
                  f"Operation {operation} has already ended: it is {before}.", file=self.app.stdout)


def waited(requests: Requests, operation: dict[str, Any], stream: TextIO) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Wait until an operation has ended; return the names of what is shown of it, and the operation as it is then.

    :param stream: gets the progress
    """
    return _ENDED, progress.wait(operation, lambda: requests.operation(operation["uuid"]), stream)


def row(operation: dict[str, Any], names: tuple[str, ...]) -> tuple[Any, ...]:
    """Return what is shown of an operation."""
    return tuple(_FORMS[name](operation[name]) if name in _FORMS else operation[name] for name in names)
