"""Requests that client libraries cannot send: any bytes as path, query and body."""

from __future__ import annotations

import io
import json
from typing import Any, NamedTuple

from tests.functional.api.conftest import Client, of_nova


class Reply(NamedTuple):
    """The reply; ``headers`` without those that differ between requests."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes

    @property
    def fault(self) -> dict[str, Any]:
        """The inner object of an error; an assertion fails if it does not have Ironic's format, or Nova's."""
        reply = json.loads(self.body)
        if "error_message" not in reply:
            return of_nova(reply, self.status)
        fault: dict[str, Any] = json.loads(reply["error_message"])
        named = fault.keys() - {"problems"}
        ours = named - {"code", "title", "description"}
        assert ours == {"faultcode", "faultstring", "debuginfo", "message_id"}, fault
        assert all(one.keys() == {"pointer", "text"} and one["text"] for one in fault.get("problems", ())), fault
        return fault


def send(app: Client, method: str, path: str, query: str = "", body: bytes = b"", **environ: Any) -> Reply:
    """Call the WSGI application.

    :param path: as the server passes it: each character stands for one byte
    :param environ: further keys, or other values of those that are set here
    """
    got: list[Any] = []
    chunks = app.app({
        "REQUEST_METHOD": method, "PATH_INFO": path, "QUERY_STRING": query, "SCRIPT_NAME": "",
        "SERVER_NAME": "localhost", "SERVER_PORT": "80", "HTTP_HOST": "localhost", "SERVER_PROTOCOL": "HTTP/1.1",
        "wsgi.url_scheme": "http", "wsgi.input": io.BytesIO(body), "CONTENT_LENGTH": str(len(body)),
        "CONTENT_TYPE": "application/json", "HTTP_X_OPENSTACK_IRONIC_API_VERSION": "1.96", **environ,
    }, lambda status, headers, exc_info=None: got.extend((status, headers)))
    status, headers = got
    return Reply(int(status[:3]), tuple((name, value) for name, value in headers if "request-id" not in name.lower()),
                 b"".join(chunks))
