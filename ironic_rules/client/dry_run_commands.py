"""Commands about dry runs, past inspections, and re-runs of hooks and rules over the stored data of nodes.

Entry point group ``openstack.baremetal.v1``, which python-ironicclient defines.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from cliff import columns
from osc_lib import exceptions
from osc_lib.command import command

from ironic_rules.client import inspection_commands, node_commands, output, rule_file
from ironic_rules.client.node_commands import OfNode
from ironic_rules.client.rule_requests import Requests

_SHOWN_RUN = ("operation", "node", "status", "error", "result")


class ResultGroups(columns.FormattableColumn):  # type: ignore[type-arg]  # not generic in earlier versions of cliff
    """The results of a dry run, each with its number of nodes; in a table one in each line."""

    def human_readable(self) -> str:
        return "\n".join(f"{group['number']} nodes: {operation_text(group['result'])}" for group in self._value)


def operation_text(result: Mapping[str, Any]) -> str:
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
        node_commands.add_filter_arguments(parser)
        parser.add_argument("--dry-run", action="store_true", help="Change nothing, and show what would be changed.")
        parser.add_argument("--allow-deployed", action="store_true",
                            help="Also if the node has an instance: then only rules change it, and no port is added or "
                                 "removed.")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...], tuple[Any, ...]]:
        requests = Requests(self.app)
        filters = node_commands.chosen_filters(parsed_args)
        if (parsed_args.node is None) == (filters is None):
            raise exceptions.CommandError("Either a node, or --all, --filter or --where is required")
        if filters is not None:
            return self._many(requests, filters, parsed_args)
        begun = requests.reapply(parsed_args.node, parsed_args.dry_run, parsed_args.allow_deployed)
        uuid = begun["uuid"]
        ended = output.wait_for_operation(begun, lambda: requests.operation(uuid), sys.stderr)
        node, = requests.operation_nodes(uuid)
        # A node that no conductor has begun with when it was cancelled is still left.
        self._failed = node["status"] in ("failed", "left")
        status = ended["status"] if node["status"] == "left" else node["status"]
        return _SHOWN_RUN, (uuid, node["node"], status, node["error"], node["result"])

    def _many(self, requests: Requests, filters: dict[str, str],
              parsed_args: argparse.Namespace) -> tuple[tuple[str, ...], tuple[Any, ...]]:
        begun = requests.reapply_nodes(filters, parsed_args.dry_run, parsed_args.allow_deployed)
        names, ended = inspection_commands.waited_operation(requests, begun, sys.stderr)
        self._failed = ended["status"] != "finished" or bool(ended["progress"]["failed"])
        shown = inspection_commands.operation_row(ended, names)
        if not parsed_args.dry_run:
            return names, shown
        return (*names, "groups"), (*shown, ResultGroups(requests.operation_groups(begun["uuid"])))

    def run(self, parsed_args: argparse.Namespace) -> int:
        return super().run(parsed_args) or int(self._failed)


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
        node_commands.add_filter_arguments(data)
        data.add_argument("--inventory", metavar="<file>", dest="inventories", nargs="+", default=[],
                          help="Files (JSON or YAML) with what ramdisks send.")
        parser.add_argument("--expect", metavar="<file>",
                            help="File (JSON or YAML) with the fields that each answer has to have.")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        file_rules = rule_file.read_whole(parsed_args.file)
        expected = {"outcome": "finished"} if parsed_args.expect is None else _read(parsed_args.expect)
        if not isinstance(expected, dict):
            raise exceptions.CommandError(f"{parsed_args.expect}: must be an object")
        requests = Requests(self.app)
        rows: list[tuple[Any, ...]] = []
        filters = node_commands.chosen_filters(parsed_args)
        if filters is not None:
            return _COLUMNS, self._many(requests, file_rules, filters, expected)
        bodies = [(node, {"node": node}) for node in parsed_args.nodes]
        bodies += [(file, {"report": _read(file)}) for file in parsed_args.inventories]
        for name, body in bodies:
            try:
                reply = requests.dry_run({**body, "rules": file_rules.rules})
            except exceptions.CommandError as error:
                raise exceptions.CommandError(file_rules.explained(str(error))) from error
            rows += [(name, *row) for row in (*([] if "report" in body else _untried(file_rules)), *_steps(reply))]
            for key, value in expected.items():
                if reply.get(key) != value:
                    self._failed = True
                    rows.append((name, f"expected {key}", "different", json.dumps(reply.get(key)), json.dumps(value)))
        return _COLUMNS, rows

    def _many(self, requests: Requests, file_rules: rule_file.GivenRules, filters: dict[str, str],
              expected: dict[str, Any]) -> list[tuple[Any, ...]]:
        """Return the results of a dry run over many nodes, one row for those with the same result."""
        try:
            operation = requests.dry_run({"nodes": filters, "rules": file_rules.rules})
        except exceptions.CommandError as error:
            raise exceptions.CommandError(file_rules.explained(str(error))) from error
        _, ended = inspection_commands.waited_operation(requests, operation, sys.stderr)
        self._failed = ended["status"] != "finished" or bool(ended["errors"])
        rows: list[tuple[Any, ...]] = []
        for group in requests.operation_groups(operation["uuid"]):
            result = group["result"]
            self._failed |= any(result.get(key) != value for key, value in expected.items())
            why = "" if result["failure"] is None else result["failure"].get("reason", "")
            rows.append((f"{group['number']} nodes", "the inspection", result["outcome"],
                         operation_text({**result, "failure": None}) if "node" in result else "", why))
        rows += [(node["node"], "the inspection", "not tried", "", node["error"]) for node in ended["errors"]]
        return [("all nodes", *row) for row in _untried(file_rules)] + rows

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
        body = {} if parsed_args.node is None else {"node": parsed_args.node}
        if parsed_args.inventory is not None:
            body["report"] = _read(parsed_args.inventory)
        requests = Requests(self.app)
        reply = requests.dry_run(body)
        for step in reply["steps"]:
            if step.get("rule") == parsed_args.rule.lower():
                return ("condition", "op", "outcome", "why", "arguments"), list(_conditions(step))
        requests.rule(parsed_args.rule)  # it may not exist at all
        failure = f": {json.dumps(reply['failure'])}" if reply["failure"] else ""
        raise exceptions.CommandError(
            f"The rule {parsed_args.rule} is not evaluated for the node: it is disabled, or of another scope, or the "
            f"inspection would end before it{failure}; or it is an early rule, which needs --inventory")


class ListInspections(OfNode, command.Lister):
    """List the past inspections of a node, the oldest first."""

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        inspections = Requests(self.app).inspections(parsed_args.node)
        return _INSPECTION, [tuple(inspection[name] for name in _INSPECTION) for inspection in inspections]


class ShowInspection(OfNode, command.ShowOne):
    """Show a past inspection of a node: its stages, the rules that matched, and what they changed."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("inspection", metavar="<inspection>", help="UUID of the inspection.")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...], tuple[Any, ...]]:
        inspection = Requests(self.app).inspection(parsed_args.node, parsed_args.inspection)
        return _SHOWN, tuple(inspection[name] for name in _SHOWN)


