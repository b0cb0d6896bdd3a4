"""The description of the API in OpenAPI 3.1: ``GET /v1/openapi.json``.

All of it comes from what the service itself uses: routes, versions, policies, query parameters and bodies from
``expose``, texts and errors from the docstrings of the methods, replies from :mod:`ironic_rules.api.replies`.
"""

from __future__ import annotations

import functools
import http
import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import orjson

from ironic_rules.api import examples, filters, replies, versions
from ironic_rules.api.routes import Resource, Walked, walk_routes
from ironic_rules.models.documents import JSONObject

_JSON: Final = "application/json"
_VERSION: Final[JSONObject] = {"$ref": "#/components/parameters/version"}
_ERROR: Final[JSONObject] = {"$ref": "#/components/schemas/Error"}
_NOVA_ERROR: Final[JSONObject] = {"$ref": "#/components/schemas/NovaError"}
#: Statuses that every route may reply with: a parameter that is not known, a page of another site, a resource that the
#: version or the configuration does not have, a version that is not supported, a host name that is not the service's, a
#: database or a conductor that is not available.
_COMMON: Final = frozenset({400, 403, 404, 406, 421, 503})
#: ... and requests with a body: its length is missing, it is too large, or no JSON.
_WITH_BODY: Final = frozenset({411, 413, 415})


class Described(NamedTuple):
    """The docstring of a method; ``raised`` has the errors, each as ``404 NodeNotFound (why)``."""

    summary: str
    notes: list[str]
    returned: str
    raised: list[str]


def described(method: Callable[..., Any]) -> Described:
    """Return what the docstring of a method says."""
    prose, *fields = re.split(r"^:", inspect.cleandoc(method.__doc__ or ""), flags=re.MULTILINE)
    summary, *notes = [" ".join(paragraph.split()) for paragraph in prose.strip().split("\n\n")]
    returned = ""
    raised: list[str] = []
    for field in fields:
        name, _, value = (" ".join(field.split())).partition(": ")
        if name == "returns":
            returned = value
        elif name.startswith("raises "):
            raised += _errors(f"{name.removeprefix('raises ')}: {value}")
    return Described(summary, notes, returned, raised)


def _errors(text: str) -> Iterator[str]:
    """Turn ``NodeNotFound: 404; NodeLocked: 409, by its state`` into texts that begin with the status."""
    for part in text.split("; "):
        names, _, rest = part.strip().partition(": ")
        status, _, why = rest.partition(", ")
        yield f"{status} {names}{f' ({why})' if why else ''}"


def key(walked: Walked) -> str:
    """Return the name of a route in ``replies.REPLIES``: its method, and its path with ``{}`` for each ident."""
    return f"{walked.method} {re.sub(r'{[^}]*}', '{}', walked.path)}"


def document(root: Resource) -> JSONObject:
    """Return the description of every route below ``root``, without ``servers``."""
    paths: dict[str, JSONObject] = {}
    for walked in _all_forms(root):
        paths.setdefault(walked.path, {})[walked.method.lower()] = _operation(walked)
    return {
        "openapi": "3.1.0",
        "info": {"title": "ironic-rules", "version": versions.MAX_STRING, "license": {
            "name": "Apache 2.0", "identifier": "Apache-2.0"}, "description": (
            "Inspection, inspection rules and deploy templates for bare metal machines, in the style of OpenStack "
            "Ironic. The version of the API is requested by a header; without it, it is 1.1.")},
        "paths": paths,
        "components": {
            "schemas": replies.SCHEMAS,
            "parameters": {"version": {
                "name": "X-OpenStack-Ironic-API-Version", "in": "header", "schema": {
                    "type": "string", "pattern": r"^(latest|1\.[0-9]{1,9})$"}, "example": versions.MAX_STRING}},
            "securitySchemes": {
                "token": {"type": "apiKey", "in": "header", "name": "X-Auth-Token"},
                "password": {"type": "http", "scheme": "basic"}},
        },
    }


@functools.cache
def _encoded(root: Resource) -> list[tuple[str, orjson.Fragment]]:
    return [(name, orjson.Fragment(orjson.dumps(value))) for name, value in document(root).items()]


