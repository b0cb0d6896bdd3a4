"""python-ironicclient's commands for inspection rules, with the options and columns that they lack.

Entry point group ``openstack.extension``, which ``openstack`` loads after the groups of all services; of two commands
with the same name it uses the one loaded last. So these always have precedence, whatever was installed first. A call
without any of the options below, other than of ``list``, is executed by python-ironicclient's own code.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from osc_lib import exceptions
from osc_lib import utils as osc_utils
from oslo_utils import strutils

from ironic_rules.client import output, upstream
from ironic_rules.client.rule_requests import WITHHELD, Requests, are_withheld

_AS_GIVEN = ("uuid", "name", "bundle", "description", "phase", "scope", "enabled", "max_nodes")
_LISTS = ("conditions", "actions")
#: Fields that python-ironicclient's ``create`` and ``set`` lack.
_OURS = ("scope", "name", "bundle", "enabled", "max_nodes")
SUMMARY = ("uuid", "description", "phase", "priority", "scope", "enabled")
DETAILS = tuple(dict.fromkeys(
    (*SUMMARY, "name", "bundle", "max_nodes", "nodes_counted", "built_in", "valid", "problems", *upstream.DETAILS)))
#: Options of ``list`` that are parameters of the request.
_FILTERS = ("scope", "phase", "name", "bundle", "enabled", "sensitive", "built_in", "valid", "description", "writes",
            "op")
#: The sort key that only the service can provide.
_EXECUTION = ("execution", "execution:asc", "execution:desc")


class CreateRule(upstream.CreateRule):
    """Create a rule."""

    # If python-ironicclient adds one of these options, ours replaces it instead of raising an error.
    conflict_handler = "resolve"

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        _add_fields(parser)
        parser.add_argument("--sensitive", metavar="<boolean>", nargs="?", const=True,
                            help="Never show the conditions and actions of the rule again.")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        if not _has_any(parsed_args, _OURS):
            with output.warnings_shown(self.app):
                return super().take_action(parsed_args)
        created = Requests(self.app).create(_fields(parsed_args))
        output.show_warnings(created)
        return self.dict2columns({name: value for name, value in sorted(created.items())
                                  if name not in ("links", "warnings")})


class ShowRule(upstream.ShowRule):
    """Show a rule."""

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        columns, values = super().take_action(parsed_args)
        if not parsed_args.fields and "actions" not in columns:
            print(WITHHELD, file=sys.stderr)
        return columns, values


class SetRule(upstream.SetRule):
    """Change a rule."""

    conflict_handler = "resolve"

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        _add_fields(parser)
        parser.add_argument("--sensitive", action="store_true", default=None,
                            help="Never show the conditions and actions of the rule again. This cannot be undone.")
        parser.add_argument("--uuid", metavar="<uuid>",
                            help="Refused unless it is that of the rule, because a rule keeps its UUID.")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        if parsed_args.uuid not in (None, parsed_args.rule):
            raise exceptions.CommandError(
                "The UUID of a rule cannot be changed, because revisions, statistics and past inspections name the "
                "rule by it. Create another rule with --uuid. Nothing was changed.")
        parsed_args.uuid = None
        if not _has_any(parsed_args, (*_OURS, "sensitive")):
            if parsed_args.description:
                # python-ironicclient parses it as JSON, in which "2024" is not a string.
                parsed_args.description = json.dumps(parsed_args.description)
            with output.warnings_shown(self.app):
                return super().take_action(parsed_args)
        output.show_warnings(Requests(self.app).patch(parsed_args.rule, [
            {"op": "add", "path": f"/{name}", "value": value} for name, value in _fields(parsed_args).items()]))
        return None


class UnsetRule(upstream.UnsetRule):
    """Set properties of a rule to their defaults."""

    conflict_handler = "resolve"

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        parser.add_argument("--conditions", action="store_true", help="Unset all conditions: the rule always matches.")
        parser.add_argument("--scope", action="store_true", help="Unset the inspection scope.")
        parser.add_argument("--name", action="store_true", help="Unset the name.")
        parser.add_argument("--bundle", action="store_true", help="Take the rule out of its bundle.")
        parser.add_argument("--max-nodes", action="store_true", help="Unset the maximum number of nodes.")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        parsed_args.action = _last_first(parsed_args.action)
        parsed_args.condition = _last_first(parsed_args.condition)
        names = [name for name in ("scope", "name", "bundle", "max_nodes", "conditions") if getattr(parsed_args, name)]
        if not names:
            with output.warnings_shown(self.app):
                return super().take_action(parsed_args)
        if parsed_args.conditions and parsed_args.condition:
            raise exceptions.CommandError("--conditions and --condition cannot be used together")
        names = [name for name in ("description", "priority", "phase") if getattr(parsed_args, name)] + names
        names += [f"actions/{index}" for index in parsed_args.action or ()]
        names += [f"conditions/{index}" for index in parsed_args.condition or ()]
        output.show_warnings(
            Requests(self.app).patch(parsed_args.rule, [{"op": "remove", "path": f"/{name}"} for name in names]))
        return None


class DeleteRule(upstream.DeleteRule):
    """Delete rules."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        # Not python-ironicclient's, which requires at least one rule.
        parser: argparse.ArgumentParser = super(upstream.DeleteRule, self).get_parser(prog_name)
        parser.add_argument("rules", metavar="<rule>", nargs="*", help="UUID(s) of the rule(s) to delete.")
        parser.add_argument("--all", action="store_true", help="Delete all rules but the built-in ones.")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        if bool(parsed_args.rules) == parsed_args.all:
            raise exceptions.CommandError("Specify either the rules to delete, or --all.")
        if parsed_args.rules:
            return super().take_action(parsed_args)
        Requests(self.app).delete_all()
        print("Deleted all rules.", file=self.app.stdout)
        return None


