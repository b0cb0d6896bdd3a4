"""The summary at the end of a test run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: Four functions in seven cases: one fails, one cannot be set up, one is skipped, and one is not selected.
TESTS = """
import pytest

@pytest.mark.parametrize("text", ["a", "b[c]", "d::e"])
def test_passes(text):
    assert text

class TestOf:
    @pytest.mark.parametrize("number", [1, 2])
    def test_fails(self, number):
        assert number == 1

@pytest.fixture
def broken():
    raise ValueError

def test_cannot_begin(broken):
    pass

@pytest.mark.skip
def test_skipped():
    pass

def test_not_chosen():
    pass
"""


def said(folder: Path, *arguments: str) -> list[str]:
    """Run the tests above with our ``conftest.py``; return the last two lines of the output."""
    (folder / "test_some.py").write_text(TESTS)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-p", "no:cacheprovider", "-ra", "--rootdir",
         str(folder), *arguments, str(folder / "test_some.py")],
        cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    return done.stdout.splitlines()[-2:]


@pytest.mark.parametrize("arguments", [[], ["-q", "-n", "1"]])
def test_the_functions_and_the_cases_of_a_run_are_counted(tmp_path, arguments):
    counted, ended = said(tmp_path, "-k", "not test_not_chosen", *arguments)

    assert counted == "4 test functions in 7 cases"
    assert "1 failed, 4 passed, 1 skipped, " in ended


def test_a_run_without_tests_counts_nothing(tmp_path):
    assert "test functions" not in "".join(said(tmp_path, "-q", "-k", "nothing"))
