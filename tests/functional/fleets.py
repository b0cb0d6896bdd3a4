"""``ironic-rules-simulate`` as the tests run it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.functional.processes import PYTHON


class Simulation:
    """A running fleet of simulated ramdisks."""

    def __init__(self, endpoint: str, nodes: int, folder: Path, *arguments: str) -> None:
        self._popen = subprocess.Popen(
            [*PYTHON, "-W", "ignore", "-m", "ironic_rules.cmd.simulate", "--endpoint", endpoint,
             "--nodes", str(nodes), "--concurrency", "8", "--timeout", "120", "--json", *arguments],
            cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def report(self) -> dict[str, Any]:
        """Wait until it has finished and return the report; ``status`` is the expected exit status."""
        try:
            output, errors = self._popen.communicate(timeout=240)
        finally:
            if self._popen.returncode is None:
                self._popen.kill()
                self._popen.communicate()
        assert output, errors
        return {**json.loads(output), "status": self._popen.returncode, "errors": errors}
