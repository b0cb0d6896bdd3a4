"""The virtual hardware of an instance: ``hw:NAME``."""

from __future__ import annotations

from ironic_rules.extra_specs.validators import ExtraSpecValidator

EXTRA_SPECS = [
    ExtraSpecValidator(
        name="hw:cpu_policy",
        description="Whether each virtual CPU has a host CPU of its own.",
        value={"type": str, "description": "The policy.", "enum": ["dedicated", "shared", "mixed"]},
    ),
    ExtraSpecValidator(
        name="hw:numa_cpus.{num}",
        description="The virtual CPUs of one virtual NUMA node.",
        parameters=[{"name": "num", "description": "The virtual NUMA node, from 0.", "type": int}],
        value={"type": str, "description": "Virtual CPUs, as a CPU map.", "format": "cpu-map"},
    ),
]
