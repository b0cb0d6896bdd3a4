"""``/v1/nodes/{node}/states/raid``, since API 1.12: what ``raid.create_configuration`` creates."""

from __future__ import annotations

from ironic_rules.api import schemas, versions
from ironic_rules.api.controllers.v1 import hardware_request
from ironic_rules.api.expose import expose
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.exceptions import NotFound, UnsupportedDriverExtension
from ironic_rules.models.documents import JSONObject
from ironic_rules.policies import nodes as policies


class RAIDController(Resource):
    """The target RAID configuration of a node."""

    @expose(since=versions.RAID, policy=policies.SET_RAID, body=schemas.RAID_CONFIG, status=204,
            unacceptable=True)
    def put(self, request: Request, node: str, body: JSONObject) -> None:
        """Set ``target_raid_config`` to the body, ``{"logical_disks": […]}``; ``{}`` removes it.

        Nothing is done with the node's disks: a step does that.

        :raises NodeNotFound: 404;  NotFound: 404, the node's RAID interface cannot create volumes
        :raises InvalidParameterValue: 400;  NodeLocked: 409;  NoValidHost, NoFreeWorker, RPCTimeout: 503
        """
        try:
            hardware_request.change(request, node, "set_target_raid_config", config=body)
        except UnsupportedDriverExtension as error:
            # As in Ironic: clients take 404 for "this node has no RAID".
            raise NotFound(str(error)) from error
