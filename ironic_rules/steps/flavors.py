"""The requirements of a flavor on a bare-metal node, by its extra specs, and the nodes that meet them.

Nova reports of each node one unit of its resource class, under Placement's name of it, and its traits; its scheduler
compares the node's capabilities. Numbers of virtual CPUs and sizes are not reported, so a flavor must not request any.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ironic_rules.exceptions import Problem
from ironic_rules.models.flavors import Flavor
from ironic_rules.models.steps import DeployTemplate
from ironic_rules.steps import scheduler
from ironic_rules.text import pointer_token

TRAIT, FORBIDDEN, CAPABILITY, STATE = "trait", "forbidden trait", "capability", "state"

_RESOURCE = re.compile(r"resources[a-zA-Z0-9_-]*:([A-Z0-9_]+)")
_TRAIT = re.compile(r"trait[a-zA-Z0-9_-]*:([A-Z0-9_]+)")
#: Standard resource classes, which every flavor requests unless they are zeroed -> where the amount comes from.
_STANDARD: dict[str, Callable[[Flavor], int]] = {
    "VCPU": lambda flavor: flavor.vcpus, "MEMORY_MB": lambda flavor: flavor.memory_mb,
    "DISK_GB": lambda flavor: flavor.root_gb + flavor.ephemeral_gb + -(-flavor.swap // 1024)}


@dataclass(frozen=True, slots=True)
class Requirements:
    """The requirements of a flavor.

    :ivar classes: the custom resource classes that it requests, as Placement names them, each with the amount
    :ivar standard: amounts above 0 of resource classes that no node offers, by name
    :ivar required: traits;  forbidden: traits
    :ivar capabilities: the extra specs that the scheduler may compare with a node: see :func:`scheduler.read_by_filter`
    """

    classes: Mapping[str, int]
    standard: Mapping[str, int]
    required: tuple[str, ...]
    forbidden: tuple[str, ...]
    capabilities: Mapping[str, str]

    @classmethod
    def of(cls, flavor: Flavor, specs: Mapping[str, str]) -> Requirements:
        """Return the requirements of ``flavor`` if it has these extra specs. A malformed one requires nothing."""
        amounts: Counter[str] = Counter()
        traits: dict[str, list[str]] = {"required": [], "forbidden": []}
        for key, value in specs.items():
            if (resource := _RESOURCE.fullmatch(key)) is not None:
                with contextlib.suppress(ValueError):
                    # Requests of several groups are added up.
                    amounts[resource[1]] += _amount(value)
            elif (trait := _TRAIT.fullmatch(key)) is not None and trait[1] not in traits.get(value, [trait[1]]):
                traits[value].append(trait[1])
        for name, amount in _STANDARD.items():
            if name not in amounts and not (name == "VCPU" and "PCPU" in amounts):
                amounts[name] = amount(flavor)
        requested = {name: amount for name, amount in amounts.items() if amount}
        return cls(
            {name: amount for name, amount in requested.items() if name.startswith("CUSTOM_")},
            {name: amount for name, amount in requested.items() if not name.startswith("CUSTOM_")},
            tuple(sorted(traits["required"])), tuple(sorted(traits["forbidden"])), scheduler.read_by_filter(specs))

    @property
    def resource_class(self) -> str | None:
        """The resource class of nodes that it can have; None if it requests none, or more than a node can offer."""
        return next(iter(self.classes)) if len(self.classes) == 1 else None

    def warnings(self) -> list[Problem]:
        """Return why no node can ever fit, whatever nodes there are."""
        problems = []
        if not self.classes:
            problems.append(Problem("/extra_specs", (
                "The flavor requests no resource class of bare-metal nodes. Add resources:CUSTOM_<CLASS>=1.")))
        elif len(self.classes) > 1:
            problems.append(Problem("/extra_specs", (
                f"The flavor requests the resource classes {', '.join(sorted(self.classes))}; a node has only one.")))
        for name, amount in sorted(self.classes.items()):
            if amount > 1:
                problems.append(Problem(f"/extra_specs/resources:{name}", (
                    f"The flavor requests {amount} of {name}; a node offers one.")))
        for name, amount in sorted(self.standard.items()):
            problems.append(Problem(f"/extra_specs/resources:{name}", (
                f"The flavor requests {amount} of {name}, which bare-metal nodes do not offer. "
                f"Add resources:{name}=0.")))
        return problems


class Lack(NamedTuple):
    """The reason why a node does not fit: one of TRAIT, FORBIDDEN, CAPABILITY, STATE, and which one."""

    kind: str
    name: str


def lacks(required: Requirements, traits: Collection[str], compared: Mapping[str, bool],
          state: str | None) -> list[Lack]:
    """Return why a node of the right resource class does not fit.

    :param traits: of the node
    :param compared: whether it is as the scheduler requires, by extra spec: see :func:`scheduler.compared`
    :param state: what its state prevents; None if the node is available
    """
    reasons = [] if state is None else [Lack(STATE, state)]
    reasons += [Lack(TRAIT, trait) for trait in required.required if trait not in traits]
    reasons += [Lack(FORBIDDEN, trait) for trait in required.forbidden if trait in traits]
    reasons += dict.fromkeys(Lack(CAPABILITY, scheduler.name_of(key)) for key, fits in compared.items() if not fits)
    return reasons


def _amount(text: str) -> int:
    """Return an amount.

    :raises ValueError: it is none, and ignored by Nova
    """
    amount = int(text)
    if amount < 0:
        raise ValueError
    return amount


def about_nodes(required: Requirements, *, has_class: bool, known_traits: Collection[str],
                templates: Iterable[DeployTemplate], capable: Mapping[str, int]) -> list[Problem]:
    """Return the problems of a flavor with the present nodes and templates.

    :param has_class: whether any node has the resource class
    :param known_traits: those of the required traits that any node has
    :param templates: those that are named after required traits
    :param capable: how many nodes of the class are as each of the extra specs requires that the scheduler compares
    """
    problems = []
    name = required.resource_class
    if name is not None and not has_class:
        problems.append(Problem(f"/extra_specs/resources:{name}", f"No node has the resource class {name}."))
    ordered = sorted(templates, key=lambda template: template.name)
    named = {template.name for template in ordered}
    problems += [Problem(f"/extra_specs/trait:{trait}", (
        f"No node has the trait {trait}, and no deploy template is named after it."))
        for trait in required.required if trait not in known_traits and trait not in named]
    problems += [Problem(f"/extra_specs/{pointer_token(key)}", (
        f"No node of the resource class has the capability {scheduler.name_of(key)} as the flavor requires it."))
        for key, count in capable.items() if has_class and not count]
    problems += [Problem(f"/extra_specs/{pointer_token(key)}", (
        f"Only Nova knows {scheduler.name_of(key)} of its hosts. Here, every node counts as one that fits."))
        for key in scheduler.unknown(required.capabilities)]
    touched: dict[str, str] = {}
    for template in ordered:
        for interface in sorted({step.interface for step in template.steps if step.priority}):
            if interface in touched:
                problems.append(Problem(f"/extra_specs/trait:{template.name}", (
                    f"The deploy templates {touched[interface]} and {template.name} both have steps of the "
                    f"{interface} interface; the order of their priorities decides.")))
            touched.setdefault(interface, template.name)
    return problems
