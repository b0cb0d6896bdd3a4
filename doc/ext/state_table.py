"""``.. state-table::``: one row per provision state with what a conductor does in it, and where events lead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from ironic_rules import service
from ironic_rules.conductor.conductor import NO_WORK, StateWork
from ironic_rules.models import states

HEAD = """\
.. list-table::
   :header-rows: 1
   :widths: 18 12 35 35

   * - State
     - Kind
     - Work of the conductor
     - Events"""


class Row(NamedTuple):
    """One state. ``work`` names functions below ``ironic_rules.conductor``; ``events`` is event -> next state."""

    state: str
    kind: str
    work: list[str]
    events: dict[str, str]


def rows() -> list[Row]:
    """Return a row for each state that an event leads from or to, in the order of the declaration."""
    work = service.conductor_work()
    leads: dict[str, dict[str, str]] = {}
    for (state, event), transition in states.TRANSITIONS.items():
        leads.setdefault(state, {})[event] = transition.state
        leads.setdefault(transition.state, {})
    declared = [value for name, value in vars(states).items()
                if name.isupper() and isinstance(value, str) and value in leads]
    return [Row(state, _kind(state), _work(work.get(state, NO_WORK)), leads[state]) for state in declared]


def text() -> str:
    """Return the reStructuredText of the table."""
    return "\n".join([HEAD, *(_cells(row) for row in rows())])


def _kind(state: str) -> str:
    return "transient" if state in states.TRANSIENT else "waiting" if state in states.WAITING else "stable"


def _work(work: StateWork) -> list[str]:
    functions: list[tuple[str, Callable[..., Any] | None]] = [
        ("", work.handle), ("clean-up: ", work.clean_up), ("on failure: ", work.on_failure),
        *((f"unfinished {verb}: ", finish) for verb, finish in work.unfinished.items())]
    return [f"{what}``{function.__module__.removeprefix('ironic_rules.conductor.')}.{function.__name__}``"
            for what, function in functions if function is not None]


def _cells(row: Row) -> str:
    events = [f"{event} → {state}" for event, state in row.events.items()]
    return f"   * - {row.state}\n     - {row.kind}\n     - {', '.join(row.work)}\n     - {', '.join(events)}"


class StateTable(SphinxDirective):
    """The table."""

    def run(self) -> list[nodes.Node]:
        return self.parse_text_to_nodes(text())


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("state-table", StateTable)
    return {"parallel_read_safe": True}
