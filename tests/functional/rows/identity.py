"""The part of an OpenStack identity service that keystonemiddleware needs to check tokens."""

from __future__ import annotations

import contextlib
import datetime
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

#: Valid tokens, and the roles of each; anything else is unknown. Those of "admin" and "reader" are for the whole
#: system, that of "member" is for a project, where Keystone gives the role reader to every member.
TOKENS = {"admin": ("admin", "member", "reader"), "reader": ("reader",), "member": ("member", "reader")}


def password_of(user: str) -> str:
    """Return the password of a user, who gets the token of the same name."""
    return f"password of {user}"


class _Handler(BaseHTTPRequestHandler):
    server: ThreadingHTTPServer

    def do_GET(self) -> None:
        if not self.path.endswith("/auth/tokens"):
            version = {"id": "v3.14", "status": "stable", "links": [{"rel": "self", "href": _url(self.server) + "/v3"}]}
            self._reply(200, {"version": version})
        elif self.headers["X-Subject-Token"] in TOKENS:
            self._reply(200, {"token": self._token(self.headers["X-Subject-Token"])})
        else:
            self._reply(404, {"error": {"code": 404, "message": "no such token", "title": "Not Found"}})

    def do_POST(self) -> None:
        auth = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["auth"]
        user = auth["identity"]["password"]["user"]
        if user["name"] == "ironic":  # the service's own
            self._reply(201, {"token": self._token("service")}, {"X-Subject-Token": "of-the-service"})
        elif user["name"] in TOKENS and user["password"] == password_of(user["name"]) and (
                ("system" in auth["scope"]) == (user["name"] == "reader")):
            self._reply(201, {"token": self._token(user["name"])}, {"X-Subject-Token": user["name"]})
        else:
            self._reply(401, {"error": {"code": 401, "message": "wrong", "title": "Unauthorized"}})

    def _token(self, name: str) -> dict[str, Any]:
        now = datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
        endpoint = {"id": "e", "interface": "admin", "region": "r", "region_id": "r", "url": _url(self.server) + "/v3"}
        return {
            "methods": ["password"], "user": {"id": f"id-of-{name}", "name": name, "domain": {"id": "d", "name": "d"}},
            **({"system": {"all": True}} if name in ("admin", "reader") else
               {"project": {"id": "p", "name": "p", "domain": {"id": "d", "name": "d"}}}),
            "roles": [{"id": f"id-of-{role}", "name": role} for role in TOKENS.get(name, (name,))],
            "issued_at": now.isoformat() + "Z",
            "expires_at": (now + datetime.timedelta(hours=1)).isoformat() + "Z", "audit_ids": ["a"],
            "catalog": [{"id": "c", "type": "identity", "name": "keystone", "endpoints": [
                endpoint, {**endpoint, "id": "i", "interface": "internal"}]}],
        }

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


def _url(server: ThreadingHTTPServer) -> str:
    return f"http://127.0.0.1:{server.server_port}"


@contextlib.contextmanager
def configuration() -> Iterator[str]:
    """Run the identity service; yield the configuration of a service that uses it."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield (f"[DEFAULT]\nauth_strategy = keystone\n[keystone_authtoken]\nauth_type = password\n"
                   f"auth_url = {_url(server)}/v3\nwww_authenticate_uri = {_url(server)}/v3\nusername = ironic\n"
                   "password = secret\nproject_name = p\nuser_domain_id = d\nproject_domain_id = d\n")
        finally:
            server.shutdown()
            thread.join()
