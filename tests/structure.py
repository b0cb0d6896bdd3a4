"""``python -m tests.structure``: a report on the shape of the code; exit status 1 if a number has risen.

``structure.csv`` has the numbers that must not rise, with the day of each measurement. Who makes one smaller writes the
smaller one there.
"""

from __future__ import annotations

import ast
import csv
import re
import statistics
import sys
from collections.abc import Iterable, Mapping, Set
from pathlib import Path

from tests.layers import upward
from tests.modules import MODULES, PACKAGE, first_imports_in, imports_in, module_name, place

#: Modules by their path, with their text. Migrations are left out: they do not change any more.
Sources = Mapping[Path, str]
#: An importer, the imported module, and the place and name of the import.
Edge = tuple[str, str, str]

TESTS = ("unit", "functional")
LONGEST = 10
ANY = re.compile(r"\bAny\b")
#: Names that say how a value came about, where a noun would say what the value is.
VAGUE = frozenset(("found", "told", "made", "kept", "said", "asked", "given", "wanted", "taken", "what"))
_VAGUE = re.compile(rf"\b(?:{'|'.join(sorted(VAGUE))})\b")
LIMITS = Path(__file__).parent / "structure.csv"
JOURNEYS = PACKAGE.parent / "doc" / "source" / "contributor" / "journeys"
#: Lines up to which a module with one importer is a part of that.
SMALL = 50


def report(sources: Sources, tests: Iterable[str]) -> str:
    """Return the report on modules, and on the texts of test modules."""
    lengths = {path: len(text.splitlines()) for path, text in sources.items()}
    longest = sorted(sources, key=lambda path: (-lengths[path], path))[:LONGEST]
    upwards = [found for path, text in sources.items() for found in upward(path, imports_in(path, text))]
    circles = circles_in(package_imports(sources))
    lines = [
        f"modules: {len(sources)}",
        f"lines of a module: median {statistics.median(lengths.values()):.0f}, "
        f"95th percentile {percentile(lengths.values(), 95):.0f}",
        "longest modules:", *(f"  {lengths[path]:5}  {path.relative_to(PACKAGE.parent)}" for path in longest),
        f"Any: {sum(len(ANY.findall(text)) for text in sources.values())} times",
        f"imports that point upwards: {len(upwards)}", *(f"  {found}" for found in upwards),
        f"circles between packages: {len(circles)}",
        *("\n    ".join([f"  {' <-> '.join(group)}", *imports]) for group, imports in circles.items()),
        f"test functions: {sum(map(count_tests, tests))}",
    ]
    return "\n".join(lines)


def measures(sources: Sources, journeys: Mapping[str, int]) -> dict[str, int]:
    """Return the numbers that must not rise.

    :param journeys: the name of each journey -> the number of modules that its table names
    """
    graph = _graph(sources)
    inside = {package: _within(graph, package) for package in _packages(sources)}
    return {
        "modules": len(sources),
        "lines": sum(len(text.splitlines()) for text in sources.values()),
        "small modules with one importer": len(small_parts(sources)),
        "modules in circles": sum(name in _reached(graph, name) for name in graph),
        **{f"import levels in {package}": levels(found) for package, found in inside.items() if found},
        "Any in annotations": sum(map(_count_any, sources.values())),
        "pecan.request outside api/app.py": sum(
            _count_requests(text) for path, text in sources.items() if module_name(path) != "api.app"),
        "vague local names": sum(map(_count_vague, sources.values())),
        **{f"modules of the journey of {name}": count for name, count in journeys.items()},
    }


def risen(found: Mapping[str, int], limits: Mapping[str, int]) -> list[str]:
    """Return a line for each number above its limit, or without one."""
    return [f"{name}: {number}, and at most {limits[name]} is allowed" if name in limits else f"{name}: has no limit"
            for name, number in found.items() if number > limits.get(name, -1)]


def small_parts(sources: Sources) -> list[str]:
    """Return the modules of few lines that only one other module imports, packages left out."""
    importers: dict[str, set[str]] = {}
    for importer, imported in _graph(sources).items():
        for name in imported:
            importers.setdefault(name, set()).add(importer)
    return [module_name(path) for path, text in sources.items()
            if path.name != "__init__.py" and len(text.splitlines()) <= SMALL
            and len(importers.get(module_name(path), ())) == 1]


def levels(graph: Mapping[str, Set[str]]) -> int:
    """Return how many modules the longest chain of imports has; a circle is followed once."""
    def depth(name: str, above: tuple[str, ...] = ()) -> int:
        if name not in known:
            below = [depth(other, (*above, name)) for other in sorted(graph[name]) if other not in above]
            known[name] = 1 + max(below, default=0)
        return known[name]

    known: dict[str, int] = {}
    return max(map(depth, graph), default=0)


def journeys_of(folder: Path) -> dict[str, int]:
    """Return how many modules each journey of the page on the architecture enters."""
    counts = {path.stem: len(path.read_text(encoding="utf-8").splitlines()) - 1
              for path in sorted(folder.glob("*.csv"))}
    common = counts.pop("request", 0) + counts.pop("shared", 0)
    return {name: count + common for name, count in counts.items()}


def read_limits() -> dict[str, int]:
    """Return the numbers that must not be exceeded, by the names that :func:`measures` gives them."""
    with LIMITS.open(encoding="utf-8", newline="") as file:
        return {row["Measure"]: int(row["Most"]) for row in csv.DictReader(file, strict=True)}


