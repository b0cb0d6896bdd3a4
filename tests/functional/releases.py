"""The release before this one, as processes can run it: from a wheel that was kept, or made of its commit."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.functional.plugins import environment_of_pip
from tests.functional.processes import TREE

#: Path of the wheel of the release before, where one is kept.
VARIABLE = "IRONIC_RULES_TEST_PREVIOUS_WHEEL"
#: Commit that counts as the release before until there is a tag.
_FIRST = "a52f0644"


def previous(folder: Path) -> str:
    """Return a folder for PYTHONPATH with the release before; skip the test if there is neither a wheel nor a history.

    :param folder: an empty one
    """
    wheel = os.environ.get(VARIABLE) or _built(folder)
    installed = folder / "installed"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(installed)
    return str(installed)


def _built(folder: Path) -> Path:
    """Return a wheel of the newest tag before the present commit, else of ``_FIRST``."""
    found = _git("describe", "--tags", "--abbrev=0", "HEAD^")
    revision = found.stdout.decode().strip() if found.returncode == 0 else _FIRST
    packed = _git("archive", "--format=tar", revision)
    if packed.returncode:
        pytest.skip(f"no history with {revision}; set {VARIABLE} to its wheel: {packed.stderr.decode().strip()}")
    source = folder / "source"
    source.mkdir()
    subprocess.run(["tar", "-x", "-C", str(source)], input=packed.stdout, check=True)
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "--disable-pip-version-check",
         "-w", str(folder), str(source)], check=True, env={**environment_of_pip(), "PBR_VERSION": "0.1.0.dev0"})
    return next(folder.glob("*.whl"))


def _git(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(["git", "-C", TREE, *arguments], capture_output=True, check=False)
    except FileNotFoundError as exc:
        pytest.skip(f"{exc}; set {VARIABLE} to the wheel of the release before")
