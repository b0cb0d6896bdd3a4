"""Commands about nodes, deploy templates, steps and flavors.

Commands that python-ironicclient lacks are in its entry point group ``openstack.baremetal.v1``. ``baremetal node list``
and ``baremetal deploy template create`` are its own commands with the options of documents 001 and 003 that they lack;
those are in the group ``openstack.extension``, like the commands for rules (``extended_commands``). Flavors are created
and changed with ``openstack flavor …``.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import urlencode

from osc_lib import exceptions
from osc_lib.command import command

from ironic_rules.client import upstream
from ironic_rules.client.rule_requests import Requests

#: Fields of nodes by which python-ironicclient sorts.
_FIELDS = frozenset(upstream.NODE_FIELDS)


class OfNode(command.Command):
    """A command whose first argument is a node. The other base class comes after this one."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("node", metavar="<node>", help="Name or UUID of the node.")
        return parser


def add_filter_arguments(parser: Any) -> None:
    """Add ``--all``, ``--filter`` and ``--where`` to a parser, or to a group of one."""
    parser.add_argument("--all", action="store_true", dest="all_nodes", help="All nodes.")
    parser.add_argument("--filter", metavar="<name>=<value>", dest="filters", action="append", default=[],
                        help="The nodes of a list with this filter, such as driver=ipmi; may be repeated.")
    parser.add_argument("--where", metavar="<clause>",
                        help="The nodes that a question selects, e.g. 'vendor = Dell and memory_gib >= 512'.")


def chosen_filters(parsed_args: argparse.Namespace) -> dict[str, str] | None:
    """Return the filters, empty for all nodes; None if none of the options was given.

    :raises CommandError: one of them is not a name with a value
    """
    filters = {} if parsed_args.where is None else {"where": parsed_args.where}
    for option in parsed_args.filters:
        name, separator, value = option.partition("=")
        if not (name and separator):
            raise exceptions.CommandError(f"--filter must be a name with a value, such as driver=ipmi, not {option}")
        filters[name] = value
    return filters if filters or parsed_args.all_nodes else None


class _SelectedNodes(upstream.NodeManager):  # type: ignore[misc]
    """Lists nodes as python-ironicclient does, with more parameters; also when it follows links to more pages.

    :ivar found: the nodes of the last list
    """

    def __init__(self, api: Any, query: dict[str, str]) -> None:
        super().__init__(api)
        self._more = urlencode(query)
        self.found: list[Any] = []

    def _path(self, resource_id: str | None = None) -> str:
        path: str = super()._path(resource_id)
        return f"{path}{'&' if '?' in path else '?'}{self._more}"

    def list(self, *args: Any, **kwargs: Any) -> Any:
        self.found = super().list(*args, **kwargs)
        return self.found


class ListNodes(upstream.ListNodes):
    """List baremetal nodes"""

    # If python-ironicclient adds one of the options, ours replaces it instead of raising an error.
    conflict_handler = "resolve"

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        parser.add_argument("--auto-discovered", action="store_true",
                            help="Only nodes that were enrolled by auto-discovery.")
        parser.add_argument("--where", metavar="<clause>",
                            help="Only these nodes, e.g. 'vendor = Dell and memory_gib >= 512'.")
        parser.add_argument("--fact", metavar="<fact>", action="append", dest="facts", default=[],
                            help="Show this fact of each node; may be repeated.")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        query = {"auto_discovered": "true"} if parsed_args.auto_discovered else {}
        if parsed_args.where is not None:
            query["where"] = parsed_args.where
        if parsed_args.facts:
            query["facts"] = ",".join(parsed_args.facts)
        query |= _order(parsed_args)
        if not query:
            return super().take_action(parsed_args)
        client = self.app.client_manager.baremetal
        everything, client.node = client.node, _SelectedNodes(client.node.api, query)
        try:
            columns, rows = super().take_action(parsed_args)
            return (*columns, *parsed_args.facts), [
                (*row, *_facts_of(node, parsed_args.facts)) for row, node in zip(rows, client.node.found, strict=True)
            ] if parsed_args.facts else rows
        finally:
            client.node = everything


def _order(parsed_args: argparse.Namespace) -> dict[str, str]:
    """Return the parameters for an order that the service has to make: that of a fact, or with facts as columns.

    :raises CommandError: there are several keys
    """
    keys = [key.strip() for key in (parsed_args.sort or "").split(",") if key.strip()]
    names = [key.partition(":")[0].replace(" ", "_").lower() for key in keys]
    if not keys or not (parsed_args.facts or any(name not in _FIELDS for name in names)):
        return {}
    if len(keys) > 1:
        raise exceptions.CommandError("Nodes with facts are sorted by one key.")
    parsed_args.sort = None
    direction = keys[0].partition(":")[2] or "asc"
    return {"sort_key": names[0] if names[0] in _FIELDS else f"fact:{names[0]}", "sort_dir": direction}


