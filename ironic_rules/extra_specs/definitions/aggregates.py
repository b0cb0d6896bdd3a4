"""What the metadata of a host's aggregates must say: ``aggregate_instance_extra_specs:NAME``."""

from __future__ import annotations

from ironic_rules.extra_specs.validators import ExtraSpecValidator

#: A comparison, or a text that is compared as it is.
COMPARISON = {
    "type": str,
    "description": "A text that must be equal; or an operator and what it compares with, such as ``<in> gpu``, ``<or> "
                   "a <or> b``, ``s== x`` or ``>= 4``.",
    "format": "scheduler-operators",
}

EXTRA_SPECS = [
    ExtraSpecValidator(
        name="aggregate_instance_extra_specs:{key}",
        description="Only hosts in an aggregate whose metadata have this key, with a value that fits. The scheduler "
                    "must have the filter ``AggregateInstanceExtraSpecsFilter``.",
        parameters=[{"name": "key", "description": "The key in the aggregate's metadata.", "type": str}],
        value=COMPARISON,
        refinable=True,
    ),
]
