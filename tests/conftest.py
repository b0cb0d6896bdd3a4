"""For all tests: the threading backend, selected before anything imports oslo.messaging, and the summary of a run."""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import certifi
import pytest
from hypothesis import settings

import ironic_rules.cmd  # noqa: F401  (selects the backend)

# No example fails because the machine is slow. Those of the suite are the same each time, those of tox -e fuzz others.
settings.register_profile(
    "untimed", settings.default, deadline=None, derandomize="IRONIC_RULES_TEST_EXAMPLES" not in os.environ)
settings.load_profile("untimed")


#: Tests that share things which take seconds to make: a browser, services, many rows. One process begins with these;
#: tests that it has not begun when others have nothing left to do are theirs.
FIRST = [Path(__file__).parent / "functional" / place for place in (
    "ui", "db/test_many_rows.py", "test_rule_plugins.py", "test_simulate.py")]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Exclude modules and tests from garbage collection: they live as long as the process."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run ``FIRST`` first. Leave out tests with the marker ``long``, and say how many."""
    items.sort(key=lambda item: not any(item.path.is_relative_to(place) for place in FIRST))
    if os.environ.get("IRONIC_RULES_TEST_LONG") == "1":
        return
    left_out = [item for item in items if item.get_closest_marker("long")]
    if left_out:
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=left_out)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Let processes take over tests from each other: many of them wait for seconds, and the last would all be one's.

    The whole suite, on the same two cores: 689 s instead of 840, three minutes of which three processes were idle.
    """
    if config.getoption("dist") != "load":
        return None
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log)


@pytest.fixture(scope="session", autouse=True)
def bytecode_of_processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let processes that tests start share their bytecode, also where Python writes none into the tree.

    Otherwise each one compiles the service, which is a third of its start.
    """
    with pytest.MonkeyPatch.context() as patch:
        if sys.dont_write_bytecode:
            folder = tmp_path_factory.getbasetemp()
            # That of a worker is in the one of the run.
            shared = folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder
            link_bytecode(shared / "bytecode")
            patch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
            patch.setenv("PYTHONPYCACHEPREFIX", str(shared / "bytecode"))
        yield


def link_bytecode(prefix: Path) -> None:
    """Link the bytecode that installed modules of this process have to where processes look for it.

    Otherwise they compile these modules, too: 2 s for each process of tests.
    """
    for module in list(sys.modules.values()):
        cached = getattr(getattr(module, "__spec__", None), "cached", None)
        if cached is not None and (file := Path(cached)).exists():
            link = prefix.joinpath(*file.parts[1:-2], file.name)
            link.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileExistsError):  # another process of tests
                link.symlink_to(file)


@pytest.fixture(scope="session", autouse=True)
def one_authority(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Trust one authority instead of all, in processes that tests start, too.

    Each client of HTTP, and each connection to MariaDB, reads the authorities: 20 ms instead of 0.3, which is more than
    most of the tests take.
    """
    certificate, end, _ = Path(certifi.where()).read_text(encoding="utf-8").partition("-----END CERTIFICATE-----\n")
    file = tmp_path_factory.mktemp("authorities") / "one.pem"
    file.write_text(certificate + end, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(file))
        patch.setattr(certifi, "where", lambda: str(file))
        yield


@pytest.fixture(autouse=True)
def log_handlers() -> Iterator[None]:
    """Remove the handlers that a command has installed for its log: their streams are closed after the test."""
    root = logging.getLogger()
    before = list(root.handlers)
    yield
    for handler in set(root.handlers).difference(before):
        root.removeHandler(handler)


# The outermost one, so that the line follows the output of all others.
@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Generator[None, object, object]:
    """Print how many test functions ran in how many cases: one function may have a thousand of them."""
    result = yield
    reports = [report for found in terminalreporter.stats.values() for report in found]
    cases = {report.nodeid for report in reports if isinstance(report, pytest.TestReport)}
    functions = {case.partition("[")[0] for case in cases}
    if cases:
        terminalreporter.write_line(f"{len(functions):,} test functions in {len(cases):,} cases")
    return result
