"""The steps that a deployment or automated cleaning would run, and the nodes that can run a deploy template.

Deploy templates and runbooks check their steps here against those that the live conductors offer. Offers are read again
after a heartbeat of any conductor: to read them for each node that is created took a quarter of its processor time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from ironic_rules.api import filters, pagination, versions
from ironic_rules.api.expose import expose
from ironic_rules.api.filters import QueryValues
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.api.v1 import node_access
from ironic_rules.api.views import resources
from ironic_rules.db import conductors, deploy_templates, node_sets, nodes
from ironic_rules.exceptions import Invalid, Problem, no_valid_host
from ironic_rules.hardware import selection
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.steps import Step
from ironic_rules.policies import nodes as node_policies
from ironic_rules.policies import templates
from ironic_rules.steps import checks, offers, preview
from ironic_rules.steps.offers import NODE_COLUMNS, RegisteredSteps
from ironic_rules.steps.procedures import CLEANING
from ironic_rules.text import printable

_SORT_KEYS = ("id", "uuid", "name", "driver", "provision_state", "created_at", "updated_at")


class NodeDeployStepsController(Resource):
    """``/v1/nodes/{node}/deploy_steps``."""

    @expose(since=versions.DEPLOY_TEMPLATES, policy=node_policies.GET_DEPLOY_STEPS,
            query=filters.Query(traits=filters.names))
    def get_all(self, request: Request, node: str, query: QueryValues) -> JSONObject:
        """Return the steps that a deployment of the node would run, in order, each with its source.

        ``traits`` are those of the instance; the default is those in the node's ``instance_info``. ``problems`` lists
        what would prevent the deployment from starting, including problems of templates that are only enabled.
        ``warnings`` is about what is possible and hardly meant.
        ``complete`` is false if a ramdisk adds its own steps, which are not known before it runs.

        :raises NodeNotFound: 404
        :raises no_valid_host: 503, no conductor of the node's group is alive
        :raises DriverNotFound: 400, none of them supports the node's driver
        """
        with request.db.reader() as conn:
            row = node_access.find(request, conn, node)
            registered = request.offered_steps.current(conn).get(row.conductor_group)
            own = node_sets.list_traits(conn, [row.id])[row.id]
            instance_info = {**row.instance_info, **({"traits": list(query["traits"])} if "traits" in query else {})}
            # As in a deployment: templates are ignored while conductors are pinned.
            enabled = [] if request.conf.conductor.pin_release_version else deploy_templates.for_traits(
                conn, {*offers.requested_traits(instance_info), *own})
        if registered is None:
            raise no_valid_host()
        return resources.deploy_preview(preview.preview_of_deployment(
            registered.of_node(row), enabled, instance_info, own, request.conf.api.disallow_deploy_steps))


class NodeCleanStepsController(Resource):
    """``/v1/nodes/{node}/clean_steps``."""

    @expose(since=versions.DEPLOY_TEMPLATES, policy=node_policies.GET_DEPLOY_STEPS)
    def get_all(self, request: Request, node: str) -> JSONObject:
        """Return the steps that automated cleaning of the node would run, in order, each with its source.

        ``automated_clean`` is whether it is on for this node, ``problems`` lists why it would fail. ``complete`` is
        false if a ramdisk adds its own steps, which are not known before it runs.

        :raises NodeNotFound: 404
        :raises no_valid_host: 503, no conductor of the node's group is alive
        :raises DriverNotFound: 400, none of them supports the node's driver
        """
        with request.db.reader() as conn:
            row = node_access.find(request, conn, node)
            registered = request.offered_steps.current(conn).get(row.conductor_group)
        if registered is None:
            raise no_valid_host()
        own = row.automated_clean
        return resources.clean_preview(preview.preview_of_cleaning(registered.of_node(row, CLEANING)),
                                       request.conf.conductor.automated_clean if own is None else own)


class TemplateNodesController(Resource):
    """``/v1/deploy-templates/{template}/nodes``."""

    @expose(since=versions.DEPLOY_TEMPLATES, policy=templates.TEMPLATE_LIST_NODES,
            query=filters.Listing(sort_keys=_SORT_KEYS, fields=resources.JUDGED_FIELDS))
    def get_all(self, request: Request, template: str, query: QueryValues) -> JSONObject:
        """List the nodes that have the template's name among their traits, each with whether it can run the template.

        :raises deploy_template_not_found: 404
        """
        fields = query.get("fields", resources.JUDGED_FIELDS)
        page = pagination.page(request, query)
        columns = tuple(dict.fromkeys((*resources.JUDGED_COLUMNS, *NODE_COLUMNS, "conductor_group")))
        with request.db.reader() as conn:
            deploy_template = deploy_templates.get(conn, node_access.check_ident(template, "deploy template"))
            rows = nodes.list_nodes(conn, {"trait": deploy_template.name}, page, columns)
            by_group = request.offered_steps.current(conn)
        support = preview.Support(deploy_template, by_group, request.conf.api.disallow_deploy_steps)
        return pagination.collection(request, "nodes", rows, page, lambda shown: [
            resources.judged_node(request.base, row, support.judge(row), fields) for row in shown])


def check_steps(request: Request, steps: Iterable[Step]) -> None:
    """Check steps that passed the schema, as far as no node is needed.

    :raises Invalid: 400, with every problem
    """
    disallowed = frozenset(request.conf.api.disallow_deploy_steps)
    problems = checks.problems(steps, (checks.without(disallowed), checks.real_secrets))
    if problems:
        raise Invalid(problems=[Problem(printable(problem.where, 256), problem.text) for problem in problems])


#: By conductor group, and under None what all groups together offer. Empty if no conductor is alive.
StepsByGroup = Mapping[str | None, RegisteredSteps]
#: The same of hardware types.
InterfacesByGroup = Mapping[str | None, selection.Description]


class OfferedSteps:
    """One per application. Safe to use from any thread: the last answer is replaced as a whole."""

    def __init__(self, heartbeat_timeout_s: int) -> None:
        self._timeout_s = heartbeat_timeout_s
        #: the conductors that were alive, and what they offer
        self._last: tuple[tuple[Any, ...], StepsByGroup, InterfacesByGroup] = ((), {}, {})

    def current(self, conn: sa.Connection) -> StepsByGroup:
        """Return the steps that the conductors that are alive now offer."""
        return self._read(conn)[1]

    def interfaces(self, conn: sa.Connection) -> InterfacesByGroup:
        """Return the hardware types that the conductors that are alive now offer, with their interfaces."""
        return self._read(conn)[2]

    def _read(self, conn: sa.Connection) -> tuple[tuple[Any, ...], StepsByGroup, InterfacesByGroup]:
        alive = tuple(map(tuple, conductors.living_hosts(conn, self._timeout_s)))
        last = self._last
        if last[0] != alive:
            groups = _by_group(conductors.alive(conn, self._timeout_s))
            last = self._last = (alive, {group: RegisteredSteps(types) for group, types in groups.items()},
                                 {group: selection.union(types) for group, types in groups.items()})
        return last


def _by_group(alive: Sequence[Any]) -> dict[str | None, list[Any]]:
    groups: dict[str | None, list[Any]] = {}
    for row in alive:
        for group in (None, row.conductor_group):
            groups.setdefault(group, []).append(row.hardware_types)
    return groups
