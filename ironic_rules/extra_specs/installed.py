"""The registries of this installation: what this package defines, and what other packages add, by entry point.

A bad plug-in stops nothing: its problems become warnings, as data, and everything else works.
"""

from __future__ import annotations

import functools
import importlib.metadata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from importlib.metadata import EntryPoint

from ironic_rules.extra_specs.registry import PluginWarning, SpecRegistry, Template
from ironic_rules.extra_specs.validators import ExtraSpecValidator
from ironic_rules.extra_specs.values import BadDefinition
from ironic_rules.models.documents import JSONObject
from ironic_rules.text import printable

#: An entry point is a list of validators.
LISTS = "nova.extra_spec_validators"
#: An entry point is an object whose ``register()`` returns a list of validators: a module, for Nova.
NOVA = "nova.api.extra_spec_validators"
GROUPS = (LISTS, NOVA)
#: The modules of Nova itself, which is not installed beside this service in most places. What they define is in this
#: package, too.
_NOVAS_OWN = "nova.api.validation.extra_specs."

_THIS = "this service"
#: Values of parameters with which a name is tried.
_TRIED = ("", "0", "a", "A")

FAILED = "failed"
INVALID = "invalid"
SHADOWED = "shadowed"


@functools.cache
def extra_specs() -> SpecRegistry:
    """Return all extra specs of flavors, built once; ``warnings`` has the problems of plug-ins."""
    registry = built_in()
    add_to(registry)
    return registry


@functools.cache
def image_properties() -> SpecRegistry:
    """Return all properties of images, built once."""
    from ironic_rules.extra_specs import definitions

    return SpecRegistry("image property", definitions.image_properties())


def built_in() -> SpecRegistry:
    """Return a new registry of the extra specs that this package defines."""
    from ironic_rules.extra_specs import definitions

    return SpecRegistry("extra spec", definitions.extra_specs())


def add_to(registry: SpecRegistry, entry_points: Iterable[EntryPoint] | None = None) -> None:
    """Add the extra specs that installed packages define; their problems become ``registry.warnings``.

    Entries of the registry come first, then packages in the order of their names.

    :param entry_points: for tests; by default those of installed packages
    """
    if entry_points is None:
        # All at once: asking for one group takes as long.
        installed_points = importlib.metadata.entry_points()
        entry_points = [point for group in GROUPS for point in installed_points.select(group=group)]
    ours = (point for point in entry_points if not point.value.startswith(_NOVAS_OWN))
    for point in sorted(ours, key=lambda point: (_distribution(point), point.group, point.name, point.value)):
        _add(registry, point)


def converted(definition: object) -> ExtraSpecValidator:
    """Return the validator that an object of a plug-in describes by its attributes, such as one of Nova's class.

    :raises BadDefinition: an attribute is missing
    """
    if isinstance(definition, ExtraSpecValidator):
        return definition
    values: JSONObject = {}
    for field in fields(ExtraSpecValidator):
        value = getattr(definition, field.name, None)
        if value is not None:
            values[field.name] = value
    missing = [name for name in ("name", "description", "value") if name not in values]
    if missing:
        raise BadDefinition(f"A {type(definition).__name__} without {' and '.join(missing)} is no validator.")
    return ExtraSpecValidator(**values)


def _add(registry: SpecRegistry, point: EntryPoint) -> None:
    def warn(kind: str, text: str) -> None:
        where = f"{point.group}: {point.name} = {point.value}"
        registry.warnings.append(PluginWarning(where, _distribution(point), kind, text))

    try:
        validators = list(_validators(point))
    except (Exception, SystemExit) as exc:  # noqa: BLE001  # any failure of a plug-in is a warning
        warn(FAILED, f"It cannot be loaded: {type(exc).__name__}: {printable(exc, 256)}")
        return
    for number, item in enumerate(validators, 1):
        name = f"Validator {number}"
        try:
            validator = converted(item)
            name = f"'{printable(validator.name, 64)}'"
            owner = _owner(registry, validator)
            if owner:
                warn(SHADOWED, f"{name} is defined by {owner} as well; this definition is not used.")
            else:
                registry.add(validator, _distribution(point) or point.value)
        except BadDefinition as exc:
            warn(INVALID, f"{name} is not used: {exc}")
        except Exception as exc:  # noqa: BLE001  # attributes of a plug-in's object can be properties that fail
            warn(INVALID, f"{name} is not used: {type(exc).__name__}: {printable(exc, 256)}")


def _validators(point: EntryPoint) -> Iterator[object]:
    validators = point.load()
    if point.group == NOVA:
        validators = validators.register()
    if isinstance(validators, str | bytes | Mapping) or not isinstance(validators, Iterable):
        raise TypeError(f"{type(validators).__name__} is not a list of validators")
    yield from validators


def _owner(registry: SpecRegistry, validator: ExtraSpecValidator) -> str:
    """Return who has defined what a validator describes; empty if nothing has.

    This package describes many names by one with parameters, such as all traits. Whether it describes those of a
    plug-in that have parameters is tried with some values of them.

    :raises BadDefinition: the name cannot be used
    """
    if not isinstance(validator.name, str):
        return ""
    existing = registry.get(validator.name)
    if existing:
        return "" if existing.gives_way and existing.is_removed else existing.origin or _THIS
    template = Template(validator.name, validator.parameters)
    keys = [validator.name]
    if template.parameters:
        keys = [key for value in _TRIED if template.values(key := value.join(template.literals)) is not None]
    others = [lookup[0] for lookup in map(registry.find, keys) if lookup]
    return _THIS if any(not item.origin and not item.gives_way for item in others) else ""


def _distribution(point: EntryPoint) -> str:
    return point.dist.name if point.dist else ""
