"""The command that shows what has become of rules.

Entry point group ``openstack.baremetal.v1``, which python-ironicclient defines.
"""

from __future__ import annotations

import argparse

from osc_lib import exceptions
from osc_lib.command import command

from ironic_rules.client import rule_changes
from ironic_rules.client.rule_requests import Requests

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

    def take_action(self, parsed_args: argparse.Namespace) -> rule_changes.Rows:
        requests = Requests(self.app)
        if parsed_args.rule is None:
            found = requests.statistics(parsed_args.never_matched_since)
        elif parsed_args.never_matched_since is not None:
            raise exceptions.CommandError("--never-matched-since is for the list of all rules.")
        else:
            found = [requests.statistics_of(parsed_args.rule)]
        return _COLUMNS, [tuple(each[name] for name in _COLUMNS) for each in found]
