"""The text of the API reference: every route, from the application's own table of routes.

Method, path, first version, policy, what it does, its query parameters and the fields of its body all come from the
``expose`` declarations and the docstrings, so that this page cannot disagree with the code.
"""

from __future__ import annotations

import inspect
import itertools
import re
from collections.abc import Iterator
from typing import Any

import json_schema_text

from ironic_rules import policies
from ironic_rules.api import filters, openapi, schema, schemas
from ironic_rules.api.routes import Walked, walk_routes
from ironic_rules.api.v1 import RootController

CHECKS = {policy.name: policy.check for policy in policies.policies()}
WHO = {"rule:admin_api": "administrators", "rule:service_api": "services", "rule:member_api": "members",
       "rule:observer_api": "readers", "": "everybody"}
TITLES = {"": "Version discovery", "healthcheck": "Health", "continue_inspection": "Inspection data from ramdisks",
          "lookup": "Lookup by ramdisks", "heartbeat": "Heartbeats of ramdisks", "portgroups": "Port groups",
          "inspection_rules": "Inspection rules", "deploy-templates": "Deploy templates",
          "deploy_templates": "Deploy templates under Ironic's name", "volume": "Volumes"}
SEVERAL = 12
#: Kinds of query parameters by the name of their function; others are described by their docstring.
KINDS = {"field_or_fact": "a field, or fact:NAME",
         "names": "names, separated by commas", "uuid": "UUID", "mac": "MAC address"}
RULE_SCHEMA = schemas.RULE_CREATE.json_schema()
#: Fields of a rule that other pages describe further.
RULE_FIELDS = {
    "conditions[].op": "one of the :ref:`operators <operators>`; ``!`` before it inverts it",
    "conditions[].args": "list or object: the arguments of the operator",
    "actions[].op": "one of the :ref:`actions <actions>`",
    "actions[].args": "list or object: the arguments of the action",
}
RULE_NOTE = """\
.. _rule-fields:

The fields of a rule:

{table}

The numbers of conditions, actions and items of a loop are those of the default configuration. Templates, paths and
arguments are checked as well: :doc:`/user/inspection-rules`.
"""


def pages() -> str:
    """Return the reStructuredText of all sections."""
    return "\n".join(_section(name, list(group)) for name, group in itertools.groupby(routes(), key=_group))


def routes() -> list[Walked]:
    """Return the application's own routes, in the order of the reference."""
    return sorted(walk_routes(RootController()), key=_order)


def _group(route: Walked) -> str:
    parts = route.path.strip("/").split("/")
    return (parts[1] if len(parts) > 1 else "") if parts[0] == "v1" else parts[0]


def _order(route: Walked) -> tuple[Any, ...]:
    order = ["", "nodes", "ports", "portgroups", "inspection_rules", "deploy-templates", "deploy_templates",
             "continue_inspection", "lookup", "heartbeat", "drivers", "conductors", "volume", "healthcheck"]
    name = _group(route)
    return (order.index(name) if name in order else len(order), name, route.path,
            ("GET", "POST", "PUT", "PATCH", "DELETE").index(route.method))


def _section(name: str, routes: list[Walked]) -> str:
    title = TITLES.get(name, name.capitalize())
    return "\n".join([title, "=" * len(title), "", *itertools.chain.from_iterable(map(_route, routes))])


def _route(walked: Walked) -> Iterator[str]:
    route = walked.controller.route
    title = f"``{walked.method} {path_of(walked)}``"
    summary, notes, returned, raised = openapi.described(walked.controller)
    yield from (title, "-" * len(title), "", summary, "")
    for note in notes:
        yield from (note, "")
    yield from _field("Since", f"1.{route.since}")
    yield from _field("Who", _who(route))
    yield from _field("Answer", f"{route.status}{', ' + returned if returned else ''}")
    yield from _field("Query", _query(route.query))
    yield from _field("Body", _body(route.body) + _patched(walked))
    yield from _field("Errors", "; ".join(raised))
    yield ""
    if isinstance(route.body, schemas.Rule):
        yield RULE_NOTE.format(table=json_schema_text.table(RULE_SCHEMA, RULE_FIELDS))


def path_of(walked: Walked) -> str:
    """Return the path with the method's own names; the optional part is in brackets."""
    route = walked.controller.route
    names = iter(route.path_arguments)
    path = re.sub(r"\{\w+\}", lambda match: f"{{{next(names)}}}", walked.path)
    if route.fewest_arguments < len(route.path_arguments):
        path = re.sub(r"(/\{\w+\})$", r"[\1]", path)
    return path


def _query(query: filters.Query) -> str:
    """Return the parameters in one line; a reference stands for those that all lists have in common."""
    common = set(filters.Listing(sort_keys=()).kinds) if isinstance(query, filters.Listing) else set()
    own = [f"``{name}`` ({_kind(kind)})" for name, kind in query.kinds.items() if name not in common]
    return ", ".join([":ref:`parameters of lists <lists>`", *own] if common else own)


def _field(name: str, text: str) -> list[str]:
    return [f":{name}: {text}"] if text else []


def _who(route: Any) -> str:
    if route.policy is None:
        return "everybody, without authentication"
    check = CHECKS[route.policy]
    return f"{WHO.get(check, f'``{check}``')}{', without authentication' if route.public else ''} (``{route.policy}``)"


def _kind(kind: filters.Kind) -> str:
    if isinstance(kind, filters.OneOf):
        if len(kind.values) > SEVERAL:
            return f"one of {len(kind.values)} values"
        return "one of " + ", ".join(f"``{value}``" for value in kind.values)
    name = getattr(kind, "__name__", "value")
    return KINDS.get(name, name)


def _body(body: schema.Schema | None) -> str:
    """Return a body's fields in one line; the required ones first."""
    match body:
        case None:
            return ""
        case schema.List():
            return "a list of operations, each ``{\"op\", \"path\", \"value\"}`` (RFC 6902)"
        case schema.Object():
            fields = sorted(body.fields.items(), key=lambda item: item[0] not in body.required)
            return ", ".join(f"``{name}`` ({_shape(shape, name in body.required)})" for name, shape in fields)
        case schemas.Rule():
            return "a rule; its fields are below"
        case schema.Map():
            return "an object"
    return ""  # the docstring describes it


def _patched(walked: Walked) -> str:
    """Return which fields the PATCH of a rule may write, and nothing for other routes."""
    if walked.method != "PATCH" or _group(walked) != "inspection_rules":
        return ""
    fixed = [f"``{name}``" for name in RULE_SCHEMA["properties"] if name not in schemas.RULE_PATCHABLE]
    return f", on :ref:`the fields of a rule <rule-fields>` but {' and '.join(fixed)}"


def _shape(shape: schema.Schema, required: bool) -> str:
    texts = {schema.Uuid: "UUID", schema.Mac: "MAC address", schema.Boolean: "boolean", schema.Map: "object",
             schema.List: "list", schema.Object: "object"}
    described = next((text for kind, text in texts.items() if isinstance(shape, kind)), "")
    match shape:
        case schema.Enum():
            described = "one of " + ", ".join(f"``{value}``" for value in shape.values)
        case schema.Integer():
            described = f"{shape.minimum} to {shape.maximum}"
        case schema.Text():
            described = "text" if shape.max_length == 255 else f"text, at most {shape.max_length} characters"
    described = described or (inspect.getdoc(type(shape)) or "value").splitlines()[0].rstrip(".").lower()
    return f"required; {described}" if required else described
