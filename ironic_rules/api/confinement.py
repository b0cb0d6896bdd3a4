"""Requests of callers in a project who may not act on the objects of every project.

``expose`` checks the policy of a route without a node first: who passes it is not confined, and nothing below costs
anything. Everybody else who is in a project is: lists have the project as a filter, and each node or runbook that the
request names is checked when it has been read, before anything else is done with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oslo_config import cfg

from ironic_rules import policies, policy
from ironic_rules.context import RequestContext
from ironic_rules.exceptions import Forbidden, NotFound
from ironic_rules.models.documents import JSONObject
from ironic_rules.policies import nodes, runbooks

#: What replies have in the place of what the caller may not see.
HIDDEN = "** hidden: requires {policy} **"
_POLICIES = policies.by_name()
#: Of a node that a conductor has put into maintenance, for its fault, this is the text of the error.
_REASON = "maintenance_reason"
_MAY_BE_HIDDEN = {*nodes.GET_FIELD, _REASON}


def of_request(conf: cfg.ConfigOpts, name: str, context: RequestContext) -> Confinement | None:
    """Check the policy of a route; return what the request is confined to, None: nothing.

    :raises Forbidden: 403
    """
    entry = _POLICIES[name]
    try:
        policy.authorize(conf, entry.everywhere or name, context)
    except Forbidden:
        if not entry.of or not context.project_id:
            raise Forbidden(policy=name) from None
    else:
        return None
    own = entry.own or name
    if entry.of == "project":
        policy.authorize(conf, own, context)
    return Confinement(conf, context, own)


def target(row: Any) -> dict[str, str]:
    """Return what policies compare with the caller's project. None would be equal to the project of a token without."""
    return {f"node.{name}": value for name in ("owner", "lessee") if (value := getattr(row, name)) is not None}


class Confinement:
    """What a request is confined to: the project of its caller, and the policy that each node must pass.

    :ivar is_decided: whether anything was checked, or a list filtered. A reply without is withheld by ``expose``
    """

    def __init__(self, conf: cfg.ConfigOpts, context: RequestContext, name: str) -> None:
        self._conf, self._context, self._policy = conf, context, name
        self.project = str(context.project_id)
        self.is_decided = False
        #: owner and lessee -> the fields to hide: a check takes 0.4 ms, and a page has a thousand nodes of few projects
        self._hidden: dict[tuple[str | None, str | None], list[str]] = {}

    def check_node(self, row: Any, missing: NotFound, names: tuple[str, ...] = ()) -> None:
        """Check the policies ``names`` (none: that of the route) for a node.

        :raises NotFound: 404, ``missing``: the caller may not see the node
        :raises Forbidden: 403
        """
        self.is_decided = True
        self._check(nodes.GET, target(row), missing)
        for name in names or (self._policy,):
            policy.authorize(self._conf, name, self._context, target(row))

    def check_runbook(self, row: Any, missing: NotFound) -> None:
        """Check the policy of the route for a runbook; errors as those of :meth:`check_node`."""
        self.is_decided = True
        wanted = {} if row.owner is None else {"runbook.owner": row.owner}
        if not row.public:
            self._check(runbooks.GET, wanted, missing)
        elif self._policy == runbooks.GET:
            return
        policy.authorize(self._conf, self._policy, self._context, wanted)

    def confine(self, wanted: dict[str, Any]) -> None:
        """Add the filter ``project`` to those of a list.

        :raises Forbidden: 403, the request names another project, or a group of failures, which tells errors
        """
        self.is_decided = True
        if wanted.setdefault("project", self.project) != self.project or "failure" in wanted:
            raise Forbidden(policy=_POLICIES[self._policy].everywhere or self._policy)

    def owner(self, given: str | None) -> str:
        """Return the owner of a new object: the caller's project.

        :raises Forbidden: 403, the request names another one
        """
        self.is_decided = True
        if given not in (None, self.project):
            raise Forbidden(policy=_POLICIES[self._policy].everywhere or nodes.CREATE)
        return self.project

    def hide(self, row: Any, shown: JSONObject) -> None:
        """Hide the fields of a node that the caller may not see."""
        if not _MAY_BE_HIDDEN & shown.keys():
            return
        whose = (row.owner, row.lessee)
        if whose not in self._hidden:
            self._hidden[whose] = [name for name, wanted in nodes.GET_FIELD.items()
                                   if not policy.allows(self._conf, wanted, self._context, target(row))]
        for name in self._hidden[whose]:
            if name in shown:
                text = HIDDEN.format(policy=nodes.GET_FIELD[name])
                shown[name] = {"content": text} if name in ("driver_info", "driver_internal_info") else text
        if "last_error" in self._hidden[whose] and row.fault is not None and shown.get(_REASON) is not None:
            shown[_REASON] = HIDDEN.format(policy=nodes.GET_FIELD["last_error"])

    def _check(self, name: str, of: Mapping[str, str], missing: NotFound) -> None:
        if not policy.allows(self._conf, name, self._context, of):
            raise missing
