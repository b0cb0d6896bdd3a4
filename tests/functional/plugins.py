"""The sample plug-in packages of ``tests/plugins``, installed as an operator installs one."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SAMPLES = Path(__file__).resolve().parents[1] / "plugins"


def environment_of_pip() -> dict[str, str]:
    """Return an environment in which pip finds its bytecode, which is not where processes of tests share theirs."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPYCACHEPREFIX"}
    return {**kept, "PYTHONDONTWRITEBYTECODE": "1"}


@functools.cache
def installed(name: str) -> Path:
    """Return a folder into which the sample package ``name`` was installed with pip, once in this process.

    Build and installation need no network.
    """
    folder = Path(tempfile.mkdtemp(prefix="ironic-rules-plugin-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    # pip builds in the source tree; that of the repository must not be changed.
    source = shutil.copytree(SAMPLES / name, folder / "source", ignore=shutil.ignore_patterns("__pycache__"))
    target = folder / "site"
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", "--no-deps",
         "--no-build-isolation", "--target", str(target), str(source)],
        check=True, capture_output=True, timeout=120, env=environment_of_pip())
    return target
