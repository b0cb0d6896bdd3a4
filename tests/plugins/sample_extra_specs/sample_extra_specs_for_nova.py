"""The same way as plug-ins of Nova have it: a module with ``register``, and objects with the attributes of Nova's
class.

Where Nova is installed, they would be objects of ``nova.api.validation.extra_specs.base.ExtraSpecValidator``.
"""

from types import SimpleNamespace


def register():
    """Return the extra specs."""
    return [
        SimpleNamespace(
            name="cooling:kind",
            description="How the host is cooled.",
            value={"type": str, "description": "The kind.", "enum": ["air", "liquid"]},
            parameters=[],
            deprecated=False,
        ),
        SimpleNamespace(
            name="cooling:zone_{zone}",
            description="Whether the host may be in a zone of the hall.",
            value={"type": bool, "description": "Whether it may."},
            parameters=[{"name": "zone", "pattern": "[a-z]+"}],
            deprecated=False,
        ),
    ]
