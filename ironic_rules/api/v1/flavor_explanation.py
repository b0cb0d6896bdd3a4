"""The explanation of a flavor: which nodes it selects, by what, and what a deployment on one of them runs.

``/v1/flavors/{flavor}/explanation`` shows it. The number of queries does not depend on the number of nodes, templates
or extra specs. When the extra specs of a flavor are written, a few small queries find what keeps its instances from
nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from ironic_rules.api import links
from ironic_rules.api.expose import expose
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.api.v1.deploy_steps import OfferedSteps
from ironic_rules.api.views import resources
from ironic_rules.db import deploy_templates, flavors, node_sets
from ironic_rules.db.projection import Row
from ironic_rules.exceptions import DriverNotFound, Problem
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.flavors import Flavor, resource_class_in_placement
from ironic_rules.models.steps import DeployTemplate
from ironic_rules.policies import templates
from ironic_rules.steps import flavors as flavors_steps
from ironic_rules.steps import preview, scheduler
from ironic_rules.steps.flavors import Lack, Requirements
from ironic_rules.steps.offers import NODE_COLUMNS


def flavor_warnings(conn: sa.Connection, flavor: Flavor, specs: Mapping[str, str]) -> list[Problem]:
    """Return the warnings about a flavor that has these extra specs."""
    required = Requirements.of(flavor, specs)
    classes = classes_of(conn, required)
    hosts = flavors.facts_of_nodes(conn, classes, scheduler.distinguishing(required.capabilities))
    verdicts = [(scheduler.compared(required.capabilities, scheduler.host(**facts)), 1) for facts in hosts]
    holders = flavors.trait_holders(conn, required.required)
    return required.warnings() + flavors_steps.about_nodes(
        required, has_class=bool(classes), known_traits={trait for trait, count in holders.items() if count},
        templates=deploy_templates.for_traits(conn, required.required),
        capable=scheduler.capable(required.capabilities, verdicts))


def classes_of(conn: sa.Connection, required: Requirements) -> list[str]:
    """Return the resource classes of nodes that Placement knows by the name that a flavor requests."""
    name = required.resource_class
    if name is None:
        return []
    return sorted(resource_class for resource_class in flavors.resource_classes(conn)
                  if resource_class_in_placement(resource_class) == name)


#: Number of nodes of each kind that are shown by name.
MOST_SHOWN = 20
_COLUMNS = ("uuid", "name", "conductor_group", *NODE_COLUMNS)


@dataclass
class Selection:
    """Some of the nodes of a kind, and the number of all."""

    count: int = 0
    ids: list[int] = field(default_factory=list)

    def add(self, nodes: flavors.Alike) -> None:
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
        return [node for selection in (self.fitting, *self.nearly.values()) for node in selection.ids]


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
    classes = classes_of(conn, required)
    named = (*required.required, *required.forbidden)
    holders = flavors.trait_holders(conn, named)
    sorted_nodes = _sorted(required, flavors.alike(
        conn, classes, named, MOST_SHOWN, scheduler.distinguishing(required.capabilities)))
    rows = flavors.nodes_by_id(conn, sorted_nodes.shown(), _COLUMNS)
    sample = _sample(sorted_nodes, rows)
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
    warnings = required.warnings() + flavors_steps.about_nodes(
        required, has_class=bool(classes), known_traits={name for name, count in holders.items() if count},
        templates=templates.values(), capable=sorted_nodes.capable)
    return Explanation(required, classes, sorted_nodes, rows, holders, templates, sample, steps, reason, warnings)


def _sorted(required: Requirements, groups: Iterable[flavors.Alike]) -> Nodes:
    sorted_nodes = Nodes()
    verdicts = []
    for nodes in groups:
        compared = scheduler.compared(required.capabilities, scheduler.host(**nodes.told)) if nodes.told else {}
        verdicts.append((compared, nodes.count))
        lacks = flavors_steps.lacks(required, nodes.traits, compared, nodes.state)
        sorted_nodes.total += nodes.count
        if not lacks:
            sorted_nodes.fitting.add(nodes)
        elif len(lacks) == 1:
            sorted_nodes.nearly.setdefault(lacks[0], Selection()).add(nodes)
    sorted_nodes.capable = scheduler.capable(required.capabilities, verdicts)
    return sorted_nodes


def _sample(sorted_nodes: Nodes, rows: Mapping[int, Row]) -> Row | None:
    """Return a node that fits, or one that only its state keeps from fitting."""
    by_state = (nodes for lack, nodes in sorted_nodes.nearly.items() if lack.kind == flavors_steps.STATE)
    # A node may have been deleted since.
    return next((rows[node] for nodes in (sorted_nodes.fitting, *by_state) for node in nodes.ids if node in rows), None)


def _preview(conn: sa.Connection, node: Any, enabled: Sequence[DeployTemplate], required: Requirements,
             own: Sequence[str], offered: OfferedSteps, disallowed: Sequence[str]) -> preview.Preview | None:
    registered = offered.current(conn).get(node.conductor_group)
    if registered is None:
        return None
    # Fields that Nova's driver writes before it deploys.
    return preview.preview_of_deployment(
        registered.of_node(node), enabled, {"traits": list(required.required)}, own, disallowed)


_NO_STEPS: JSONObject = {"deploy_steps": [], "deploy_templates": [], "problems": [], "complete": False}


def explanation(base: str, flavor: Flavor, explained: Explanation) -> JSONObject:
    """Return the explanation of a flavor."""
    required, nodes = explained.requirements, explained.nodes
    return {
        "flavor": {"id": flavor.flavorid, "name": flavor.name, "links": [
            {"rel": "self", "href": links.url(base, "flavors", flavor.flavorid)}]},
        "resource_class": {"name": required.resource_class, "resource_classes": list(explained.classes),
                           "nodes": nodes.total},
        "required_traits": [{"trait": trait, "nodes": explained.holders[trait],
                             "deploy_template": _template(explained, trait)} for trait in required.required],
        "forbidden_traits": [{"trait": trait, "nodes": explained.holders[trait]} for trait in required.forbidden],
        "capabilities": [{"name": scheduler.name_of(key), "value": required.capabilities[key], "nodes": count}
                         for key, count in nodes.capable.items()],
        "schedulable": not required.warnings(),
        "fitting": _nodes(nodes.fitting, explained.rows),
        "nearly_fitting": [{"lacks": {"kind": lack.kind, "name": lack.name}, **_nodes(selection, explained.rows)}
                           for lack, selection in sorted(nodes.nearly.items())],
        "deployment": {
            "node": None if explained.sample is None else _node(explained.sample),
            **(_NO_STEPS if explained.steps is None else resources.deploy_preview(explained.steps)),
            "reason": explained.reason},
        "warnings": warnings(explained.warnings),
    }


def warnings(problems: Sequence[Problem]) -> list[JSONObject]:
    """Return warnings about a flavor."""
    return [{"pointer": warning.where, "text": warning.text} for warning in problems]


def _template(explained: Explanation, trait: str) -> JSONObject | None:
    template = explained.templates.get(trait)
    return None if template is None else {"uuid": template.uuid, "name": template.name}


def _nodes(selection: Selection, rows: Mapping[int, Row]) -> JSONObject:
    return {"count": selection.count, "nodes": [_node(rows[node]) for node in selection.ids if node in rows]}


def _node(row: Any) -> JSONObject:
    return {"uuid": row.uuid, "name": row.name}


class FlavorExplanationController(Resource):
    """The effects of a flavor here; nothing in them is stored."""

    @expose(policy=templates.FLAVOR_EXPLAIN)
    def get_all(self, request: Request, flavor: str) -> JSONObject:
        """Show what a flavor requires of nodes, which nodes fit, and what a deployment on one of them would run.

        ``fitting`` are nodes on which an instance could be created now; ``nearly_fitting`` those that lack a single
        trait, capability or state, by what they lack. Both show up to 20 nodes, and the number of all.
        ``deployment`` is what ``/v1/nodes/{node}/deploy_steps`` shows, of a fitting node or one that only its
        state keeps from fitting; ``reason`` says why there are no steps. ``schedulable`` is false if no node could
        ever fit, for the amounts of resources; ``warnings`` says that and whatever else keeps instances from nodes.

        :raises flavor_not_found: 404
        """
        conf = request.conf
        with request.db.reader() as conn:
            row = flavors.get(conn, flavor, or_name=True)
            explained = explain(
                conn, row, request.offered_steps, pinned=bool(conf.conductor.pin_release_version),
                disallowed=conf.api.disallow_deploy_steps)
        return explanation(request.base, row, explained)
