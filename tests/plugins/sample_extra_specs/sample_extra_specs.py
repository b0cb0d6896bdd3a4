"""Extra specs of a scheduler filter that places instances by the racks' power feeds."""

from ironic_rules.extra_specs.validators import ExtraSpecValidator

VALIDATORS = [
    ExtraSpecValidator(
        name="power:feeds",
        description="How many independent feeds the rack of the host must have.",
        value={"type": int, "description": "The number of feeds.", "min": 1, "max": 2},
    ),
    ExtraSpecValidator(
        name="power:limit.{feed}",
        description="The most power that instances of the flavor may draw from one feed.",
        parameters=[{"name": "feed", "type": int, "description": "The number of the feed, from 0."}],
        value={"type": int, "description": "Watts.", "min": 0},
        requires=["power:feeds"],
    ),
    ExtraSpecValidator(
        name="power:source",
        description="Where the power comes from.",
        value={"type": str, "description": "The source.", "enum": ["grid", "solar"]},
        deprecated=True,
        replaced_by="aggregate_instance_extra_specs:power",
    ),
]