class ListRules(upstream.ListRules):
    """List rules."""

    conflict_handler = "resolve"

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        parser.add_argument("--scope", metavar="<scope>", help="Only rules of this inspection scope.")
        parser.add_argument("--phase", metavar="<phase>", help="Only rules of this phase: early, preprocess or main.")
        parser.add_argument("--name", metavar="<name>", help="Only rules of this name.")
        parser.add_argument("--bundle", metavar="<bundle>", help="Only rules of this bundle.")
        parser.add_argument("--description", metavar="<text>", help="Only rules whose description contains this text.")
        parser.add_argument("--writes", metavar="<path>",
                            help="Only rules with an action that writes this, e.g. /driver. Never sensitive rules.")
        parser.add_argument("--op", metavar="<op>",
                            help="Only rules with this condition or action, e.g. in-net. Never sensitive rules.")
        _add_switch(parser, "enabled", "--enabled", "--disabled", "Only enabled rules.", "Only disabled rules.")
        _add_switch(parser, "sensitive", "--sensitive", "--no-sensitive", "Only sensitive rules.",
                    "Only rules that are not sensitive.")
        _add_switch(parser, "built_in", "--built-in", "--no-built-in", "Only built-in rules.",
                    "Only rules that are not built-in.")
        _add_switch(parser, "valid", "--valid", "--invalid", "Only valid rules.",
                    "Only rules that no longer compile and therefore do not run.")
        parser.add_argument("--sort", metavar="<key>[:<direction>]",
                            help="Sort by fields and directions (asc or desc), separated by commas; or, as the only "
                                 "key, by 'execution': the order in which the rules run.")
        parser.add_argument("--fields", nargs="+", metavar="<field>", action="append", default=[], choices=DETAILS,
                            help="Only these fields. Cannot be used with --long.")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Sequence[str], Iterable[Any]]:
        if parsed_args.limit is not None and parsed_args.limit < 0:
            raise exceptions.CommandError(f"Expected non-negative --limit, got {parsed_args.limit}")
        chosen = tuple(itertools.chain.from_iterable(parsed_args.fields))
        if chosen and parsed_args.detail:
            raise exceptions.CommandError("--fields and --long cannot be used together")
        query = {name: getattr(parsed_args, name) for name in _FILTERS}
        by_execution = parsed_args.sort in _EXECUTION
        if by_execution:
            query["sort_key"], _, direction = parsed_args.sort.partition(":")
            query["sort_dir"] = direction or None
        rules = Requests(self.app).list_rules(
            {**query, "marker": parsed_args.marker, "detail": parsed_args.detail or None,
             "fields": ",".join(chosen) or None}, parsed_args.limit)
        if not by_execution:
            rules = osc_utils.sort_items(rules, parsed_args.sort)
        if parsed_args.detail and are_withheld(rules):
            print(WITHHELD, file=sys.stderr)
        columns = chosen or (DETAILS if parsed_args.detail else SUMMARY)
        if rules and not chosen:
            # Rules of an Ironic lack some fields. An empty text in their place would be another value.
            columns = tuple(name for name in columns if any(name in rule for rule in rules))
        return columns, (osc_utils.get_dict_properties(rule, columns) for rule in rules)


def _add_fields(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``create`` and ``set`` that python-ironicclient lacks in both."""
    parser.add_argument("--name", metavar="<name>", help="Name of the rule, unique within its bundle.")
    parser.add_argument("--bundle", metavar="<bundle>", help="Name of the group of rules to which the rule belongs.")
    parser.add_argument("--scope", metavar="<scope>", help="Only nodes with this inspection scope run the rule.")
    parser.add_argument("--max-nodes", metavar="<number>", type=int,
                        help="Run the rule on at most this number of different nodes.")
    _add_switch(parser, "enabled", "--enabled", "--disabled", "Run the rule.", "Keep the rule, but do not run it.")


def _add_switch(parser: argparse.ArgumentParser, field: str, yes: str, no: str, on: str, off: str) -> None:
    """Add two options that exclude each other and set ``field`` to true or false; without them it is None."""
    switch = parser.add_mutually_exclusive_group()
    switch.add_argument(yes, dest=field, action="store_true", default=None, help=on)
    switch.add_argument(no, dest=field, action="store_false", default=None, help=off)


def _has_any(parsed_args: argparse.Namespace, names: Iterable[str]) -> bool:
    return any(getattr(parsed_args, name) is not None for name in names)


def _last_first(indexes: list[str] | None) -> list[str] | None:
    """Return the indexes in an order in which removing one does not shift the others; unchanged if any is invalid."""
    if not indexes or not all(index.isdecimal() for index in indexes):
        return indexes
    return sorted(set(indexes), key=int, reverse=True)


def _fields(parsed_args: argparse.Namespace) -> dict[str, Any]:
    """Return the fields of a rule that the arguments set, with the types of the API.

    :raises CommandError: a value does not have the type of its field
    """
    fields = {name: getattr(parsed_args, name) for name in _AS_GIVEN}
    try:
        fields["priority"] = None if parsed_args.priority is None else int(parsed_args.priority)
        fields["sensitive"] = None if parsed_args.sensitive is None else strutils.bool_from_string(
            parsed_args.sensitive, strict=True)
    except ValueError as error:
        raise exceptions.CommandError(f"--priority must be a number and --sensitive a boolean: {error}") from error
    for name in _LISTS:
        fields[name] = upstream.json_argument(getattr(parsed_args, name), f"rule {name}")
    return {name: value for name, value in fields.items() if value is not None}
