"""Commands below ``openstack baremetal inspection rule`` that python-ironicclient does not have.

They convert rules of ironic-inspector, and show statistics of rules and the revisions of the set of rules, of which
each change of any rule makes a new one. Entry point group ``openstack.baremetal.v1``, which python-ironicclient
defines.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cliff import columns
from osc_lib import exceptions
from osc_lib.command import command

from ironic_rules.client import extended_commands, output, rule_file, rule_text
from ironic_rules.client.rule_file import GivenRules
from ironic_rules.client.rule_requests import WITHHELD, Requests, are_withheld


def convert(requests: Requests, file_rules: GivenRules, indexes: Iterable[int]) -> dict[int, tuple[None, str]]:
    """Replace rules by the inspection rules that they are converted to; what differs is written to the standard error.

    :param indexes: of the rules that are converted
    :returns: the result of those that cannot be, by index, as the command shows it
    """
    failed: dict[int, tuple[None, str]] = {}
    for index in indexes:
        try:
            reply = requests.convert(file_rules.rules[index])
        except exceptions.CommandError as error:
            failed[index] = None, f"failed: {error}"
            continue
        if reply.get("rule") is None:
            problems = "; ".join(_texts(reply.get("problems") or ()))
            failed[index] = None, f"failed: {reply.get('verdict')}: {problems}"
            continue
        file_rules.rules[index] = reply["rule"]
        for note in reply.get("notes") or ():
            print(f"note: {file_rules.places[index].of(note['pointer'])}: {note['text']}", file=sys.stderr)
    return failed


def _texts(problems: Sequence[Mapping[str, Any]]) -> Iterable[str]:
    for problem in problems:
        yield f"{problem['pointer']}: {problem['text']}" if problem["pointer"] else str(problem["text"])


#: The exit status of ``--detailed-exitcode``; 2 is that of a wrong command line.
CHANGED = 3
#: Fields of a rule that are exported unless they have this value, in the order of the file.
_DEFAULTS: dict[str, Any] = {
    "bundle": None, "description": None, "enabled": True, "phase": "main", "priority": 0, "scope": ...,
    "max_nodes": None, "conditions": [], "actions": ...}

Row = tuple[int, str | None, str | None, str]


class GetRule(extended_commands.ShowRule):
    """Show a rule, as ``show`` does."""


def add_apply_arguments(parser: argparse.ArgumentParser, noun: str) -> None:
    """Add the arguments of commands that make what is stored that of files.

    :param noun: of one thing in them
    """
    parser.add_argument("source", metavar="<directory|file>",
                        help=f"JSON or YAML file with one {noun} or a list of {noun}s; directory of which all files "
                             "*.yaml, *.yml and *.json are read; '-' for the standard input.")
    parser.add_argument("--bundle", metavar="<bundle>",
                        help=f"Apply to the {noun}s of this bundle. Default: to those without a bundle.")
    parser.add_argument("--prune", action="store_true",
                        help=f"Remove {noun}s of the bundle that are not among those given.")
    parser.add_argument("--dry-run", action="store_true", help="Change nothing, and show what would be changed.")
    parser.add_argument("--detailed-exitcode", action="store_true",
                        help=f"Exit with status {CHANGED} if anything was changed, or would be with --dry-run.")


def add_export_arguments(parser: argparse.ArgumentParser, noun: str, all_note: str = "") -> None:
    """Add the arguments of commands that write what is stored to a file.

    :param noun: of the things, as the first word of a sentence;  all_note: what is said of all of them
    """
    parser.add_argument("file", metavar="<file>", nargs="?", default="-",
                        help="File to write or overwrite. Default: '-', the standard output.")
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument("--bundle", metavar="<bundle>", help=f"{noun} of this bundle. Default: those without a bundle.")
    chosen.add_argument("--all", action="store_true", help=f"{noun} of all bundles, each with its bundle{all_note}.")


def write_exported(app: Any, file: str, text: str) -> None:
    """Write a text to a file, or to the standard output.

    :raises CommandError: the file cannot be written
    """
    if file == "-":
        app.stdout.write(text)
        return
    try:
        Path(file).write_text(text, encoding="utf-8")
    except OSError as error:
        raise exceptions.CommandError(f"{file} cannot be written: {error}") from error


class ApplyRules(command.Lister):
    """Make the rules of a bundle those of a file or directory: all of them, or none if one is refused.

    A rule is the stored one with its uuid, else the one with its name in the bundle, else an equal one.
    """

    _status = 0

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add_apply_arguments(parser, "rule")
        parser.add_argument("--revision", metavar="<revision>", type=int,
                            help="Change nothing unless this is the current revision of the set of rules.")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> output.Rows:
        file_rules = rule_file.read_whole(parsed_args.source)
        file_rules.explain_left_out()
        requests = Requests(self.app)
        tag = None if parsed_args.revision is None else _tag(requests, parsed_args.bundle, parsed_args.revision)
        try:
            reply, _ = requests.apply(file_rules.rules, parsed_args.bundle, prune=parsed_args.prune,
                                      dry_run=parsed_args.dry_run, tag=tag)
        except exceptions.CommandError as error:
            raise exceptions.CommandError(file_rules.explained(str(error))) from error
        output.show_warnings(reply, file_rules.located)
        if parsed_args.detailed_exitcode and output.changes_any(reply):
            self._status = CHANGED
        return output.changes_table(reply, patches=parsed_args.dry_run)

    def run(self, parsed_args: argparse.Namespace) -> int:
        return super().run(parsed_args) or self._status


class ImportRules(command.Lister):
    """Create or change the rules of a file and show the result of each. The exit status is 1 if any of them failed.

    A rule changes the stored rule that is found as by apply. Rules that fail do not prevent others from being imported.
    """

    _failed = False

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("file", metavar="<file>",
                            help="JSON or YAML file with one rule or a list of rules; '-' for the standard input.")
        parser.add_argument("--legacy", action="store_true",
                            help="The file has rules of ironic-inspector, which the service converts: rules, a list of "
                                 "them, or what GET /v1/rules replies. What differs is written to the standard error.")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...], list[Row]]:
        file_rules = rule_file.read(parsed_args.file)
        file_rules = file_rules.listed("rules") if parsed_args.legacy else file_rules.writable()
        file_rules.explain_left_out()
        requests = Requests(self.app)
        results: dict[int, tuple[str | None, str]] = {
            index: (None, f"failed: {problem}") for index, problem in file_rules.unsendable()}
        if parsed_args.legacy:
            results |= convert(requests, file_rules, [
                index for index in range(len(file_rules.rules)) if index not in results])
        by_bundle: dict[str | None, list[int]] = {}
        for index, rule in enumerate(file_rules.rules):
            if index not in results:
                by_bundle.setdefault(_text(rule, "bundle"), []).append(index)
        for bundle, indexes in by_bundle.items():
            results |= self._import(requests, file_rules, bundle, indexes)
        self._failed = any(result.startswith("failed") for _, result in results.values())
        return ("rule", "uuid", "description", "result"), [
            (index + 1, results[index][0] or _text(rule, "uuid"), _text(rule, "description"), results[index][1])
            for index, rule in enumerate(file_rules.rules)]

    def run(self, parsed_args: argparse.Namespace) -> int:
        return super().run(parsed_args) or int(self._failed)

    def _import(self, requests: Requests, file_rules: rule_file.GivenRules, bundle: str | None,
                indexes: list[int]) -> dict[int, tuple[str | None, str]]:
        """Import the rules of a bundle; return the UUID, if there is one, and the result of each."""
        results: dict[int, tuple[str | None, str]] = {}
        while indexes:
            try:
                reply, _ = requests.apply([file_rules.rules[index] for index in indexes], bundle)
            except exceptions.CommandError as error:
                _, problems, status = rule_file.split(str(error))
                refused: dict[int, list[str]] = {}
                for number, problem in problems:
                    refused.setdefault(indexes[number], []).append(problem)
                if not refused:
                    return results | dict.fromkeys(indexes, (None, f"failed: {error}"))
                results |= {index: (None, f"failed: {'; '.join(texts)}{status}") for index, texts in refused.items()}
                indexes = [index for index in indexes if index not in refused]
            else:
                sent = rule_file.GivenRules([file_rules.rules[index] for index in indexes],
                                            [file_rules.places[index] for index in indexes])
                output.show_warnings(reply, sent.located)
                return results | {
                    indexes[int(rule["pointer"].removeprefix("/rules/"))]: (rule["uuid"], kind)
                    for kind in output.KINDS if kind != "removed" for rule in reply[kind]}
        return results


class ExportRules(command.Command):
    """Write rules as YAML, so that apply takes them. Built-in and sensitive rules are left out."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add_export_arguments(parser, "Rules", ", which import takes but apply does not")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        rules = [rule for rule in Requests(self.app).whole_rules(parsed_args.bundle)
                 # A rule of an Ironic has neither of these fields, nor some of those that are exported.
                 if not rule.get("built_in") and (parsed_args.all or rule.get("bundle") == parsed_args.bundle)]
        sealed = [rule for rule in rules if rule["sensitive"]]
        text = "".join(f"# {line}\n" for line in _left_out(sealed)) + rule_text.write(
            _exported(rule, parsed_args.all) for rule in rules if not rule["sensitive"])
        for line in _left_out(sealed):
            print(line, file=sys.stderr)
        write_exported(self.app, parsed_args.file, text)


