"""Commands about operations on many nodes, rejected reports, shared addresses, and versions of inventories.

Entry point group ``openstack.baremetal.v1``, which python-ironicclient defines.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from typing import Any, TextIO

from cliff import columns
from osc_lib import exceptions
from osc_lib.command import command

from ironic_rules.client import output, upstream
from ironic_rules.client.node_commands import OfNode
from ironic_rules.client.rule_requests import Requests

Rows = tuple[tuple[str, ...], list[tuple[Any, ...]]]

_OPERATION_SUMMARY = ("uuid", "kind", "status", "created_at", "progress")
_OPERATION_SHOWN = ("uuid", "kind", "status", "created_at", "updated_at", "user", "filters", "progress", "errors")
_ENDED = ("uuid", "status", "filters", "progress", "errors")


class _Progress(columns.FormattableColumn):  # type: ignore[type-arg]  # not generic in earlier versions of cliff
    """The numbers of nodes; in a table as a sentence."""

    def human_readable(self) -> str:
        return output.progress_line(self._value)


class _Errors(columns.FormattableColumn):  # type: ignore[type-arg]  # not generic in earlier versions of cliff
    """The nodes on which it failed; in a table one in each line."""

    def human_readable(self) -> str:
        return "\n".join(f"{item['node']}: {item['error']}" for item in self._value)


_OPERATION_FORMS: dict[str, Any] = {"progress": _Progress, "errors": _Errors}


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
        return _OPERATION_SUMMARY, [operation_row(operation, _OPERATION_SUMMARY)
                                    for operation in Requests(self.app).operations(parsed_args.limit)]


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
        operation = requests.operation(parsed_args.operation)
        if parsed_args.wait:
            operation = output.wait_for_operation(
                operation, lambda: requests.operation(parsed_args.operation), sys.stderr)
            self._failed = operation["status"] != "finished" or bool(operation["progress"]["failed"])
        return _OPERATION_SHOWN, operation_row(operation, _OPERATION_SHOWN)

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


def waited_operation(requests: Requests, operation: dict[str, Any], stream: TextIO) -> tuple[tuple[str, ...],
                                                                                             dict[str, Any]]:
    """Wait until an operation has ended; return the names of what is shown of it, and the operation as it is then.

    :param stream: gets the progress
    """
    return _ENDED, output.wait_for_operation(operation, lambda: requests.operation(operation["uuid"]), stream)


def operation_row(operation: dict[str, Any], names: tuple[str, ...]) -> tuple[Any, ...]:
    """Return the shown values of an operation."""
    return tuple(_OPERATION_FORMS[name](operation[name]) if name in _OPERATION_FORMS else operation[name]
                 for name in names)


_SUMMARY = ("uuid", "seen_at", "times", "reason", "source", "macs", "bmc_addresses", "nodes")
_SHOWN = ("uuid", "created_at", "seen_at", "times", "reason", "detail", "source", "node_uuid", "macs", "bmc_addresses",
          "nodes", "report")
_CREATED = ("uuid", "name", "driver", "provision_state")
#: Options of ``enroll`` that are texts, and those that are pairs.
_TEXTS = ("driver", "name", "resource_class", "conductor_group", "owner")
_PAIRS = ("driver_info", "properties", "extra")


class _Lines(columns.FormattableColumn):  # type: ignore[type-arg]  # not generic in earlier versions of cliff
    """Addresses or UUIDs; in a table one in each line."""

    def human_readable(self) -> str:
        return "\n".join(self._value)


class _Nodes(columns.FormattableColumn):  # type: ignore[type-arg]  # not generic in earlier versions of cliff
    """Near matches; in a table with their states."""

    def human_readable(self) -> str:
        return "\n".join(f"{node['node']} ({node['provision_state']})" for node in self._value)


_FORMS: dict[str, type[_Lines | _Nodes]] = {"macs": _Lines, "bmc_addresses": _Lines, "nodes": _Nodes}


class ListEntries(command.Lister):
    """List machines whose reports were rejected, and why, the one that was noted first at the beginning."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("--mac", metavar="<address>", help="Only machines with this MAC address.")
        parser.add_argument("--address", metavar="<address>", help="Only machines whose BMC has this IP address.")
        parser.add_argument("--node", metavar="<node>",
                            help="Only machines with an address, or the UUID, of this node (name or UUID).")
        parser.add_argument("--reason", metavar="<reason>",
                            help="Only machines refused for this reason, e.g. 'wrong state'.")
        parser.add_argument("--limit", metavar="<limit>", type=int, default=0,
                            help="Maximum number of entries; 0 for all, which is the default.")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        if parsed_args.limit < 0:
            raise exceptions.CommandError(f"Expected non-negative --limit, got {parsed_args.limit}")
        if parsed_args.node is not None and (parsed_args.mac is not None or parsed_args.address is not None):
            raise exceptions.CommandError("--node cannot be used together with --mac or --address")
        filters = {name: getattr(parsed_args, name) for name in ("mac", "address", "reason")}
        entries = Requests(self.app).journal(parsed_args.node, filters, parsed_args.limit)
        return _SUMMARY, [_row(entry, _SUMMARY) for entry in entries]


