"""A stand-in for the service: nodes, ports, rules and history in memory behind a real HTTP server.

Inspection ends immediately, or after ``slow_lists`` further requests for the list of nodes in ``inspecting``.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

ROOT = {"name": "stand-in", "default_version": {"id": "v1", "version": "1.96", "min_version": "1.1"}, "versions": []}


class Service:
    """The state. ``callback_faults`` are (status or None to break the connection, whether to accept before that)."""

    def __init__(self) -> None:
        self.root: object = ROOT
        self.nodes: dict[str, dict[str, Any]] = {}
        self.ports: list[dict[str, Any]] = []
        self.rules: dict[str, dict[str, Any]] = {}
        self.inventories: dict[str, dict[str, Any]] = {}
        self.history: dict[str, list[dict[str, Any]]] = {}
        self.callback_faults: list[tuple[int | None, bool]] = []
        self.faults: list[int] = []
        self.spoil_inventory = False
        self.slow_lists = 0
        self.verify_fails = False
        self.calls: list[tuple[str, str, dict[str, str]]] = []
        self.lock = threading.Lock()
        self.url = ""

    def find(self, ident: str) -> dict[str, Any]:
        for node in self.nodes.values():
            if ident in (node["uuid"], node["name"]):
                return node
        raise Refusal(404, f"Node {ident} could not be found.")

    def handle(self, method: str, path: str, query: dict[str, str], body: Any) -> tuple[int, object]:
        if path == "/":
            return 200, self.root
        if self.faults:
            raise Refusal(self.faults.pop(0), "not now")
        if path == "/v1/continue_inspection":
            return self.callback(body)
        kind, _, rest = path.removeprefix("/v1/").partition("/")
        if kind == "nodes" and not rest:
            return self.create_node(body) if method == "POST" else (200, self.list_nodes(query))
        if kind == "nodes":
            return self.node(method, self.find(rest.partition("/")[0]), rest.partition("/")[2], body)
        if kind == "ports" and method == "POST":
            if any(port["address"] == body["address"] for port in self.ports):
                raise Refusal(409, "A port with that address exists.")
            self.ports.append(body)
            return 201, body
        if kind == "ports":
            wanted = {key: query[key] for key in ("address",) if key in query}
            if "node" in query:
                wanted["node_uuid"] = self.find(query["node"])["uuid"]
            return 200, {"ports": [port for port in self.ports if all(port[k] == v for k, v in wanted.items())]}
        if kind == "inspection_rules":
            if method == "GET":
                return 200, {"inspection_rules": list(self.rules.values())}
            if body["uuid"] in self.rules:
                raise Refusal(409, "A rule with that UUID exists.")
            self.rules[body["uuid"]] = body
            return 201, body
        raise Refusal(404, "Not Found")

    def create_node(self, body: dict[str, Any]) -> tuple[int, object]:
        if any(body["name"] == node["name"] or body["uuid"] == node["uuid"] for node in self.nodes.values()):
            raise Refusal(409, f"A node with name {body['name']} already exists.")
        node = {**body, "provision_state": "enroll", "last_error": None, "traits": [], "properties": {},
                "ports": [{"rel": "self", "href": "/v1/nodes/ports"}]}
        self.nodes[body["uuid"]] = node
        return 201, node

    def list_nodes(self, query: dict[str, str]) -> dict[str, Any]:
        found = sorted(uuid for uuid, node in self.nodes.items()
                       if node["provision_state"] == query.get("provision_state", node["provision_state"]))
        page = [uuid for uuid in found if uuid > query.get("marker", "")][:2]
        result: dict[str, Any] = {"nodes": [{"uuid": uuid} for uuid in page]}
        if page and page[-1] != found[-1]:
            result["next"] = f"{self.url}/v1/nodes?marker={page[-1]}&provision_state={query.get('provision_state', '')}"
        elif query.get("provision_state") == "inspecting":
            self.slow_lists -= 1
            if self.slow_lists < 0:
                for uuid in found:
                    self.finish(self.nodes[uuid])
        return result

    def node(self, method: str, node: dict[str, Any], rest: str, body: Any) -> tuple[int, object]:
        if method == "DELETE":
            if node["provision_state"] == "inspect wait":
                raise Refusal(409, "wrong state")
            del self.nodes[node["uuid"]]
            return 204, None
        if rest == "states/provision":
            goal = {"manage": "manageable", "inspect": "inspect wait", "abort": "inspect failed"}[body["target"]]
            if body["target"] == "manage" and self.verify_fails:
                node["last_error"], goal = "no power", "enroll"
            node["provision_state"] = goal
            return 202, None
        if rest == "inventory":
            if node["uuid"] not in self.inventories:
                raise Refusal(404, "no inventory")
            return 200, {"inventory": {} if self.spoil_inventory else self.inventories[node["uuid"]], "plugin_data": {}}
        if rest == "history":
            return 200, {"history": self.history.get(node["uuid"], [])}
        return (202, None) if rest == "maintenance" else (200, node)

    def callback(self, body: dict[str, Any]) -> tuple[int, object]:
        status, accept = self.callback_faults.pop(0) if self.callback_faults else (200, True)
        if accept:
            macs = {nic["mac_address"] for nic in body["inventory"]["interfaces"]}
            owners = {port["node_uuid"] for port in self.ports if port["address"] in macs}
            waiting = [uuid for uuid in owners if self.nodes[uuid]["provision_state"] == "inspect wait"]
            if len(waiting) != 1:
                raise Refusal(404, "lookup failed")
            node = self.nodes[waiting[0]]
            self.inventories[node["uuid"]] = body["inventory"]
            node |= {"provision_state": "inspecting", "error": body.get("error")}
            if self.slow_lists <= 0:
                self.finish(node)
        if status is None:
            raise ConnectionAbortedError
        if status >= 400:
            raise Refusal(status, "callback refused")
        return 200, {"uuid": node["uuid"]}

    def finish(self, node: dict[str, Any]) -> None:
        node["last_error"] = node.pop("error", None)
        node["provision_state"] = "inspect failed" if node["last_error"] else "manageable"
        if not node["last_error"]:
            node |= {"traits": ["CUSTOM_X"], "properties": {"cpu_arch": "x86_64"}}
        matched = ", ".join(f"{rule['uuid']} ({rule['description']})" for rule in list(self.rules.values())[:2])
        events = self.history.setdefault(node["uuid"], [])
        events.append({"uuid": f"event-{len(events)}", "event_type": "inspection",
                       "event": f"Inspection of {node['uuid']} finished: rules matched: {matched}"})


class Refusal(Exception):
    """An error answer in Ironic's format."""

    def __init__(self, status: int, text: str) -> None:
        self.status = status
        self.body = {"error_message": json.dumps({"faultstring": text, "faultcode": "Client", "debuginfo": None})}
        super().__init__(text)


@contextmanager
def running() -> Iterator[Service]:
    """Serve on a free port of 127.0.0.1 until the context ends."""
    service = Service()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def _serve(self) -> None:
            parts = urlsplit(self.path)
            query = {key: values[0] for key, values in parse_qs(parts.query).items()}
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            with service.lock:
                service.calls.append((self.command, parts.path, dict(self.headers.items())))
                try:
                    status, answer = service.handle(self.command, re.sub("/$", "", parts.path) or "/", query,
                                                    json.loads(raw) if raw else None)
                except Refusal as exc:
                    status, answer = exc.status, exc.body
                except ConnectionAbortedError:
                    self.close_connection = True
                    return
            content = b"" if answer is None else json.dumps(answer).encode()
            self.send_response(status)
            if status != 204:
                self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_DELETE = _serve

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    service.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield service
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
