"""The sample plug-in packages of ``tests/plugins``, installed as an operator installs one."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

SAMPLES = Path(__file__).resolve().parents[1] / "plugins"


def install(name: str, folder: Path) -> Path:
    """Install the sample package ``name`` with pip into a separate folder, and return that.

    Build and installation need no network.
    """
    # pip builds in the source tree; that of the repository must not be changed.
    source = shutil.copytree(SAMPLES / name, folder / "source", ignore=shutil.ignore_patterns("__pycache__"))
    target = folder / "site"
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", "--no-deps",
         "--no-build-isolation", "--target", str(target), str(source)],
        check=True, capture_output=True, timeout=120)
    return target