class ShowEntry(command.ShowOne):
    """Show a machine whose reports were rejected: why, and near matches."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("entry", metavar="<entry>", help="UUID of the entry of the journal.")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...], tuple[Any, ...]]:
        return _SHOWN, _row(Requests(self.app).journal_entry(parsed_args.entry), _SHOWN)


class EnrollMachine(command.ShowOne):
    """Create a node for a machine whose reports were rejected; its next report is accepted."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("entry", metavar="<entry>", help="UUID of the entry of the journal.")
        parser.add_argument("--driver", metavar="<driver>", required=True, help="Driver of the node.")
        parser.add_argument("--name", metavar="<name>", help="Name of the node.")
        parser.add_argument("--resource-class", metavar="<resource_class>", help="Resource class of the node.")
        parser.add_argument("--conductor-group", metavar="<conductor_group>", help="Conductor group of the node.")
        parser.add_argument("--owner", metavar="<owner>", help="Owner of the node.")
        for option, name, noun in (("--driver-info", "driver_info", "access to the BMC"),
                                   ("--property", "properties", "a property"), ("--extra", "extra", "extra data")):
            parser.add_argument(option, dest=name, metavar="<key=value>", action="append", default=[],
                                help=f"Key and value of {noun}. Can be specified multiple times.")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...], tuple[Any, ...]]:
        fields = {name: value for name in _TEXTS if (value := getattr(parsed_args, name)) is not None}
        fields |= {name: upstream.pairs(texts) for name in _PAIRS if (texts := getattr(parsed_args, name))}
        node = Requests(self.app).enroll(parsed_args.entry, fields)
        return _CREATED, tuple(node[name] for name in _CREATED)


def _row(entry: dict[str, Any], names: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(_FORMS[name](entry[name]) if name in _FORMS else entry[name] for name in names)


_SHARED = ("address", "created_at", "nodes", "port_of")


class ListSharedMACs(command.Lister):
    """List MAC addresses that machines of several nodes have reported, so that they identify no machine."""

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        return _SHARED, [
            tuple(_Lines(mac[name]) if name == "nodes" else mac[name] for name in _SHARED)
            for mac in Requests(self.app).shared_macs()]


class DeleteSharedMACs(command.Command):
    """Forget that MAC addresses are shared, until machines of several nodes report them again."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("addresses", metavar="<address>", nargs="+", help="MAC address(es) to forget.")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        requests = Requests(self.app)
        failures = []
        for address in parsed_args.addresses:
            try:
                requests.forget_shared_mac(address)
            except exceptions.CommandError as error:
                failures.append(f"{address}: {error}")
            else:
                print(f"Deleted shared MAC address {address}", file=self.app.stdout)
        if failures:
            raise exceptions.CommandError("\n".join(failures))


_VERSION = ("version", "status", "created_at", "updated_at", "request_id")
_LISTS = ("disks", "interfaces", "pci_devices", "firmware_components")
_OBJECTS = ("memory", "firmware")
#: By what a part that came or went is named.
_NAMES = ("serial", "mac_address", "bus", "id", "wwn", "name")
_NO_VALUE = "nothing"


class ListVersions(OfNode, command.Lister):
    """List the inspections of a node whose data are kept."""

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        versions = Requests(self.app).inventory_versions(parsed_args.node)
        return _VERSION, [tuple(version[name] for name in _VERSION) for version in versions]


class DiffVersions(OfNode, command.Lister):
    """Show the changes in the hardware of a node between two inspections.

    By default, these are the last two that were successful.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("--from", metavar="<version>", type=int, dest="before",
                            help="Version to compare with. Default: the last successful one before the other.")
        parser.add_argument("--to", metavar="<version>", type=int, dest="after",
                            help="Version that is compared. Default: the last successful one.")
        parser.add_argument("--patch", action="store_true",
                            help="Show the JSON patch (RFC 6902) of the whole inventory.")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        differences = Requests(self.app).inventory_diff(parsed_args.node, parsed_args.before, parsed_args.after)
        if parsed_args.patch:
            return ("op", "path", "value"), [
                (operation["op"], operation["path"], json.dumps(operation["value"]) if "value" in operation else "")
                for operation in differences["patch"]]
        return ("part", "identity", "change", "details"), list(_rows(differences))


def _rows(differences: dict[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    for part in _LISTS:
        for change in ("added", "removed"):
            for item in differences[part][change]:
                yield part, _name(item), change, json.dumps(item)
        for item in differences[part]["changed"]:
            yield part, _name(item["identity"]), "changed", _changes(item["changes"])
    for part in _OBJECTS:
        if differences[part]:
            yield part, "", "changed", _changes(differences[part])


def _name(item: dict[str, Any]) -> str:
    return next((str(item[name]) for name in _NAMES if item.get(name)), "")


def _changes(fields: dict[str, Any]) -> str:
    return "; ".join(f"{name}: {_value(change, 'before')} -> {_value(change, 'after')}"
                     for name, change in fields.items())


def _value(change: dict[str, Any], side: str) -> str:
    return json.dumps(change[side]) if side in change else _NO_VALUE
