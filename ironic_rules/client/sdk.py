"""The inspection rules of openstacksdk according to document 000, and the nodes according to document 001.

openstacksdk's own methods cannot delete all rules, drop ``details=True`` and every filter before they send the request,
and do not support ``scope``, ``built_in`` and other fields that Ironic's rules lack::

    rules = InspectionRules(openstack.connect().baremetal)
    rules.create_inspection_rule(actions=[...], scope="rack-7")
    for rule in rules.inspection_rules(details=True, scope="rack-7"):
        ...
    rules.delete_all_inspection_rules()

openstacksdk's list of nodes has no filter for discovered ones, and its call for the inventory has another name::

    nodes = Nodes(openstack.connect().baremetal)
    for node in nodes.nodes(auto_discovered=True, provision_state="enroll"):
        print(nodes.get_inventory(node)["inventory"])

``sdk_inspections`` has dry runs, past inspections, the journal of rejected reports, and operations on many nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from openstack import exceptions, resource
from openstack.baremetal.v1 import _proxy, inspection_rules, node

from ironic_rules.client.sdk_inspections import Inspections as Inspections

#: The API version that has rules.
_VERSION = "1.96"
#: The API version that has inventories.
_INVENTORY_VERSION = "1.81"


class InspectionRule(inspection_rules.InspectionRule):
    """openstacksdk's resource with all fields of the API."""

    _query_mapping = resource.QueryParameters(
        "detail", "scope", "phase", "priority", "name", "bundle", "enabled", "sensitive", "built_in", "valid",
        "description", "writes", "op", "sort_key", "sort_dir", fields={"format": "csv"})

    # openstacksdk looks for the identifier only in the class itself, not in its base classes.
    id = resource.Body("uuid", alternate_id=True)
    #: Inspection scope of the nodes that run the rule; None = all nodes.
    scope = resource.Body("scope")
    #: The group of rules to which it belongs, within which its ``name`` is unique.
    bundle = resource.Body("bundle")
    #: True if it runs.
    is_enabled = resource.Body("enabled", type=bool)
    #: The number of different nodes on which it runs; None = all nodes.
    max_nodes = resource.Body("max_nodes", type=int)
    #: The number of those on which it has run.
    nodes_counted = resource.Body("nodes_counted", type=int)
    #: True if the service can compile it; else problems, ``{"pointer", "text"}`` each.
    is_valid = resource.Body("valid", type=bool)
    problems = resource.Body("problems", type=list)
    #: True if the rule is from a file of the service, and so cannot be changed.
    is_built_in = resource.Body("built_in", type=bool)
    #: Warnings for its author: objects with ``pointer``, ``text`` and ``nearest``. Only in the result of a call
    #: that creates or changes the rule; None if there is nothing.
    warnings = resource.Body("warnings", type=list)


class InspectionRules:
    """Calls for inspection rules.

    :param baremetal: ``connection.baremetal``

    Errors are openstacksdk's: NotFoundException, BadRequestException, ConflictException.
    """

    def __init__(self, baremetal: _proxy.Proxy) -> None:
        self._baremetal = baremetal

    def inspection_rules(self, details: bool = False, **query: Any) -> Iterator[InspectionRule]:
        """Yield rules in the order of their creation.

        :param details: with conditions and actions
        :param query: filters ``scope``, ``phase``, ``priority``, ``name``, ``bundle``, ``enabled``, ``sensitive``,
            ``built_in``, ``valid``, ``description`` (contains), ``writes``, ``op``; ``fields``, ``limit``, ``marker``,
            ``sort_key``, ``sort_dir``
        """
        if details:
            query["detail"] = True
        return iter(InspectionRule.list(self._baremetal, **query))

    def create_inspection_rule(self, **fields: Any) -> InspectionRule:
        """Create a rule; only ``actions`` is required."""
        return InspectionRule.new(**fields).create(self._baremetal)

    def get_inspection_rule(self, rule: str | InspectionRule) -> InspectionRule:
        """Return the current state of a rule."""
        return _known(rule).fetch(self._baremetal)

    def patch_inspection_rule(self, rule: str | InspectionRule, patch: Sequence[dict[str, Any]]) -> InspectionRule:
        """Change a rule by operations of RFC 6902; return it."""
        return _known(rule).patch(self._baremetal, list(patch))

    def update_inspection_rule(self, rule: str | InspectionRule, **fields: Any) -> InspectionRule:
        """Set fields of a rule; return it."""
        return self.patch_inspection_rule(
            rule, [{"op": "add", "path": f"/{name}", "value": value} for name, value in fields.items()])

    def delete_inspection_rule(self, rule: str | InspectionRule, ignore_missing: bool = True) -> None:
        """Delete a rule; a missing rule is an error only without ``ignore_missing``."""
        self._baremetal.delete_inspection_rule(_known(rule).id, ignore_missing=ignore_missing)

    def inspection_rule_statistics(
            self, rule: str | InspectionRule | None = None,
            never_matched_since: str | None = None) -> list[dict[str, Any]]:
        """Return how often rules were considered, evaluated and matched, and when and on which node last.

        :param rule: only of this one; None: of all, the built-in ones included
        :param never_matched_since: only of rules that have not matched since, e.g. ``2026-03-01T00:00:00Z``
        """
        if rule is not None:
            return [dict(self._get(f"{InspectionRule.base_path}/{_known(rule).id}/statistics", {}))]
        statistics: list[dict[str, Any]] = []
        query = {} if never_matched_since is None else {"never_matched_since": never_matched_since}
        while True:
            reply = self._get(f"{InspectionRule.base_path}/statistics", query)
            statistics += reply["statistics"]
            if "next" not in reply:
                return statistics
            query = query | {"marker": statistics[-1]["uuid"]}

    def _get(self, path: str, query: dict[str, str]) -> Any:
        response = self._baremetal.get(path, params=query, microversion=_VERSION)
        exceptions.raise_from_response(response)
        return response.json()

    def delete_all_inspection_rules(self) -> None:
        """Delete all rules but the built-in ones."""
        exceptions.raise_from_response(self._baremetal.delete(InspectionRule.base_path, microversion=_VERSION))


