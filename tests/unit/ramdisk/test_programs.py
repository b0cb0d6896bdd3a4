"""Programs that a build runs, and interruptions at their start."""

from __future__ import annotations

import os
import signal
import subprocess
from typing import Any

import pytest

from ironic_rules.ramdisk import programs


def test_an_interruption_at_the_start_of_a_program_ends_the_program(monkeypatch):
    started = []

    class Interrupted(subprocess.Popen[Any]):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            started.append(self)
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    previous = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            programs.run(["sleep", "300"], {})
        assert signal.getsignal(signal.SIGTERM) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGTERM, previous)
    assert [program.returncode for program in started] == [-signal.SIGTERM]


def test_a_program_that_cannot_start_leaves_the_handlers_of_signals(tmp_path):
    previous = signal.getsignal(signal.SIGTERM)
    with pytest.raises(FileNotFoundError):
        programs.run([str(tmp_path / "none")], {})
    assert signal.getsignal(signal.SIGTERM) is previous
