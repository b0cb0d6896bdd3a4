"""Gives each request an id, ``req-<uuid4>``, and returns it in two headers."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from ironic_rules.context import RequestContext

_FORM = re.compile(r"req-[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")


class RequestId:
    """Sets ``openstack.request_id``. An id that the client sends is used only if it has the usual format."""

    def __init__(self, app: WSGIApplication) -> None:
        self._app = app

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        given = environ.get("HTTP_X_OPENSTACK_REQUEST_ID", "")
        request_id = given if _FORM.fullmatch(given) else f"req-{uuid.uuid4()}"
        environ["openstack.request_id"] = request_id
        # Until the caller is known. Log lines have the thread's last context, which would be another request's.
        RequestContext(request_id=request_id)

        def start(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
            headers += (("x-openstack-request-id", request_id), ("openstack-request-id", request_id))
            return start_response(status, headers, exc_info) if exc_info else start_response(status, headers)

        return self._app(environ, start)
