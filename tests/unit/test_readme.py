"""The commands and links of the README and the documentation exist."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from ironic_rules.cmd import lifecycle
from ironic_rules.conf import ironic, opts
from tests.unit.entry_points import SCRIPTS, SETUP, report

ROOT = Path(__file__).resolve().parents[2]
TOP_PAGES = [ROOT / "README.rst", ROOT / "CONTRIBUTING.rst"]
PAGES = [*TOP_PAGES, *sorted((ROOT / "doc" / "source").rglob("*.rst"))]

EXTRAS = set(SETUP["extras"])


def matches(page: Path, pattern: str) -> Iterator[tuple[str, re.Match[str]]]:
    """Yield every match on a page, after its place, e.g. ``README.rst:12``."""
    text = page.read_text(encoding="utf-8")
    for match in re.finditer(pattern, text, re.MULTILINE):
        line = text.count("\n", 0, match.start()) + 1
        yield f"{page.relative_to(ROOT)}:{line}", match


def console_lines(page: Path) -> Iterator[tuple[str, str]]:
    """Yield the commands of a page, after ``$`` prompts, lines joined, without comments, each after its place."""
    for place, match in matches(page, r"^ +\$ ((?:.*\\\n)*.+)$"):
        yield place, " ".join(shlex.split(match[1].replace("\\\n", " "), comments=True))


def own_commands(page: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield the calls of this project's commands on a page, as words, after their places."""
    for place, line in console_lines(page):
        for step in line.split(" && "):
            words = re.sub(r"^(?:[A-Z_]+=\S+ )+", "", step).rstrip(" &").split()
            if Path(words[0]).name.startswith("ironic-"):
                yield place, [Path(words[0]).name, *words[1:]]


def links() -> Iterator[tuple[str, str]]:
    """Yield the targets of the links on the pages at the top, after their places."""
    return ((place, match[1]) for page in TOP_PAGES for place, match in matches(page, r"`[^`<]+<([^>]+)>`_"))


STEPS = [line.split(" && ") for _, line in console_lines(ROOT / "README.rst")]
CALLS = [call for page in PAGES for call in own_commands(page)]


def test_the_first_command_makes_the_environment_installs_and_runs_the_demo():
    assert [step.split()[-1] for step in STEPS[0]] == [".venv", ".", "--demo"]


def test_the_second_command_runs_the_tests():
    assert "test-requirements.txt" in STEPS[1][0]
    assert Path(STEPS[1][1].split()[0]).name == "pytest"


def test_ci_runs_the_test_command_of_the_readme():
    assert " && ".join(STEPS[1]) in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_every_command_that_a_page_calls_exists():
    of_others = {"ironic-python-agent-builder"}
    assert CALLS
    assert [f"{place}: {words[0]}" for place, words in CALLS if words[0] not in {*SCRIPTS, *of_others}] == []


def test_the_help_of_a_command_names_every_option_that_the_documentation_uses():
    helps = {name: text for name, (_, text) in report().helps.items()}
    missing = [f"{place}: {words[0]} {word}" for place, words in CALLS if words[0] in helps for word in words
               if word.startswith("--") and word not in helps[words[0]]]

    assert missing == []


def test_the_help_of_every_command_is_shown_without_an_error():
    assert {name: status for name, (status, _) in report().helps.items()} == dict.fromkeys(SCRIPTS, 0)
    assert report().errors == ""


def test_every_extra_that_a_page_installs_exists():
    used = [(place, match[1]) for page in PAGES for place, match in matches(page, r"'(?:\.|ironic-rules)\[([\w-]+)\]'")]

    assert used
    assert [f"{place}: {extra}" for place, extra in used if extra not in EXTRAS] == []


def test_every_extra_that_an_error_tells_to_install_exists():
    assert set(lifecycle._EXTRAS.values()) <= EXTRAS


def test_extras_have_names_that_every_pip_finds():
    assert {name for name in EXTRAS if not re.fullmatch(r"[a-z]+(-[a-z]+)*", name)} == set()


def test_every_file_that_the_pages_at_the_top_link_to_exists():
    targets = list(links())

    assert targets
    assert [f"{place}: {target}" for place, target in targets if not (ROOT / target).is_file()] == []


def test_every_option_that_a_page_names_exists():
    libraries = {"database", "oslo_messaging_rabbit", "oslo_policy"}
    known = {(group, option.dest) for group, options in opts.list_opts() for option in options}
    known |= ironic.PROTECTIONS.keys()  # which pages name as those that refuse the start
    named = [(place, match) for page in PAGES for place, match in matches(page, r"``\[(\w+)\](\w+)\b")]

    assert named
    assert [f"{place}: [{match[1]}]{match[2]}" for place, match in named
            if match[1] not in libraries and match.groups() not in known] == []
