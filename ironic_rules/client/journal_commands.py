"""Commands about the journal of refused callbacks.

Entry point group ``openstack.baremetal.v1``, which python-ironicclient defines.
"""

from __future__ import annotations

import argparse
from typing import Any

from cliff import columns
from osc_lib import exceptions
from osc_lib.command import command

from ironic_rules.client import upstream
from ironic_rules.client.rule_requests import Requests

Rows = tuple[tuple[str, ...], list[tuple[Any, ...]]]

_SUMMARY = ("uuid", "seen_at", "times", "reason", "source", "macs", "bmc_addresses", "nodes")
_SHOWN = ("uuid", "created_at", "seen_at", "times", "reason", "detail", "source", "node_uuid", "macs", "bmc_addresses",
          "nodes", "report")
_CREATED = ("uuid", "name", "driver", "provision_state")
#: Options of ``enroll`` that are texts, and those that are pairs.
_TEXTS = ("driver", "name", "resource_class", "conductor_group", "owner")
_PAIRS = ("driver_info", "properties", "extra")


class _Addresses(columns.FormattableColumn):  # type: ignore[type-arg]  # not generic in earlier versions of cliff
    """Addresses; in a table one in each line."""

    def human_readable(self) -> str:
        return "\n".join(self._value)


class _Nodes(columns.FormattableColumn):  # type: ignore[type-arg]  # not generic in earlier versions of cliff
    """The nodes that came near; in a table with their states."""

    def human_readable(self) -> str:
        return "\n".join(f"{node['node']} ({node['provision_state']})" for node in self._value)


_FORMS: dict[str, Any] = {"macs": _Addresses, "bmc_addresses": _Addresses, "nodes": _Nodes}


class ListEntries(command.Lister):
    """List machines whose callbacks were refused, and why, the one that was noted first at the beginning."""

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
        found = Requests(self.app).journal(parsed_args.node, filters, parsed_args.limit)
        return _SUMMARY, [_row(entry, _SUMMARY) for entry in found]


class ShowEntry(command.ShowOne):
    """Show a machine whose callbacks were refused: why, and which nodes came near."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("entry", metavar="<entry>", help="UUID of the entry of the journal.")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...], tuple[Any, ...]]:
        return _SHOWN, _row(Requests(self.app).journal_entry(parsed_args.entry), _SHOWN)


class EnrollMachine(command.ShowOne):
    """Create a node for a machine whose callbacks were refused; its next callback is accepted."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("entry", metavar="<entry>", help="UUID of the entry of the journal.")
        parser.add_argument("--driver", metavar="<driver>", required=True, help="Driver of the node.")
        parser.add_argument("--name", metavar="<name>", help="Name of the node.")
        parser.add_argument("--resource-class", metavar="<resource_class>", help="Resource class of the node.")
        parser.add_argument("--conductor-group", metavar="<conductor_group>", help="Conductor group of the node.")
        parser.add_argument("--owner", metavar="<owner>", help="Owner of the node.")
        for option, name, what in (("--driver-info", "driver_info", "access to the BMC"),
                                   ("--property", "properties", "a property"), ("--extra", "extra", "extra data")):
            parser.add_argument(option, dest=name, metavar="<key=value>", action="append", default=[],
                                help=f"Key and value of {what}. Can be specified multiple times.")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...], tuple[Any, ...]]:
        fields = {name: value for name in _TEXTS if (value := getattr(parsed_args, name)) is not None}
        fields |= {name: upstream.pairs(given) for name in _PAIRS if (given := getattr(parsed_args, name))}
        node = Requests(self.app).enroll(parsed_args.entry, fields)
        return _CREATED, tuple(node[name] for name in _CREATED)


def _row(entry: dict[str, Any], names: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(_FORMS[name](entry[name]) if name in _FORMS else entry[name] for name in names)
