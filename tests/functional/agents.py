"""An agent of a ramdisk without a machine: it serves the commands that ironic-python-agent has, and records them.

What its commands return was recorded from ironic-python-agent 13.0.0, which ``clients/test_ipa_image.py`` runs.
"""

from __future__ import annotations

import contextlib
import http.server
import json
import threading
import uuid
from collections.abc import Iterator
from typing import Any

SUCCEEDED, RUNNING, FAILED = "SUCCEEDED", "RUNNING", "FAILED"
#: Commands that end before they are answered -> their result.
_SYNCHRONOUS: dict[str, Any] = {
    **{f"{name}.get_{name}_steps": {f"{name}_steps": {"generic": [
        {"step": "burnin_cpu", "interface": "deploy", "priority": 0, "reboot_requested": False, "abortable": True}]},
        "hardware_manager_version": {"generic": "1"}} for name in ("clean", "service")},
    "deploy.get_deploy_steps": {"deploy_steps": {"generic": []}, "hardware_manager_version": {"generic": "1"}},
    "standby.get_partition_uuids": {"root uuid": "0x1f0d15c5"},
    "rescue.finalize_rescue": None,
    "standby.sync": None,
}


class Agent:
    """The state of one agent.

    :ivar asked: name and parameters of each command, in order
    :ivar drops: for each of the next requests: None to answer it; else the connection is closed without an answer,
        "unread" before the request takes effect, "done" after that
    :ivar errors: name of a command -> the error with which it ends
    """

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.errors: dict[str, str] = {}
        self.drops: list[str | None] = []
        self.url = ""
        self._commands: list[dict[str, Any]] = []

    def names(self) -> list[str]:
        """Return the names of the commands so far."""
        return [name for name, _ in self.asked]

    def parameters(self, name: str) -> dict[str, Any]:
        """Return the parameters of the only command of that name."""
        (found,) = [parameters for asked, parameters in self.asked if asked == name]
        return found

    def end(self) -> None:
        """End the commands that are running."""
        for command in self._commands:
            if command["command_status"] == RUNNING:
                error = self.errors.get(command["name"])
                command |= {"command_status": FAILED if error else SUCCEEDED, "command_result": {"result": "done"},
                            "command_error": {"type": "ImageChecksumError", "details": error} if error else None}

    def restart(self) -> None:
        """Forget everything, as a ramdisk that is booted again."""
        self._commands.clear()

    def answer(self, method: str, body: dict[str, Any]) -> dict[str, Any]:
        if method == "GET":
            return {"commands": self._commands}
        name = body["name"]
        self.asked.append((name, body["params"]))
        command = {"id": str(uuid.uuid4()), "name": name, "command_name": name.partition(".")[2],
                   "command_status": SUCCEEDED if name in _SYNCHRONOUS else RUNNING,
                   "command_result": _SYNCHRONOUS.get(name), "command_error": None}
        self._commands.append(command)
        return command


@contextlib.contextmanager
def agent() -> Iterator[Agent]:
    """Run an agent with its API server."""
    running = Agent()

    class Handler(http.server.BaseHTTPRequestHandler):
        def _serve(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length) or b"{}")
            drop = running.drops.pop(0) if running.drops else None
            if drop == "unread":
                return
            content = json.dumps(running.answer(self.command, body)).encode()
            if drop == "done":
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = _serve

        def log_message(self, *args: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    running.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield running
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
