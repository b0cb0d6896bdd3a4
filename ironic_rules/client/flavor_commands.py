"""Commands about flavors; those that create and change flavors are ``openstack flavor …``.

Entry point group ``openstack.baremetal.v1``, which python-ironicclient defines.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from osc_lib.command import command

from ironic_rules.client.rule_requests import Requests

Rows = tuple[tuple[str, ...], list[tuple[Any, ...]]]


class CheckFlavor(command.Lister):
    """List the problems of the extra specs of a flavor, and warnings. The exit status is 1 if there are problems."""

    _failed = False

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("flavor", metavar="<flavor>", help="Name or ID of the flavor.")
        parser.add_argument("--permissive", action="store_true",
                            help="Unknown keys are warnings, not problems.")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        found = Requests(self.app).check_flavor(
            parsed_args.flavor, "permissive" if parsed_args.permissive else "strict")
        self._failed = bool(found["problems"])
        return ("severity", "kind", "key", "text"), [
            (severity, item["kind"], item["key"], item["text"])
            for severity, items in (("problem", found["problems"]), ("warning", found["warnings"])) for item in items]

    def run(self, parsed_args: argparse.Namespace) -> int:
        return super().run(parsed_args) or int(self._failed)


class ExplainFlavor(command.ShowOne):
    """Show what a flavor requires of nodes, which nodes have it, and what its deployment runs."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("flavor", metavar="<flavor>", help="Name or ID of the flavor.")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...], tuple[Any, ...]]:
        told = Requests(self.app).explain_flavor(parsed_args.flavor)
        for warning in told["warnings"]:
            print(f"{warning['pointer']}: {warning['text']}", file=sys.stderr)
        deployment = told["deployment"]
        shown: dict[str, Any] = {
            "flavor": f"{told['flavor']['name']} ({told['flavor']['id']})",
            "resource_class": told["resource_class"]["name"],
            "required_traits": _lines(
                f"{item['trait']}: {item['nodes']} nodes, "
                + (f"deploy template {item['deploy_template']['name']}" if item["deploy_template"]
                   else "no deploy template") for item in told["required_traits"]),
            "forbidden_traits": _lines(
                f"{item['trait']}: {item['nodes']} nodes" for item in told["forbidden_traits"]),
            "capabilities": _lines(
                f"{item['name']} {item['value']}: {item['nodes']} nodes" for item in told["capabilities"]),
            "schedulable": told["schedulable"],
            "fitting": _nodes(told["fitting"]),
            "nearly_fitting": _lines(
                f"{item['lacks']['kind']} {item['lacks']['name']}: {_nodes(item)}" for item in told["nearly_fitting"]),
            "deploy_node": deployment["node"] and (deployment["node"]["name"] or deployment["node"]["uuid"]),
            "deploy_steps": deployment["reason"] or _lines(
                f"{step['priority']} {step['interface']}.{step['step']} {json.dumps(step['args'])} ({step['source']})"
                for step in deployment["deploy_steps"]),
            "deploy_problems": _lines(deployment["problems"]),
        }
        return tuple(shown), tuple(shown.values())


def _lines(items: Any) -> str:
    return "\n".join(items)


def _nodes(part: dict[str, Any]) -> str:
    """Return the number of nodes, and the names of those that the service names."""
    names = ", ".join(node["name"] or node["uuid"] for node in part["nodes"])
    rest = ", …" if part["count"] > len(part["nodes"]) else ""
    return f"{part['count']} ({names}{rest})" if names else str(part["count"])
