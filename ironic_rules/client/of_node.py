"""What commands about one node have in common."""

from __future__ import annotations

import argparse

from osc_lib.command import command


class OfNode(command.Command):
    """A command whose first argument is a node. The other base class comes after this one."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("node", metavar="<node>", help="Name or UUID of the node.")
        return parser
