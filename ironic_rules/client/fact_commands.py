"""Commands for facts: named values that the service finds in inventories, counts over the fleet, files of facts."""

from __future__ import annotations

import argparse
import sys
from operator import itemgetter
from typing import Any

from osc_lib import exceptions
from osc_lib.command import command

from ironic_rules.client import rule_commands, rule_file, rule_text, upstream
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
        facts = Requests(self.app).facts({"origin": parsed_args.origin, "bundle": parsed_args.bundle, "detail": True})
        return columns, [tuple(fact.get(name) for name in columns) for fact in facts]


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
                others = f": {table['others']} nodes have other values of {name}" if table["others"] else ""
                print(f"There are more pairs than are shown{others}.", file=sys.stderr)
            return (name, parsed_args.by, "nodes"), [(*cell["values"], cell["nodes"]) for cell in table["cells"]]
        counts = requests.fact_values(name, query)
        unit = f" ({counts['unit']})" if counts["unit"] else ""
        if parsed_args.ranges:
            return (f"{name}{unit} from", "to", "nodes"), [
                (row["from"], row["to"], row["nodes"]) for row in counts["ranges"]]
        rows: list[tuple[Any, ...]] = [(row["value"], row["nodes"]) for row in counts["values"]]
        if counts["others"]:
            rows.append(("(others)", counts["others"]))
        if counts["absent"]:
            rows.append(("(absent)", counts["absent"]))
        return (f"{name}{unit}", "nodes"), rows


class ApplyFacts(command.Lister):
    """Make the facts of a bundle those of a file or directory: all of them, or none if one is refused.

    A fact is the stored one with its name. New definitions are found in the stored inventories in the background.
    """

    _status = 0

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        rule_commands.add_apply_arguments(parser, "fact")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        file_rules = rule_file.read_whole(parsed_args.source, rule_file.FACTS)
        try:
            reply = Requests(self.app).apply_facts(file_rules.rules, parsed_args.bundle, prune=parsed_args.prune,
                                                   dry_run=parsed_args.dry_run)
        except exceptions.CommandError as error:
            raise exceptions.CommandError(file_rules.explained(str(error))) from error
        counts = ", ".join(f"{len(reply[kind])} {kind}" for kind in _CHANGES)
        print(f"{'Dry run' if reply['dry_run'] else 'Facts'}: {counts}", file=sys.stderr)
        if reply["operation"]:
            print(f"Operation {reply['operation']} finds the values of all nodes.", file=sys.stderr)
        if parsed_args.detailed_exitcode and any(reply[kind] for kind in _CHANGES if kind != "unchanged"):
            self._status = rule_commands.CHANGED
        return ("name", "change"), [(name, kind) for kind in _CHANGES for name in reply[kind]]

    def run(self, parsed_args: argparse.Namespace) -> int:
        return super().run(parsed_args) or self._status


#: The lists of a reply, as the rows are ordered.
_CHANGES = ("created", "changed", "removed", "unchanged")


class ExportFacts(command.Command):
    """Write operators' facts as YAML, so that apply takes them."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        rule_commands.add_export_arguments(parser, "Facts")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        facts = sorted((fact for fact in Requests(self.app).operators_facts(parsed_args.bundle)
                        if parsed_args.all or fact["bundle"] == parsed_args.bundle), key=itemgetter("name"))
        rule_commands.write_exported(self.app, parsed_args.file, rule_text.write(
            {name: fact[name] for name in _EXPORTED
             if fact[name] not in _UNSAID and (name != "bundle" or parsed_args.all)} for fact in facts))


#: Fields in the order of the file, and values that are not written, as a fact without the field has them.
_EXPORTED = ("name", "bundle", "description", "unit", "loop", "conditions", "value", "combine", "watched")
_UNSAID: tuple[Any, ...] = (None, [], False)


class ListVocabulary(command.Lister):
    """List the names that questions can have, with their types and most frequent values; or the operators."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("names", metavar="<name>", nargs="*",
                            help="Facts, or fields such as node[owner]. Default: all. Who may see the nodes of one "
                                 "project only gets values of names that are given.")
        parser.add_argument("--operators", action="store_true", help="List the operators.")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        vocabulary = Requests(self.app).vocabulary(parsed_args.names)
        if parsed_args.operators:
            return ("operator", "types", "lists", "operand"), [
                (entry["name"], ", ".join(entry["types"]), entry["lists"], entry["operand"])
                for entry in vocabulary["operators"]]
        names = frozenset(parsed_args.names)
        return ("name", "of", "type", "is_list", "unit", "values"), [
            (entry["written"], entry["of"], entry["type"], entry["is_list"], entry["unit"],
             ", ".join(map(str, entry["values"])))
            for entry in vocabulary["names"]
            if not names or names & {entry["written"], f"{entry['of']}[{entry['name']}]"}]


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
    fields = {name: value for name in (*_TEXTS, "watched") if (value := getattr(parsed_args, name)) is not None}
    for name in ("value", *_JSON):
        text = getattr(parsed_args, name)
        if text is not None:
            is_template = name != "conditions" and not text.lstrip().startswith(("[", '{"'))
            fields[name] = text if is_template else upstream.json_argument(text, name)
    return fields


def _shown(fact: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in sorted(fact.items()) if name != "links"}
