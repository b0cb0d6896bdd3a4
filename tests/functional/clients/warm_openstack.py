"""The ``openstack`` command without the second that it takes to import its modules, for tests with many commands.

``executable()`` starts one process for each process of tests. That has imported what a command imports, and forks for
each command: arguments, environment, folder and open files are those of the command that was typed. What is executed is
``openstackclient.shell.main``, as by the installed executable (``INSTALLED``), with which some tests remain. Only the
pauses between two requests are shorter, which are 1 to 10 s.
"""

from __future__ import annotations

import array
import atexit
import contextlib
import functools
import http.server
import importlib
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from pathlib import Path
from typing import Any

INSTALLED = Path(sys.executable).with_name("openstack")
#: Maximum number of seconds between two requests of a command that waits.
PAUSE_S = 0.1
#: Program that is executed for each command: it passes everything on, and waits for the exit status.
_ENTRY = """
import array, json, os, socket, sys
connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
connection.connect(sys.argv[1])
files = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))]
told = json.dumps([sys.argv[2:], dict(os.environ), os.getcwd()]).encode()
connection.sendmsg([len(told).to_bytes(4, "big")], files)
connection.sendall(told)
status = connection.recv(1)
sys.exit(status[0] if status else 70)
"""


@functools.cache
def executable() -> Path:
    """Return a file that is executed as ``openstack`` is."""
    folder = Path(tempfile.mkdtemp(prefix="warm-openstack-"))
    address = folder / "socket"
    server = subprocess.Popen([sys.executable, __file__, str(address)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert server.stdin is not None
    assert server.stdout is not None
    assert server.stdout.readline() == b"ready\n"
    atexit.register(_end, server, folder)
    (folder / "entry.py").write_text(_ENTRY)
    command = folder / "openstack"
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -I -S {folder}/entry.py {address} "$@"\n')
    command.chmod(0o755)
    return command


def _end(server: subprocess.Popen[bytes], folder: Path) -> None:
    assert server.stdin is not None
    server.stdin.close()
    server.wait(60)
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()


def _run(arguments: list[str]) -> int:
    """Run one command in this process, which ends after it."""
    from openstackclient import shell

    sys.argv = ["openstack", *arguments]
    try:
        status: Any = shell.main(arguments)
    except SystemExit as exc:
        status = exc.code
    except BaseException:  # noqa: BLE001 - as an interpreter ends: with the traceback of anything
        traceback.print_exc()
        status = 1
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    with contextlib.suppress(OSError):
        sys.stderr.flush()
    return status if isinstance(status, int) else int(status is not None)


def _modules() -> list[str]:
    """Return the names of what a command imports, from a child that runs one."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        nowhere = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(nowhere, number)
        refusing = http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)  # 501 for any request
        threading.Thread(target=refusing.serve_forever, daemon=True).start()
        _run(["--os-auth-type", "none", "--os-endpoint", f"http://127.0.0.1:{refusing.server_port}",
              "baremetal", "node", "list"])
        with os.fdopen(writer, "w") as pipe:
            pipe.write("\n".join(sys.modules))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        names = pipe.read().split()
    os.wait()
    return names


def _received(connection: socket.socket) -> tuple[list[int], list[str], dict[str, str], str]:
    files = array.array("i")
    head, ancillary, _, _ = connection.recvmsg(4, socket.CMSG_SPACE(3 * files.itemsize))
    files.frombytes(ancillary[0][2])
    told = b""
    while len(told) < int.from_bytes(head, "big"):
        told += connection.recv(1 << 16)
    arguments, environment, folder = json.loads(told)
    return list(files), arguments, environment, folder


def _answer(connection: socket.socket) -> None:
    """Run the command that a connection names, in a child."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    files, arguments, environment, folder = _received(connection)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    # The standard files were opened again: their encoding and buffers are those of a new process.
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    status = _run(arguments)
    with contextlib.suppress(OSError):  # the one who waited may have been killed
        connection.sendall(bytes([status & 0xFF]))
    os._exit(0)


def _ask_often() -> None:
    from ironicclient.common import http, utils

    from ironic_rules.client import output

    poll = utils.poll
    utils.poll = lambda timeout, pause, *more: poll(timeout, min(pause, PAUSE_S), *more)
    http.DEFAULT_RETRY_INTERVAL = PAUSE_S
    output.PAUSE_S = PAUSE_S


def _serve(address: str) -> None:
    for name in _modules():
        with contextlib.suppress(Exception):  # some names are no modules of their own
            importlib.import_module(name)
    _ask_often()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(address)
    listener.listen(64)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    parent = os.getpid()
    print("ready", flush=True)
    if os.fork() == 0:  # waits for the end of the tests, and ends the other
        sys.stdin.buffer.read()
        os.kill(parent, signal.SIGTERM)
        os._exit(0)
    while True:
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            _answer(connection)
        connection.close()


if __name__ == "__main__":
    _serve(sys.argv[1])
