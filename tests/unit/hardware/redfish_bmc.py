"""A BMC of a few JSON documents, for features that sushy-tools' emulator lacks. It records requests."""

from __future__ import annotations

import contextlib
import http.server
import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs

ROOT, SYSTEM = "/redfish/v1/", "/redfish/v1/Systems/1"
SESSIONS = "/redfish/v1/SessionService/Sessions"


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
        self.request_ids: list[str | None] = []
        self.refuse: tuple[int, str] | None = None
        #: the location of the task of each change; None: changes are made immediately
        self.task: str | None = None
        self.url = ""
        #: called with path and body of each change, after it is recorded
        self.then: Callable[[str, Any], None] = lambda path, body: None
        #: called with method, path and body of each change; returns status and body of the reply, None to obey
        self.answer: Callable[[str, str, Any], tuple[int, Any] | None] = lambda method, path, body: None
        #: the ETag of all documents, which a PATCH must name; None: there are none
        self.etag: str | None = None
        #: the paths of the GET requests, with their queries
        self.read: list[str] = []
        #: seconds until each response
        self.delay_s = 0.0
        #: path -> HTTP status; None: the connection is closed without a response
        self.broken: dict[str, int | None] = {}
        #: path -> HTTP status and Location with which every request is answered
        self.redirected: dict[str, tuple[int, str]] = {}
        #: seconds until each change is answered, after it is made
        self.late_s = 0.0
        #: when late answers need not wait any longer
        self.end = threading.Event()
        #: the paths of open sessions, each of which is its own token; None: there are none, and no login is needed
        self.sessions: set[str] | None = None
        #: the number of members in a page of a collection; None: all
        self.page: int | None = None
        #: the greatest number of requests that were open at the same time
        self.most_at_once = 0
        self._open = 0
        self._lock = threading.Lock()

    def request(self, path: str) -> None:
        """Record a GET request, which takes its time."""
        with self._lock:
            self.read.append(path)
            self._open += 1
            self.most_at_once = max(self.most_at_once, self._open)
        time.sleep(self.delay_s)
        # Before the response is sent: the client may then begin the next request.
        with self._lock:
            self._open -= 1

    def patch(self, path: str, body: Any) -> None:
        """Change a document as requested, if there is one."""
        found = self.content.get(path)
        if isinstance(found, dict) and isinstance(body, dict):
            self.content[path] = {**found, **{
                key: {**found[key], **value} if isinstance(value, dict) and isinstance(found.get(key), dict) else value
                for key, value in body.items()}}

    def document(self, path: str, query: dict[str, list[str]]) -> Any:
        """Return a document: a page of a collection if there are pages, and with its members if that is requested."""
        body = self.content[path]
        if not isinstance(body, dict) or not isinstance(body.get("Members"), list):
            return body
        begin = int(query.get("$skip", ["0"])[0])
        end = len(body["Members"]) if self.page is None else begin + self.page
        shown = body["Members"][begin:end]
        if "$expand" in query:
            shown = [{**self.content.get(one["@odata.id"], {}), **one} for one in shown]
        following = {"Members@odata.nextLink": f"{path}?$skip={end}"} if end < len(body["Members"]) else {}
        return {**body, "Members": shown, **following}


def close_all(connections: Any) -> None:
    """Close the connections to BMCs, several for each, which are otherwise closed when they are collected."""
    for cached in connections._cache.values():
        cached.future.result()._conn.close()


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
            if bmc.etag is not None:
                self.send_header("ETag", bmc.etag)
            if data.startswith(b"\x1f\x8b"):
                self.send_header("Content-Encoding", "gzip")
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self) -> None:
            bmc.request(self.path)
            bmc.request_ids.append(self.headers.get("X-OpenStack-Request-Id"))
            bmc.logins.append(self.headers.get("Authorization"))
            target, _, query = self.path.partition("?")
            path = target if target == ROOT else target.rstrip("/")
            if self._is_redirected():
                return
            if bmc.sessions is not None and path not in (ROOT, "/redfish/v1") and not self._is_logged_in():
                self._reply(401)
                return
            if path in bmc.broken or self.path in bmc.broken:
                status = bmc.broken.get(path, bmc.broken.get(self.path))
                if status is None:
                    self.close_connection = True
                else:
                    self._reply(status, {"error": {"code": "Base.1.0.GeneralError", "message": "broken"}})
                return
            if bmc.refuse is not None and path not in (ROOT, "/redfish/v1"):
                status, text = bmc.refuse
                self._reply(status, {"error": {"code": "Base.1.0.GeneralError", "message": text}})
            elif path == "/redfish/v1":
                self._reply(200, bmc.content[ROOT])
            elif path in bmc.content:
                self._reply(200, bmc.document(path, parse_qs(query)))
            else:
                self._reply(404, {"error": {"code": "Base.1.0.GeneralError", "message": "not here"}})

        def _change(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length) or b"null")
            bmc.told.append((self.command, self.path, body))
            bmc.then(self.path, body)
            bmc.end.wait(bmc.late_s)
            if self._is_redirected():
                return
            if bmc.sessions is not None and self._change_session():
                return
            if self.path in bmc.broken:
                self.close_connection = True
                return
            if (answered := bmc.answer(self.command, self.path, body)) is not None:
                self._reply(*answered)
                return
            if self.command == "PATCH" and bmc.etag is not None and self.headers.get("If-Match") != bmc.etag:
                missing = self.headers.get("If-Match") is None
                self._reply(428 if missing else 412, {"error": {"code": "Base.1.8.PreconditionFailed"}})
                return
            if self.command == "PATCH":
                bmc.patch(self.path, body)
            if bmc.task is None:
                self._reply(204)
                return
            self.send_response(202)
            self.send_header("Location", bmc.task)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def _is_redirected(self) -> bool:
            if self.path not in bmc.redirected:
                return False
            status, location = bmc.redirected[self.path]
            self.send_response(status)
            self.send_header("Location", location)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return True

        def _is_logged_in(self) -> bool:
            return self.headers.get("X-Auth-Token") in (bmc.sessions or ())

        def _change_session(self) -> bool:
            if self.path.startswith(f"{SESSIONS}/"):
                bmc.sessions.discard(self.path)
                self._reply(204)
                return True
            if self.path != SESSIONS:
                return False
            session = f"{SESSIONS}/{len(bmc.told)}"
            bmc.sessions.add(session)
            self.send_response(201)
            self.send_header("X-Auth-Token", session)
            # As BMCs do that know themselves by another name.
            self.send_header("Location", f"https://bmc.example{session}")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return True

        do_POST = do_PATCH = do_DELETE = _change

    class Server(http.server.ThreadingHTTPServer):
        request_queue_size = 128

    server = Server(("127.0.0.1", 0), Handler)
    bmc.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield bmc
    finally:
        bmc.end.set()
        server.shutdown()
        server.server_close()
        thread.join()
