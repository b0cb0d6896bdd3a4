"""``.. route-table::``: one row per route with what ``expose`` declares, from the walk that :mod:`api_text` makes."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

import api_text
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from ironic_rules.api import patch, schemas
from ironic_rules.api.expose import RAW
from ironic_rules.api.schema import Schema

HEAD = """\
.. list-table::
   :class: routes
   :header-rows: 1
   :widths: 8 33 6 28 25

   * - Method
     - Path
     - Since
     - Policy
     - Schema of the body"""


class Row(NamedTuple):
    """One route. ``policy`` is None where nobody is asked; ``public`` routes need no authentication."""

    method: str
    path: str
    since: str
    policy: str | None
    public: bool
    schema: str


def rows() -> list[Row]:
    """Return a row for each exposed method, in the order of the API reference."""
    return [_row(walked.method, api_text.path_of(walked), walked.controller) for walked in api_text.routes()]


def text() -> str:
    """Return the reStructuredText of the table."""
    return "\n".join([HEAD, *(_cells(row) for row in rows())])


def _row(method: str, path: str, controller: Callable[..., Any]) -> Row:
    route = controller.route  # type: ignore[attr-defined]
    return Row(method, path, f"1.{route.since}", route.policy, route.public, _schema(route.body, controller))


def _schema(body: Schema | None, controller: Callable[..., Any]) -> str:
    """Return where the body's schema is, or what there is in place of one."""
    if body is None:
        return "none"
    if body is RAW:
        return "raw JSON, checked by the method with " + " and ".join(map(_place, _used_by(controller)))
    return _place(body)


def _place(schema: Schema) -> str:
    file, name = declared()[id(schema)]
    return f"``{file}`` ``{name}``"


def _used_by(controller: Callable[..., Any]) -> list[Schema]:
    """Return the schemas that a method names in its own code, as ``schemas.NAME``."""
    method = inspect.unwrap(controller)
    names = method.__code__.co_names
    modules = [found for name in names if isinstance(found := method.__globals__.get(name), ModuleType)]
    named = [getattr(module, name, None) for name in names for module in modules]
    return [found for found in named if id(found) in declared()]


@functools.cache
def declared() -> dict[int, tuple[str, str]]:
    """Return file and name of each schema that is declared at the level of a module, by its id."""
    return {id(value): (module.__name__.removeprefix("ironic_rules.").replace(".", "/") + ".py", name)
            for module in (patch, schemas)
            for name, value in vars(module).items() if isinstance(value, Schema)}


def _cells(row: Row) -> str:
    policy = f"``{row.policy}``" if row.policy else "none"
    cells = (row.method, f"``{row.path}``", row.since, policy + (", public" if row.public else ""), row.schema)
    return "   * - " + "\n     - ".join(cells)


class RouteTable(SphinxDirective):
    """The table."""

    def run(self) -> list[nodes.Node]:
        return self.parse_text_to_nodes(text())


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("route-table", RouteTable)
    return {"parallel_read_safe": True}
