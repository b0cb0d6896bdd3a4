"""What every test gets: the threading backend, chosen before anything imports oslo.messaging. What every run says."""

from __future__ import annotations

import gc
from collections.abc import Generator

import pytest

import ironic_rules.cmd  # noqa: F401  (selects the backend)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep modules and tests out of the garbage collector's sight: they live as long as the process."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


# The outermost one, so that the line comes after all that others have to say.
@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Generator[None, object, object]:
    """Say how many test functions ran in how many cases: one function may be a thousand of them."""
    result = yield
    reports = [report for found in terminalreporter.stats.values() for report in found]
    cases = {report.nodeid for report in reports if isinstance(report, pytest.TestReport)}
    functions = {case.partition("[")[0] for case in cases}
    if cases:
        terminalreporter.write_line(f"{len(functions):,} test functions in {len(cases):,} cases")
    return result
