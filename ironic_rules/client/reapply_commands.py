"""The command that runs hooks and rules again over the stored data of nodes.

Entry point group ``openstack.baremetal.v1``, which python-ironicclient defines.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from typing import Any

from cliff import columns
from osc_lib import exceptions
from osc_lib.command import command

from ironic_rules.client import node_filters, operation_commands, progress
from ironic_rules.client.rule_requests import Requests

_SHOWN = ("operation", "node", "status", "error", "result")


class ResultGroups(columns.FormattableColumn):  # type: ignore[type-arg]  # not generic in earlier versions of cliff
    """The results of a dry run, each with its number of nodes; in a table one in each line."""

    def human_readable(self) -> str:
        return "\n".join(f"{each['number']} nodes: {told(each['result'])}" for each in self._value)


def told(result: Mapping[str, Any]) -> str:
    """Return in a line what a dry run would change."""
    if result["failure"] is not None:
        return f"{result['outcome']}: {result['failure'].get('reason', '')}"
    parts = {"node": result["node"]["patch"], "traits": result["traits"], "plugin_data": result["plugin_data"]["patch"]}
    parts |= {name: result[name] for name in ("ports", "ports_created", "ports_removed", "would")}
    changed = {name: value for name, value in parts.items() if value and value != {"added": [], "removed": []}}
    return json.dumps(changed) if changed else "nothing"


class ReapplyRules(command.ShowOne):
    """Run hooks and rules again over the data of the last inspection of a node, or of many, without a machine.

    The exit status is 1 if they fail on any of them, or the operation was cancelled: then the node is as it was.
    """

    _failed = False

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("node", metavar="<node>", nargs="?", help="Name or UUID of the node.")
        node_filters.add_arguments(parser)
        parser.add_argument("--dry-run", action="store_true", help="Change nothing, and show what would be changed.")
        parser.add_argument("--allow-deployed", action="store_true",
                            help="Also if the node has an instance: then only rules change it, and no port is added or "
                                 "removed.")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...], tuple[Any, ...]]:
        requests = Requests(self.app)
        filters = node_filters.chosen(parsed_args)
        if (parsed_args.node is None) == (filters is None):
            raise exceptions.CommandError("Either a node, or --all, or --filter is required")
        if filters is not None:
            return self._many(requests, filters, parsed_args)
        begun = requests.reapply(parsed_args.node, parsed_args.dry_run, parsed_args.allow_deployed)
        uuid = begun["uuid"]
        ended = progress.wait(begun, lambda: requests.operation(uuid), sys.stderr)
        node, = requests.operation_nodes(uuid)
        # A node that no conductor has begun with when it was cancelled is still left.
        self._failed = node["status"] in ("failed", "left")
        status = ended["status"] if node["status"] == "left" else node["status"]
        return _SHOWN, (uuid, node["node"], status, node["error"], node["result"])

    def _many(self, requests: Requests, filters: dict[str, str],
              parsed_args: argparse.Namespace) -> tuple[tuple[str, ...], tuple[Any, ...]]:
        begun = requests.reapply_nodes(filters, parsed_args.dry_run, parsed_args.allow_deployed)
        names, ended = operation_commands.waited(requests, begun, sys.stderr)
        self._failed = ended["status"] != "finished" or bool(ended["progress"]["failed"])
        shown = operation_commands.row(ended, names)
        if not parsed_args.dry_run:
            return names, shown
        return (*names, "groups"), (*shown, ResultGroups(requests.operation_groups(begun["uuid"])))

    def run(self, parsed_args: argparse.Namespace) -> int:
        return super().run(parsed_args) or int(self._failed)
