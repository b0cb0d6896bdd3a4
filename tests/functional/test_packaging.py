"""The packages that are built from a source tree are complete, and work when they are installed."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.functional.plugins import environment_of_pip

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "ironic_rules"
#: Not part of the source: environments, caches, build results, git's data.
OUTSIDE = (".*", "*.egg-info", "__pycache__", "*.pyc", "build", "dist", "htmlcov",
           "ironic-rules-data", "ironic-rules-demo")

pytest.importorskip("setuptools", reason="what builds packages is not in this environment")


def python(folder: Path, *arguments: str, **environment: str) -> None:
    """Run Python in ``folder``; show what it printed if it fails."""
    done = subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True, text=True, timeout=300,
                          check=False, env={**environment_of_pip(), **environment})
    assert done.returncode == 0, done.stdout + done.stderr


def build(tree: Path, kind: str, output: Path) -> Path:
    """Build an ``sdist`` or a ``wheel`` of a source tree, as a build front end does; return the file."""
    output.mkdir(exist_ok=True)
    python(tree, "-c", f"import sys, pbr.build; pbr.build.build_{kind}(sys.argv[1])", str(output))
    built, = output.iterdir()
    return built


@pytest.fixture(scope="module")
def sdist(tmp_path_factory) -> Path:
    """A source package, built from a copy of the tree that is not a git checkout."""
    folder = tmp_path_factory.mktemp("sdist")
    shutil.copytree(ROOT, folder / "tree", ignore=shutil.ignore_patterns(*OUTSIDE), symlinks=True)
    return build(folder / "tree", "sdist", folder / "dist")


@pytest.fixture(scope="module")
def wheel(sdist, tmp_path_factory) -> Path:
    """A wheel, built from the source package."""
    folder = tmp_path_factory.mktemp("wheel")
    with tarfile.open(sdist) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)   # Python 3.11.2 has no filters
        archive.extractall(folder)
    tree, = folder.iterdir()
    return build(tree, "wheel", folder / "dist")


def files_of_the_package() -> set[str]:
    return {str(path.relative_to(ROOT)) for path in PACKAGE.rglob("*")
            if path.is_file() and path.suffix != ".pyc" and "__pycache__" not in path.parts}


@pytest.mark.slow
def test_the_wheel_has_the_modules_samples_and_migrations(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())

    assert files_of_the_package() - names == set()
    assert {name for name in names if name.startswith("tests")} == set()
    for name in ("ironic-rules.conf.sample", "policy.yaml.sample"):
        assert any(entry.endswith(f"/etc/ironic-rules/{name}") for entry in names), name


def test_the_source_package_has_what_tests_and_documentation_need(sdist):
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}

    folders = [ROOT / folder for folder in ("doc/ext", "doc/source", "etc", "releasenotes/notes", "tests")]
    wanted = {str(path.relative_to(ROOT)) for folder in folders for path in folder.rglob("*")
              if path.is_file() and path.suffix != ".pyc" and "__pycache__" not in path.parts}
    wanted |= {"CONTRIBUTING.rst", "LICENSE", "README.rst", "pyproject.toml", "requirements.txt", "setup.cfg",
               "setup.py", "tox.ini", "test-requirements.txt"} | files_of_the_package()
    assert wanted - names == set()
