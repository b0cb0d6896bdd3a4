"""A sample of the rows on inspection over separate processes; ``tox -e everywhere`` runs all of them."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.functional import installations

ROOT = Path(__file__).resolve().parents[2]
ROWS = ROOT / "tests" / "functional" / "rows"
#: Stored data, look-up with its log, RPC and its errors, hooks with their lock, a rule.
SAMPLE = (
    "test_m_model.py::test_m_01_each_inspection_makes_a_version_of_its_own",
    "test_m_model.py::test_m_10_inventories_go_with_their_node",
    "test_m_lookup.py::test_m_24_uuid_mac_and_bmc_addresses_must_all_fit_the_one_node",
    "test_m_lookup.py::test_m_27_the_answer_has_no_reason_and_the_log_has_it_all",
    "test_m_driver.py::test_m_39_the_call_hands_over_data_and_raises_what_the_document_says",
    "test_m_driver.py::test_m_40_the_data_are_processed_under_a_lock_and_after_the_answer",
    "test_m_driver.py::test_m_44_what_a_hook_has_saved_goes_if_the_inspection_fails_after_it",
    "test_m_driver.py::test_m_45_an_error_of_the_ramdisk_fails_the_inspection_before_anything_else",
)


@pytest.mark.slow
@pytest.mark.servers
@pytest.mark.parametrize("installation", ["mysql", pytest.param("postgresql", marks=pytest.mark.long)])
def test_a_sample_of_the_rows_holds_over_separate_processes(installation):
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *(f"{ROWS}/{ident}" for ident in SAMPLE)],
        cwd=ROOT, env={**os.environ, installations.VARIABLE: installation}, capture_output=True, text=True,
        timeout=300, check=False)

    functions, ended = done.stdout.splitlines()[-2:]
    assert done.returncode == 0, done.stdout + done.stderr
    if "skipped" in ended:
        pytest.skip(done.stdout.splitlines()[-3])
    assert functions.startswith(f"{len(SAMPLE)} test functions"), done.stdout


def only_in_one_process(path: Path) -> Iterator[str]:
    """Yield the names of the tests in a module that other installations skip."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and any(
                ast.unparse(one).startswith("only_in_one_process(") for one in node.decorator_list):
            yield node.name


def test_what_other_installations_skip_is_documented():
    page = (ROOT / "doc" / "source" / "contributor" / "tests.rst").read_text(encoding="utf-8")
    skipped = {name for path in ROWS.glob("test_*.py") for name in only_in_one_process(path)}

    assert skipped
    assert [name for name in sorted(skipped) if f"``{name}``" not in page] == []


def test_an_installation_that_does_not_exist_is_an_error(monkeypatch):
    monkeypatch.setenv(installations.VARIABLE, "oracle")

    with pytest.raises(AssertionError, match="one of one process, mysql, postgresql"):
        installations.selected()
