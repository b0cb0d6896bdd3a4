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
_LEGACY_RULES = "/v1/rules"
_JOURNAL = "/v1/inspection_journal"
_SHARED_MACS = "/v1/shared_macs"
_OPERATIONS = "/v1/operations"
_FACTS = "/v1/facts"


#: The text about rules that the service shows without conditions and actions.
WITHHELD = ("Conditions and actions are shown to administrators only (policy "
            "baremetal:inspection_rule:get_details).")


def are_withheld(rules: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether a reply to a request for all fields of rules has no conditions and actions."""
    return any("actions" not in rule for rule in rules)


def _given(query: Mapping[str, object]) -> str:
    return urlencode({name: value for name, value in query.items() if value is not None})


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

    def create(self, rule: Mapping[str, object]) -> dict[str, Any]:
        """Create a rule; return it as stored."""
        return dict(self._json("POST", _RULES, body=rule))

    def patch(self, uuid: str, operations: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Change a rule by operations of RFC 6902; return it."""
        return dict(self._json("PATCH", f"{_RULES}/{quote(uuid, safe='')}", body=operations))

    def whole_rules(self, bundle: str | None) -> list[dict[str, Any]]:
        """Return all rules of a bundle, None: of all bundles and without one, with all fields, as of one moment.

        :raises CommandError: also if the rules were changed between two pages, or conditions and actions are not shown
        """
        tags: set[str | None] = set()
        query = {"detail": True, "bundle": bundle}
        rules = self._collect(_RULES, "inspection_rules", query, 0, tags)
        if len(tags) > 1:
            raise exceptions.CommandError("The rules were changed while they were read. Repeat the command.")
        if are_withheld(rules):
            raise exceptions.CommandError(WITHHELD)
        return rules

    def apply(self, rules: Sequence[object], bundle: str | None, *, prune: bool = False, dry_run: bool = False,
              tag: str | None = None) -> tuple[dict[str, Any], str | None]:
        """Make the rules of a bundle those given; ``tag`` is the set's, if only that may be changed.

        :returns: what has changed, and the tag of the set after it
        """
        headers = {"If-Match": tag} if tag else {}
        reply, changes = self._reply("PUT", _RULES, headers=headers, body={
            "rules": rules, "bundle": bundle, "prune": prune, "dry_run": dry_run})
        return dict(changes), reply.headers.get("ETag")

    def convert(self, rule: object) -> dict[str, Any]:
        """Return the conversion of a rule of ironic-inspector: verdict, inspection rule, notes, problems."""
        return dict(self._json("POST", f"{_LEGACY_RULES}?convert_only=true", body=rule))

    def revisions(self, marker: str | None, limit: int | None) -> list[dict[str, Any]]:
        """Return the kept revisions of the set of rules, newest first; ``limit`` as in :meth:`list_rules`."""
        return self._collect(f"{_RULES}/revisions", "revisions", {"marker": marker}, limit)

    def revision(self, number: int) -> dict[str, Any]:
        """Return a kept revision with its rules."""
        return dict(self._json("GET", f"{_RULES}/revisions/{number}"))

    def roll_back(self, number: int, dry_run: bool) -> dict[str, Any]:
        """Make the set of rules as it was after a kept revision; return what has changed."""
        return dict(self._json("POST", f"{_RULES}/revisions/{number}/rollback", body={"dry_run": dry_run}))

    def statistics(self, never_matched_since: str | None) -> list[dict[str, Any]]:
        """Return the statistics of all rules, or of those that have not matched since a time."""
        query = {"never_matched_since": never_matched_since}
        return self._collect(f"{_RULES}/statistics", "statistics", query, 0)

    def statistics_of(self, uuid: str) -> dict[str, Any]:
        """Return the statistics of a rule."""
        return dict(self._json("GET", f"{_RULES}/{quote(uuid, safe='')}/statistics"))

    def dry_run(self, body: Mapping[str, object]) -> dict[str, Any]:
        """Try rules on data of a machine; return what each step of the inspection would do."""
        return dict(self._json("POST", f"{_RULES}/dry_run", body=body))

    def inspections(self, node: str) -> list[dict[str, Any]]:
        """Return all past inspections of a node, without their details."""
        return self._collect(f"/v1/nodes/{quote(node, safe='')}/inspections", "inspections", {}, 0)

    def inspection(self, node: str, uuid: str) -> dict[str, Any]:
        """Return a past inspection of a node."""
        return dict(self._json("GET", f"/v1/nodes/{quote(node, safe='')}/inspections/{quote(uuid, safe='')}"))

    def journal(self, node: str | None, filters: Mapping[str, object], limit: int | None) -> list[dict[str, Any]]:
        """Return entries of the journal of rejected reports; ``limit`` as in :meth:`list_rules`.

        :param node: only those for which this node came near
        """
        path = _JOURNAL if node is None else f"/v1/nodes/{quote(node, safe='')}/inspection_journal"
        return self._collect(path, "inspection_journal", filters, limit)

    def journal_entry(self, uuid: str) -> dict[str, Any]:
        """Return an entry of the journal of rejected reports."""
        return dict(self._json("GET", f"{_JOURNAL}/{quote(uuid, safe='')}"))

    def enroll(self, entry: str, fields: Mapping[str, object]) -> dict[str, Any]:
        """Create a node for the machine of an entry of the journal; return the node."""
        return dict(self._json("POST", f"{_JOURNAL}/{quote(entry, safe='')}/enroll", body=fields))

    def shared_macs(self) -> list[dict[str, object]]:
        """Return the MAC addresses that machines of several nodes have reported."""
        return list(self._json("GET", _SHARED_MACS)["shared_macs"])

    def forget_shared_mac(self, address: str) -> None:
        """Forget that a MAC address is shared."""
        self._json("DELETE", f"{_SHARED_MACS}/{quote(address, safe='')}")

    def operations(self, limit: int | None) -> list[dict[str, Any]]:
        """Return operations on many nodes; ``limit`` as in :meth:`list_rules`."""
        return self._collect(_OPERATIONS, "operations", {"detail": True}, limit)

    def operation(self, uuid: str) -> dict[str, Any]:
        """Return an operation on many nodes."""
        return dict(self._json("GET", f"{_OPERATIONS}/{quote(uuid, safe='')}"))

    def operation_nodes(self, uuid: str) -> list[dict[str, Any]]:
        """Return all nodes of an operation, each with its result."""
        return self._collect(f"{_OPERATIONS}/{quote(uuid, safe='')}/nodes", "nodes", {}, 0)

    def reapply(self, node: str, dry_run: bool, allow_deployed: bool) -> dict[str, Any]:
        """Begin to run hooks and rules again over the stored data of a node; return the operation."""
        return dict(self._json("POST", f"/v1/nodes/{quote(node, safe='')}/inventory/reapply", body={
            "dry_run": dry_run, "allow_deployed": allow_deployed}))

    def reapply_nodes(self, filters: Mapping[str, str], dry_run: bool, allow_deployed: bool) -> dict[str, Any]:
        """Begin to run hooks and rules again over the stored data of the nodes of a list; return the operation."""
        return dict(self._json("POST", f"/v1/nodes/reapply?{urlencode(filters)}", body={
            "dry_run": dry_run, "allow_deployed": allow_deployed}))

    def operation_groups(self, uuid: str) -> list[dict[str, Any]]:
        """Return the different results of a dry run on many nodes, the most frequent first."""
        return list(self._json("GET", f"{_OPERATIONS}/{quote(uuid, safe='')}/groups")["groups"])

    def rule(self, uuid: str) -> dict[str, Any]:
        """Return a stored rule."""
        return dict(self._json("GET", f"{_RULES}/{quote(uuid, safe='')}"))

    def cancel_operation(self, uuid: str) -> None:
        """Cancel an operation on many nodes."""
        self._json("DELETE", f"{_OPERATIONS}/{quote(uuid, safe='')}")

    def inventory_versions(self, node: str) -> list[dict[str, Any]]:
        """Return the kept versions of a node's inventory, without the data."""
        return self._collect(f"/v1/nodes/{quote(node, safe='')}/inventory/versions", "versions", {}, 0)

    def inventory_diff(self, node: str, before: int | None, after: int | None) -> dict[str, Any]:
        """Return how a version of a node's inventory differs from another; None: the last successful ones."""
        query = urlencode({name: number for name, number in (("from", before), ("to", after)) if number is not None})
        path = f"/v1/nodes/{quote(node, safe='')}/inventory/diff"
        return dict(self._json("GET", f"{path}?{query}" if query else path))

    def delete_all(self) -> None:
        """Delete all rules but the built-in ones."""
        self._json("DELETE", _RULES)

    def list_rules(self, query: Mapping[str, object], limit: int | None) -> list[dict[str, Any]]:
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

    def check_flavor(self, flavor: str, mode: str) -> dict[str, Any]:
        """Return the problems and the warnings of the extra specs of a flavor; ``mode`` as of the service."""
        specs = self._json("GET", f"/v1/flavors/{quote(flavor, safe='')}/os-extra_specs")
        return dict(self._json("POST", f"/v1/extra_specs/validate?validation={mode}", body=specs))

    def explain_flavor(self, flavor: str) -> dict[str, Any]:
        """Return the explanation of a flavor."""
        return dict(self._json("GET", f"/v1/flavors/{quote(flavor, safe='')}/explanation"))

    def facts(self, query: Mapping[str, object]) -> list[dict[str, Any]]:
        """Return all facts; parameters that are None are omitted."""
        return self._collect(_FACTS, "facts", query, 0)

    def fact(self, name: str) -> dict[str, Any]:
        """Return a fact."""
        return dict(self._json("GET", f"{_FACTS}/{quote(name, safe='')}"))

    def create_fact(self, fact: Mapping[str, object]) -> dict[str, Any]:
        """Create a fact; return it as stored."""
        return dict(self._json("POST", _FACTS, body=fact))

    def operators_facts(self, bundle: str | None) -> list[dict[str, Any]]:
        """Return the facts of operators, those of a bundle or all, with all fields, as of one moment.

        :raises CommandError: also if facts were changed between two pages
        """
        tags: set[str | None] = set()
        facts = self._collect(_FACTS, "facts", {"detail": True, "origin": "operator", "bundle": bundle}, 0, tags)
        if len(tags) > 1:
            raise exceptions.CommandError("The facts were changed while they were read. Repeat the command.")
        return facts

    def apply_facts(self, facts: Sequence[object], bundle: str | None, *, prune: bool, dry_run: bool) -> dict[str, Any]:
        """Make the facts of a bundle those given; return what has changed."""
        return dict(self._json("PUT", _FACTS, body={
            "facts": facts, "bundle": bundle, "prune": prune, "dry_run": dry_run}))

    def vocabulary(self, names: Sequence[str]) -> dict[str, Any]:
        """Return the names and operators of questions.

        :param names: those of which a caller who is confined to a project wants the frequent values
        """
        query = f"?{urlencode({'names': ','.join(names)})}" if names else ""
        return dict(self._json("GET", f"{_FACTS}/vocabulary{query}"))

    def patch_fact(self, name: str, operations: Sequence[Mapping[str, Any]]) -> None:
        """Change a fact by operations of RFC 6902."""
        self._json("PATCH", f"{_FACTS}/{quote(name, safe='')}", body=operations)

    def delete_fact(self, name: str) -> None:
        """Delete a fact."""
        self._json("DELETE", f"{_FACTS}/{quote(name, safe='')}")

    def fact_values(self, name: str, query: Mapping[str, object]) -> dict[str, Any]:
        """Return the values of a fact with the numbers of their nodes; parameters that are None are omitted."""
        return dict(self._json("GET", f"{_FACTS}/{quote(name, safe='')}/values?{_given(query)}"))

    def fact_table(self, names: Sequence[str], query: Mapping[str, object]) -> dict[str, Any]:
        """Return the table of the values of two facts."""
        text = _given({**query, "by": ",".join(names)})
        return dict(self._json("GET", f"{_FACTS}/values?{text}")["table"])

    def _collect(self, path: str, key: str, query: Mapping[str, object], limit: int | None,
                 tags: set[str | None] | None = None) -> list[dict[str, Any]]:
        """Return the items of a list; add the tag of each page to ``tags``."""
        parameters = {name: value for name, value in query.items() if value is not None}
        items: list[dict[str, Any]] = []
        while True:
            size = {"limit": limit - len(items)} if limit else {}
            response, reply = self._reply("GET", f"{path}?{urlencode({**parameters, **size})}")
            if tags is not None:
                tags.add(response.headers.get("ETag"))
            items += reply[key]
            if limit is None or "next" not in reply or (limit and len(items) >= limit):
                return items[:limit] if limit else items
            # The rest of the link may have an address that is not reachable from this side of a proxy.
            parameters["marker"] = parse_qs(urlsplit(reply["next"]).query)["marker"][0]

    def _json(self, method: str, url: str, **request: Any) -> Any:
        return self._reply(method, url, **request)[1]

    def _reply(self, method: str, url: str, **request: Any) -> tuple[Any, Any]:
        try:
            return self._http.json_request(method, url, **request)  # type: ignore[no-any-return]
        except (upstream.ClientException, ConnectionProblem) as error:
            raise exceptions.CommandError(str(error)) from error
