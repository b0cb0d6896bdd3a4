"""What the README and the documentation tell a reader to type or to open exists."""

from __future__ import annotations

import configparser
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from ironic_rules.cmd import lifecycle
from ironic_rules.conf import opts

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.rst").read_text(encoding="utf-8")
PAGES = [ROOT / "README.rst", *sorted((ROOT / "doc" / "source").rglob("*.rst"))]

SETUP = configparser.ConfigParser()
SETUP.read(ROOT / "setup.cfg", encoding="utf-8")
ENTRY_POINTS = dict(
    (part.strip() for part in line.split("=", 1))
    for line in SETUP["entry_points"]["console_scripts"].strip().splitlines())
EXTRAS = set(SETUP["extras"])


def console_lines(page: Path) -> list[str]:
    """Return what follows the ``$`` prompts of a page, continued lines joined, without comments."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    commands = re.findall(r"^ +\$ (.+)$", text, re.MULTILINE)
    return [" ".join(shlex.split(command, comments=True)) for command in commands]


def own_commands(page: Path) -> list[list[str]]:
    """Return the calls of this project's commands on a page, as words."""
    steps = [re.sub(r"^(?:[A-Z_]+=\S+ )+", "", step).rstrip(" &").split()
             for line in console_lines(page) for step in line.split(" && ")]
    return [[Path(words[0]).name, *words[1:]] for words in steps if Path(words[0]).name.startswith("ironic-")]


CALLS = sorted({tuple(words) for page in PAGES for words in own_commands(page)})


def test_the_first_command_makes_the_environment_installs_and_runs_the_demo():
    steps = console_lines(ROOT / "README.rst")[0].split(" && ")

    assert [step.split()[-1] for step in steps] == [".venv", ".", "--demo"]


def test_the_second_command_runs_the_tests():
    steps = console_lines(ROOT / "README.rst")[1].split(" && ")

    assert "test-requirements.txt" in steps[0]
    assert Path(steps[1].split()[0]).name == "pytest"


def test_ci_runs_the_test_command_of_the_readme():
    assert console_lines(ROOT / "README.rst")[1] in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


@pytest.mark.parametrize("call", CALLS, ids=" ".join)
def test_a_command_exists(call):
    assert call[0] in ENTRY_POINTS


@pytest.mark.parametrize("command", sorted(ENTRY_POINTS))
def test_the_help_of_a_command_names_every_option_that_the_documentation_uses(command):
    module, function = ENTRY_POINTS[command].split(":")
    code = f"import sys; sys.argv[0] = {command!r}; from {module} import {function}; sys.exit({function}())"

    shown = subprocess.run(
        [sys.executable, "-c", code, "--help"], capture_output=True, text=True, timeout=60, check=False)

    used = {word for call in CALLS if call[0] == command for word in call if word.startswith("--")}
    assert shown.returncode == 0, shown.stderr
    assert {option for option in used if option not in shown.stdout} == set()
    assert shown.stderr == ""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_extra_that_a_page_installs_exists(page):
    assert set(re.findall(r"'(?:\.|ironic-rules)\[([\w-]+)\]'", page.read_text(encoding="utf-8"))) <= EXTRAS


def test_every_extra_that_an_error_tells_to_install_exists():
    assert set(lifecycle._EXTRAS.values()) <= EXTRAS


def test_extras_have_names_that_every_pip_finds():
    assert {name for name in EXTRAS if not re.fullmatch(r"[a-z]+(-[a-z]+)*", name)} == set()


@pytest.mark.parametrize("target", re.findall(r"`[^`<]+<([^>]+)>`_", README))
def test_every_file_that_the_readme_links_to_exists(target):
    assert (ROOT / target).is_file()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_option_that_a_page_names_exists(page):
    libraries = {"database", "oslo_messaging_rabbit", "oslo_policy"}
    known = {(group, option.dest) for group, options in opts.list_opts() for option in options}
    named = set(re.findall(r"``\[(\w+)\](\w+)\b", page.read_text(encoding="utf-8")))

    assert {name for name in named - known if name[0] not in libraries} == set()
