"""A BMC of a few JSON documents, for features that sushy-tools' emulator lacks. It records requests."""

from __future__ import annotations

import contextlib
import http.server
import json
import threading
from collections.abc import Iterator
from typing import Any

ROOT, SYSTEM = "/redfish/v1/", "/redfish/v1/Systems/1"


def members(*paths: str) -> dict[str, Any]:
    """Return a collection."""
    return {"Members": [{"@odata.id": path} for path in paths], "Members@odata.count": len(paths)}


def documents(system: dict[str, Any], others: dict[str, Any]) -> dict[str, Any]:
    """Return the documents of a BMC with one system."""
    return {
        ROOT: {"Id": "RootService", "RedfishVersion": "1.6.0", "Systems": {"@odata.id": "/redfish/v1/Systems"}},
        "/redfish/v1/Systems": members(SYSTEM),
        SYSTEM: {"Id": "1", "Name": "System", "PowerState": "Off", **system},
        **{path if path.startswith("/") else f"{SYSTEM}/{path}": body for path, body in others.items()},
    }


class BMC:
    """The documents of the server and the requests to it: ``(method, path, body)``."""

    def __init__(self, content: dict[str, Any]) -> None:
        self.content = content
        self.told: list[tuple[str, str, Any]] = []
        self.logins: list[str | None] = []
        self.refuse: tuple[int, str] | None = None
        #: the location of the task of each change; None: changes are made immediately
        self.task: str | None = None
        self.url = ""


@contextlib.contextmanager
def serving(content: dict[str, Any]) -> Iterator[BMC]:
    """Serve the documents on a free port."""
    bmc = BMC(content)

    class Handler(http.server.BaseHTTPRequestHandler):
        def log_message(self, *args: Any) -> None:
            pass

        def _reply(self, status: int, body: Any = None) -> None:
            data = b"" if body is None else (body if isinstance(body, bytes) else json.dumps(body).encode())
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self) -> None:
            bmc.logins.append(self.headers.get("Authorization"))
            path = self.path if self.path == ROOT else self.path.rstrip("/")
            if bmc.refuse is not None and path not in (ROOT, "/redfish/v1"):
                status, text = bmc.refuse
                self._reply(status, {"error": {"code": "Base.1.0.GeneralError", "message": text}})
            elif path == "/redfish/v1":
                self._reply(200, bmc.content[ROOT])
            elif path in bmc.content:
                self._reply(200, bmc.content[path])
            else:
                self._reply(404, {"error": {"code": "Base.1.0.GeneralError", "message": "not here"}})

        def _change(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            bmc.told.append((self.command, self.path, json.loads(self.rfile.read(length) or b"null")))
            if bmc.task is None:
                self._reply(204)
                return
            self.send_response(202)
            self.send_header("Location", bmc.task)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_POST = do_PATCH = do_DELETE = _change

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    bmc.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield bmc
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
