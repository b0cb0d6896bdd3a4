"""Commands whose standard output cannot be written: no reader, or no space."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

#: Command -> arguments. They print little, which fails when the process flushes, or at once with PYTHONUNBUFFERED.
COMMANDS = {"convert": ["rules.json"], "units": ["--root", "root", "--prefix", "/opt/x"]}


def run(folder: Path, command: str, *arguments: str, unbuffered: str = "") -> subprocess.CompletedProcess[str]:
    with open("/dev/full", "w", encoding="utf-8") as full:
        return subprocess.run(
            [sys.executable, "-m", f"ironic_rules.cmd.{command}", *arguments], cwd=folder, text=True,
            env={"PYTHONPATH": ":".join(sys.path), "PYTHONUNBUFFERED": unbuffered}, stdout=full,
            stderr=subprocess.PIPE, timeout=60, check=False)


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("command", COMMANDS)
def test_an_output_that_cannot_be_written_is_no_result(tmp_path: Path, command: str, unbuffered: str) -> None:
    (tmp_path / "rules.json").write_text('{"conditions": [], "actions": [{"action": "fail", "message": "no"}]}')
    done = run(tmp_path, command, *COMMANDS[command], unbuffered=unbuffered)

    assert done.returncode == 2, done.stderr
    assert done.stderr.splitlines()[-1].endswith("standard output cannot be written: No space left on device.")
    assert "Traceback" not in done.stderr
    if command == "units":
        assert len([path for path in tmp_path.glob("root/**/*") if path.is_file()]) == 8


@pytest.mark.parametrize("command", ["convert", "extra_specs", "simulate", "status"])
def test_neither_is_a_help_that_no_one_reads(tmp_path: Path, command: str) -> None:
    done = run(tmp_path, command, "--help")

    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1 and "standard output cannot be written" in done.stderr
