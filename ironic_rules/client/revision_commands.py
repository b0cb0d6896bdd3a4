"""Commands about the revisions of the set of rules: each change of any rule leads to a new one.

Entry point group ``openstack.baremetal.v1``, which python-ironicclient defines.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from cliff import columns
from osc_lib import exceptions
from osc_lib.command import command

from ironic_rules.client import rule_changes, rule_text, rule_warnings
from ironic_rules.client.rule_requests import WITHHELD, Requests, are_withheld

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

    def take_action(self, parsed_args: argparse.Namespace) -> rule_changes.Rows:
        if parsed_args.limit is not None and parsed_args.limit < 0:
            raise exceptions.CommandError(f"Expected non-negative --limit, got {parsed_args.limit}")
        found = Requests(self.app).revisions(parsed_args.marker, parsed_args.limit)
        return _SUMMARY, [tuple(revision[name] for name in _SUMMARY) for revision in found]


class ShowRevision(command.ShowOne):
    """Show a revision of the set of rules, with its rules."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("revision", metavar="<revision>", type=int, help="Number of the revision.")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...], tuple[Any, ...]]:
        found = Requests(self.app).revision(parsed_args.revision)
        if are_withheld(found["rules"]):
            print(WITHHELD, file=sys.stderr)
        rules = [{name: value for name, value in rule.items() if name != "links"} for rule in found["rules"]]
        return (*_SUMMARY, "rules"), (*(found[name] for name in _SUMMARY), _Rules(rules))


class RollBackRules(command.Lister):
    """Make the set of rules as it was after a revision, sensitive rules with their content too, in a new revision."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("revision", metavar="<revision>", type=int, help="Number of the revision.")
        parser.add_argument("--dry-run", action="store_true", help="Change nothing, and show what would be changed.")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> rule_changes.Rows:
        reply = Requests(self.app).roll_back(parsed_args.revision, parsed_args.dry_run)
        rule_warnings.show(reply)
        return rule_changes.table(reply, patches=parsed_args.dry_run)
