"""Commands below ``openstack baremetal inspection rule`` that python-ironicclient does not have.

Entry point group ``openstack.baremetal.v1``, which python-ironicclient defines.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from osc_lib import exceptions
from osc_lib.command import command

from ironic_rules.client import rule_file, upstream
from ironic_rules.client.rule_requests import Requests

Row = tuple[int, str | None, str | None, str]


class ImportRules(command.Lister):
    """Create the rules of a file and show the result of each. The exit status is 1 if any of them failed."""

    _failed = False

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("file", metavar="<file>",
                            help="JSON or YAML file with one rule or a list of rules; '-' for the standard input.")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...], list[Row]]:
        rules = rule_file.read(parsed_args.file)
        requests = Requests(self.app)
        rows = [self._create(requests, number, rule) for number, rule in enumerate(rules, start=1)]
        return ("rule", "uuid", "description", "result"), rows

    def run(self, parsed_args: argparse.Namespace) -> int:
        return super().run(parsed_args) or int(self._failed)

    def _create(self, requests: Requests, number: int, rule: Any) -> Row:
        """Create rule number ``number``; return its row of the table."""
        try:
            _check_is_json(rule)
            created = requests.create(rule)
        except exceptions.CommandError as error:
            self._failed = True
            return number, _text(rule, "uuid"), _text(rule, "description"), f"failed: {error}"
        return number, created["uuid"], created["description"], "created"


class GetRule(upstream.ShowRule):
    """Show a rule, as ``show`` does."""


def _check_is_json(rule: Any) -> None:
    """Raise CommandError for values that only YAML can express, e.g. sets, bytes or keys that are lists."""
    try:
        json.dumps(rule, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise exceptions.CommandError(f"the rule cannot be written as JSON: {error}") from error


def _text(rule: Any, name: str) -> str | None:
    """Return a field of what may not be a rule, if it is a text."""
    value = rule.get(name) if isinstance(rule, dict) else None
    return value if isinstance(value, str) else None
