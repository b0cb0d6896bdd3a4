"""Commands about deploy templates that python-ironicclient does not have.

Entry point group ``openstack.baremetal.v1``, which python-ironicclient defines.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from osc_lib import exceptions
from osc_lib.command import command

from ironic_rules.client.of_node import OfNode
from ironic_rules.client.rule_requests import Requests

Rows = tuple[tuple[str, ...], list[tuple[Any, ...]]]


class ListDeploySteps(OfNode, command.Lister):
    """List the steps that a deployment of a node would run, in order. The exit status is 1 if it could not start."""

    _failed = False

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("--trait", metavar="<trait>", action="append", dest="traits",
                            help="A trait of the instance, instead of those in instance_info of the node "
                                 "(can be specified multiple times).")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        found = Requests(self.app).deploy_steps(parsed_args.node, parsed_args.traits)
        for problem in found["problems"]:
            self._failed = True
            print(problem, file=sys.stderr)
        # Services of earlier versions have none.
        for warning in found.get("warnings", ()):
            print(f"Warning: {warning['text']}", file=sys.stderr)
        return ("priority", "interface", "step", "args", "source"), [
            (step["priority"], step["interface"], step["step"], json.dumps(step["args"]), step["source"])
            for step in found["deploy_steps"]]

    def run(self, parsed_args: argparse.Namespace) -> int:
        return super().run(parsed_args) or int(self._failed)


class ListTemplateNodes(command.Lister):
    """List the nodes that have the name of a deploy template among their traits, and whether they support it."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("template", metavar="<template>", help="Name or UUID of the deploy template.")
        parser.add_argument("--limit", metavar="<limit>", type=int,
                            help="Maximum number of nodes; 0 for all. Default: one page.")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        if parsed_args.limit is not None and parsed_args.limit < 0:
            raise exceptions.CommandError(f"Expected non-negative --limit, got {parsed_args.limit}")
        found = Requests(self.app).template_nodes(parsed_args.template, parsed_args.limit)
        return ("uuid", "name", "driver", "supported", "problems"), [
            (node["uuid"], node["name"], node["driver"], node["supported"], "; ".join(node["problems"]))
            for node in found]