def _tag(requests: Requests, bundle: str | None, revision: int) -> str | None:
    """Return the tag of the set of rules, if this is its current revision.

    :raises CommandError: it is not
    """
    # The reply to a request that changes nothing has both the revision and the tag.
    reply, tag = requests.apply([], bundle, dry_run=True)
    if reply["revision"] != revision:
        raise exceptions.CommandError(
            f"The rules have been changed: their revision is {reply['revision']}, not {revision}. Nothing was changed.")
    return tag


def _exported(rule: Mapping[str, object], with_bundle: bool) -> dict[str, Any]:
    """Return the fields that a user writes, without those that have their defaults."""
    # The default of the scope is an option of the service, so that even a scope of null is written.
    ident = "uuid" if rule.get("name") is None else "name"
    return {ident: rule[ident]} | {
        name: rule[name] for name, default in _DEFAULTS.items()
        if name in rule and rule[name] != default and (name != "bundle" or with_bundle)}


def _left_out(sealed: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return lines that name the sensitive rules."""
    if not sealed:
        return []
    # Neither name nor description can end the comment: JSON has them on one line.
    return ["Sensitive rules are not exported, because their content is never shown. They are removed if this file is "
            "applied with --prune before it has them:",
            *(f"  uuid {rule['uuid']}, name {json.dumps(rule.get('name'))}, "
              f"description {json.dumps(rule['description'])}" for rule in sealed)]


def _text(rule: Any, name: str) -> str | None:
    """Return a field of what may not be a rule, if it is a text."""
    value = rule.get(name) if isinstance(rule, dict) else None
    return value if isinstance(value, str) else None


_SUMMARY = ("revision", "created_at", "user", "summary")


class _Rules(columns.FormattableColumn):  # type: ignore[type-arg]  # not generic in earlier versions of cliff
    """Rules with all fields; YAML in a table."""

    def human_readable(self) -> str:
        return rule_text.write(self._value)


class ListRevisions(command.Lister):
    """List the revisions of the set of rules that are kept, the newest first."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("--limit", metavar="<limit>", type=int,
                            help="Maximum number of revisions; 0 for all. Default: one page.")
        parser.add_argument("--marker", metavar="<revision>", help="Only revisions before this one.")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> output.Rows:
        if parsed_args.limit is not None and parsed_args.limit < 0:
            raise exceptions.CommandError(f"Expected non-negative --limit, got {parsed_args.limit}")
        revisions = Requests(self.app).revisions(parsed_args.marker, parsed_args.limit)
        return _SUMMARY, [tuple(revision[name] for name in _SUMMARY) for revision in revisions]