def served(root: Resource, base: str) -> bytes:
    """Return the description as JSON text.

    :param base: URL of the service, as the client reaches it
    """
    return orjson.dumps({**dict(_encoded(root)), "servers": [{"url": base}]})


def _all_forms(root: Resource) -> Iterator[Walked]:
    """Yield every route: one with an optional ident at the end also without it."""
    for walked in walk_routes(root):
        route = walked.controller.route  # type: ignore[attr-defined]
        names = iter(route.path_arguments)
        path = re.sub(r"{\w+}", lambda _: f"{{{next(names)}}}", walked.path)  # noqa: B023
        yield walked._replace(path=path)
        if route.fewest_arguments < len(route.path_arguments):
            yield walked._replace(path=path.rpartition("/")[0])


def _operation(walked: Walked) -> JSONObject:
    route = walked.controller.route  # type: ignore[attr-defined]
    description = described(walked.controller)
    about = [*description.notes, f"Since API 1.{route.since}."]
    if route.policy is not None:
        about.append(f"Policy: {route.policy}.")
    operation: JSONObject = {
        "operationId": re.sub(r"[^\w-]+", "_", f"{walked.method} {walked.path}").strip("_").lower(),
        "tags": [_tag(walked.path)], "summary": description.summary, "description": "\n\n".join(about),
        "parameters": [
            *({"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1},
               "example": examples.ident(name)} for name in re.findall(r"{(\w+)}", walked.path)),
            *({"name": name, "in": "query", "schema": filters.json_schema(kind)}
              for name, kind in route.query.kinds.items()), _VERSION],
        "responses": {str(status): reply for status, reply in _responses(walked, description)},
        "security": [{}] if route.public else [{"token": []}, {"password": []}],
    }
    if route.body is not None:
        example = {"example": examples.BODIES[key(walked)]} if key(walked) in examples.BODIES else {}
        operation["requestBody"] = {"required": not route.body.nullable, "content": {
            _JSON: {"schema": route.body.json_schema(), **example}}}
    return operation


def _tag(path: str) -> str:
    first, _, rest = path.strip("/").partition("/")
    return (rest.partition("/")[0] or "versions") if first == "v1" else first or "versions"


def _responses(walked: Walked, description: Described) -> Iterator[tuple[int, JSONObject]]:
    route = walked.controller.route  # type: ignore[attr-defined]
    shape = replies.REPLIES.get(key(walked))
    # The prose names other statuses of success, such as 202 for an operation that is begun.
    named = re.findall(r"\b(20[0-4])\b", " ".join([description.summary, *description.notes]))
    for status in sorted({route.status, *map(int, named)}):
        kind = replies.MEDIA_TYPES.get(key(walked), _JSON)
        content = {} if status == http.HTTPStatus.NO_CONTENT else _content(shape, kind)
        yield status, {"description": description.returned or description.summary, **content}
    if walked.method == "GET":
        yield 304, {"description": "The resource has the tag that If-None-Match names."}
    for status in sorted(_failures(walked, description)):
        reasons = "; ".join(text.partition(" ")[2] for text in description.raised if text.startswith(str(status)))
        error = _NOVA_ERROR if walked.path.startswith("/compute") else _ERROR
        failure = replies.FAILURES.get((key(walked), status), error)
        yield status, {"description": reasons or http.HTTPStatus(status).phrase, **_content(failure)}


def _content(shape: JSONObject | None, kind: str = _JSON) -> JSONObject:
    return {} if shape is None else {"content": {kind: {"schema": shape}}}


def _failures(walked: Walked, description: Described) -> set[int]:
    route = walked.controller.route  # type: ignore[attr-defined]
    codes = {int(text[:3]) for text in description.raised if text[:3].isdigit()} | _COMMON
    if walked.method in ("POST", "PUT", "PATCH") or route.body is not None:
        codes |= _WITH_BODY
    if not route.public:
        codes |= {401, 429}
    if walked.method != "GET":
        codes |= {405, 409, 412}
    return codes
