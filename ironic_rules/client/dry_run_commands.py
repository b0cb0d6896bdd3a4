"""Commands about dry runs of rules and about past inspections.

Entry point group ``openstack.baremetal.v1``, which python-ironicclient defines.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import yaml
from osc_lib import exceptions
from osc_lib.command import command

from ironic_rules.client import node_filters, operation_commands, reapply_commands, rule_file
from ironic_rules.client.of_node import OfNode
from ironic_rules.client.rule_requests import Requests

Rows = tuple[tuple[str, ...], list[tuple[Any, ...]]]

_COLUMNS = ("data", "step", "outcome", "changes", "why")
_INSPECTION = ("uuid", "created_at", "kind", "outcome")
_SHOWN = (*_INSPECTION, "started_at", "user", "source", "conductor", "request_id", "inventory_id", "seconds", "rules",
          "messages", "failure")


class TestRules(command.Lister):
    """Try rules of a file on data of machines, without storing them. The exit status is 1 if a result is not expected.

    Without --expect, an inspection has to finish.
    """

    _failed = False

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("file", metavar="<file>", help="File, or directory, with the rules (YAML or JSON).")
        data = parser.add_mutually_exclusive_group(required=True)
        data.add_argument("--node", metavar="<node>", dest="nodes", nargs="+", default=[],
                          help="Names or UUIDs of nodes: the data are those of their last inspections.")
        node_filters.add_arguments(data)
        data.add_argument("--inventory", metavar="<file>", dest="inventories", nargs="+", default=[],
                          help="Files (JSON or YAML) with what ramdisks send.")
        parser.add_argument("--expect", metavar="<file>",
                            help="File (JSON or YAML) with the fields that each answer has to have.")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        given = rule_file.read(parsed_args.file)
        expected = {"outcome": "finished"} if parsed_args.expect is None else _read(parsed_args.expect)
        if not isinstance(expected, dict):
            raise exceptions.CommandError(f"{parsed_args.expect}: must be an object")
        requests = Requests(self.app)
        rows: list[tuple[Any, ...]] = []
        filters = node_filters.chosen(parsed_args)
        if filters is not None:
            return _COLUMNS, self._many(requests, given, filters, expected)
        asked = [(node, {"node": node}) for node in parsed_args.nodes]
        asked += [(file, {"report": _read(file)}) for file in parsed_args.inventories]
        for name, body in asked:
            try:
                found = requests.dry_run({**body, "rules": given.rules})
            except exceptions.CommandError as error:
                raise exceptions.CommandError(given.explained(str(error))) from error
            rows += [(name, *row) for row in _steps(found)]
            for key, value in expected.items():
                if found.get(key) != value:
                    self._failed = True
                    rows.append((name, f"expected {key}", "different", json.dumps(found.get(key)), json.dumps(value)))
        return _COLUMNS, rows

    def _many(self, requests: Requests, given: rule_file.GivenRules, filters: dict[str, str],
              expected: dict[str, Any]) -> list[tuple[Any, ...]]:
        """Return what an inspection of each of many nodes would do, once for those with the same result."""
        try:
            operation = requests.dry_run({"nodes": filters, "rules": given.rules})
        except exceptions.CommandError as error:
            raise exceptions.CommandError(given.explained(str(error))) from error
        _, ended = operation_commands.waited(requests, operation, sys.stderr)
        self._failed = ended["status"] != "finished" or bool(ended["errors"])
        rows: list[tuple[Any, ...]] = []
        for group in requests.operation_groups(operation["uuid"]):
            result = group["result"]
            self._failed |= any(result.get(key) != value for key, value in expected.items())
            why = "" if result["failure"] is None else result["failure"].get("reason", "")
            rows.append((f"{group['number']} nodes", "the inspection", result["outcome"],
                         reapply_commands.told({**result, "failure": None}) if "node" in result else "", why))
        return rows + [(each["node"], "the inspection", "not tried", "", each["error"]) for each in ended["errors"]]

    def run(self, parsed_args: argparse.Namespace) -> int:
        return super().run(parsed_args) or int(self._failed)


class ExplainRule(command.Lister):
    """Show why a stored rule matches the data of a node's last inspection, or why it does not.

    With --inventory the data are those of a file, with --node as if that node had sent them; early rules run then, too.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("rule", metavar="<rule>", help="UUID of the rule.")
        parser.add_argument("--node", metavar="<node>", help="Name or UUID of the node.")
        parser.add_argument("--inventory", metavar="<file>", help="File (JSON or YAML) with what a ramdisk sends.")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        if parsed_args.node is None and parsed_args.inventory is None:
            raise exceptions.CommandError("--node, --inventory, or both are required")
        asked = {} if parsed_args.node is None else {"node": parsed_args.node}
        if parsed_args.inventory is not None:
            asked["report"] = _read(parsed_args.inventory)
        requests = Requests(self.app)
        found = requests.dry_run(asked)
        for step in found["steps"]:
            if step.get("rule") == parsed_args.rule.lower():
                return ("condition", "op", "outcome", "why", "arguments"), list(_conditions(step))
        requests.rule(parsed_args.rule)  # it may not exist at all
        failure = f": {json.dumps(found['failure'])}" if found["failure"] else ""
        raise exceptions.CommandError(
            f"The rule {parsed_args.rule} is not evaluated for the node: it is disabled, or of another scope, or the "
            f"inspection would end before it{failure}; or it is an early rule, which needs --inventory")


class ListInspections(OfNode, command.Lister):
    """List the past inspections of a node, the oldest first."""

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        found = Requests(self.app).inspections(parsed_args.node)
        return _INSPECTION, [tuple(each[name] for name in _INSPECTION) for each in found]


class ShowInspection(OfNode, command.ShowOne):
    """Show a past inspection of a node: its stages, the rules that matched, and what they changed."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("inspection", metavar="<inspection>", help="UUID of the inspection.")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...], tuple[Any, ...]]:
        found = Requests(self.app).inspection(parsed_args.node, parsed_args.inspection)
        return _SHOWN, tuple(found[name] for name in _SHOWN)


def _steps(found: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Return the rules of a dry run, and how it ended."""
    rows: list[tuple[Any, ...]] = []
    for step in found["steps"]:
        if "rule" in step:
            why = "; ".join(" ".join(filter(None, (row[0], row[1], row[3]))) for row in _conditions(step)
                            if row[2] is not True)
            rows.append((step.get("description") or step["rule"], "matched" if step["matched"] else "not matched",
                         json.dumps(step.get("changes") or {}), step.get("error") or why))
    failure = found["failure"] or {}
    rows.append(("the inspection", found["outcome"], json.dumps(found.get("node", {}).get("patch", [])),
                 failure.get("reason", "")))
    return rows


def _conditions(step: dict[str, Any]) -> list[tuple[Any, ...]]:
    rows = []
    for each in step.get("conditions", ()):
        why = " ".join(filter(None, (each["why"], each["detail"], each.get("note"))))
        shown = each.get("arguments") or [argument for item in each.get("items", ()) for argument in item["arguments"]]
        told = ", ".join(f"{argument['name']}={json.dumps(argument['value'])}" for argument in shown[:8])
        rows.append((each["pointer"], each["op"], each["outcome"], why, told))
    return rows


def _read(file: str) -> Any:
    try:
        return yaml.safe_load(Path(file).read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise exceptions.CommandError(f"{file}: {error}") from error
