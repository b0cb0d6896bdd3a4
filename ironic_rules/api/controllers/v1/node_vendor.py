"""``/v1/nodes/{node}/vendor_passthru``: methods of a node's vendor interface, such as subscriptions to events."""

from __future__ import annotations

import re
from typing import Any, ClassVar

import orjson

from ironic_rules.api import filters, schemas
from ironic_rules.api.controllers.v1 import hardware_request
from ironic_rules.api.expose import expose
from ironic_rules.api.filters import QueryValues
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.exceptions import InvalidParameterValue
from ironic_rules.models.documents import JSONObject
from ironic_rules.policies import nodes as policies

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,254}")
_QUERY = filters.Query(method=filters.text)


class MethodsController(Resource):
    """``/v1/nodes/{node}/vendor_passthru/methods``."""

    @expose(policy=policies.VENDOR_PASSTHRU)
    def get_all(self, request: Request, node: str) -> JSONObject:
        """Return the methods by their names, with their HTTP methods and a description.

        :raises NodeNotFound: 404;  UnsupportedDriverExtension: 400;  NoValidHost, RPCTimeout: 503
        """
        found: JSONObject = hardware_request.read(request, node, "vendor_methods")
        return found


class VendorPassthruController(Resource):
    """Calls a method, named in the path or in the query, with the body, a JSON object, as its arguments."""

    below: ClassVar = {"methods": MethodsController()}

    @expose(policy=policies.VENDOR_PASSTHRU, query=_QUERY, body=schemas.VENDOR_ARGUMENTS)
    def get_all(self, request: Request, node: str, method: str = "", *, query: QueryValues,
                body: JSONObject | None) -> Any:
        """Call a method that reads; return its result.

        :raises NodeNotFound: 404;  Invalid: 400, no such method, or wrong arguments;  NodeLocked: 409
        :raises BMCError: 502;  NoValidHost, NoFreeWorker, TooManyCalls, StillRunning, RPCTimeout: 503
        """
        return _call(request, node, "GET", method, query, body)

    @expose(policy=policies.VENDOR_PASSTHRU, query=_QUERY, body=schemas.VENDOR_ARGUMENTS)
    def post(self, request: Request, node: str, method: str = "", *, query: QueryValues,
             body: JSONObject | None) -> Any:
        """Call a method; return its result. Errors are those of ``GET``."""
        return _call(request, node, "POST", method, query, body)

    @expose(policy=policies.VENDOR_PASSTHRU, query=_QUERY, body=schemas.VENDOR_ARGUMENTS)
    def put(self, request: Request, node: str, method: str = "", *, query: QueryValues,
            body: JSONObject | None) -> Any:
        """Call a method; return its result. Errors are those of ``GET``."""
        return _call(request, node, "PUT", method, query, body)

    @expose(policy=policies.VENDOR_PASSTHRU, query=_QUERY, body=schemas.VENDOR_ARGUMENTS)
    def patch(self, request: Request, node: str, method: str = "", *, query: QueryValues,
              body: JSONObject | None) -> Any:
        """Call a method; return its result. Errors are those of ``GET``."""
        return _call(request, node, "PATCH", method, query, body)

    @expose(policy=policies.VENDOR_PASSTHRU, query=_QUERY, body=schemas.VENDOR_ARGUMENTS)
    def delete(self, request: Request, node: str, method: str = "", *, query: QueryValues,
               body: JSONObject | None) -> Any:
        """Call a method; return its result. Errors are those of ``GET``."""
        return _call(request, node, "DELETE", method, query, body)


def _call(request: Request, node: str, http_method: str, method: str, query: QueryValues,
          body: JSONObject | None) -> bytes:
    # Without a result, clients still read JSON.
    return orjson.dumps(hardware_request.change(
        request, node, "call_vendor_method", method=method_of(method, query), http_method=http_method, args=body or {}))


def method_of(in_path: str, query: QueryValues) -> str:
    """Return the vendor method that a request names, in its path or in its query.

    :raises InvalidParameterValue: 400, it names none, or two, or what cannot be a name
    """
    in_query: str = query.get("method", "")
    if bool(in_path) == bool(in_query):
        raise InvalidParameterValue("method: names the vendor method, in the query or as the last part of the path; it "
                                    "is required once.")
    name = in_path or in_query
    if not _NAME.fullmatch(name):
        raise InvalidParameterValue("method: must be the name of a method.")
    return name
