"""The description of the API: valid OpenAPI, complete, and what the routes reply."""

from __future__ import annotations

import re
from typing import Any

import jsonschema
import openapi_spec_validator
import pytest

from ironic_rules.api import openapi, replies
from ironic_rules.api.v1 import root
from tests.fakes import FakeConductorAPI
from tests.functional.api.conftest import Client
from tests.functional.api.routes import ROUTES, Known
from tests.walking import walking

_ORDER = ("GET", "POST", "PATCH", "PUT", "DELETE")


@pytest.fixture(scope="module")
def described() -> dict[str, Any]:
    return openapi.document(root())


def test_description_is_valid_and_every_route_has_one(described):
    openapi_spec_validator.validate({**described, "servers": [{"url": "http://localhost"}]})
    operations = {(method.upper(), re.sub(r"{\w+}", "{}", path)): operation
                  for path, methods in described["paths"].items() for method, operation in methods.items()}

    assert operations.keys() == {(route.method, re.sub(r"{\w+}", "{}", route.pattern)) for route in ROUTES} | {
        (route.method, route.pattern.rpartition("/")[0].replace("{ident}", "{}"))
        for route in ROUTES if re.search(r"vendor_passthru/{\w+}$|/heartbeat/{\w+}$", route.pattern)}
    assert [key for key, operation in operations.items() if not operation["summary"]] == []
    assert len({operation["operationId"] for operation in operations.values()}) == len(operations)
    assert replies.REPLIES.keys() <= {f"{method} {path}" for method, path in operations}


def test_served_document_is_the_description(app: Client, described):
    reply = app.get("/v1/openapi.json")

    assert reply.json == {**described, "servers": [{"url": "http://localhost"}]}
    assert app.get("/v1/openapi.json", headers={"X-OpenStack-Ironic-API-Version": "1.1"}).json == reply.json


def checked(described: dict[str, Any], route: Known, reply: Any) -> str | None:
    """Return what a reply has that its description has not, None if nothing."""
    pattern = re.sub(r"{\w+}", "{}", route.pattern)
    operation = next(methods[route.method.lower()] for path, methods in described["paths"].items()
                     if re.sub(r"{\w+}", "{}", path) == pattern and route.method.lower() in methods)
    declared = operation["responses"].get(str(reply.status_int))
    if declared is None:
        return f"the status {reply.status_int} is not declared"
    if not reply.body:
        return None
    if "content" not in declared:
        return f"a body is not declared: {reply.text[:200]}"
    shape = declared["content"]["application/json"]["schema"]
    validator = jsonschema.Draft202012Validator({**shape, "components": described["components"]})
    return next((f"{error.json_path}: {error.message[:300]}" for error in validator.iter_errors(reply.json)), None)


@walking("route", sorted(ROUTES, key=lambda route: _ORDER.index(route.method)))
def test_example_gets_a_declared_reply(app: Client, rpc: FakeConductorAPI, stocked: object, described, route: Known):
    rpc.results["get_supported_boot_devices"] = ["pxe"]
    if route.pattern == "/metrics":
        return  # it is no JSON
    headers = {"Content-Type": "application/json"} if route.body is not None else {}
    reply = app.request(route.path, method=route.method, headers=headers, expect_errors=True,
                        **({} if route.body is None else {"json": route.body}))

    assert checked(described, route, reply) is None
