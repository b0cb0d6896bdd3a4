"""Tests that generate their input are marked ``slow``: they are not needed in daily work."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.walking import walking

ROOT = Path(__file__).resolve().parents[2]
MODULES = [path for path in sorted((ROOT / "tests").rglob("test_*.py")) if path != Path(__file__)]

#: The functions that draw examples, as tests call them.
DRAWING = {"given", "hypothesis.given", "strategies.check"}
MARK = "pytest.mark.slow"


def calls(function: ast.AST) -> set[str]:
    """Return the names that a function and its decorators call, as dotted names."""
    return {ast.unparse(node.func) for node in ast.walk(function) if isinstance(node, ast.Call)}


def drawing(source: str) -> Iterator[tuple[ast.FunctionDef, bool]]:
    """Yield the test functions of a module that draw examples, and whether they are marked."""
    tree = ast.parse(source)
    whole = any(isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"
                and MARK in map(ast.unparse, ast.walk(node.value)) for node in tree.body)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_") and not DRAWING.isdisjoint(calls(node)):
            yield node, whole or MARK in map(ast.unparse, node.decorator_list)


def test_every_test_that_draws_examples_is_slow():
    sources = {path: path.read_text(encoding="utf-8") for path in MODULES}
    # Parsing takes long, and a module that has none of these words calls nothing that draws.
    found = [(f"{path.relative_to(ROOT)}:{function.lineno}: {function.name}", marked)
             for path, text in sources.items() if "hypothesis" in text or "strategies" in text
             for function, marked in drawing(text)]

    assert found
    assert [place for place, marked in found if not marked] == []


GIVEN = "@settings(max_examples=9)\n@given(st.text())\ndef test_a(text):\n    assert text\n"
CHECKED = "def test_a(batch):\n    strategies.check(batch, one, text=st.text())\n"
IN_A_CLASS = "class TestOf:\n    @hypothesis.given(st.text())\n    def test_a(self, text):\n        assert text\n"


@walking("source, found", [
    (GIVEN, [False]), (CHECKED, [False]), (IN_A_CLASS, [False]), (f"@{MARK}\n{GIVEN}", [True]),
    (f"pytestmark = {MARK}\n{GIVEN}{CHECKED}", [True, True]),
    (f"pytestmark = [pytest.mark.servers, {MARK}]\n{GIVEN}", [True]),
    (f"pytestmark = pytest.mark.servers\n{GIVEN}", [False]),
    (f"@{MARK}\ndef test_b():\n    assert given\n\n\n{GIVEN}", [False]), ("def given(texts):\n    test_a()\n", []),
])
def test_a_test_that_draws_examples_is_found_with_its_mark(source, found):
    assert [marked for _, marked in drawing(source)] == found
