"""The page on moving from ironic-inspector: its commands, run in order, with its file of old rules."""

from __future__ import annotations

import shlex
from pathlib import Path

import yaml

from ironic_rules import samples
from ironic_rules.client import rule_file
from ironic_rules.cmd import convert
from tests.functional.installations import running
from tests.functional.rows.conftest import RULES, inspected
from tests.functional.test_docs import ROOT, commands

PAGE = "admin/moving-from-inspector.rst"
EXAMPLES = ROOT / "doc" / "source" / "admin" / "examples"


def test_the_commands_of_the_page_move_the_rules(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("doc", "ironic_rules"):
        Path(name).symlink_to(ROOT / name)
    first, second, third = (shlex.split(command) for command in commands(PAGE))

    for command in (first, second):
        assert command[0] == "ironic-rules-convert"
        # One of the rules puts the node in maintenance.
        assert convert.main(command[1:]) == 1
        assert capsys.readouterr().out == (EXAMPLES / "report.txt").read_text()
    assert third[:-1] == ["openstack", "baremetal", "inspection", "rule", "import"]

    rules = rule_file.read(third[-1]).rules
    assert rules == yaml.safe_load(Path("converted/inspector-rules.yaml").read_text())
    with running(tmp_path) as whole:
        for rule in rules:
            assert whole.app.post_json(RULES, rule).status_int == 201
        dell = inspected(whole, samples.inventory("dell-r660")["inventory"])
        small = inspected(whole, {"memory": {"physical_mb": 4096}})

    assert dell["properties"]["capabilities"] == "profile:control"
    assert (dell["driver"], "capabilities" in small["properties"]) == ("fake-hardware", False)
