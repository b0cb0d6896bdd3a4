"""The speed of checks of extra specs: ``tox -e perf -- extra_specs`` prints the table.

With ``IRONIC_RULES_NOVA`` set to a virtual environment that has Nova 34.0.0, its validation is measured in the same
run. Times are processor times; no test fails for being slow: the figures are for people.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

from rich.console import Console
from rich.table import Table

from ironic_rules.extra_specs import installed

SCRIPT = Path(__file__).with_name("measure.py")


def measured(python: str, side: str) -> dict[str, float]:
    """Return microseconds by case, measured by a process of its own."""
    done = subprocess.run([python, str(SCRIPT), side], check=True, capture_output=True, text=True, timeout=600)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_checks_of_extra_specs():
    own = measured(sys.executable, "own")
    folder = os.environ.get("IRONIC_RULES_NOVA")
    nova = measured(str(Path(folder) / "bin" / "python"), "nova") if folder else {}
    table = Table("microseconds", "ironic-rules", "Nova 34", "ratio", title="Checks of extra specs")
    for name, figure in own.items():
        theirs = nova.get(name)
        table.add_row(name, f"{figure:,.2f}", f"{theirs:,.2f}" if theirs else "",
                      f"{theirs / figure:,.1f}" if theirs else "")
    Console(width=120).print(table)
    assert min(own.values()) > 0


def test_memory_of_the_registry():
    tracemalloc.start()
    registry = installed.built_in()
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    print(f"registry of {len(registry)} extra specs: {size / 2**20:.2f} MiB, without the modules of the definitions")
    assert len(registry) > 100
