"""What keeps instances of a flavor from nodes, as few and small queries can tell when its extra specs are written."""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa

from ironic_rules.db import deploy_templates
from ironic_rules.db import flavors as flavors_db
from ironic_rules.exceptions import Problem
from ironic_rules.models.flavors import Flavor, resource_class_in_placement
from ironic_rules.steps import flavors, scheduler
from ironic_rules.steps.flavors import Requirements


def of(conn: sa.Connection, flavor: Flavor, specs: Mapping[str, str]) -> list[Problem]:
    """Return the warnings about a flavor that has these extra specs."""
    required = Requirements.of(flavor, specs)
    classes = classes_of(conn, required)
    told = flavors_db.facts_of_nodes(conn, classes, scheduler.distinguishing(required.capabilities))
    verdicts = [(scheduler.compared(required.capabilities, scheduler.host(**each)), 1) for each in told]
    holders = flavors_db.trait_holders(conn, required.required)
    return required.warnings() + flavors.about_nodes(
        required, has_class=bool(classes), known_traits={trait for trait, count in holders.items() if count},
        templates=deploy_templates.for_traits(conn, required.required),
        capable=scheduler.capable(required.capabilities, verdicts))


def classes_of(conn: sa.Connection, required: Requirements) -> list[str]:
    """Return the resource classes of nodes that Placement knows by the name that a flavor requests."""
    name = required.resource_class
    if name is None:
        return []
    return sorted(found for found in flavors_db.resource_classes(conn)
                  if resource_class_in_placement(found) == name)
