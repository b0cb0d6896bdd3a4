"""Requests for which python-ironicclient's Python API has no method, over its connection.

So they use the same URL, credentials, TLS settings and ``--os-baremetal-api-version`` as its commands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import parse_qs, quote, urlencode, urlsplit

from keystoneauth1.exceptions import ClientException as ConnectionProblem
from osc_lib import exceptions

from ironic_rules.client import upstream

_RULES = "/v1/inspection_rules"


class Requests:
    """The requests of our commands.

    :param app: the running ``openstack``
    :raises CommandError: from every method, with the error text of the service
    """

    def __init__(self, app: Any) -> None:
        client = getattr(app.client_manager, "baremetal", None)
        if client is None:
            raise exceptions.CommandError(upstream.MISSING)
        self._http = client.http_client
        # By default it retries after 409 for ten seconds, for locked nodes. Rules are never locked.
        self._http.conflict_max_retries = 0

    def create(self, rule: Mapping[str, Any]) -> dict[str, Any]:
        """Create a rule; return it as stored."""
        return dict(self._json("POST", _RULES, body=rule))

    def patch(self, uuid: str, operations: Sequence[Mapping[str, Any]]) -> None:
        """Change a rule by operations of RFC 6902."""
        self._json("PATCH", f"{_RULES}/{quote(uuid, safe='')}", body=operations)

    def delete_all(self) -> None:
        """Delete all rules but the built-in ones."""
        self._json("DELETE", _RULES)

    def list_rules(self, query: Mapping[str, Any], limit: int | None) -> list[dict[str, Any]]:
        """Return rules.

        :param query: other parameters of the request; those that are None are omitted
        :param limit: maximum number; 0 = all; None = one page
        """
        return self._collect(_RULES, "inspection_rules", query, limit)

    def deploy_steps(self, node: str, traits: Sequence[str] | None) -> dict[str, Any]:
        """Return the steps that a deployment of the node would run; ``traits`` replace those of its instance."""
        query = "" if traits is None else f"?{urlencode({'traits': ','.join(traits)})}"
        return dict(self._json("GET", f"/v1/nodes/{quote(node, safe='')}/deploy_steps{query}"))

    def template_nodes(self, template: str, limit: int | None) -> list[dict[str, Any]]:
        """Return the nodes on which a deploy template is enabled; ``limit`` as in :meth:`list_rules`."""
        return self._collect(f"/v1/deploy_templates/{quote(template, safe='')}/nodes", "nodes", {}, limit)

    def _collect(self, path: str, key: str, query: Mapping[str, Any], limit: int | None) -> list[dict[str, Any]]:
        asked = {name: value for name, value in query.items() if value is not None}
        found: list[dict[str, Any]] = []
        while True:
            size = {"limit": limit - len(found)} if limit else {}
            reply = self._json("GET", f"{path}?{urlencode({**asked, **size})}")
            found += reply[key]
            if limit is None or "next" not in reply or (limit and len(found) >= limit):
                return found[:limit] if limit else found
            # The rest of the link may have an address that is not reachable from this side of a proxy.
            asked["marker"] = parse_qs(urlsplit(reply["next"]).query)["marker"][0]

    def _json(self, method: str, url: str, **request: Any) -> Any:
        try:
            return self._http.json_request(method, url, **request)[1]
        except (upstream.ClientException, ConnectionProblem) as error:
            raise exceptions.CommandError(str(error)) from error
