"""The installations of the service in which the same tests run: in one process, or as separate ones with servers.

``IRONIC_RULES_TEST_INSTALLATION`` selects one of ``NAMES``: ``mysql`` and ``postgresql`` are an API and a conductor
process with RabbitMQ and this database. Without it everything is in this process, with SQLite.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from oslo_config import cfg

from ironic_rules.exceptions import ConfigurationError
from ironic_rules.hardware.base import HardwareType, Interface
from tests.functional import separate, whole
from tests.functional.databases import engine
from tests.functional.processes import standalone
from tests.functional.whole import Whole

VARIABLE = "IRONIC_RULES_TEST_INSTALLATION"
ONE_PROCESS = "one process"
SEPARATE = ("mysql", "postgresql")
NAMES = (ONE_PROCESS, *SEPARATE)


def selected() -> str:
    """Return the name of the installation in which tests run."""
    name = os.environ.get(VARIABLE) or ONE_PROCESS
    assert name in NAMES, f"{VARIABLE} is {name!r}; it may be one of {', '.join(NAMES)}"
    return name


def is_one_process() -> bool:
    return selected() == ONE_PROCESS


def only_in_one_process(reason: str) -> pytest.MarkDecorator:
    """Return the mark of a test that other installations skip."""
    return pytest.mark.skipif(not is_one_process(), reason=f"needs the service in one process: {reason}")


@contextlib.contextmanager
def running(folder: Path, text: str = "", types: Mapping[str, type[HardwareType]] | None = None,
            inspect_interfaces: Mapping[str, type[Interface]] | None = None,
            before: Callable[[sa.Engine], Any] | None = None) -> Iterator[Whole]:
    """Run the service in the selected installation; ``text`` is added to its configuration.

    :param types: hardware types besides the fake and the faulty one. Classes must be importable.
    :param before: called with the empty database
    """
    if is_one_process():
        if before is not None:
            with engine(f"sqlite:///{folder}/whole.sqlite") as empty:
                before(empty)
        with whole.running(folder, text, types, inspect_interfaces) as service:
            yield service
    else:
        with separate.running(selected(), folder, text, types, inspect_interfaces, before) as service:
            yield service


def refusal(folder: Path, text: str) -> str:
    """Try to start a service that does not start with the configuration ``text``; return what it says."""
    if not is_one_process():
        return separate.refusal(selected(), folder, text)
    # These are what commands report in one line.
    with pytest.raises((ConfigurationError, cfg.Error)) as caught, whole.running(folder, text):
        pass
    return str(caught.value)


@contextlib.contextmanager
def served(folder: Path, config: str = "") -> Iterator[str]:
    """Run the service as commands, in one process or separate ones; yield the URL of the API."""
    if is_one_process():
        with standalone(folder, config=config) as (_, url):
            yield url
    else:
        with separate.running(selected(), folder, config) as service:
            yield service.url
