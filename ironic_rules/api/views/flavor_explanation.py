"""The explanation of a flavor -> JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ironic_rules.api import links
from ironic_rules.api.flavor_explanation import Explanation, Selection
from ironic_rules.api.views import deploy_steps
from ironic_rules.db.projection import Row
from ironic_rules.exceptions import Problem
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.flavors import Flavor
from ironic_rules.steps import scheduler

_NO_STEPS: JSONObject = {"deploy_steps": [], "deploy_templates": [], "problems": [], "complete": False}


def explanation(base: str, flavor: Flavor, told: Explanation) -> JSONObject:
    """Return the explanation of a flavor."""
    required, nodes = told.requirements, told.nodes
    return {
        "flavor": {"id": flavor.flavorid, "name": flavor.name, "links": [
            {"rel": "self", "href": links.url(base, "flavors", flavor.flavorid)}]},
        "resource_class": {"name": required.resource_class, "resource_classes": list(told.classes),
                           "nodes": nodes.total},
        "required_traits": [{"trait": trait, "nodes": told.holders[trait],
                             "deploy_template": _template(told, trait)} for trait in required.required],
        "forbidden_traits": [{"trait": trait, "nodes": told.holders[trait]} for trait in required.forbidden],
        "capabilities": [{"name": scheduler.name_of(key), "value": required.capabilities[key], "nodes": count}
                         for key, count in nodes.capable.items()],
        "schedulable": not required.warnings(),
        "fitting": _nodes(nodes.fitting, told.rows),
        "nearly_fitting": [{"lacks": {"kind": lack.kind, "name": lack.name}, **_nodes(found, told.rows)}
                           for lack, found in sorted(nodes.nearly.items())],
        "deployment": {
            "node": None if told.sample is None else _node(told.sample),
            **(_NO_STEPS if told.steps is None else deploy_steps.preview(told.steps)), "reason": told.reason},
        "warnings": warnings(told.warnings),
    }


def warnings(found: Sequence[Problem]) -> list[JSONObject]:
    """Return warnings about a flavor."""
    return [{"pointer": warning.where, "text": warning.text} for warning in found]


def _template(told: Explanation, trait: str) -> JSONObject | None:
    found = told.templates.get(trait)
    return None if found is None else {"uuid": found.uuid, "name": found.name}


def _nodes(found: Selection, rows: Mapping[int, Row]) -> JSONObject:
    return {"count": found.count, "nodes": [_node(rows[node]) for node in found.ids if node in rows]}


def _node(row: Any) -> JSONObject:
    return {"uuid": row.uuid, "name": row.name}
