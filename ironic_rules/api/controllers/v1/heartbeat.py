"""``/v1/heartbeat/{node}``: heartbeats of ramdisks."""

from __future__ import annotations

from oslo_log import log

from ironic_rules.api import ramdisk, schemas, versions
from ironic_rules.api.expose import expose
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.db import nodes
from ironic_rules.exceptions import Invalid, InvalidParameterValue, LookupFailed, NodeNotFound, NotFound, Problem
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.nodes import Node
from ironic_rules.policies import ramdisk as policies
from ironic_rules.text import is_uuid, printable

LOG = log.getLogger(__name__)


class HeartbeatController(Resource):
    """Since API 1.22; authenticated by the agent token only."""

    @expose(since=versions.RAMDISK, public=True, policy=policies.HEARTBEAT, body=schemas.HEARTBEAT, status=202,
            hidden=True)
    def post(self, request: Request, node: str = "", *, body: JSONObject) -> None:
        """Pass the heartbeat of the ramdisk of ``node`` (a UUID) to a conductor.

        :raises InvalidParameterValue: 400, the path has no node
        :raises LookupFailed: 404, the same for a wrong node and a wrong token
        :raises NodeLocked: 409, only for the holder of the token
        :raises NoValidHost: 503, no conductor is alive
        """
        if not node:
            raise InvalidParameterValue("The UUID of the node is required as the last part of the path.")
        ramdisk.require_endpoints(request.conf)
        _refuse_newer_fields(body, request.version)
        found = _find(request, node)
        token = body.pop("agent_token")
        if not ramdisk.token_matches(token, found.agent_token_hash if found else None) or found is None:
            # Ramdisks repeat their heartbeats, and anyone can send one.
            if (unlogged := request.refused_heartbeats.is_due(node, (), (), "token")) is not None:
                LOG.warning("Heartbeat refused: wrong agent token for node %s%s", printable(node, 64), unlogged)
            raise LookupFailed()
        details = {name: value for name, value in body.items() if name not in ("callback_url", "agent_version")}
        try:
            request.rpc.heartbeat(request.context, found.uuid, body["callback_url"], body.get("agent_version"),
                                  group=found.conductor_group, agent_token=token, **details)
        except NotFound as error:
            raise LookupFailed() from error


def _find(request: Request, ident: str) -> Node | None:
    """Return the node with this UUID. Names are not accepted, because they can be guessed.

    :raises NoValidHost: 503, whatever the node
    """
    with request.db.reader() as conn:
        request.conductor_check.require(conn)
        if not is_uuid(ident):
            return None
        try:
            return nodes.get(conn, ident)
        except NodeNotFound:
            return None


def _refuse_newer_fields(body: JSONObject, minor: int) -> None:
    problems = [Problem(f"/{name}", f"needs API version 1.{since}")
                for name, since in schemas.HEARTBEAT_SINCE.items() if minor < since and body.get(name) is not None]
    if problems:
        raise Invalid(problems=problems)
