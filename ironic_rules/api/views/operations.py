"""Operations on many nodes -> JSON."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ironic_rules.api import links
from ironic_rules.db import operations
from ironic_rules.db.projection import Row
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.resources import OPERATION

COLLECTION = "operations"


def operation(base: str, row: Row, counted: Mapping[str, int], failed: Sequence[Row] | None = None,
              fields: Collection[str] = OPERATION.shown) -> JSONObject:
    """Return one operation.

    :param counted: the number of its nodes in each state
    :param failed: the nodes on which it failed, with the errors; None: they are not shown
    """
    shown: JSONObject = {name: getattr(row, name) for name in OPERATION.columns if name in fields}
    said = shown.get("filters", {}).get("rules")
    if isinstance(said, dict):
        # Rules of a dry run may have secrets, and be sensitive; a clean-up of legacy rules has only their UUIDs.
        shown["filters"] = {**row.filters, "rules": {**said, "added": [rule["uuid"] for rule in said["added"]]}}
    if "progress" in fields:
        total, left = sum(counted.values()), counted.get(operations.LEFT, 0)
        shown["progress"] = {
            "total": total, "done": total - left, "changed": counted.get(operations.CHANGED, 0),
            "failed": counted.get(operations.FAILED, 0), "left": left}
    if failed is not None and "errors" in fields:
        shown["errors"] = [{"node": item.node_uuid, "error": item.error} for item in failed]
    return shown | {"links": links.resource(base, COLLECTION, row.uuid)}


def item(row: Row, *, details: bool) -> JSONObject:
    """Return one node of an operation.

    :param details: whether parts of actions are shown
    """
    return {"node": row.node_uuid, "status": row.status, "error": row.error, "result": _result(row, details),
            "group": row.result_hash}


def group(row: Row, *, details: bool) -> JSONObject:
    """Return a result that nodes of a dry run have in common; ``details`` as of :func:`item`."""
    return {"group": row.result_hash, "number": row.number, "result": _result(row, details)}


def _result(row: Row, details: bool) -> Any:
    """Return the result of a dry run; ``would`` has the URLs of requests that actions would send."""
    return row.result if details or not isinstance(row.result, dict) else {**row.result, "would": None}
