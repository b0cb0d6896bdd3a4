"""What setup.cfg promises exists, and what the code imports is required."""

from __future__ import annotations

import ast
import configparser
import importlib
import re
import sys
from importlib import metadata
from pathlib import Path

import pytest

import ironic_rules

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = Path(ironic_rules.__file__).parent
DISTRIBUTION = "ironic-rules"

SETUP = configparser.ConfigParser()
SETUP.read(ROOT / "setup.cfg", encoding="utf-8")

ENTRY_POINTS = [
    metadata.EntryPoint(*(part.strip() for part in line.split("=", 1)), group=group)
    for group, lines in SETUP["entry_points"].items() for line in lines.strip().splitlines()]

COMMANDS = {
    "ironic-pxe-filter": "ironic_rules.cmd.pxe_filter:main",
    "ironic-rules": "ironic_rules.cmd.standalone:main",
    "ironic-rules-api": "ironic_rules.cmd.api:main",
    "ironic-rules-conductor": "ironic_rules.cmd.conductor:main",
    "ironic-rules-dbsync": "ironic_rules.cmd.dbsync:main",
    "ironic-rules-simulate": "ironic_rules.cmd.simulate:main",
    "ironic-rules-status": "ironic_rules.cmd.status:main",
}

DATA_FILES = sorted(
    path for path in PACKAGE.rglob("*") if path.is_file() and path.suffix != ".pyc" and "__pycache__" not in path.parts)


def requirement_names(text: str) -> set[str]:
    """Return the normalised distribution names of a requirements file or of an extra."""
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    return {normalised(re.split(r"[\[<>=!~; ]", line)[0]) for line in lines if line and not line.startswith("-")}


def normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def imported_distributions() -> dict[str, set[str]]:
    """Return the distributions that each module's imports come from."""
    owners = metadata.packages_distributions()
    found: dict[str, set[str]] = {}
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or ""]
            for root in {name.partition(".")[0] for name in names} - {"ironic_rules", *sys.stdlib_module_names}:
                found.setdefault(str(path.relative_to(ROOT)), set()).update(map(normalised, owners.get(root, [root])))
    return found


@pytest.mark.parametrize("entry_point", ENTRY_POINTS, ids=lambda point: f"{point.group}:{point.name}")
def test_an_entry_point_leads_to_something_callable(entry_point):
    assert callable(entry_point.load())


def test_the_commands_are_the_designed_ones():
    assert {point.name: point.value for point in ENTRY_POINTS if point.group == "console_scripts"} == COMMANDS


def test_the_installed_entry_points_are_those_of_setup_cfg():
    installed = {(point.group, point.name, point.value) for point in metadata.distribution(DISTRIBUTION).entry_points}

    assert installed == {(point.group, point.name, point.value) for point in ENTRY_POINTS}, "install the project again"


def test_every_imported_library_is_required():
    required = requirement_names((ROOT / "requirements.txt").read_text(encoding="utf-8"))
    for extra in SETUP["extras"].values():
        required |= requirement_names(extra)

    missing = {path: names - required for path, names in imported_distributions().items() if not names & required}

    assert missing == {}


def test_every_requirement_has_a_lower_bound():
    for file in ("requirements.txt", "test-requirements.txt", "doc/requirements.txt"):
        lines = (line.partition("#")[0].strip() for line in (ROOT / file).read_text(encoding="utf-8").splitlines())
        assert [line for line in lines if line and not line.startswith("-") and ">=" not in line] == []


def test_every_package_has_an_init_file():
    folders = {path.parent for path in PACKAGE.rglob("*.py")}

    assert sorted(str(folder.relative_to(ROOT)) for folder in folders if not (folder / "__init__.py").exists()) == []


@pytest.mark.parametrize("module", sorted({point.module for point in ENTRY_POINTS}))
def test_importing_an_entry_point_reads_no_arguments(module, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["test", "--no-such-option"])

    importlib.import_module(module)


def test_the_manifest_covers_every_kind_of_data_file():
    manifest = (ROOT / "MANIFEST.in").read_text(encoding="utf-8")
    patterns = re.search(r"^recursive-include ironic_rules (.*)$", manifest, re.MULTILINE)

    assert patterns
    assert {f"*{path.suffix}" if path.suffix else path.name for path in DATA_FILES} <= set(patterns[1].split())
