"""Commands whose standard output cannot be written: no reader, or no space."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ironic_rules.cmd import output

#: Command -> arguments. They print little, which fails when the process flushes, or at once with PYTHONUNBUFFERED.
COMMANDS = {"convert": ["rules.json"], "systemd": ["--root", "root", "--prefix", "/opt/x"]}


def run(folder: Path, command: str, *arguments: str, unbuffered: str = "") -> subprocess.CompletedProcess[str]:
    with open("/dev/full", "w", encoding="utf-8") as full:
        return subprocess.run(
            [sys.executable, "-m", f"ironic_rules.cmd.{command}", *arguments], cwd=folder, text=True,
            env={"PYTHONPATH": ":".join(sys.path), "PYTHONUNBUFFERED": unbuffered}, stdout=full,
            stderr=subprocess.PIPE, timeout=60, check=False)


@pytest.mark.parametrize(("command", "unbuffered"), [("convert", ""), ("systemd", "1")])
def test_an_output_that_cannot_be_written_is_no_result(tmp_path: Path, command: str, unbuffered: str) -> None:
    (tmp_path / "rules.json").write_text('{"conditions": [], "actions": [{"action": "fail", "message": "no"}]}')
    done = run(tmp_path, command, *COMMANDS[command], unbuffered=unbuffered)

    assert done.returncode == 2, done.stderr
    assert done.stderr.splitlines()[-1].endswith("standard output cannot be written: No space left on device.")
    assert "Traceback" not in done.stderr
    if command == "systemd":
        assert len([path for path in tmp_path.glob("root/**/*") if path.is_file()]) == 10


def test_an_output_that_was_closed_before_is_not_missed(tmp_path: Path) -> None:
    done = subprocess.run(["sh", "-c", f"{sys.executable} -m ironic_rules.cmd.systemd --root root --prefix /opt/x >&-"],
                          cwd=tmp_path, env={"PYTHONPATH": ":".join(sys.path)}, stderr=subprocess.PIPE, text=True,
                          timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_file_that_cannot_be_written_is_not_taken_for_the_output() -> None:
    def work() -> int:
        with open("/dev/full", "wb", buffering=0) as full:
            full.write(b"x")
        return 0

    with pytest.raises(OSError, match="No space left"):
        output.written("command", work)


@pytest.mark.parametrize("command", ["convert", "extra_specs", "simulate", "status"])
def test_neither_is_a_help_that_no_one_reads(tmp_path: Path, command: str) -> None:
    done = run(tmp_path, command, "--help")

    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1 and "standard output cannot be written" in done.stderr
