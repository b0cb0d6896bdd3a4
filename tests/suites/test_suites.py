"""The suites of tempest's plug-in and openstacksdk: what fails or is skipped is listed with its reason.

The list is a page of the documentation, ``contributor/client-suites``. A test that fails and is not listed fails here,
and so does a listed one that passes. A name that ends with ``*`` stands for tests of which at least one fails.
"""

from __future__ import annotations

import csv
import fnmatch
import importlib.util
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.suites import identity, service, settings

RUNNER = Path(__file__).with_name("runner.py")
LIST = Path(__file__).parents[2] / "doc/source/contributor/client-suites.csv"
#: The folder of the source distributions, which have tests that wheels do not have.
SOURCES = "IRONIC_RULES_TEST_CLIENTS"

Settings = Callable[[Path, identity.Server], dict[str, str]]


@pytest.fixture
def keystone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[identity.Server]:
    """A service for each suite: tests of one suite leave what those of another one do not expect in lists."""
    with service.running(tmp_path_factory.mktemp("service")) as found:
        yield found


def unpacked(name: str, into: Path) -> Path:
    """Unpack a source distribution; return its folder."""
    archive, = Path(os.environ[SOURCES]).glob(f"{name}-*.tar.gz")
    with tarfile.open(archive) as found:
        found.extraction_filter = getattr(tarfile, "data_filter", None)   # Python 3.11.2 has no filters
        found.extractall(into)
    return into / archive.name.removesuffix(".tar.gz")


def installed(name: str, into: Path) -> Path:
    """Return the folder of the installed packages: tempest's plug-in has its tests in its wheel."""
    return Path(str(importlib.util.find_spec("ironic_tempest_plugin").origin)).parents[1]  # type: ignore[union-attr]


def modules(tree: Path, package: str) -> list[str]:
    """Return the names of the modules of tests below a package of ``tree``."""
    return sorted(".".join(file.relative_to(tree).with_suffix("").parts)
                  for file in (tree / package.replace(".", "/")).rglob("test_*.py"))


def listed(suite: str) -> dict[str, tuple[str, str]]:
    """Return what the page says of a suite: names of tests -> outcome and reason."""
    with LIST.open(newline="") as file:
        return {row["Test"]: (row["Outcome"], row["Reason"]) for row in csv.DictReader(file) if row["Suite"] == suite}


@pytest.mark.parametrize(("suite", "package", "make_settings"), [
    ("tempest", "ironic_tempest_plugin.tests.api", settings.of_tempest),
    ("openstacksdk", "openstack.tests.functional.baremetal", settings.of_openstacksdk)])
def test_a_suite_fails_only_where_the_page_says_so(
        keystone: identity.Server, tmp_path: Path, suite: str, package: str, make_settings: Settings) -> None:
    tree = {"tempest": installed, "openstacksdk": unpacked}[suite](suite, tmp_path)
    environment = {**os.environ, "PYTHONPATH": str(tree), **make_settings(tmp_path, keystone)}

    done = subprocess.run([sys.executable, RUNNER, *modules(tree, package)], env=environment, cwd=tmp_path,
                          capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    results = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"test":')]
    expected, unmatched, wrong = listed(suite), set(listed(suite)), []
    for result in results:
        name = result["test"].removeprefix(f"{package}.").partition("[")[0]
        pattern = next((one for one in expected if fnmatch.fnmatchcase(name, one)), None)
        if result["outcome"] == "passed" and (pattern is None or pattern.endswith("*")):
            continue
        if pattern is None or expected[pattern][0] != result["outcome"]:
            wrong.append(f"{name} {result['outcome']}: {result['reason'][-1500:]}")
        else:
            unmatched.discard(pattern)
    print(f"{suite}: {len(results)} results, {sum(one['outcome'] == 'passed' for one in results)} passed")
    assert not wrong, "\n\n".join(wrong)
    assert not unmatched, f"listed, but not found: {sorted(unmatched)}"
    assert len(results) > 50
