"""The entries of setup.cfg exist, and the imports of the code are in the requirements."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Set
from importlib import metadata
from pathlib import Path

from tests.modules import MODULES, PACKAGE, Import, imports_in, imports_of, place
from tests.unit.entry_points import ENTRY_POINTS, SCRIPTS, SETUP, report

ROOT = Path(__file__).resolve().parents[2]
DISTRIBUTION = "ironic-rules"

COMMANDS = {
    "ironic-pxe-filter": "ironic_rules.cmd.pxe_filter:main",
    "ironic-rules": "ironic_rules.cmd.standalone:main",
    "ironic-rules-api": "ironic_rules.cmd.api:main",
    "ironic-rules-conductor": "ironic_rules.cmd.conductor:main",
    "ironic-rules-convert": "ironic_rules.cmd.convert:main",
    "ironic-rules-dbsync": "ironic_rules.cmd.dbsync:main",
    "ironic-rules-extra-specs": "ironic_rules.cmd.extra_specs:main",
    "ironic-rules-import": "ironic_rules.cmd.import_cloud:main",
    "ironic-rules-lab": "ironic_rules.cmd.lab:main",
    "ironic-rules-ramdisk": "ironic_rules.cmd.ramdisk:main",
    "ironic-rules-simulate": "ironic_rules.cmd.simulate:main",
    "ironic-rules-status": "ironic_rules.cmd.status:main",
    "ironic-rules-test": "ironic_rules.cmd.rules_test:main",
    "ironic-rules-units": "ironic_rules.cmd.systemd:main",
}

#: top-level module: the distributions that contain it
OWNERS = metadata.packages_distributions()
#: Libraries that are part of the interface of another library, and are required with it.
COMES_WITH = {"webob": "pecan"}

DATA_FILES = sorted(
    path for path in PACKAGE.rglob("*") if path.is_file() and path.suffix != ".pyc" and "__pycache__" not in path.parts)


def requirement_names(text: str) -> set[str]:
    """Return the normalized distribution names of a requirements file or of an extra."""
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    return {normalised(re.split(r"[\[<>=!~; ]", line)[0]) for line in lines if line and not line.startswith("-")}


def normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def unrequired(path: Path, imports: Iterable[Import], required: Set[str]) -> Iterator[str]:
    """Yield the imports of a module from distributions that are not in the requirements."""
    for line, name in imports:
        root = name.partition(".")[0]
        if root == "ironic_rules" or root in sys.stdlib_module_names:
            continue
        owners = {normalised(owner) for owner in OWNERS.get(COMES_WITH.get(root, root), [root])}
        if owners.isdisjoint(required):
            yield f"{place(path, line)}: imports {name} of {sorted(owners)}"


def uncallable(point: metadata.EntryPoint) -> Iterator[str]:
    """Report an entry point that refers to nothing that can be called."""
    try:
        found = point.load()
    except (ImportError, AttributeError) as exc:
        yield f"{point.group}: {point.name} = {point.value}: {exc}"
    else:
        if not callable(found):
            yield f"{point.group}: {point.name} = {point.value}: {found!r} cannot be called"


def test_every_entry_point_leads_to_something_callable():
    assert [problem for point in ENTRY_POINTS for problem in uncallable(point)] == []


def test_an_entry_point_that_leads_to_nothing_callable_is_found():
    values = ("os:getcwd", "os:sep", "os:no_such", "no_such_module:main")

    found = [problem for value in values for problem in uncallable(metadata.EntryPoint("a", value, "b"))]

    assert [problem.partition(": ")[2].split(" ")[2] for problem in found] == [f"{value}:" for value in values[1:]]


def test_the_commands_are_the_designed_ones():
    assert {name: point.value for name, point in SCRIPTS.items()} == COMMANDS


def test_the_installed_entry_points_are_those_of_setup_cfg():
    installed = {(point.group, point.name, point.value) for point in metadata.distribution(DISTRIBUTION).entry_points}

    assert installed == {(point.group, point.name, point.value) for point in ENTRY_POINTS}, "install the project again"


def test_every_imported_library_is_required():
    required = requirement_names((ROOT / "requirements.txt").read_text(encoding="utf-8"))
    for extra in SETUP["extras"].values():
        required |= requirement_names(extra)

    assert [found for path in MODULES for found in unrequired(path, imports_of(path), required)] == []


def test_a_library_that_is_not_required_is_found():
    path = PACKAGE / "example.py"
    imports = imports_in(path, "import re\nimport yaml, pytest\nfrom pluggy import hooks\nfrom . import exceptions\n")

    assert list(unrequired(path, imports, {"pyyaml"})) == [
        "ironic_rules/example.py:2: imports pytest of ['pytest']",
        "ironic_rules/example.py:3: imports pluggy.hooks of ['pluggy']",
    ]


def test_every_requirement_has_a_lower_bound():
    lines = [(f"{file}:{number}", line.partition("#")[0].strip())
             for file in ("requirements.txt", "test-requirements.txt", "doc/requirements.txt")
             for number, line in enumerate((ROOT / file).read_text(encoding="utf-8").splitlines(), start=1)]

    assert [f"{where}: {line}" for where, line in lines if line and line[0] != "-" and ">=" not in line] == []


def test_every_package_has_an_init_file():
    folders = {path.parent for path in PACKAGE.rglob("*.py")}

    assert sorted(str(folder.relative_to(ROOT)) for folder in folders if not (folder / "__init__.py").exists()) == []


def test_importing_an_entry_point_reads_no_arguments():
    assert report().failures == {}


def test_the_manifest_covers_every_kind_of_data_file():
    manifest = (ROOT / "MANIFEST.in").read_text(encoding="utf-8")
    patterns = re.search(r"^recursive-include ironic_rules (.*)$", manifest, re.MULTILINE)

    assert patterns
    assert {f"*{path.suffix}" if path.suffix else path.name for path in DATA_FILES} <= set(patterns[1].split())


def test_the_versions_of_python_that_are_named_are_tested():
    named = re.findall(r"Python :: (3\.\d+)", SETUP["metadata"]["classifier"])
    tox, readme = ((ROOT / name).read_text(encoding="utf-8") for name in ("tox.ini", "README.rst"))
    tested = re.search(r"^\[testenv:py3\{([\d,]+)\}\]$", tox, re.MULTILINE)

    assert named[0] == SETUP["metadata"]["python_requires"].removeprefix(">=")
    assert tested is not None
    assert [f"3.{minor}" for minor in tested[1].split(",")] == named
    assert [version for version in named if not re.search(rf"\b{re.escape(version)}\b", readme)] == []
