"""Amounts of resources that an instance takes: ``resources:CLASS``."""

from __future__ import annotations

import functools

from ironic_rules.extra_specs.definitions.traits import GROUP
from ironic_rules.extra_specs.validators import ExtraSpecValidator


@functools.cache
def standard_classes() -> frozenset[str]:
    """Return the names of standard resource classes."""
    import os_resource_classes
    return frozenset(os_resource_classes.STANDARDS)


EXTRA_SPECS = [
    ExtraSpecValidator(
        name="resources{group}:CUSTOM_{resource}",
        description="Take an amount of a custom resource class. For bare metal the class is that of the node, as in "
                    "``resources:CUSTOM_BAREMETAL_GOLD=1``, and the amount is 1: a node has one of its class.",
        parameters=[GROUP,
                    {"name": "resource", "description": "The name of the class after ``CUSTOM_``.",
                     "pattern": "[A-Z0-9_]+"}],
        value={"type": int, "description": "The amount; 1 for a bare-metal node."},
    ),
    ExtraSpecValidator(
        name="resources{group}:{resource}",
        description="Take an amount of a standard resource class, instead of what the flavor's fields say. Bare-metal "
                    "flavors have 0 for ``VCPU``, ``MEMORY_MB`` and ``DISK_GB``, as nodes provide none of them to "
                    "Placement.",
        parameters=[GROUP, {"name": "resource", "description": "The name of a class of os-resource-classes.",
                            "enum": standard_classes}],
        value={"type": int, "description": "The amount; 0 leaves out what the flavor's field says."},
    ),
]
