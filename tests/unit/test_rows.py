"""The tables of the documents' requirements have every row once and in order, each with tests that exist."""

from __future__ import annotations

import ast
import csv
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import yaml

from tests.walking import walking

ROOT = Path(__file__).resolve().parents[2]
TABLES = ROOT / "doc" / "source" / "contributor" / "rows"
#: file: (letter, numbers of its rows). Tests of row R-07 are named test_r_07_...
EXPECTED: dict[str, tuple[str, list[int]]] = {
    "rules.csv": ("R", [*range(1, 91)]),
    "inspection.csv": ("M", [*range(1, 80)]),
    "templates.csv": ("D", [*range(1, 35)]),
    "extra_specs.csv": ("E", [*range(1, 27)]),
    "legacy.csv": ("L", [*range(1, 32)]),
}
#: the folder in which every test that is named after a row must be in a table
FOLDERS = [ROOT / "tests" / "functional", *(ROOT / "tests" / "functional" / name for name in ("clients", "rows"))]

Row = dict[str, str]


def rows(name: str) -> list[Row]:
    """Return the rows of a table, by its three headings."""
    with (TABLES / name).open(encoding="utf-8", newline="") as file:
        table = list(csv.reader(file, strict=True))
    assert table[0] == ["Row", "Promise", "Tests"]
    return [dict(zip(table[0], row, strict=True)) for row in table[1:]]


@functools.cache
def names_in(path: str) -> frozenset[str]:
    """Return the names of the test functions of a module, or of the cases of a file of vectors as ids have them."""
    file = ROOT / path
    if not file.is_file():
        return frozenset()
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".yaml":
        return frozenset(case["name"].replace(" ", "_") for case in yaml.safe_load(text))
    return frozenset(found.name for found in ast.parse(text).body
                     if isinstance(found, ast.FunctionDef) and found.name.startswith("test_"))


def problems(table: list[Row], letter: str, numbers: list[int]) -> Iterator[str]:
    """Yield the problems of a table."""
    expected = [f"{letter}-{number:02}" for number in numbers]
    ids = [row["Row"] for row in table]
    if ids != expected:
        yield f"rows {sorted(set(expected) - set(ids))} are missing, or rows are unknown, repeated or out of order"
    for row in table:
        if not row["Promise"].strip().endswith("."):
            yield f"{row['Row']}: the promise is no sentence"
        names = []
        for ident in row["Tests"].split(" "):
            path, _, name = ident.partition("::")
            if not path.startswith("tests/") or name not in names_in(path):
                yield f"{row['Row']}: there is no test {ident!r}"
            names.append(name)
        prefix = f"test_{row['Row'].lower().replace('-', '_')}_"
        if not any(name.startswith(prefix) for name in names):
            yield f"{row['Row']}: none of its tests is named {prefix}..."


def unlisted(table: list[Row], letter: str, folder: Path) -> list[str]:
    """Return the tests in ``folder`` that are named after a row of ``letter`` and are not in it."""
    listed = {(row["Row"], ident) for row in table for ident in row["Tests"].split(" ")}
    found = []
    for file in sorted(folder.glob("test_*.py")):
        path = file.relative_to(ROOT).as_posix()
        for name in sorted(names_in(path)):
            number = re.match(rf"test_{letter.lower()}_([0-9]+)_", name)
            if number and (f"{letter}-{number[1]}", f"{path}::{name}") not in listed:
                found.append(f"{path}::{name}")
    return found


def test_every_promise_has_tests_that_exist():
    assert [problem for name, (letter, numbers) in EXPECTED.items()
            for problem in problems(rows(name), letter, numbers)] == []


def test_every_test_that_is_named_after_a_row_is_in_its_table():
    assert [found for name, (letter, _) in EXPECTED.items() for folder in FOLDERS
            for found in unlisted(rows(name), letter, folder)] == []


def test_every_table_is_checked():
    assert {path.name for path in TABLES.iterdir()} == EXPECTED.keys()


THIS = "tests/unit/test_rows.py"
GOOD = {"Row": "X-01", "Promise": "It works.", "Tests": f"{THIS}::test_x_01_is_there"}


def test_x_01_is_there():
    assert list(problems([GOOD], "X", [1])) == []
    assert unlisted([GOOD], "X", ROOT / "tests" / "unit") == []


@walking("table, last, problem", [
    ([GOOD], 2, "X-02"),
    ([], 1, "X-01"),
    ([GOOD, GOOD], 1, "repeated"),
    ([{**GOOD, "Promise": ""}], 1, "no sentence"),
    ([{**GOOD, "Tests": f"{GOOD['Tests']} "}], 1, "no test ''"),
    ([{**GOOD, "Tests": f"{GOOD['Tests']} {THIS}::test_x_01_gone"}], 1, "/test_rows.py::test_x_01_gone'"),
    ([{**GOOD, "Tests": f"{GOOD['Tests']} {THIS}::problems"}], 1, "no test"),
    ([{**GOOD, "Tests": f"{GOOD['Tests']} tests/unit/test_gone.py::test_x_01_a"}], 1, "no test"),
    ([{**GOOD, "Tests": f"{GOOD['Tests']} tests/vectors/rules/order.yaml::no_such_case"}], 1, "no test"),
    ([{**GOOD, "Tests": f"{THIS}::test_every_table_is_checked"}], 1, "named test_x_01_"),
])
def test_what_is_wrong_with_a_table_is_found(table, last, problem):
    found, = problems(table, "X", [*range(1, last + 1)])

    assert problem in found


def test_a_test_that_no_row_names_is_found():
    other = {**GOOD, "Row": "X-02"}

    assert unlisted([other], "X", ROOT / "tests" / "unit") == [GOOD["Tests"]]
