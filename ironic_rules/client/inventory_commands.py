"""Commands about the versions of a node's inventory.

Entry point group ``openstack.baremetal.v1``, which python-ironicclient defines.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import Any

from osc_lib.command import command

from ironic_rules.client.of_node import OfNode
from ironic_rules.client.rule_requests import Requests

Rows = tuple[tuple[str, ...], list[tuple[Any, ...]]]

_VERSION = ("version", "status", "created_at", "updated_at", "request_id")
_LISTS = ("disks", "interfaces", "pci_devices", "firmware_components")
_OBJECTS = ("memory", "firmware")
#: By what a part that came or went is named.
_NAMES = ("serial", "mac_address", "bus", "id", "wwn", "name")
_NO_VALUE = "nothing"


class ListVersions(OfNode, command.Lister):
    """List the inspections of a node whose data are kept."""

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        found = Requests(self.app).inventory_versions(parsed_args.node)
        return _VERSION, [tuple(each[name] for name in _VERSION) for each in found]


class DiffVersions(OfNode, command.Lister):
    """Show what has changed in the hardware of a node between two inspections.

    By default, these are the last two that were successful.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("--from", metavar="<version>", type=int, dest="before",
                            help="Version to compare with. Default: the last successful one before the other.")
        parser.add_argument("--to", metavar="<version>", type=int, dest="after",
                            help="Version that is compared. Default: the last successful one.")
        parser.add_argument("--patch", action="store_true",
                            help="Show the JSON patch (RFC 6902) of the whole inventory.")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        found = Requests(self.app).inventory_diff(parsed_args.node, parsed_args.before, parsed_args.after)
        if parsed_args.patch:
            return ("op", "path", "value"), [
                (each["op"], each["path"], json.dumps(each["value"]) if "value" in each else "")
                for each in found["patch"]]
        return ("part", "identity", "change", "details"), list(_rows(found))


def _rows(found: dict[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    for part in _LISTS:
        for change in ("added", "removed"):
            for item in found[part][change]:
                yield part, _name(item), change, json.dumps(item)
        for item in found[part]["changed"]:
            yield part, _name(item["identity"]), "changed", _changes(item["changes"])
    for part in _OBJECTS:
        if found[part]:
            yield part, "", "changed", _changes(found[part])


def _name(item: dict[str, Any]) -> str:
    return next((str(item[name]) for name in _NAMES if item.get(name)), "")


def _changes(fields: dict[str, Any]) -> str:
    return "; ".join(f"{name}: {_value(change, 'before')} -> {_value(change, 'after')}"
                     for name, change in fields.items())


def _value(change: dict[str, Any], side: str) -> str:
    return json.dumps(change[side]) if side in change else _NO_VALUE
