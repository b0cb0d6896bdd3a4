"""``ironic-rules-simulate`` as the tests run it."""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path
from typing import Any

from tests.functional import forking


class Simulation:
    """A running fleet of simulated ramdisks."""

    def __init__(self, endpoint: str, nodes: int, folder: Path, *arguments: str) -> None:
        self._output, self._errors = (folder / f"simulation-{secrets.token_hex(4)}.{name}" for name in ("json", "err"))
        self._command = forking.Forked(
            "ironic_rules.cmd.simulate", ["--endpoint", endpoint, "--nodes", str(nodes), "--concurrency", "8",
                                          "--timeout", "120", "--json", *arguments],
            folder, self._output, self._errors, os.environ)

    def report(self) -> dict[str, Any]:
        """Wait until it has finished and return the report; ``status`` is the expected exit status."""
        try:
            status = self._command.wait(240)
        finally:
            self._command.kill()
        output, errors = self._output.read_text(), self._errors.read_text()
        assert output, errors
        return {**json.loads(output), "status": status, "errors": errors}