def _facts_of(node: Any, names: Sequence[str]) -> Iterator[Any]:
    for name in names:
        value = node.facts[name]
        yield ", ".join(map(str, value)) if isinstance(value, list) else value


class CreateTemplate(upstream.CreateTemplate):
    """Create a new deploy template"""

    conflict_handler = "resolve"

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        # Only the actions of a parser can make an argument optional that python-ironicclient has added as required.
        for action in parser._actions:
            if action.dest == "name":
                action.nargs, action.required = "?", False
        parser.add_argument("--name", dest="name_option", metavar="<name>",
                            help="The same as <name>, one of which is required.")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...], tuple[object, ...]]:
        names = {parsed_args.name, parsed_args.name_option} - {None}
        if len(names) != 1:
            raise exceptions.CommandError(
                "A deploy template needs a name." if not names else
                f"A deploy template has one name, but {parsed_args.name} and --name {parsed_args.name_option} are two.")
        parsed_args.name = names.pop()
        shown: tuple[tuple[str, ...], tuple[object, ...]] = super().take_action(parsed_args)
        return shown


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
        reply = Requests(self.app).deploy_steps(parsed_args.node, parsed_args.traits)
        for problem in reply["problems"]:
            self._failed = True
            print(problem, file=sys.stderr)
        # Services of earlier versions have none.
        for warning in reply.get("warnings", ()):
            print(f"Warning: {warning['text']}", file=sys.stderr)
        return ("priority", "interface", "step", "args", "source"), [
            (step["priority"], step["interface"], step["step"], json.dumps(step["args"]), step["source"])
            for step in reply["deploy_steps"]]

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
        nodes = Requests(self.app).template_nodes(parsed_args.template, parsed_args.limit)
        return ("uuid", "name", "driver", "supported", "problems"), [
            (node["uuid"], node["name"], node["driver"], node["supported"], "; ".join(node["problems"]))
            for node in nodes]


class CheckFlavor(command.Lister):
    """List the problems of the extra specs of a flavor, and warnings. The exit status is 1 if there are problems."""

    _failed = False

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("flavor", metavar="<flavor>", help="Name or ID of the flavor.")
        parser.add_argument("--permissive", action="store_true", help="Unknown keys are warnings, not problems.")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        reply = Requests(self.app).check_flavor(
            parsed_args.flavor, "permissive" if parsed_args.permissive else "strict")
        self._failed = bool(reply["problems"])
        return ("severity", "kind", "key", "text"), [
            (severity, item["kind"], item["key"], item["text"])
            for severity, items in (("problem", reply["problems"]), ("warning", reply["warnings"])) for item in items]

    def run(self, parsed_args: argparse.Namespace) -> int:
        return super().run(parsed_args) or int(self._failed)


class ExplainFlavor(command.ShowOne):
    """Show what a flavor requires of nodes, which nodes have it, and what its deployment runs."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("flavor", metavar="<flavor>", help="Name or ID of the flavor.")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...], tuple[Any, ...]]:
        flavor = Requests(self.app).explain_flavor(parsed_args.flavor)
        for warning in flavor["warnings"]:
            print(f"{warning['pointer']}: {warning['text']}", file=sys.stderr)
        deployment = flavor["deployment"]
        shown: dict[str, Any] = {
            "flavor": f"{flavor['flavor']['name']} ({flavor['flavor']['id']})",
            "resource_class": flavor["resource_class"]["name"],
            "required_traits": _lines(
                f"{item['trait']}: {item['nodes']} nodes, "
                + (f"deploy template {item['deploy_template']['name']}" if item["deploy_template"]
                   else "no deploy template") for item in flavor["required_traits"]),
            "forbidden_traits": _lines(
                f"{item['trait']}: {item['nodes']} nodes" for item in flavor["forbidden_traits"]),
            "capabilities": _lines(
                f"{item['name']} {item['value']}: {item['nodes']} nodes" for item in flavor["capabilities"]),
            "schedulable": flavor["schedulable"],
            "fitting": _nodes(flavor["fitting"]),
            "nearly_fitting": _lines(
                f"{item['lacks']['kind']} {item['lacks']['name']}: {_nodes(item)}"
                for item in flavor["nearly_fitting"]),
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
