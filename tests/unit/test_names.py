"""Names of code on the pages for contributors are names of the code."""

from __future__ import annotations

import csv
import importlib
import re
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "doc" / "source" / "contributor"


def exists(name: str) -> bool:
    """Say whether ``name`` is a module below ``ironic_rules``, or an attribute of one."""
    try:
        importlib.import_module(f"ironic_rules.{name}")
    except ModuleNotFoundError:
        module, _, attribute = name.rpartition(".")
        return bool(module) and exists(module) and hasattr(importlib.import_module(f"ironic_rules.{module}"), attribute)
    return True


def test_old_names_are_gone_and_new_ones_are_there() -> None:
    with (FOLDER / "names.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, strict=True))
    assert rows
    assert [row["Old name"] for row in rows] == sorted({row["Old name"] for row in rows})
    assert [row["New name"] for row in rows if not exists(row["New name"])] == []
    assert [row["Old name"] for row in rows if exists(row["Old name"])] == []


def test_the_glossary_names_what_there_is() -> None:
    names = re.findall(r"``([a-z_]+(?:\.\w+)+)``", (FOLDER / "glossary.rst").read_text(encoding="utf-8"))
    assert len(names) > 30
    assert [name for name in names if not exists(name)] == []


def test_the_glossary_is_in_alphabetical_order() -> None:
    text = (FOLDER / "glossary.rst").read_text(encoding="utf-8")
    terms = re.findall(r"^   (\S.*)$", text.partition(":sorted:")[2], re.MULTILINE)
    assert len(terms) > 30
    assert terms == sorted(terms, key=str.lower)


def test_the_files_that_the_page_on_extending_names_are_there() -> None:
    text = (FOLDER / "extending.rst").read_text(encoding="utf-8")
    files = re.findall(r"``((?:ironic_rules|tests|doc|etc)/[\w/.-]+|setup\.cfg)``", text)
    assert len(files) > 15
    assert [file for file in files if not (FOLDER.parents[2] / file).exists()] == []


def test_the_tests_that_the_page_on_faults_names_are_there() -> None:
    tests = FOLDER.parents[2] / "tests"
    named = re.findall(r"``((?:\w+/)*test_\w+\.py)``", (FOLDER / "faults.rst").read_text(encoding="utf-8"))
    assert len(named) > 50
    assert [name for name in named
            if not (tests / name if "/" in name else tests / "functional/faults" / name).exists()] == []
