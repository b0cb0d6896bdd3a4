"""Which nodes a command is about: the filters of a list of nodes."""

from __future__ import annotations

import argparse
from typing import Any

from osc_lib import exceptions


def add_arguments(parser: Any) -> None:
    """Add ``--all`` and ``--filter`` to a parser, or to a group of one."""
    parser.add_argument("--all", action="store_true", dest="all_nodes", help="All nodes.")
    parser.add_argument("--filter", metavar="<name>=<value>", dest="filters", action="append", default=[],
                        help="The nodes of a list with this filter, such as driver=ipmi; may be repeated.")


def chosen(parsed_args: argparse.Namespace) -> dict[str, str] | None:
    """Return the filters, empty for all nodes; None if neither option was given.

    :raises CommandError: one of them is not a name with a value
    """
    found: dict[str, str] = {}
    for each in parsed_args.filters:
        name, separator, value = each.partition("=")
        if not (name and separator):
            raise exceptions.CommandError(f"--filter must be a name with a value, such as driver=ipmi, not {each}")
        found[name] = value
    return found if found or parsed_args.all_nodes else None
