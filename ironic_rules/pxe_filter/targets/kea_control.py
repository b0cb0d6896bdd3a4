"""Commands to a local Kea server over its control socket (a stream socket in the file system, JSON)."""

from __future__ import annotations

import json
import socket
import time
from typing import Any

from ironic_rules.models import json_text
from ironic_rules.text import printable

#: Seconds that a command may take.
_TIMEOUT_S = 2.0
_MAX_ANSWER = 1024 * 1024


class KeaError(OSError):
    """The server is not running, does not answer, or refuses a command."""


def command(path: str, name: str, arguments: dict[str, Any] | None = None) -> dict[str, Any]:
    """Send a command; return the arguments of the answer.

    :raises KeaError: it was not executed
    """
    request = {"command": name} | ({"arguments": arguments} if arguments else {})
    deadline = time.monotonic() + _TIMEOUT_S
    answer = b""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as connection:
            connection.settimeout(_TIMEOUT_S)
            connection.connect(path)
            connection.sendall(json.dumps(request).encode())
            connection.shutdown(socket.SHUT_WR)
            while data := connection.recv(65536):
                answer += data
                if len(answer) > _MAX_ANSWER or time.monotonic() > deadline:
                    raise KeaError(f"{path}: the answer to {name} is too long")
    except KeaError:
        raise
    except OSError as exc:
        raise KeaError(f"{path}: {exc}") from exc
    try:
        said = json_text.parse(answer.decode())
        result, text = said["result"], said.get("text", "")
        given = said.get("arguments") or {}
    except (ValueError, KeyError, TypeError, AttributeError) as exc:
        raise KeaError(f"{path}: the answer to {name} is not one of Kea's") from exc
    if result != 0 or not isinstance(given, dict):
        raise KeaError(f"{path}: {name} failed: {printable(str(text), 200)}")
    return given
