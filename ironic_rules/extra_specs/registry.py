"""All extra specs, or all properties of images, by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ironic_rules.extra_specs.hints import Hints
from ironic_rules.extra_specs.names import Template, Templates, shape
from ironic_rules.extra_specs.problems import MAX_LENGTH
from ironic_rules.extra_specs.validators import REMOVED, ExtraSpecValidator
from ironic_rules.extra_specs.values import BadDefinition, ValueRule, rule_of

#: The origin of what is defined in this package.
IN_TREE = ""


@dataclass(frozen=True)
class PluginWarning:
    """Something of a plug-in that does not work, or is not used.

    :ivar entry_point: ``GROUP: NAME = MODULE:OBJECT``
    :ivar distribution: the package that has it; empty if that is not known
    :ivar kind: ``failed`` (it cannot be loaded), ``invalid`` (a definition cannot work) or ``shadowed`` (another one
        has its name)
    :ivar text: one sentence
    """

    entry_point: str
    distribution: str
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Registered:
    """A validator, compiled.

    :ivar origin: the distribution of the plug-in that defined it; empty for those of this package
    """

    validator: ExtraSpecValidator
    rule: ValueRule
    template: Template
    origin: str
    is_removed: bool

    @property
    def gives_way(self) -> bool:
        """Whether plug-ins can define what it describes: what is open to any name, and what Nova no longer has."""
        return not self.origin and (self.validator.refinable or self.is_removed)


class SpecRegistry:
    """Validators by name. Finding one never looks at all of them.

    :ivar what: what a validator describes, for messages: ``extra spec`` or ``image property``
    :ivar plain: those without parameters, by name
    :ivar warnings: the problems of plug-ins
    """

    def __init__(self, what: str, validators: Iterable[ExtraSpecValidator] = ()) -> None:
        self.what = what
        self.plain: dict[str, Registered] = {}
        self.warnings: list[PluginWarning] = []
        #: Those of this package, of plug-ins, and of this package that give way to those of plug-ins: in this order.
        self._templates: tuple[Templates[Registered], ...] = (Templates(), Templates(), Templates())
        self._by_name: dict[str, Registered] = {}
        self._shapes: dict[str, Registered] = {}
        self.hints = Hints(self)
        for validator in validators:
            self.add(validator)

    def add(self, validator: ExtraSpecValidator, origin: str = IN_TREE) -> None:
        """Add a validator.

        :raises BadDefinition: it cannot work, or its name is already in use
        """
        name = validator.name
        if not isinstance(name, str) or not 0 < len(name) <= MAX_LENGTH or not name.isprintable():
            raise BadDefinition(f"Its name is not a printable text of 1 to {MAX_LENGTH} characters.")
        if not isinstance(validator.description, str) or not validator.description.strip():
            raise BadDefinition("It has no description.")
        _check_documentation(validator)
        existing = self.get(name)
        if existing and not (origin and existing.gives_way and existing.is_removed):
            raise BadDefinition(f"There is another {self.what} of its name.")
        template = Template(name, validator.parameters, is_trusted=not origin)
        found = Registered(validator, rule_of(validator.value), template, origin, validator.status == REMOVED)
        if existing:
            del self._by_name[existing.validator.name]
        self._by_name[name] = found
        self._shapes[shape(name)] = found
        if template.parameters:
            self._templates[1 if origin else 2 * found.gives_way].add(template, found)
        else:
            self.plain[name] = found

    def find(self, key: str) -> tuple[Registered, dict[str, str]] | None:
        """Return what describes the extra spec ``key``, and the values of its parameters; None if nothing does."""
        found = self.plain.get(key)
        if found:
            return found, {}
        for templates in self._templates:
            lookup = templates.find(key)
            if lookup:
                return lookup
        return None

    def get(self, name: str) -> Registered | None:
        """Return what has the name ``name``, with parameters in braces, however they are named; None if nothing has."""
        return self._by_name.get(name) or self._shapes.get(shape(name))

    def __iter__(self) -> Iterator[Registered]:
        """Yield all of them, by name."""
        return iter(sorted(self._by_name.values(), key=lambda found: found.validator.name))

    def __len__(self) -> int:
        return len(self._by_name)

    def namespaces(self) -> dict[str, list[Registered]]:
        """Return all of them by namespace, both sorted; that of names without one is empty."""
        found: dict[str, list[Registered]] = {}
        for item in self:
            found.setdefault(item.validator.namespace, []).append(item)
        return dict(sorted(found.items()))


def _check_documentation(validator: ExtraSpecValidator) -> None:
    """Check what is shown and not enforced."""
    for field in ("removed", "replaced_by", "advice", "see_also"):
        if not isinstance(getattr(validator, field), str):
            raise BadDefinition(f"'{field}' is not a text.")
    for field in ("drivers", "requires"):
        found = getattr(validator, field)
        if not isinstance(found, list | tuple) or not all(isinstance(item, str) for item in found):
            raise BadDefinition(f"'{field}' is not a list of texts.")
