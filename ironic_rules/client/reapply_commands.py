"""The command that runs hooks and rules again over the stored data of a node.

Entry point group ``openstack.baremetal.v1``, which python-ironicclient defines.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from osc_lib.command import command

from ironic_rules.client import progress
from ironic_rules.client.of_node import OfNode
from ironic_rules.client.rule_requests import Requests

_SHOWN = ("operation", "node", "status", "error", "result")


class ReapplyRules(OfNode, command.ShowOne):
    """Run hooks and rules again over the data of a node's last inspection, without a machine.

    The exit status is 1 if they fail, or the operation was cancelled: then the node is as it was.
    """

    _failed = False

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("--dry-run", action="store_true", help="Change nothing, and show what would be changed.")
        parser.add_argument("--allow-deployed", action="store_true",
                            help="Also if the node has an instance: then only rules change it, and no port is added or "
                                 "removed.")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...], tuple[Any, ...]]:
        requests = Requests(self.app)
        begun = requests.reapply(parsed_args.node, parsed_args.dry_run, parsed_args.allow_deployed)
        uuid = begun["uuid"]
        ended = progress.wait(begun, lambda: requests.operation(uuid), sys.stderr)
        node, = requests.operation_nodes(uuid)
        # A node that no conductor has begun with when it was cancelled is still left.
        self._failed = node["status"] in ("failed", "left")
        status = ended["status"] if node["status"] == "left" else node["status"]
        return _SHOWN, (uuid, node["node"], status, node["error"], node["result"])

    def run(self, parsed_args: argparse.Namespace) -> int:
        return super().run(parsed_args) or int(self._failed)
