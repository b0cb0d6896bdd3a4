"""python-ironicclient's commands for inspection rules, with the options of document 000 that they lack.

Entry point group ``openstack.extension``, which ``openstack`` loads after the groups of all services; of two commands
with the same name it uses the one loaded last. So these always have precedence, whatever was installed first. A call
without any of the options below is executed by python-ironicclient's own code.
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Iterable, Sequence
from typing import Any

from osc_lib import exceptions
from osc_lib import utils as osc_utils
from oslo_utils import strutils

from ironic_rules.client import upstream
from ironic_rules.client.rule_requests import Requests

_TEXTS = ("uuid", "description", "phase", "scope")
_LISTS = ("conditions", "actions")


class CreateRule(upstream.CreateRule):
    """Create a rule."""

    # If python-ironicclient adds one of these options, ours replaces it instead of raising an error.
    conflict_handler = "resolve"

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        parser.add_argument("--scope", metavar="<scope>", help="Only nodes with this inspection scope run the rule.")
        parser.add_argument("--sensitive", metavar="<boolean>", nargs="?", const=True,
                            help="Never show the conditions and actions of the rule again.")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        if parsed_args.scope is None:
            return super().take_action(parsed_args)
        created = Requests(self.app).create(_fields(parsed_args))
        created.pop("links", None)
        return self.dict2columns(dict(sorted(created.items())))


class SetRule(upstream.SetRule):
    """Change a rule."""

    conflict_handler = "resolve"

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        parser.add_argument("--scope", metavar="<scope>", help="Only nodes with this inspection scope run the rule.")
        parser.add_argument("--sensitive", action="store_true", default=None,
                            help="Never show the conditions and actions of the rule again. This cannot be undone.")
        parser.add_argument("--uuid", metavar="<uuid>", help="UUID of the rule. Services refuse to change it.")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        if parsed_args.scope is parsed_args.sensitive is parsed_args.uuid is None:
            if parsed_args.description:
                # python-ironicclient parses it as JSON, in which "2024" is not a string.
                parsed_args.description = json.dumps(parsed_args.description)
            return super().take_action(parsed_args)
        Requests(self.app).patch(parsed_args.rule, [
            {"op": "add", "path": f"/{name}", "value": value} for name, value in _fields(parsed_args).items()])
        return None


class UnsetRule(upstream.UnsetRule):
    """Set properties of a rule to their defaults."""

    conflict_handler = "resolve"

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        parser.add_argument("--conditions", action="store_true", help="Unset all conditions: the rule always matches.")
        parser.add_argument("--scope", action="store_true", help="Unset the inspection scope.")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        parsed_args.action = _last_first(parsed_args.action)
        parsed_args.condition = _last_first(parsed_args.condition)
        if not (parsed_args.conditions or parsed_args.scope):
            return super().take_action(parsed_args)
        if parsed_args.conditions and parsed_args.condition:
            raise exceptions.CommandError("--conditions and --condition cannot be used together")
        names = [name for name in ("description", "priority", "phase", "scope", "conditions")
                 if getattr(parsed_args, name)]
        names += [f"actions/{index}" for index in parsed_args.action or ()]
        names += [f"conditions/{index}" for index in parsed_args.condition or ()]
        Requests(self.app).patch(parsed_args.rule, [{"op": "remove", "path": f"/{name}"} for name in names])
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
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Sequence[str], Iterable[Any]]:
        if parsed_args.scope is parsed_args.phase is None:
            return super().take_action(parsed_args)  # type: ignore[no-any-return]
        if parsed_args.limit is not None and parsed_args.limit < 0:
            raise exceptions.CommandError(f"Expected non-negative --limit, got {parsed_args.limit}")
        chosen = tuple(itertools.chain.from_iterable(parsed_args.fields))
        columns = chosen or (upstream.DETAILS if parsed_args.detail else upstream.SUMMARY)
        found = Requests(self.app).list_rules(
            {"scope": parsed_args.scope, "phase": parsed_args.phase, "marker": parsed_args.marker,
             "detail": parsed_args.detail or None, "fields": ",".join(chosen) or None}, parsed_args.limit)
        found = osc_utils.sort_items(found, parsed_args.sort)
        return columns, (osc_utils.get_dict_properties(rule, columns) for rule in found)


def _last_first(indexes: list[str] | None) -> list[str] | None:
    """Return the indexes in an order in which removing one does not shift the others; unchanged if any is invalid."""
    if not indexes or not all(index.isdecimal() for index in indexes):
        return indexes
    return sorted(set(indexes), key=int, reverse=True)


def _fields(parsed_args: argparse.Namespace) -> dict[str, Any]:
    """Return the fields of a rule that the arguments set, with the types of the API.

    :raises CommandError: a value does not have the type of its field
    """
    fields = {name: getattr(parsed_args, name) for name in _TEXTS}
    try:
        fields["priority"] = None if parsed_args.priority is None else int(parsed_args.priority)
        fields["sensitive"] = None if parsed_args.sensitive is None else strutils.bool_from_string(
            parsed_args.sensitive, strict=True)
    except ValueError as error:
        raise exceptions.CommandError(f"--priority must be a number and --sensitive a boolean: {error}") from error
    for name in _LISTS:
        fields[name] = upstream.json_argument(getattr(parsed_args, name), f"rule {name}")
    return {name: value for name, value in fields.items() if value is not None}
