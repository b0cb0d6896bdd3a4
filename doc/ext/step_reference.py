"""``.. step-reference::``: the steps of all interfaces, by kind of interface, from their declarations."""

from __future__ import annotations

import inspect
from importlib import metadata
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from ironic_rules.hardware.enabled import INTERFACES_GROUP
from ironic_rules.models.steps import STEP_INTERFACES
from ironic_rules.steps import declaration
from ironic_rules.steps.procedures import ALL, DEPLOYMENT

#: Name of an interface -> its class, and its declaration of a step.
Offers = dict[str, tuple[Any, declaration.StepInfo]]


def offers() -> dict[str, Offers]:
    """Return the interfaces that offer each step, by its name."""
    points = metadata.distribution("ironic-rules").entry_points
    found: dict[str, Offers] = {}
    for kind in STEP_INTERFACES:
        for point in sorted(points.select(group=f"{INTERFACES_GROUP}.{kind}"), key=lambda point: point.name):
            cls = point.load()
            # Of a step of several procedures, the first declaration is shown.
            for procedure in ALL:
                for info in declaration.steps_of(cls, procedure):
                    found.setdefault(info.name, {}).setdefault(point.name, (cls, info))
    return found


def page() -> str:
    """Return the reStructuredText of all sections."""
    found = offers()
    lines = []
    for kind in STEP_INTERFACES:
        lines += [kind, "-" * len(kind), ""]
        own = {name: by for name, by in found.items() if name.startswith(f"{kind}.")}
        highest = {name: max(info.priority for _, info in by.values()) for name, by in own.items()}
        for name in sorted(own, key=lambda name: (-highest[name], name)):
            lines += _entry(name, own[name])
    return "\n".join(lines)


def _entry(name: str, by: Offers) -> list[str]:
    """Return the text for one step: once for all interfaces that declare the same."""
    lines = [f"``{name}``"]
    said: dict[tuple[str, ...], list[str]] = {}
    for interface, (cls, info) in by.items():
        said.setdefault(tuple(_said(cls, info)), []).append(f"``{interface}``")
    for (summary, facts, *arguments), interfaces in said.items():
        lines += [f"   {summary}", "", f"   {facts}; interfaces: {', '.join(interfaces)}.", "", *arguments, ""]
    return lines


def _said(cls: Any, info: declaration.StepInfo) -> list[str]:
    of = [procedure for procedure in ALL if declaration.declaration(cls, info.step, procedure)]
    facts = [f"Priority {info.priority}"] + ["a core step"] * info.core
    if of != [DEPLOYMENT]:
        facts.append(f"for {' and '.join(procedure.noun for procedure in of)}")
    facts += ["repeated after a conductor failure"] * info.rerunnable
    arguments = [f"   * ``{name}``{' (required)' if described['required'] else ''}: {described['description']}"
                 for name, described in info.argsinfo.items()]
    return [_summary(cls, info.step), "; ".join(facts), *arguments]


def _summary(cls: Any, step: str) -> str:
    """Return the first paragraph of the step's docstring, or of that of the method that it overrides."""
    text = next(method.__doc__ for base in cls.__mro__ if (method := base.__dict__.get(step)) and method.__doc__)
    return " ".join(inspect.cleandoc(text).split("\n\n")[0].split())


class StepReference(SphinxDirective):
    """The sections."""

    def run(self) -> list[nodes.Node]:
        return self.parse_text_to_nodes(page(), allow_section_headings=True)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("step-reference", StepReference)
    return {"parallel_read_safe": True}
