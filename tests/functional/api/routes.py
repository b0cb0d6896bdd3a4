"""Every route, with a request that fits what the fixture ``stocked`` has stored."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from ironic_rules.api import examples
from ironic_rules.api.examples import (
    ALLOCATION,
    CHASSIS,
    CONNECTOR,
    EXTRA_SPEC,
    FACT,
    FLAVOR,
    MAC,
    NODE,
    PORT,
    PORTGROUP,
    REVISION,
    RULE,
    RUNBOOK,
    RUNBOOK_STEP,
    STEP,
    TARGET,
    TEMPLATE,
    WEBHOOK,
)
from ironic_rules.api.routes import walk_routes
from ironic_rules.api.v1 import RootController

#: For tests that store or request the same resources.
__all__ = ["ALLOCATION", "CHASSIS", "CONNECTOR", "EXTRA_SPEC", "FACT", "FLAVOR", "MAC", "NODE", "PORT", "PORTGROUP",
           "REVISION", "RULE", "RUNBOOK", "RUNBOOK_STEP", "STEP", "TARGET", "TEMPLATE",
           "WEBHOOK"]


class Known(NamedTuple):
    """A route: its method, its path as a pattern, its path here, and the body that it takes (None: none)."""

    method: str
    pattern: str
    path: str
    body: Any

    def __str__(self) -> str:
        return f"{self.method} {self.pattern}"

    def path_with(self, place: int, ident: str) -> str:
        """Return the path with another identifier at ``place``, counted from 0."""
        parts = re.split(r"\{\w+\}", self.pattern)
        idents = [ident if number == place else given for number, given in enumerate(_idents(self.pattern))]
        return parts[0] + "".join(given + rest for given, rest in zip(idents, parts[1:], strict=True))


def _idents(pattern: str) -> list[str]:
    # Legacy rules and operations have the UUID of the inspection rule.
    of_item = {"/v1/portgroups": PORTGROUP, "/v1/chassis": CHASSIS, "/v1/runbooks": RUNBOOK,
               "/v1/drivers": "fake-hardware", "/v1/deploy-templates": TEMPLATE,
               "/v1/inspection_rules/revisions": REVISION, "/v1/facts": FACT, "/v1/webhooks": WEBHOOK,
               "/v1/flavors": FLAVOR, "/compute/v2.1/flavors": FLAVOR,
               "/v1/deploy_templates": TEMPLATE, "/v1/inspection_rules": RULE}.get(pattern.partition("/{")[0], NODE)
    return [of_item if name == "ident" else examples.ident(name) for name in re.findall(r"\{(\w+)\}", pattern)]


def _known(method: str, pattern: str) -> Known:
    body = examples.BODIES.get(f"{method} {re.sub(r'{[^}]*}', '{}', pattern)}")
    unfilled = Known(method, pattern, "", body)
    return unfilled._replace(path=unfilled.path_with(-1, ""))


#: The walk yields a route with an optional argument only once, with the argument.
_WITHOUT_TRAIT = [(method, f"/v1/{name}/{{ident}}/traits") for name in ("nodes", "runbooks")
                  for method in ("PUT", "DELETE")] + [("DELETE", "/v1/webhooks/{ident}/dead_letters")]
ROUTES = [_known(method, pattern) for method, pattern in (
    *((route.method, route.path) for route in walk_routes(RootController())), *_WITHOUT_TRAIT)]
WRITING = [route for route in ROUTES if route.method != "GET"]
TAKING_A_BODY = [route for route in WRITING if route.body is not None]
WITH_IDENTS = [(route, place) for route in ROUTES for place in range(route.pattern.count("{"))]