class ShowRevision(command.ShowOne):
    """Show a revision of the set of rules, with its rules."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("revision", metavar="<revision>", type=int, help="Number of the revision.")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...], tuple[Any, ...]]:
        revision = Requests(self.app).revision(parsed_args.revision)
        if are_withheld(revision["rules"]):
            print(WITHHELD, file=sys.stderr)
        rules = [{name: value for name, value in rule.items() if name != "links"} for rule in revision["rules"]]
        return (*_SUMMARY, "rules"), (*(revision[name] for name in _SUMMARY), _Rules(rules))


class RollBackRules(command.Lister):
    """Make the set of rules as it was after a revision, sensitive rules with their content too, in a new revision."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("revision", metavar="<revision>", type=int, help="Number of the revision.")
        parser.add_argument("--dry-run", action="store_true", help="Change nothing, and show what would be changed.")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> output.Rows:
        reply = Requests(self.app).roll_back(parsed_args.revision, parsed_args.dry_run)
        output.show_warnings(reply)
        return output.changes_table(reply, patches=parsed_args.dry_run)


_COLUMNS = ("uuid", "name", "considered", "evaluated", "matched", "failed", "nodes_changed", "last_matched_at",
            "last_node")


class ShowStatistics(command.Lister):
    """Show how often inspections have considered, evaluated and matched rules, and when and on which node last."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("rule", metavar="<rule>", nargs="?", help="UUID of the rule. Default: all rules.")
        parser.add_argument("--never-matched-since", metavar="<time>",
                            help="Only rules that have not matched since, e.g. 2026-03-01T00:00:00Z.")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> output.Rows:
        requests = Requests(self.app)
        if parsed_args.rule is None:
            statistics = requests.statistics(parsed_args.never_matched_since)
        elif parsed_args.never_matched_since is not None:
            raise exceptions.CommandError("--never-matched-since is for the list of all rules.")
        else:
            statistics = [requests.statistics_of(parsed_args.rule)]
        return _COLUMNS, [tuple(row[name] for name in _COLUMNS) for row in statistics]
