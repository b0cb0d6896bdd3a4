"""``/v1/nodes/{node}/vmedia``, since API 1.89: images in the virtual drives of a node's BMC."""

from __future__ import annotations

from ironic_rules.api import filters, schemas, versions
from ironic_rules.api.controllers.v1 import hardware_request
from ironic_rules.api.expose import expose
from ironic_rules.api.filters import QueryValues
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.exceptions import InvalidParameterValue, Problem
from ironic_rules.hardware.base import DEVICE_TYPES
from ironic_rules.models.documents import JSONObject
from ironic_rules.policies import nodes as policies


def _types(value: str) -> tuple[str, ...]:
    """Comma-separated types of drives."""
    found = filters.names(value)
    if not found or not set(found) <= set(DEVICE_TYPES):
        raise ValueError(f"must be one or more of {', '.join(DEVICE_TYPES)}")
    return found


class VmediaController(Resource):
    """The virtual drives of a node."""

    @expose(since=versions.VMEDIA_GET, policy=policies.GET_VMEDIA)
    def get_all(self, request: Request, node: str) -> list[JSONObject]:
        """Read what is in the drives: a list of ``{"media_types": [names], "inserted": bool, "image": URL or null}``.

        :raises NodeNotFound: 404;  UnsupportedDriverExtension: 400
        :raises BMCError: 502;  NoValidHost, TooManyCalls, RPCTimeout: 503
        """
        found: list[JSONObject] = hardware_request.read(request, node, "get_virtual_media")
        return found

    @expose(since=versions.VMEDIA, policy=policies.ATTACH_VMEDIA, body=schemas.VMEDIA, status=204, hidden=True)
    def post(self, request: Request, node: str, body: JSONObject) -> None:
        """Start inserting the image at ``image_url`` into an empty drive; the BMC loads it from there.

        ``GET`` shows when it is there; if it fails, ``last_error`` of the node says why.

        :raises NodeNotFound: 404;  Invalid: 400, not supported
        :raises Conflict: 409, the node waits for its ramdisk;  NodeLocked: 409
        :raises NoValidHost, NoFreeWorker, RPCTimeout: 503
        """
        if body.get("image_download_source") in ("local", "swift"):
            raise InvalidParameterValue(problems=[Problem(
                "/image_download_source", "must be http: the BMC loads the image itself")])
        hardware_request.change(
            request, node, "attach_virtual_media", device_type=body["device_type"], image_url=body["image_url"])

    @expose(since=versions.VMEDIA, policy=policies.DETACH_VMEDIA, status=204, body=schemas.VMEDIA_TYPES, hidden=True,
            query=filters.Query(device_types=_types))
    def delete(self, request: Request, node: str, query: QueryValues, body: JSONObject | None) -> None:
        """Start ejecting what is in the drives of the types ``device_types``, or in all of them.

        The types are in the query or, as openstacksdk sends them, in the body.

        :raises NodeNotFound: 404;  UnsupportedDriverExtension: 400
        :raises Conflict: 409, the node waits for its ramdisk;  NodeLocked: 409
        :raises NoValidHost, NoFreeWorker, RPCTimeout: 503
        """
        wanted = query.get("device_types", ())
        if body and "device_types" in body:
            try:
                wanted = _types(body["device_types"])
            except ValueError as error:
                raise InvalidParameterValue(problems=[Problem("/device_types", str(error))]) from error
        hardware_request.change(request, node, "detach_virtual_media", device_types=list(wanted))
