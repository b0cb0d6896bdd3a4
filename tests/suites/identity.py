"""The part of an OpenStack identity service that clients' suites need: tokens, what they stand for, and a catalog.

A user's name says what the user may do: ``admin``, ``member-2`` (a second one), or ``reader-system``. Tokens carry the
user and the scope, so nothing is stored.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import threading
import uuid
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

#: Keystone's implied roles.
ROLES = {"admin": ("admin", "manager", "member", "reader"), "manager": ("manager", "member", "reader"),
         "member": ("member", "reader"), "reader": ("reader",), "service": ("service",)}
PASSWORD = "secret"
REGION = "RegionOne"
_DOMAIN = {"id": "default", "name": "Default"}


class Server(ThreadingHTTPServer):
    """The identity service; ``baremetal`` is the URL in its catalog, once the service that it is of listens.

    ``url`` is its own, which a proxy may change.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.baremetal = ""
        self.url = f"http://127.0.0.1:{self.server_port}/v3"

    def configuration(self) -> str:
        """Return the configuration of a service that asks this one about tokens."""
        return (f"[DEFAULT]\nauth_strategy = keystone\n[keystone_authtoken]\nauth_type = password\n"
                f"auth_url = {self.url}\nwww_authenticate_uri = {self.url}\nusername = service\npassword = {PASSWORD}\n"
                "project_name = service\nuser_domain_id = default\nproject_domain_id = default\n")


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        if not self.path.endswith("/auth/tokens"):
            self._reply(200, {"version": {"id": "v3.14", "status": "stable",
                                          "links": [{"rel": "self", "href": self.server.url}]}})
            return
        user, _, scope = self.headers["X-Subject-Token"].partition(":")
        if user.split("-")[0] in ROLES:
            self._reply(200, {"token": self._token(user, scope)})
        else:
            self._reply(404, {"error": {"code": 404, "message": "no such token", "title": "Not Found"}})

    def do_POST(self) -> None:
        auth = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["auth"]
        user = auth["identity"]["password"]["user"]
        scope = auth.get("scope", {})
        name = "system" if "system" in scope else next(iter(scope.get("project", {"": ""}).values()), "")
        # The identifier of a user is the name too.
        ident = user.get("name") or user["id"]
        token = f"{ident}:{name}"
        self._reply(201, {"token": self._token(ident, name)}, {"X-Subject-Token": token})

    def _token(self, user: str, scope: str) -> dict[str, Any]:
        now = datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
        described: dict[str, Any] = {}
        if scope == "system":
            described = {"system": {"all": True}}
        elif scope:
            described = {"project": {"id": scope, "name": scope, "domain": _DOMAIN}}
        return {
            "methods": ["password"], "user": {"id": user, "name": user, "domain": _DOMAIN}, **described,
            "roles": [{"id": role, "name": role} for role in ROLES[user.split("-")[0]]],
            "issued_at": f"{now.isoformat(timespec='microseconds')}Z",
            "expires_at": f"{(now + datetime.timedelta(hours=2)).isoformat(timespec='microseconds')}Z",
            "audit_ids": ["a"],
            "catalog": [_entry("identity", "keystone", self.server.url),
                        _entry("baremetal", "ironic", self.server.baremetal)]}

    def _reply(self, status: int, body: dict[str, Any], headers: dict[str, str] | None = None) -> None:
        text = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(text)),
                            **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def _entry(kind: str, name: str, url: str) -> dict[str, Any]:
    return {"id": kind, "type": kind, "name": name, "endpoints": [
        {"id": uuid.uuid5(uuid.NAMESPACE_URL, kind + interface).hex, "interface": interface, "region": REGION,
         "region_id": REGION, "url": url} for interface in ("public", "internal", "admin")]}


@contextlib.contextmanager
def running() -> Iterator[Server]:
    """Run the identity service."""
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