class Node(node.Node):
    """openstacksdk's resource with the fields and the filters for discovery."""

    _query_mapping = resource.QueryParameters(
        "associated", "auto_discovered", "conductor_group", "driver", "fault", "include_children", "inspection_scope",
        "instance_name", "parent_node", "provision_state", "resource_class", "shard", "sort_key", "sort_dir",
        fields={"format": "csv"}, instance_id="instance_uuid", is_maintenance="maintenance")

    id = resource.Body("uuid", alternate_id=True)
    #: True if auto-discovery has enrolled the node.
    is_auto_discovered = resource.Body("auto_discovered", type=bool)
    #: Scope of the rules that it runs in addition to those without a scope.
    inspection_scope = resource.Body("inspection_scope")


class Nodes:
    """Calls for nodes.

    :param baremetal: ``connection.baremetal``

    Errors are openstacksdk's: NotFoundException, BadRequestException.
    """

    def __init__(self, baremetal: _proxy.Proxy) -> None:
        self._baremetal = baremetal

    def nodes(self, details: bool = False, **query: Any) -> Iterator[Node]:
        """Yield nodes in the order of their creation.

        :param details: with all fields; ``is_auto_discovered`` and ``inspection_scope`` are among them
        :param query: filters ``auto_discovered`` and ``inspection_scope``, and what openstacksdk's ``nodes`` takes
        """
        if "auto_discovered" in query:
            query["auto_discovered"] = str(bool(query["auto_discovered"])).lower()
        return iter(Node.list(self._baremetal, base_path="/nodes/detail" if details else None, **query))

    def get_inventory(self, node: str | node.Node, status: str | None = None,
                      version: int | None = None) -> dict[str, Any]:
        """Get inventory for the node.

        :param node: The value can be the name or ID of a node or a :class:`~openstack.baremetal.v1.node.Node` instance.
        :param status: ``processed``, ``failed``, ``pending`` or ``waiting``: the newest data with this status.
        :param version: the data with this number, see :meth:`inventory_versions`.
        :returns: inspection data from the most recent successful run, or if there was none, the newest data:
            ``inventory``, ``plugin_data`` and ``status``.
        """
        if status is None and version is None:
            return dict(self._baremetal.get_node_inventory(node))
        return self._inventory(node, "", _INVENTORY_VERSION, status=status, version=version)

    def inventory_versions(self, node: str | node.Node) -> Iterator[dict[str, Any]]:
        """List the inspections of a node whose data are kept, oldest first: ``version``, ``status``, and times."""
        marker: int | None = None
        while True:
            reply = self._inventory(node, "/versions", _VERSION, marker=marker)
            yield from reply["versions"]
            if "next" not in reply:
                return
            marker = reply["versions"][-1]["version"]

    def inventory_diff(self, node: str | node.Node, before: int | None = None,
                       after: int | None = None) -> dict[str, Any]:
        """Get how a version of a node's inventory differs from another.

        :param before: the version to compare with; by default the last successful one before ``after``
        :param after: the version that is compared; by default the last successful one
        """
        return self._inventory(node, "/diff", _VERSION, **{"from": before, "to": after})

    def _inventory(self, node: str | node.Node, path: str, microversion: str, **query: Any) -> dict[str, Any]:
        ident = node if isinstance(node, str) else node.id
        parameters = {name: value for name, value in query.items() if value is not None}
        reply = self._baremetal.get(
            f"{Node.base_path}/{ident}/inventory{path}", params=parameters, microversion=microversion)
        exceptions.raise_from_response(reply)
        return dict(reply.json())


def _known(rule: str | inspection_rules.InspectionRule) -> InspectionRule:
    return InspectionRule.existing(id=rule if isinstance(rule, str) else rule.id)
