"""No test measures time: on a busy machine everything takes longer."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.walking import walking

TESTS = Path(__file__).resolve().parents[1]
#: Not ``time.time``, from which the times of files are calculated.
CLOCKS = frozenset({"monotonic", "perf_counter", "process_time", "thread_time"})
#: Places where time is measured: to print it, or by a comparison that a busy machine does not change.
MEASURING = {
    "functional/api/test_uniform_answer.py": "compares processor time with processor time, several times",
    "functional/faults/chaos.py": "prints it",
    "functional/faults/test_operations.py": "prints it",
    "functional/hardware/test_redfish_speed.py": "prints it",
    "functional/processes.py": "has the limit that tells what hangs",
    "functional/pxe_filter/test_messages.py": "permits more when it takes longer",
    "functional/pxe_filter/wire.py": "prints it",
    "functional/test_slow_clients.py": "prints it",
    "unit/rpc/test_memory.py": "compares processor time, which other programs do not use up",
}


def measured(source: str) -> Iterator[int]:
    """Yield the lines in which the time since an earlier one is calculated, e.g. ``time.monotonic() - began``."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and isinstance(node.left, ast.Call):
            read = node.left.func
            if isinstance(read, ast.Attribute) and read.attr in CLOCKS and ast.unparse(read.value) == "time":
                yield node.lineno


@walking("source, lines", [
    ("began = time.monotonic()\ntook = time.monotonic() - began", [2]), ("assert time.perf_counter() - began < 3", [1]),
    ("until = time.monotonic() + 60\nwhile time.monotonic() < until: pass", []), ("clock.now() - began", [])])
def test_what_measures(source, lines):
    assert list(measured(source)) == lines


def test_tests_measure_no_time():
    """``processes.in_time`` fails if something hangs, ``calls.counted`` counts work; events tell what comes first."""
    found = {str(path.relative_to(TESTS)): lines for path in sorted(TESTS.rglob("*.py"))
             if path.relative_to(TESTS).parts[0] != "perf" and (lines := list(measured(path.read_text("utf-8"))))}

    assert {name: lines for name, lines in found.items() if name not in MEASURING} == {}
    assert MEASURING.keys() - found.keys() == set()