def _graph(sources: Sources) -> dict[str, set[str]]:
    """Return the modules that each module imports when it is imported."""
    modules = {module_name(path) for path in sources} - {""}
    graph = {module_name(path): {_module(name, modules) for _, name in first_imports_in(path, text)}
             for path, text in sources.items()}
    return {name: imported - {"", name} for name, imported in graph.items()}


def _packages(sources: Sources) -> list[str]:
    return sorted({module_name(path).partition(".")[0] for path in sources if path.parent != PACKAGE})


def _within(graph: Mapping[str, Set[str]], package: str) -> dict[str, set[str]]:
    """Return the part of the graph that a package has, without the packages themselves."""
    inside = sorted(name for name in graph if name.startswith(f"{package}."))
    return {name: graph[name].intersection(inside) for name in inside}


def _count_any(source: str) -> int:
    """Return how often annotations say ``Any``."""
    if "Any" not in source:  # parsing takes long
        return 0
    annotations = [found for node in ast.walk(ast.parse(source)) for found in (
        getattr(node, "annotation", None), getattr(node, "returns", None)) if found is not None]
    return sum(isinstance(part, ast.Name) and part.id == "Any" for found in annotations for part in ast.walk(found))


def _count_requests(source: str) -> int:
    """Return how often a module uses pecan's request of the thread."""
    if "pecan" not in source:
        return 0
    return sum(isinstance(node, ast.Attribute) and ast.unparse(node) == "pecan.request"
               for node in ast.walk(ast.parse(source)))


def _count_vague(source: str) -> int:
    """Return how often a module binds a vague name: by an assignment, a loop, a parameter or a pattern."""
    if _VAGUE.search(source) is None:
        return 0
    nodes = list(ast.walk(ast.parse(source)))
    names = [node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    names += [node.arg for node in nodes if isinstance(node, ast.arg)]
    names += [str(node.name) for node in nodes if isinstance(node, (ast.MatchAs, ast.MatchStar))]
    return sum(name in VAGUE for name in names)


def percentile(values: Iterable[int], percent: int) -> float:
    """Return the value that ``percent`` of all do not exceed, between two values where it falls between them."""
    found = sorted(values)
    return statistics.quantiles(found, n=100, method="inclusive")[percent - 1] if len(found) > 1 else found[0]


def package_imports(sources: Sources) -> list[Edge]:
    """Return the imports between packages and modules of the second level that are made when they are imported.

    A name is e.g. ``hardware/redfish``, or ``service`` for what has no second level.
    """
    modules = {module_name(path) for path in sources} - {""}
    found = [(second_level(module_name(path)), second_level(_module(name, modules)), f"{place(path, line)}: {name}")
             for path, text in sources.items() for line, name in first_imports_in(path, text)]
    return [edge for edge in found if edge[0] and edge[1] and edge[0] != edge[1]]


def second_level(module: str) -> str:
    """Return the package or module of the second level that a module belongs to."""
    return "/".join(module.split(".")[:2])


def circles_in(edges: Iterable[Edge]) -> dict[tuple[str, ...], list[str]]:
    """Return the imports within each group of names that all import each other, be it through others."""
    edges = list(edges)
    graph: dict[str, set[str]] = {}
    for importer, imported, _ in edges:
        graph.setdefault(importer, set()).add(imported)
    reached = {name: _reached(graph, name) for name in graph}
    groups = {tuple(sorted(other for other in reached[name] if name in reached.get(other, ()))) for name in graph}
    return {group: [text for importer, imported, text in edges if {importer, imported} <= {*group}]
            for group in sorted(groups) if group}


def count_tests(source: str) -> int:
    """Return how many test functions, also those of classes, a module has."""
    return len(re.findall(r"^ *def test_", source, re.MULTILINE))


def _module(name: str, modules: Set[str]) -> str:
    """Return the module of the package that an import leads to, whatever of it is imported; empty if to none."""
    root, _, found = name.partition(".")
    while found and found not in modules:
        found = found.rpartition(".")[0]
    return found if root == "ironic_rules" else ""


def _reached(graph: Mapping[str, Set[str]], start: str) -> Set[str]:
    """Return everything that ``start`` imports, be it through others; itself only if there is a circle."""
    reached: set[str] = set()
    waiting = [start]
    while waiting:
        new = graph.get(waiting.pop(), set()) - reached
        reached |= new
        waiting += new
    return reached


def sources_of_this_tree() -> Sources:
    """Return the modules of the package without the migrations."""
    migrations = PACKAGE / "db" / "migrations" / "versions"
    return {path: path.read_text(encoding="utf-8") for path in MODULES if migrations not in path.parents}


def main() -> int:
    """Print the report on this tree, and what must not rise; return 1 if something has risen."""
    sources = sources_of_this_tree()
    tests = [path for folder in TESTS for path in (Path(__file__).parent / folder).rglob("test_*.py")]
    print(report(sources, (path.read_text(encoding="utf-8") for path in tests)))
    found = measures(sources, journeys_of(JOURNEYS))
    limits = read_limits()
    above = risen(found, limits)
    print("must not rise:", *(f"  {name}: {number} of {limits.get(name)}" for name, number in found.items()), sep="\n")
    print(f"risen: {len(above)}", *(f"  {line}" for line in above), sep="\n")
    return bool(above)


if __name__ == "__main__":
    sys.exit(main())
