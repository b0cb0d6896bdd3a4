"""What a flavor does here: which nodes it selects, by what, and what a deployment on one of them runs.

The number of queries does not depend on the number of nodes, templates or extra specs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from ironic_rules.api import flavor_warnings
from ironic_rules.api.offered_steps import OfferedSteps
from ironic_rules.db import deploy_templates, flavor_nodes, traits
from ironic_rules.db.projection import Row
from ironic_rules.exceptions import DriverNotFound, Problem
from ironic_rules.models.deploy_templates import DeployTemplate
from ironic_rules.models.flavors import Flavor
from ironic_rules.steps import flavors, preview
from ironic_rules.steps.flavors import Lack, Requirements
from ironic_rules.steps.offers import NODE_COLUMNS

#: Number of nodes of each kind that are shown by name.
MOST_SHOWN = 20
_COLUMNS = ("uuid", "name", "conductor_group", *NODE_COLUMNS)


@dataclass
class Nodes:
    """The nodes that fit, and those that would if they did not lack one thing: ids, in the order of their creation."""

    total: int = 0
    fitting: list[int] = field(default_factory=list)
    nearly: dict[Lack, list[int]] = field(default_factory=dict)
    capable: dict[str, int] = field(default_factory=dict)

    def shown(self) -> list[int]:
        """Return the ids of the nodes that are shown."""
        return [node for ids in (self.fitting, *self.nearly.values()) for node in ids[:MOST_SHOWN]]


@dataclass(frozen=True)
class Explanation:
    """The parts of the reply.

    :ivar holders: by trait, required or forbidden, the ids of the nodes that have it
    :ivar templates: those named after required traits, by name
    :ivar sample: the node on which the deployment is previewed; None without a fitting one
    :ivar steps: what it would run; None if that cannot be told, for ``reason``
    """

    requirements: Requirements
    classes: Sequence[str]
    nodes: Nodes
    rows: Mapping[int, Row]
    holders: Mapping[str, set[int]]
    templates: Mapping[str, DeployTemplate]
    sample: Row | None
    steps: preview.Preview | None
    reason: str | None
    warnings: Sequence[Problem]


def explain(conn: sa.Connection, flavor: Flavor, offered: OfferedSteps, *, pinned: bool,
            disallowed: Sequence[str]) -> Explanation:
    """Return what a flavor does.

    :param pinned: whether conductors ignore deploy templates, because an upgrade is not completed
    :param disallowed: names of steps that must not run
    """
    required = Requirements.of(flavor, flavor.extra_specs)
    classes = flavor_warnings.classes_of(conn, required)
    holders = flavor_nodes.with_traits(conn, {*required.required, *required.forbidden})
    found = _sorted(required, holders, flavor_nodes.of_classes(
        conn, classes, with_properties=bool(required.capabilities)))
    rows = flavor_nodes.by_id(conn, found.shown(), _COLUMNS)
    sample = _sample(found, rows)
    own = traits.list_for(conn, [sample.id])[sample.id] if sample is not None else []
    enabled = deploy_templates.for_traits(conn, {*required.required, *own})
    templates = {template.name: template for template in enabled if template.name in required.required}
    steps, reason = None, "no node fits" if sample is None else None
    if sample is not None:
        try:
            steps = _preview(conn, sample, [] if pinned else enabled, required, own, offered, disallowed)
            reason = None if steps is not None else "no conductor of the node's group is alive"
        except DriverNotFound as error:
            reason = str(error)
    warnings = required.warnings() + flavors.about_nodes(
        required, has_class=bool(classes), known_traits={name for name, ids in holders.items() if ids},
        templates=templates.values(),
        missing_capabilities=[name for name in required.capabilities if not found.capable.get(name)])
    return Explanation(required, classes, found, rows, holders, templates, sample, steps, reason, warnings)


def _sorted(required: Requirements, holders: Mapping[str, set[int]], rows: Sequence[Row]) -> Nodes:
    found = Nodes(total=len(rows), capable=dict.fromkeys(required.capabilities, 0))
    if required.capabilities:
        known: dict[str, dict[str, str]] = {}
        for node, state, properties in rows:
            if properties not in known:
                known[properties] = flavors.capabilities_of(properties)
            capabilities = known[properties]
            for name, wanted in required.capabilities.items():
                found.capable[name] += flavors.matches(capabilities.get(name), wanted)
            _place(found, node, flavors.lacks(required, lambda trait, node=node: node in holders[trait],  # type: ignore[misc]
                                              capabilities, state))
        return found
    # Nothing of the node's own has to be compared, so all nodes are placed by sets: ten times as fast.
    wrong: dict[int, list[Lack]] = {}
    ids = {row[0] for row in rows}
    for node, state in rows:
        if state is not None:
            wrong[node] = [Lack(flavors.STATE, state)]
    for trait in required.required:
        for node in ids - holders[trait]:
            wrong.setdefault(node, []).append(Lack(flavors.TRAIT, trait))
    for trait in required.forbidden:
        for node in ids & holders[trait]:
            wrong.setdefault(node, []).append(Lack(flavors.FORBIDDEN, trait))
    for row in rows:
        _place(found, row[0], wrong.get(row[0], ()))
    return found


def _place(found: Nodes, node: int, lacks: Sequence[Lack]) -> None:
    if not lacks:
        found.fitting.append(node)
    elif len(lacks) == 1:
        found.nearly.setdefault(lacks[0], []).append(node)


def _sample(found: Nodes, rows: Mapping[int, Row]) -> Row | None:
    """Return the first node that fits, or one that only its state keeps from fitting."""
    by_state = (ids for lack, ids in found.nearly.items() if lack.kind == flavors.STATE)
    first = next((ids[0] for ids in (found.fitting, *by_state) if ids), None)
    # A node may have been deleted since.
    return None if first is None else rows.get(first)


def _preview(conn: sa.Connection, node: Any, enabled: Sequence[DeployTemplate], required: Requirements,
             own: Sequence[str], offered: OfferedSteps, disallowed: Sequence[str]) -> preview.Preview | None:
    registered = offered.current(conn).get(node.conductor_group)
    if registered is None:
        return None
    # What Nova's driver writes before it deploys.
    return preview.of_deployment(
        registered.of_node(node), enabled, {"traits": list(required.required)}, own, disallowed)
