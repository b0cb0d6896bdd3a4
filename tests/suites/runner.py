"""Run modules of ``unittest`` tests and print one JSON line for each test: ``{"test", "outcome", "reason"}``.

A script of its own, because the suites need other settings of the process than pytest has: ``runner.py MODULE...``.
"""

from __future__ import annotations

import json
import sys
import traceback
import unittest
from typing import Any


class Result(unittest.TestResult):
    """Prints what each test came to; outcomes are "passed", "failed" and "skipped"."""

    def _tell(self, test: Any, outcome: str, reason: str = "") -> None:
        # What fails or is skipped as a whole is "setUpClass (module.Class)".
        name = test.id().partition(" (")[2].rstrip(")") or test.id()
        print(json.dumps({"test": name, "outcome": outcome, "reason": reason}), flush=True)

    def addSuccess(self, test: Any) -> None:
        self._tell(test, "passed")

    def addSkip(self, test: Any, reason: str | None = None, details: Any = None) -> None:
        self._tell(test, "skipped", reason if reason is not None else _text(details))

    def addFailure(self, test: Any, err: Any = None, details: Any = None) -> None:
        self._tell(test, "failed", _text(details) if err is None else "".join(traceback.format_exception(*err)))

    addError = addFailure

    def addExpectedFailure(self, test: Any, err: Any = None, details: Any = None) -> None:
        self._tell(test, "passed")


def _text(details: Any) -> str:
    """Return what testtools says of a test: named texts."""
    return "\n".join(content.as_text() for name, content in (details or {}).items()
                     if name in ("traceback", "reason") or name.startswith("traceback"))


def main() -> None:
    suite = unittest.TestSuite()
    for module in sys.argv[1:]:
        suite.addTests(unittest.defaultTestLoader.loadTestsFromName(module))
    suite.run(Result())


if __name__ == "__main__":
    main()
