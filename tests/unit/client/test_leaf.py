"""The client shares nothing with the service but the distribution."""

from __future__ import annotations

import pytest

from tests.unit.test_layers import MODULES, PACKAGE, imported, module_name, part_of

CLIENT = [path for path in MODULES if part_of(module_name(path)) == "client"]


@pytest.mark.parametrize("path", CLIENT, ids=module_name)
def test_the_client_imports_nothing_of_the_service(path):
    ours = [name for _, name in imported(path) if name.startswith("ironic_rules.")]

    assert [name for name in ours if not name.startswith("ironic_rules.client")] == []


def test_the_service_imports_nothing_of_the_client():
    found = [f"{path.relative_to(PACKAGE)}: {name}" for path in MODULES if path not in CLIENT
             for _, name in imported(path) if name.startswith("ironic_rules.client")]

    assert found == []