def _untried(file_rules: rule_file.GivenRules) -> list[tuple[object, ...]]:
    """Return the rules that a dry run over the data of a node leaves out."""
    return [(rule.get("description") or rule.get("name") or rule.get("uuid") or "a rule", "not tried", "",
             "an early rule needs --inventory")
            for rule in file_rules.rules if isinstance(rule, dict) and rule.get("phase") == "early"]


def _steps(reply: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Return the rules of a dry run, and how it ended."""
    rows: list[tuple[Any, ...]] = []
    for step in reply["steps"]:
        if "rule" in step:
            why = "; ".join(" ".join(filter(None, (row[0], row[1], row[3]))) for row in _conditions(step)
                            if row[2] is not True)
            rows.append((step.get("description") or step["rule"], "matched" if step["matched"] else "not matched",
                         json.dumps(step.get("changes") or {}), step.get("error") or why))
    failure = reply["failure"] or {}
    rows.append(("the inspection", reply["outcome"], json.dumps(reply.get("node", {}).get("patch", [])),
                 failure.get("reason", "")))
    return rows


def _conditions(step: dict[str, Any]) -> list[tuple[Any, ...]]:
    rows = []
    for condition in step.get("conditions", ()):
        why = " ".join(filter(None, (condition["why"], condition["detail"], condition.get("note"))))
        shown = condition.get("arguments") or [
            argument for item in condition.get("items", ()) for argument in item["arguments"]]
        arguments = ", ".join(f"{argument['name']}={json.dumps(argument['value'])}" for argument in shown[:8])
        rows.append((condition["pointer"], condition["op"], condition["outcome"], why, arguments))
    return rows


def _read(file: str) -> Any:
    try:
        return yaml.safe_load(Path(file).read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise exceptions.CommandError(f"{file}: {error}") from error
