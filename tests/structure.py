"""``python -m tests.structure``: a report on the shape of the code. It judges nothing, and nothing fails by it."""

from __future__ import annotations

import ast
import re
import statistics
from collections.abc import Iterable, Mapping, Set
from pathlib import Path

from tests.layers import upward
from tests.modules import MODULES, PACKAGE, first_imports_in, imports_in, module_name, place

#: Modules by their path, with their text. Migrations are left out: they do not change any more.
Sources = Mapping[Path, str]
#: What imports, what it imports, and the place and name of the import.
Edge = tuple[str, str, str]

TESTS = ("unit", "functional")
LONGEST = 10
ANY = re.compile(r"\bAny\b")


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
    functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
    return sum(function.name.startswith("test_") for function in functions)


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


def main() -> None:
    """Print the report on this tree."""
    migrations = PACKAGE / "db" / "migrations" / "versions"
    modules = [path for path in MODULES if migrations not in path.parents]
    tests = [path for folder in TESTS for path in (Path(__file__).parent / folder).rglob("test_*.py")]
    print(report({path: path.read_text(encoding="utf-8") for path in modules},
                 (path.read_text(encoding="utf-8") for path in tests)))


if __name__ == "__main__":
    main()
