"""Previews: what a deployment would run, the nodes that can run a template, and warnings. No side effects.

They are determined from what conductors have registered, and call none, however many nodes there are, so they work
while all conductors are busy. Warnings are about what is possible, but hardly meant, and about an accepted template
that some or all nodes cannot run. They never quote a value of an argument: it may be a secret.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ironic_rules.exceptions import DriverNotFound, Problem
from ironic_rules.models.documents import JSON, JSONObject
from ironic_rules.models.nodes import Node
from ironic_rules.models.steps import DeployTemplate, Step
from ironic_rules.steps import checks, merge, offers
from ironic_rules.steps.merge import ScheduledStep
from ironic_rules.steps.offers import NODE_COLUMNS, Offer, RegisteredSteps
from ironic_rules.steps.procedures import CLEANING
from ironic_rules.text import nearest, printable

#: Maximum number of warnings about one deployment or template.
MAX_WARNINGS = 50
#: The core step that starts the instance.
_STARTS_INSTANCE = ("deploy", "boot_instance")
#: Kinds of interfaces whose steps reboot the machine or change what the instance is stored on.
_DISTURBING = {"bios": "reboots the machine under the running instance",
               "firmware": "reboots the machine under the running instance",
               "raid": "can destroy the instance's data, and reboots the machine"}
#: Steps that take effect when the machine boots next, and steps that boot it.
_AT_NEXT_BOOT = frozenset({("management", "set_boot_mode"), ("management", "set_secure_boot")})
_BOOTS = frozenset({("deploy", "deploy"), _STARTS_INSTANCE, ("power", "power_on"), ("power", "reboot"),
                    ("bios", "apply_configuration"), ("bios", "factory_reset")})
#: Arguments of RAID steps that delete the volumes of earlier ones.
_DELETE = ("delete_configuration", "delete_existing")
_CREATE_VOLUMES = frozenset({("raid", "create_configuration"), ("raid", "apply_configuration")})


@dataclass(frozen=True, slots=True)
class StepWarning:
    """One warning.

    ``kind`` is ``after-instance``, ``set-differently``, ``no-core-steps`` or ``no-reboot``; ``step`` or ``arguments``
    about one step; ``instance`` about a key of the node.
    ``where`` is the JSON pointer of the step in its template or in the list of steps to run, or of the key.
    """

    kind: str
    where: str
    text: str

    def __str__(self) -> str:
        return self.text

    def to_wire(self) -> dict[str, str]:
        """Return the warning as in replies."""
        return {"kind": self.kind, "pointer": self.where, "text": self.text}


def warnings_of_deployment(offer: Offer, runs: Sequence[ScheduledStep]) -> list[StepWarning]:
    """Return the warnings about the steps of a deployment, in the order in which they would run.

    :param offer: of the node
    """
    warnings = itertools.chain(_after_instance(runs), _set_differently(runs), _no_core(offer, runs), _no_reboot(runs))
    return list(itertools.islice(warnings, MAX_WARNINGS))


def _late(step: Step) -> str:
    return (f"{_name(step)} with priority {step.priority} runs after {'.'.join(_STARTS_INSTANCE)}: it "
            f"{_DISTURBING[step.interface]}")


def _after_instance(runs: Sequence[ScheduledStep]) -> Iterator[StepWarning]:
    started = next((index for index, step in enumerate(runs) if step.key == _STARTS_INSTANCE), len(runs))
    for index, step in enumerate(runs[started + 1:], started + 1):
        if step.interface in _DISTURBING and _does_work(step):
            yield StepWarning("after-instance", _place(index), f"{_late(step)} ({step.source})")


def _does_work(step: Step) -> bool:
    return step.step != "pretend"


def _set_differently(runs: Sequence[ScheduledStep]) -> Iterator[StepWarning]:
    """Two runs of a step, of different sources, that disagree: the later one overwrites what the earlier one did."""
    earlier: dict[tuple[str, str], list[ScheduledStep]] = {}
    volumes: list[ScheduledStep] = []
    for index, step in enumerate(runs):
        for other in earlier.setdefault(step.key, []):
            if other.source != step.source and (names := _differences(other.args, step.args)):
                yield StepWarning("set-differently", _place(index), (
                    f"{_name(step)}: {other.source} and {step.source} set {names} differently; the latter runs last"))
        earlier[step.key].append(step)
        if step.key in _CREATE_VOLUMES:
            creators = [other for other in volumes if other.source != step.source]
            if creators and any(step.args.get(name) is True for name in _DELETE):
                yield StepWarning("set-differently", _place(index), (
                    f"{_name(step)}: {step.source} deletes the volumes that {creators[-1].source} has created"))
            elif creators and _root(step) and any(map(_root, creators)):
                yield StepWarning("set-differently", _place(index), (
                    f"{_name(step)}: both {creators[-1].source} and {step.source} create a root volume"))
            volumes.append(step)


def _differences(first: Mapping[str, JSON], second: Mapping[str, JSON]) -> str:
    """Return the names of what both set to different values; lists of objects with name and value are compared by name.

    Other lists, such as those of volumes, add to each other.
    """
    names = []
    for name in first.keys() & second.keys() - set(_DELETE):
        old, new = first[name], second[name]
        if isinstance(old, list) and isinstance(new, list):
            settings = _by_name(old)
            names += [text for text, value in _by_name(new).items() if text in settings and settings[text] != value]
        elif not isinstance(old, dict) and not isinstance(new, dict) and old != new:
            names.append(name)
    return printable(", ".join(sorted(names)), 200)


def _by_name(items: Iterable[object]) -> JSONObject:
    return {item["name"]: item["value"] for item in items
            if isinstance(item, dict) and isinstance(item.get("name"), str) and "value" in item}


def _root(step: Step) -> bool:
    config = step.args.get("raid_config")
    disks = (config if isinstance(config, dict) else step.args).get("logical_disks")
    return step.args.get("create_root_volume") is not False and isinstance(disks, list) and any(
        isinstance(disk, dict) and disk.get("is_root_volume") is True for disk in disks)


def _no_core(offer: Offer, runs: Sequence[ScheduledStep]) -> Iterator[StepWarning]:
    core = {info.key for info in offer.steps if info.core and info.priority}
    if core and not core & {step.key for step in runs}:
        yield StepWarning("no-core-steps", "", "every core step is left out (priority 0): nothing is deployed, and the "
                                               "node becomes active nevertheless")


def _no_reboot(runs: Sequence[ScheduledStep]) -> Iterator[StepWarning]:
    for index, step in enumerate(runs):
        if step.key in _AT_NEXT_BOOT and not any(later.key in _BOOTS for later in runs[index + 1:]):
            yield StepWarning("no-reboot", _place(index), (
                f"{_name(step)} ({step.source}) takes effect when the machine boots next, and no later step boots it"))


def _place(index: int) -> str:
    return f"/deploy_steps/{index}"


def _name(step: Step) -> str:
    return f"{step.interface}.{printable(step.step, 255)}"


@dataclass(frozen=True, slots=True)
class Preview:
    """The steps that a deployment would run, in order, the problems that would prevent it, and warnings about it.

    ``templates`` are the names of those that apply; ``complete`` is false if a ramdisk adds its own steps.
    """

    steps: Sequence[ScheduledStep]
    templates: Sequence[str]
    problems: Sequence[str]
    warnings: Sequence[StepWarning]
    complete: bool


def preview_of_deployment(offer: Offer, enabled: Collection[DeployTemplate], instance_info: Mapping[str, JSON],
                          traits: Collection[str], disallowed: Collection[str]) -> Preview:
    """Return the steps that a deployment would run.

    :param enabled: the templates named after the node's traits and after those that its instance requests
    :param traits: those of the node
    :param disallowed: names of steps that must not run
    """
    requested = offers.requested_traits(instance_info)
    # The steps of those that are only enabled do not run, but their problems prevent a deployment as well.
    counting = [template for template in enabled if template.name in requested]
    runs = merge.order(offer, counting)
    return Preview(
        runs, [template.name for template in counting],
        offers.trait_problems(instance_info, traits) + checks.node_problems(offer, enabled, disallowed=disallowed),
        warnings_of_deployment(offer, runs), not offer.in_ramdisk)


@dataclass(frozen=True, slots=True)
class Judgement:
    """Reasons why a node cannot run a template, and warnings about a deployment by it."""

    problems: Sequence[str]
    warnings: Sequence[StepWarning] = ()


def preview_of_cleaning(offer: Offer) -> Preview:
    """Return the steps that automated cleaning would run.

    :param offer: the node's for cleaning
    """
    return Preview(merge.in_order(offer, CLEANING), (), checks.cleaning_problems(offer), (), not offer.in_ramdisk)


class Support:
    """Checks whether nodes can run a template; nodes with the same interfaces are checked once.

    :param registered: the steps that the conductors of each group offer
    :param disallowed: names of steps that must not run
    """

    def __init__(self, template: DeployTemplate, registered: Mapping[str | None, RegisteredSteps],
                 disallowed: Collection[str]) -> None:
        self._template = template
        self._registered = registered
        self._disallowed = disallowed
        self._known: dict[tuple[Any, ...], Judgement] = {}

    def judge(self, node: Node) -> Judgement:
        """Return what a deployment of a node (at least ``NODE_COLUMNS`` and ``conductor_group``) by the template says.

        Other templates of the node are not considered.
        """
        key = (node.conductor_group, *(getattr(node, name) for name in NODE_COLUMNS))
        if key not in self._known:
            self._known[key] = self._judge(node)
        return self._known[key]

    def _judge(self, node: Node) -> Judgement:
        registered = self._registered.get(node.conductor_group)
        if registered is None:
            return Judgement(["no conductor of the node's group is alive"])
        try:
            offer = registered.of_node(node)
        except DriverNotFound as error:
            return Judgement([str(error)])
        if problems := checks.node_problems(offer, [self._template], disallowed=self._disallowed):
            return Judgement(problems)
        return Judgement([], warnings_of_deployment(offer, merge.order(offer, [self._template])))


def warnings_of_template(registered: RegisteredSteps, steps: Iterable[Step]) -> Sequence[StepWarning]:
    """Return the warnings about the steps of a template: steps that no interface has, and what some do not accept.

    A template is stored nevertheless: its drivers may be added later, and it is not known which nodes it is for.

    :param registered: what live conductors offer
    """
    warnings = (
        warning for index, step in enumerate(steps) for warning in _of_step(registered, step, f"/steps/{index}"))
    return list(itertools.islice(warnings, MAX_WARNINGS))


def _of_step(registered: RegisteredSteps, step: Step, where: str) -> Iterator[StepWarning]:
    refused: dict[Problem, set[str]] = {}
    declared = registered.declared(step)
    if not declared and offers.find_reserved(step) is None:
        near = nearest(step.step, registered.names(step.interface))
        hint = f" (did you mean {near}?)" if near else ""
        yield StepWarning("step", f"{where}/step", (
            f"no enabled {step.interface} interface has this step{hint}; only nodes whose ramdisk has it pass "
            "validation"))
    for name, info in declared:
        for problem in checks.against(info, step):
            refused.setdefault(problem, set()).add(name)
    for problem, names in refused.items():
        yield StepWarning("arguments", f"{where}{printable(problem.where, 256)}", (
            f"{problem.text}; nodes with the {step.interface} interface {' or '.join(sorted(names))} fail validation "
            "and are not deployed"))
