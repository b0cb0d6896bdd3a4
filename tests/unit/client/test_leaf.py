"""The client shares only the distribution with the service."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.modules import MODULES, PACKAGE, Import, imports_in, imports_of, place

CLIENT = [path for path in MODULES if path.is_relative_to(PACKAGE / "client")]
SERVICE = [path for path in MODULES if path not in CLIENT]


def shared(path: Path, imports: Iterable[Import]) -> Iterator[str]:
    """Yield what a module of the client imports from the service, or one of the service from the client."""
    client = path.is_relative_to(PACKAGE / "client")
    for line, name in imports:
        if name.startswith("ironic_rules.") and name.startswith("ironic_rules.client") != client:
            yield f"{place(path, line)}: imports {name}"


def test_the_client_imports_nothing_of_the_service():
    assert CLIENT
    assert [found for path in CLIENT for found in shared(path, imports_of(path))] == []


def test_the_service_imports_nothing_of_the_client():
    assert [found for path in SERVICE for found in shared(path, imports_of(path))] == []


def test_what_is_shared_is_found():
    ours, theirs = PACKAGE / "client" / "example.py", PACKAGE / "api" / "example.py"
    source = "from ironic_rules.client import rules\nfrom ironic_rules.api import app\nimport ironic_rules\n"

    assert list(shared(ours, imports_in(ours, source))) == [
        "ironic_rules/client/example.py:2: imports ironic_rules.api.app"]
    assert list(shared(theirs, imports_in(theirs, source))) == [
        "ironic_rules/api/example.py:1: imports ironic_rules.client.rules"]
