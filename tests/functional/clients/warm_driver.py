"""Runs a program of this folder again and again, without the second or two that its imports take.

:func:`run` starts a process for each program and process of tests, with the interpreter that it is given. The process
imports the program and forks for each run, whose ``main`` gets the arguments. Each line of its input is
``{"arguments": [...], "input": text}``, each line of its output ``[status, output, errors]``. Usage::

    python warm_driver.py PROGRAM
"""

from __future__ import annotations

import atexit
import functools
import importlib.util
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path
from typing import IO, Any

#: Maximum number of seconds of one run.
PATIENCE_S = 120


def run(python: Path | str, program: Path, *arguments: str, text: str) -> str:
    """Run a program with ``text`` as its input; return its output, or fail with its errors."""
    server = _started(str(python), program)
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(json.dumps({"arguments": arguments, "input": text}) + "\n")
    server.stdin.flush()
    status, output, errors = json.loads(server.stdout.readline())
    assert status == 0, errors
    return str(output)


@functools.cache
def _started(python: str, program: Path) -> subprocess.Popen[str]:
    server = subprocess.Popen([python, __file__, program], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    atexit.register(_end, server)
    return server


def _end(server: subprocess.Popen[str]) -> None:
    server.communicate(timeout=PATIENCE_S)  # it ends with its input


def _be(module: Any, request: dict[str, Any], output: IO[str], errors: IO[str]) -> None:
    """Be the process that runs the program once."""
    signal.alarm(PATIENCE_S)
    os.dup2(output.fileno(), 1)
    os.dup2(errors.fileno(), 2)
    sys.stdin = io.StringIO(request["input"])
    sys.stdout, sys.stderr = output, errors
    status = 0
    try:
        module.main(*request["arguments"])
    except BaseException:  # noqa: BLE001 - as an interpreter ends: with the traceback of anything
        traceback.print_exc()
        status = 1
    output.flush()
    errors.flush()
    os._exit(status)


def _serve(program: str) -> None:
    spec = importlib.util.spec_from_file_location("program", program)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for line in sys.stdin:
        with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
            child = os.fork()
            if child == 0:
                _be(module, json.loads(line), output, errors)
            _, status = os.waitpid(child, 0)
            output.seek(0)
            errors.seek(0)
            print(json.dumps([os.waitstatus_to_exitcode(status), output.read(), errors.read()]), flush=True)


if __name__ == "__main__":
    _serve(sys.argv[1])
