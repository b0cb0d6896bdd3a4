"""Samples for demonstrations and tests: inventories as ramdisks send them, and rules for them.

The inventories are those of fictitious machines in the format of real ones; their addresses are those reserved for
documentation (RFC 5737, RFC 3849).
"""

from __future__ import annotations

import json
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

import yaml


def inventory_names() -> list[str]:
    """Return the names of the sample inventories, sorted; :func:`inventory` takes one of them."""
    return sorted(entry.name.removesuffix(".json") for entry in _folder("inventories", ".json"))


def inventory(name: str) -> dict[str, Any]:
    """Return a sample: a body of ``POST /v1/continue_inspection`` (``inventory``, ``error``, data of collectors).

    :raises FileNotFoundError: there is no such sample
    """
    text = (resources.files(__name__) / "inventories" / f"{name}.json").read_text(encoding="utf-8")
    body: dict[str, Any] = json.loads(text)
    return body


def rules() -> list[dict[str, Any]]:
    """Return the example rules, each a body of ``POST /v1/inspection_rules`` with a fixed ``uuid``; in file order."""
    return [rule for entry in _folder("rules", ".yaml") for rule in yaml.safe_load(entry.read_text(encoding="utf-8"))]


def inventory_paths() -> list[str]:
    """Return the paths that inventories of ramdisks have, ``/interfaces/*/name``; ``*`` is any index of a list."""
    text = (resources.files(__name__) / "inventory-paths.yaml").read_text(encoding="utf-8")
    paths: list[str] = yaml.safe_load(text)
    return paths


def _folder(name: str, suffix: str) -> list[Traversable]:
    entries = (resources.files(__name__) / name).iterdir()
    return sorted((entry for entry in entries if entry.name.endswith(suffix)), key=lambda entry: entry.name)
