"""What a flavor does here: which nodes it selects, by what, and what a deployment on one of them runs.

The number of queries does not depend on the number of nodes, templates or extra specs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from ironic_rules.api import flavor_warnings
from ironic_rules.api.offered_steps import OfferedSteps
from ironic_rules.db import deploy_templates, node_sets
from ironic_rules.db import flavors as flavors_db
from ironic_rules.db.projection import Row
from ironic_rules.exceptions import DriverNotFound, Problem
from ironic_rules.models.flavors import Flavor
from ironic_rules.models.steps import DeployTemplate
from ironic_rules.steps import flavors, preview, scheduler
from ironic_rules.steps.flavors import Lack, Requirements
from ironic_rules.steps.offers import NODE_COLUMNS

#: Number of nodes of each kind that are shown by name.
MOST_SHOWN = 20
_COLUMNS = ("uuid", "name", "conductor_group", *NODE_COLUMNS)


@dataclass
class Selection:
    """Some of the nodes of a kind, and the number of all."""

    count: int = 0
    ids: list[int] = field(default_factory=list)

    def add(self, nodes: flavors_db.Alike) -> None:
        """Add nodes that are alike."""
        self.count += nodes.count
        self.ids = sorted([*self.ids, *nodes.ids])[:MOST_SHOWN]


@dataclass
class Nodes:
    """The nodes of the resource class: those that fit, and those that would if they did not lack one thing.

    :ivar capable: by extra spec that the scheduler compares, the number of nodes that are as it requires
    """

    total: int = 0
    fitting: Selection = field(default_factory=Selection)
    nearly: dict[Lack, Selection] = field(default_factory=dict)
    capable: dict[str, int] = field(default_factory=dict)

    def shown(self) -> list[int]:
        """Return the ids of the nodes that are shown."""
        return [node for found in (self.fitting, *self.nearly.values()) for node in found.ids]


@dataclass(frozen=True)
class Explanation:
    """The parts of the reply.

    :ivar holders: by trait, required or forbidden, the number of nodes that have it
    :ivar templates: those named after required traits, by name
    :ivar sample: the node on which the deployment is previewed; None without a fitting one
    :ivar steps: what it would run; None if that cannot be told, for ``reason``
    """

    requirements: Requirements
    classes: Sequence[str]
    nodes: Nodes
    rows: Mapping[int, Row]
    holders: Mapping[str, int]
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
    named = (*required.required, *required.forbidden)
    holders = flavors_db.trait_holders(conn, named)
    found = _sorted(required, flavors_db.alike(
        conn, classes, named, MOST_SHOWN, scheduler.distinguishing(required.capabilities)))
    rows = flavors_db.nodes_by_id(conn, found.shown(), _COLUMNS)
    sample = _sample(found, rows)
    own = node_sets.list_traits(conn, [sample.id])[sample.id] if sample is not None else []
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
        required, has_class=bool(classes), known_traits={name for name, count in holders.items() if count},
        templates=templates.values(), capable=found.capable)
    return Explanation(required, classes, found, rows, holders, templates, sample, steps, reason, warnings)


def _sorted(required: Requirements, groups: Iterable[flavors_db.Alike]) -> Nodes:
    found = Nodes()
    verdicts = []
    for nodes in groups:
        compared = scheduler.compared(required.capabilities, scheduler.host(**nodes.told)) if nodes.told else {}
        verdicts.append((compared, nodes.count))
        lacks = flavors.lacks(required, nodes.traits, compared, nodes.state)
        found.total += nodes.count
        if not lacks:
            found.fitting.add(nodes)
        elif len(lacks) == 1:
            found.nearly.setdefault(lacks[0], Selection()).add(nodes)
    found.capable = scheduler.capable(required.capabilities, verdicts)
    return found


def _sample(found: Nodes, rows: Mapping[int, Row]) -> Row | None:
    """Return a node that fits, or one that only its state keeps from fitting."""
    by_state = (nodes for lack, nodes in found.nearly.items() if lack.kind == flavors.STATE)
    # A node may have been deleted since.
    return next((rows[node] for nodes in (found.fitting, *by_state) for node in nodes.ids if node in rows), None)


def _preview(conn: sa.Connection, node: Any, enabled: Sequence[DeployTemplate], required: Requirements,
             own: Sequence[str], offered: OfferedSteps, disallowed: Sequence[str]) -> preview.Preview | None:
    registered = offered.current(conn).get(node.conductor_group)
    if registered is None:
        return None
    # What Nova's driver writes before it deploys.
    return preview.of_deployment(
        registered.of_node(node), enabled, {"traits": list(required.required)}, own, disallowed)
