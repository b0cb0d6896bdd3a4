#!/opt/ironic-rules/bin/python -I
"""The entry point of the image: ``ROLE [ARGUMENT...]``, a health check, or any other command of the image.

A role is replaced by its command, so that the command is process 1 and gets the signals of the container engine.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import ssl
import sys
from pathlib import Path
from typing import NamedTuple, NoReturn


class Role(NamedTuple):
    """A command, and the group of options with the port of its health check and its metrics."""

    command: str
    group: str = ""


ROLES = {
    "api": Role("ironic-rules-api", "API"),
    "conductor": Role("ironic-rules-conductor", "CONDUCTOR"),
    "pxe-filter": Role("ironic-pxe-filter", "PXE_FILTER"),
    "all-in-one": Role("ironic-rules", "API"),
    "dbsync": Role("ironic-rules-dbsync"),
}
#: Seconds for a reply: an API that does not answer itself says so after 20.
_REPLY_S = 25.0


def role_of_container() -> str | None:
    """Return the role that process 1 runs; None: another command."""
    arguments = Path("/proc/1/cmdline").read_bytes().split(b"\0")
    names = {os.path.basename(argument.decode(errors="replace")) for argument in arguments[:3]}
    return next((name for name, role in ROLES.items() if role.command in names), None)


def check(name: str | None) -> str | None:
    """Return why the process of a role does not work, or None.

    :param name: the role; None: that of the container
    """
    role = ROLES.get(name or role_of_container() or "")
    if role is None or not role.group:
        return f"no health check for {name or 'this command'}: {', '.join(n for n, r in ROLES.items() if r.group)}"
    port = os.environ.get(f"OS_{role.group}__METRICS_PORT", "0")
    if not port.isdecimal() or not 0 < int(port) < 65536:
        return f"OS_{role.group}__METRICS_PORT is not set to a port"
    host = os.environ.get(f"OS_{role.group}__METRICS_HOST", "127.0.0.1")
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    connection: http.client.HTTPConnection
    if os.environ.get(f"OS_{role.group}__METRICS_TLS", "").lower() in ("1", "true", "yes", "on"):
        # The certificate has the name that clients use, not the address of this container.
        context = ssl._create_unverified_context()
        connection = http.client.HTTPSConnection(host, int(port), timeout=_REPLY_S, context=context)
    else:
        connection = http.client.HTTPConnection(host, int(port), timeout=_REPLY_S)
    with contextlib.closing(connection):
        try:
            connection.request("GET", "/healthcheck/live")
            reply = connection.getresponse()
            text = reply.read(200).decode(errors="replace")
        except (OSError, http.client.HTTPException) as exc:
            return f"port {port} does not reply: {exc}"
    return None if reply.status == http.client.OK else f"{reply.status} {text}"


def main(arguments: list[str]) -> int:
    """Return the status of a health check; a command replaces this process."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(f"usage: {'|'.join(ROLES)} [ARGUMENT...]\n       healthcheck [ROLE]\n       COMMAND [ARGUMENT...]")
        return 0 if arguments else 2
    if arguments[0] == "healthcheck":
        if problem := check(arguments[1] if arguments[1:] else None):
            print(problem, file=sys.stderr)
        return 1 if problem else 0
    role = ROLES.get(arguments[0])
    if arguments[0] == "all-in-one":
        # Otherwise this command writes a log file. The others write to standard output by default.
        os.environ.setdefault("OS_DEFAULT__USE_STDERR", "true")
    replace(role.command if role else arguments[0], arguments[1:])


def replace(command: str, arguments: list[str]) -> NoReturn:
    """Replace this process by a command of ``PATH``.

    :raises SystemExit: there is no such command
    """
    try:
        os.execvp(command, [command, *arguments])
    except OSError as exc:
        sys.exit(f"{command}: {exc.strerror}; roles are {', '.join(ROLES)}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
