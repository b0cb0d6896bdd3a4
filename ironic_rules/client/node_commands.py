"""python-ironicclient's command ``baremetal node list``, with the option of document 001 that it lacks.

Entry point group ``openstack.extension``, like the commands for rules (``extended_commands``).
"""

from __future__ import annotations

import argparse
from typing import Any

from ironic_rules.client import upstream


class _DiscoveredNodes(upstream.NodeManager):  # type: ignore[misc]
    """Lists nodes as python-ironicclient does, but only discovered ones; also when it follows links to more pages."""

    def _path(self, resource_id: str | None = None) -> str:
        path: str = super()._path(resource_id)
        return f"{path}{'&' if '?' in path else '?'}auto_discovered=true"


class ListNodes(upstream.ListNodes):
    """List baremetal nodes"""

    # If python-ironicclient adds the option, ours replaces it instead of raising an error.
    conflict_handler = "resolve"

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        parser.add_argument("--auto-discovered", action="store_true",
                            help="Only nodes that were enrolled by auto-discovery.")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        if not parsed_args.auto_discovered:
            return super().take_action(parsed_args)
        client = self.app.client_manager.baremetal
        everything, client.node = client.node, _DiscoveredNodes(client.node.api)
        try:
            return super().take_action(parsed_args)
        finally:
            client.node = everything
