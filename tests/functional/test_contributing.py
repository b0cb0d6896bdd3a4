"""The commands of CONTRIBUTING.rst, typed in a copy of the tree.

What installs packages, builds pages, runs whole suites or takes as long is not typed again: it is what the README, tox
or CI run.
"""

from __future__ import annotations

import configparser
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.test_samples import ETC, OWN_NAMESPACE, blocks

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = re.findall(r"^ +\$ (.+)$", (ROOT / "CONTRIBUTING.rst").read_text(encoding="utf-8"), re.MULTILINE)

#: Commands that are typed, by how they begin.
LINT, NOTE, LINT_NOTES, OPTIONS, POLICIES = TYPED = (
    ".venv/bin/ruff", ".venv/bin/reno new", ".venv/bin/reno lint", ".venv/bin/oslo-config-generator",
    ".venv/bin/oslopolicy-sample-generator")
COMPARED = [command for command in COMMANDS if not command.startswith(TYPED)]

OPTIONS_SAMPLE, POLICY_SAMPLE = "ironic-rules.conf.sample", "policy.yaml.sample"
#: Files that are not part of the source, or are written by programs that run in it.
LEFT_OUT = (".git", ".venv", ".tox", ".*_cache", ".hypothesis", "__pycache__", "*.egg-info", "build", "htmlcov",
            "ironic-rules-data", "ironic-rules-demo")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a copy of the tree, with this environment as its own."""
    copy = tmp_path / "copy"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*LEFT_OUT))
    (copy / ".venv").symlink_to(sys.prefix)
    return copy


def command(beginning: str) -> str:
    """Return the one command of the page that begins so."""
    found, = (command for command in COMMANDS if command.startswith(beginning))
    return found


def typed(tree: Path, beginning: str) -> str:
    """Type the command that begins so in the copy of the tree; return what it prints."""
    shell = subprocess.run(
        ["bash", "-c", command(beginning)], cwd=tree, capture_output=True, text=True, timeout=300, check=False,
        env={**os.environ, "PYTHONPATH": str(tree), "PYTHONWARNINGS": "ignore"})
    assert shell.returncode == 0, shell.stdout + shell.stderr
    return shell.stdout


def own_options(folder: Path) -> dict[tuple[str, str], str]:
    """Return the parts of a sample that are this project's own; those of libraries change with their versions."""
    sample = blocks((folder / OPTIONS_SAMPLE).read_text(encoding="utf-8"))
    return {key: text for key, text in sample.items() if key[1] == OWN_NAMESPACE}


def words(line: str) -> str:
    """Return a command without comments, with one space between words, and as if the environment were entered."""
    return shlex.join(shlex.split(line, comments=True)).replace(".venv/bin/", "").replace("'&&'", "&&")


def tox_commands() -> set[str]:
    """Return what tox runs, by itself or with these tests as its arguments."""
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(ROOT / "tox.ini", encoding="utf-8")
    lines = [line for section in tox.sections() for line in tox[section].get("commands", "").splitlines() if line]
    return {words(line.replace("{posargs}", tests)) for line in lines for tests in ("", "tests/unit")}


def readme_commands() -> set[str]:
    """Return the commands of the README, and the beginning of each with several steps."""
    text = (ROOT / "README.rst").read_text(encoding="utf-8")
    steps = [line.split(" && ") for line in re.findall(r"^ +\$ (.+)$", text, re.MULTILINE)]
    return {words(" && ".join(line[:number])) for line in steps for number in range(1, len(line) + 1)}


def ci_commands() -> set[str]:
    """Return the commands of CI, and the steps of those that have several."""
    text = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    return {words(step) for step in re.findall(r"\.venv/bin/[^\"&|)\n]+", text)}


def test_every_command_that_is_not_typed_is_one_of_the_readme_tox_or_ci():
    known = readme_commands() | tox_commands() | ci_commands()

    assert len(COMPARED) == 8
    assert [command for command in COMPARED if words(command) not in known] == []


def test_checks_and_samples_are_made_as_tox_makes_them():
    made = tox_commands()

    assert [beginning for beginning in TYPED if beginning != NOTE and words(command(beginning)) not in made] == []


def test_every_environment_of_tox_that_the_page_names_exists():
    text = (ROOT / "CONTRIBUTING.rst").read_text(encoding="utf-8")
    named = {name for names in re.findall(r"tox -e ([\w,]+)", text) for name in names.split(",")}
    tox = (ROOT / "tox.ini").read_text(encoding="utf-8")

    assert named
    assert [name for name in named if f"[testenv:{name}]" not in tox] == []


def test_nothing_is_installed_by_the_name_of_this_project():
    steps = [step.split() for command in COMMANDS for step in command.split(" && ")]
    installed = [word for step in steps if "install" in step for word in step[step.index("install") + 1:]]

    assert {"-e", ".", "-r"} <= set(installed)
    assert [word for word in installed if re.sub(r"[-_.]+", "-", word.lower()).startswith("ironic-rules")] == []


def test_the_style_is_checked(tree):
    assert "All checks passed" in typed(tree, LINT)

    (tree / "ironic_rules" / "wrong.py").write_text("import os\n", encoding="utf-8")
    with pytest.raises(AssertionError, match=r"wrong\.py"):
        typed(tree, LINT)


@pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
def test_a_release_note_is_added(tree):
    author = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    for step in (["init", "-q", "."], [*author, "commit", "-q", "--allow-empty", "-m", "reno wants one"]):
        subprocess.run(["git", *step], cwd=tree, timeout=60, check=True)
    notes = tree / "releasenotes" / "notes"
    before = set(notes.iterdir())

    typed(tree, NOTE)
    typed(tree, LINT_NOTES)

    added, = set(notes.iterdir()) - before
    assert added.name.startswith("what-has-changed-")


def test_the_samples_are_written_anew(tree):
    samples = tree / "etc" / "ironic-rules"
    for name in (OPTIONS_SAMPLE, POLICY_SAMPLE):
        (samples / name).unlink()

    typed(tree, OPTIONS)
    typed(tree, POLICIES)

    assert (samples / POLICY_SAMPLE).read_text(encoding="utf-8") == (ETC / POLICY_SAMPLE).read_text(encoding="utf-8")
    assert own_options(samples) == own_options(ETC)
