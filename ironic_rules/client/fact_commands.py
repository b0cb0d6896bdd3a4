"""Commands for facts: named values that the service finds in inventories, and counts over the fleet."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from osc_lib import exceptions
from osc_lib.command import command

from ironic_rules.client import upstream
from ironic_rules.client.rule_requests import Requests

_SUMMARY = ("name", "type", "is_list", "unit", "origin", "watched", "problems", "description")
_DETAILS = (*_SUMMARY, "value", "loop", "conditions", "combine", "bundle", "created_at", "updated_at")
#: Options that are fields of a fact, with their help.
_TEXTS = {"unit": "Unit of the values, such as GiB.", "description": "Description.", "bundle": "Bundle of the fact.",
          "combine": "Conversions of the list of values, such as 'sum|gb'."}
_JSON = {"loop": "Items: a template, or a list as JSON.", "conditions": "Conditions as JSON, or the name of a file."}

Rows = tuple[tuple[str, ...], list[tuple[Any, ...]]]


class ListFacts(command.Lister):
    """List facts: the built-in ones, and those of operators."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("--long", action="store_true", help="With all fields.")
        parser.add_argument("--origin", choices=("built-in", "operator"), help="Only the built-in ones, or the others.")
        parser.add_argument("--bundle", metavar="<bundle>", help="Only those of this bundle.")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        columns = _DETAILS if parsed_args.long else _SUMMARY
        found = Requests(self.app).facts({"origin": parsed_args.origin, "bundle": parsed_args.bundle, "detail": True})
        return columns, [tuple(fact.get(name) for name in columns) for fact in found]


class _OfFact(command.Command):
    """A command whose first argument is the name of a fact. The other base class comes after this one."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("fact", metavar="<fact>", help="Name of the fact.")
        return parser


class ShowFact(_OfFact, command.ShowOne):
    """Show a fact, with the nodes on which it has problems."""

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        return self.dict2columns(_shown(Requests(self.app).fact(parsed_args.fact)))


class CreateFact(_OfFact, command.ShowOne):
    """Create a fact. It is found in the stored inventories of all nodes in the background."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        _add_fields(parser, is_value_required=True)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        created = Requests(self.app).create_fact({"name": parsed_args.fact, **_fields(parsed_args)})
        return self.dict2columns(_shown(created))


class SetFact(_OfFact):
    """Change an operator's fact."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        _add_fields(parser, is_value_required=False)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        fields = _fields(parsed_args)
        if not fields:
            raise exceptions.CommandError("Nothing to change: give at least one option.")
        Requests(self.app).patch_fact(parsed_args.fact, [
            {"op": "add", "path": f"/{name}", "value": value} for name, value in fields.items()])


class DeleteFacts(command.Command):
    """Delete operators' facts, with all of their values."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("facts", metavar="<fact>", nargs="+", help="Names of the facts.")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        requests, failed = Requests(self.app), []
        for name in parsed_args.facts:
            try:
                requests.delete_fact(name)
                print(f"Deleted fact {name}")
            except exceptions.CommandError as error:
                failed.append(f"Failed to delete fact {name}: {error}")
        if failed:
            raise exceptions.CommandError("\n".join(failed))


class ListFactValues(command.Lister):
    """List the values of facts with the numbers of their nodes; of two facts with --by, those of each pair."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("fact", metavar="<fact>", help="Name of the fact.")
        parser.add_argument("--where", metavar="<clause>",
                            help="Count only these nodes, e.g. 'vendor = Dell and memory_gib >= 512'.")
        parser.add_argument("--by", metavar="<fact>", help="Count each pair with a value of this fact.")
        parser.add_argument("--limit", metavar="<limit>", type=int, help="Maximum number of values.")
        parser.add_argument("--ranges", action="store_true", help="Count ranges of a number instead of values.")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        name, query = parsed_args.fact, {"where": parsed_args.where, "limit": parsed_args.limit}
        requests = Requests(self.app)
        if parsed_args.by is not None:
            table = requests.fact_table([name, parsed_args.by], query)
            if not table["complete"]:
                print("There are more pairs than are shown.", file=sys.stderr)
            return (name, parsed_args.by, "nodes"), [(*cell["values"], cell["nodes"]) for cell in table["cells"]]
        found = requests.fact_values(name, query)
        unit = f" ({found['unit']})" if found["unit"] else ""
        if parsed_args.ranges:
            return (f"{name}{unit} from", "to", "nodes"), [
                (each["from"], each["to"], each["nodes"]) for each in found["ranges"]]
        rows: list[tuple[Any, ...]] = [(each["value"], each["nodes"]) for each in found["values"]]
        if found["others"]:
            rows.append(("(others)", found["others"]))
        if found["absent"]:
            rows.append(("(absent)", found["absent"]))
        return (f"{name}{unit}", "nodes"), rows


def _add_fields(parser: argparse.ArgumentParser, *, is_value_required: bool) -> None:
    parser.add_argument("--value", metavar="<template>", required=is_value_required,
                        help="A template, such as '{inventory[hostname]}'; a condition or a list of templates as JSON.")
    for name, text in {**_TEXTS, **_JSON}.items():
        parser.add_argument(f"--{name}", metavar=f"<{name}>", help=text)
    watched = parser.add_mutually_exclusive_group()
    watched.add_argument("--watched", action="store_true", default=None, dest="watched",
                         help="Warn if the number of a node becomes less.")
    watched.add_argument("--not-watched", action="store_false", default=None, dest="watched", help="Do not warn.")


def _fields(parsed_args: argparse.Namespace) -> dict[str, Any]:
    """Return the fields that options give."""
    found = {name: value for name in (*_TEXTS, "watched") if (value := getattr(parsed_args, name)) is not None}
    for name in ("value", *_JSON):
        given = getattr(parsed_args, name)
        if given is not None:
            is_template = name != "conditions" and not given.lstrip().startswith(("[", '{"'))
            found[name] = given if is_template else upstream.json_argument(given, name)
    return found


def _shown(fact: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in sorted(fact.items()) if name != "links"}
