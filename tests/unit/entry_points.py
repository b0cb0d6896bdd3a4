"""The entry points of ``setup.cfg``, tested in a separate process.

``python -m tests.unit.entry_points`` tries them and prints a :class:`Report` as JSON.
"""

from __future__ import annotations

import configparser
import contextlib
import dataclasses
import functools
import importlib
import io
import json
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]

SETUP = configparser.ConfigParser()
SETUP.read(ROOT / "setup.cfg", encoding="utf-8")

ENTRY_POINTS = [
    EntryPoint(*(part.strip() for part in line.split("=", 1)), group=group)
    for group, lines in SETUP["entry_points"].items() for line in lines.strip().splitlines()]
SCRIPTS = {point.name: point for point in ENTRY_POINTS if point.group == "console_scripts"}


@dataclasses.dataclass
class Report:
    """The results for the entry points in a process that has imported nothing else."""

    #: module: the error of its import with arguments of the process that it does not support
    failures: dict[str, str]
    #: command: exit status and output of ``--help``
    helps: dict[str, tuple[Any, str]]
    #: everything that was written to the standard error
    errors: str = ""


def _report() -> Report:
    sys.argv = ["test", "--no-such-option"]
    failures = {}
    for name in sorted({point.module for point in ENTRY_POINTS}):
        try:
            importlib.import_module(name)
        except (Exception, SystemExit) as exc:  # noqa: BLE001
            failures[name] = repr(exc)
    return Report(failures, {name: _help(point) for name, point in SCRIPTS.items()})


#: Commands whose own help does not name the options of their parts.
_PARTS = {"ironic-rules-dbsync": ("upgrade", "migrate", "revision")}


def _help(command: EntryPoint) -> tuple[Any, str]:
    status, text = _help_of(command)
    parts = [_help_of(command, part) for part in _PARTS.get(command.name, ())]
    return next((each for each, _ in parts if each), status), text + "".join(each for _, each in parts)


def _help_of(command: EntryPoint, *part: str) -> tuple[Any, str]:
    sys.argv = [command.name, *part, "--help"]
    with contextlib.redirect_stdout(io.StringIO()) as output:
        try:
            status = command.load()()
        except SystemExit as exc:
            status = exc.code
    return status, output.getvalue()


@functools.cache
def report() -> Report:
    """Try the entry points once for all tests."""
    done = subprocess.run([sys.executable, "-m", "tests.unit.entry_points"], cwd=ROOT, capture_output=True, text=True,
                          timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return Report(**{**json.loads(done.stdout), "errors": done.stderr})


if __name__ == "__main__":
    print(json.dumps(dataclasses.asdict(_report())))
