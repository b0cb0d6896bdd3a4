"""The table of routes in the documentation says what the code declares."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from typing import Any

import pytest

from ironic_rules import policies
from ironic_rules.api.routes import Resource, find
from ironic_rules.api.v1 import RootController
from tests.unit.doc_extensions import extension

ROOT = RootController()
TABLE = extension("route_table")


@pytest.fixture(scope="module")
def rows() -> list[Any]:
    return TABLE.rows()


def exposed(resource: Resource) -> Iterator[str]:
    """Yield the name of every exposed method at and below a resource, as often as the tree has it."""
    yield from (method.__qualname__ for name in dir(resource) if hasattr(method := getattr(resource, name), "route"))
    for child in (*resource.below.values(), *resource.below_item.values()):
        yield from exposed(child)


def controller(row: Any, *, all_arguments: bool) -> Any:
    """Return the method that a request for the route of a row gets to."""
    path = re.sub(r"\[(.*)\]", r"\1" if all_arguments else "", row.path)
    found = find(ROOT, row.method, re.sub(r"\{\w+\}", "x", path)).controller
    assert found is not None, row
    return found


def test_every_exposed_method_has_one_row(rows):
    assert len(rows) == len({(row.method, row.path) for row in rows})
    assert sorted(controller(row, all_arguments=True).__qualname__ for row in rows) == sorted(exposed(ROOT))


def test_version_and_policy_of_every_row_are_those_that_expose_declares(rows):
    found = [(row, controller(row, all_arguments=every).route) for row in rows for every in (True, False)]

    assert [row for row, route in found
            if (row.since, row.policy, row.public) != (f"1.{route.since}", route.policy, route.public)] == []


def test_every_policy_of_a_row_exists(rows):
    assert {row.policy for row in rows} - {None} <= {policy.name for policy in policies.policies()}


def test_a_row_without_a_policy_is_public(rows):
    without = [row for row in rows if row.policy is None]

    assert {row.path for row in without} == {
        "/", "/v1", "/v1/openapi.json", "/healthcheck", "/healthcheck/live", "/compute", "/compute/v2.1"}
    assert [row for row in without if not row.public] == []


def test_every_schema_of_a_row_can_be_imported_from_where_it_says(rows):
    for row in rows:
        body = controller(row, all_arguments=True).route.body
        places = re.findall(r"``([\w/]+)\.py`` ``(\w+)``", row.schema)
        schemas = [getattr(importlib.import_module("ironic_rules." + file.replace("/", ".")), name)
                   for file, name in places]
        assert len(schemas) == (body is not None), row
        assert row.schema.startswith("raw JSON") or schemas == [body] or body is None, row


@pytest.mark.parametrize(("route", "expected"), [
    ("GET /", ("1.1", None, True, "none")),
    ("GET /v1/nodes/{node}/inventory", ("1.81", "baremetal:node:inventory:get", False, "none")),
    ("POST /v1/nodes", ("1.1", "baremetal:node:create", False, "``api/schemas.py`` ``NODE_CREATE``")),
    ("PATCH /v1/ports/{port}", ("1.1", "baremetal:port:update", False, "``api/patch.py`` ``BODY``")),
    ("PUT /v1/nodes/{node}/traits[/{trait}]", (
        "1.37", "baremetal:node:traits:set", False,
        "raw JSON, checked by the method with ``api/schemas.py`` ``TRAITS``")),
    ("POST /v1/inspection_rules", (
        "1.96", "baremetal:inspection_rule:create", False, "``api/schemas.py`` ``RULE_CREATE``")),
    ("GET /v1/lookup", ("1.22", "baremetal:driver:ipa_lookup", True, "none")),
    ("DELETE /v1/deploy_templates/{template}", ("1.55", "baremetal:deploy_template:delete", False, "none")),
])
def test_a_row_shows(rows, route, expected):
    assert [row[2:] for row in rows if f"{row.method} {row.path}" == route] == [expected]


def test_the_page_shows_every_row(rows):
    cells = re.findall(r"   \* - (.+)\n     - (.+)\n     - (.+)\n     - (.+)\n     - (.+)", TABLE.text())

    assert cells[0] == ("Method", "Path", "Since", "Policy", "Schema of the body")
    assert [(method, path.strip("`"), since, schema) for method, path, since, _, schema in cells[1:]] == [
        (row.method, row.path, row.since, row.schema) for row in rows]
    assert cells[1][3] == "none, public"
    assert ("GET", "``/v1/lookup``", "1.22", "``baremetal:driver:ipa_lookup``, public", "none") in cells
