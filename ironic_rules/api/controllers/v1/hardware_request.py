"""Requests that one operation of one interface of a node serves: a conductor carries it out at once, or begins it."""

from __future__ import annotations

from typing import Any

from ironic_rules.api import marks
from ironic_rules.api.controllers.v1 import node_access
from ironic_rules.api.request import Request
from ironic_rules.models import secrets


def read(request: Request, node: str, operation: str, **args: Any) -> Any:
    """Return what a conductor reads by ``operation`` (``conductor.hardware_calls``), with secrets masked.

    :raises NodeNotFound: 404;  Invalid: 400, the node's interface does not support it
    :raises BMCError: 502;  NoValidHost, TooManyCalls, RPCTimeout: 503
    """
    with request.db.reader() as conn:
        row = node_access.find(request, conn, node)
    return _call(request, row, operation, args)


def change(request: Request, node: str, operation: str, **args: Any) -> Any:
    """Let a conductor carry out an operation; return its result, if it has one.

    A repetition within ten minutes, with the same header ``Idempotency-Key``, changes nothing and has no result.

    :raises NodeNotFound: 404;  Invalid: 400, the node's interface does not support it, or bad arguments
    :raises NodeLocked: 409;  BMCError: 502;  NoValidHost, NoFreeWorker, TooManyCalls, StillRunning, RPCTimeout: 503
    """
    mark = marks.of_request(request, operation, args)
    with request.db.reader() as conn:
        row = node_access.find(request, conn, node)
        if marks.was_accepted(conn, request, row.id, mark):
            return None
    request.context.mark = mark
    return _call(request, row, operation, args)


def _call(request: Request, row: Any, operation: str, args: dict[str, Any]) -> Any:
    return secrets.mask(request.rpc.call_hardware(
        request.context, row.uuid, operation, group=row.conductor_group, **args))
