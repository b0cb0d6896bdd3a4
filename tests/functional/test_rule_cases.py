"""``ironic-rules-test``: the documentation's example, what it says of failures, and of files that it cannot use."""

from __future__ import annotations

import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest

from ironic_rules.cmd import rules_test

EXAMPLE = Path(__file__).parents[2] / "doc" / "source" / "user" / "rule-cases"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EXAMPLE, tmp_path / "cases"))


def test_the_example_of_the_documentation_passes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert rules_test.main([str(folder), "--fail-under", "100"]) == 0
    assert "3 cases, 0 failed; 100% of the conditions' outcomes covered" in capsys.readouterr().out


def test_a_case_that_fails_says_why_also_in_junits_form(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "more.yaml").write_text("""
rules: rules.yaml
hooks: [validate-interfaces, ports]
cases:
  - name: not so
    report:
      inventory: {memory: {physical_mb: 8}, disks: [{}], interfaces: [{name: a, mac_address: "52:54:00:12:34:56"}]}
    expect: {matched: [gpu], node: [{op: add, path: /x, value: 1}], traits: [A], failure: null, plugin_data: []}
  - name: outcome
    report: {inventory: {disks: []}}
    expect: {matched: [nosuch], added_traits: [CUSTOM_GPU]}
  - name: traits
    report: {inventory: {disks: [{}]}}
    expect: {added_traits: [CUSTOM_GPU, CUSTOM_OTHER]}
  - {name: text, report: {inventory: {disks: [{}]}}, expect: {added_traits: CUSTOM_GPU}}
""")
    report = folder / "junit.xml"
    assert rules_test.main([str(folder), "--junit", str(report)]) == 1
    told = capsys.readouterr().out
    assert ("matched: gpu did not match: /conditions/0 (eq): missing inventory[system_vendor]; "
            "/conditions/1 (gt): not greater") in told
    assert "the machine has no disk" in told
    assert 'added_traits: ["CUSTOM_GPU","CUSTOM_OTHER"] are not part of []' in told
    assert 'added_traits: must be a list of traits, not "CUSTOM_GPU"' in told
    found = ElementTree.parse(report).getroot()
    assert [(suite.get("tests"), suite.get("failures")) for suite in found] == [("3", "0"), ("4", "4")]
    assert "missing" in str(found[1][0][0].text)


def test_a_case_has_what_the_machine_sent_before(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "last.json").write_text('{"inventory": {"disks": [{}, {}], "bmc_password": "s3cret"}}')
    (folder / "lost.yaml").write_text("""
rules:
  - name: lost
    conditions: [{op: lt, args: ["{inventory[disks]|count}", "{previous[disks]|count}"]}]
    actions: [{op: set-attribute, args: [/extra/before, "{previous[bmc_password]}"]}]
cases:
  - name: fewer
    report: {inventory: {disks: [{}]}}
    previous: last.json
    expect: {matched: [lost], node: [{op: add, path: /extra/before, value: "******"}]}
  - name: as many
    report: {inventory: {disks: [{}]}}
    previous: {inventory: {disks: [{}]}}
    expect: {not_matched: [lost], node: []}
  - {name: the first inspection, report: {inventory: {disks: [{}]}}, expect: {not_matched: [lost]}}
""")
    assert rules_test.main([str(folder), "--fail-under", "100"]) == 0, capsys.readouterr().out


def test_rules_are_checked_as_stored_ones_and_built_in_ones_as_such(
        folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "both.yaml").write_text("""
rules:
  - {name: few, max_nodes: 3, bundle: racks, actions: [{op: set-attribute, args: [/extra/last, few]}]}
built_in: site
cases:
  - name: each in its order
    report: {inventory: {disks: []}}
    expect: {matched: [few, first], node: [{op: add, path: /extra/last, value: few}]}
""")
    site = folder / "site"
    site.mkdir()
    action = "actions: [{op: set-attribute, args: [/extra/last, first]}]"
    (site / "10.yaml").write_text(f"- {{name: first, priority: 20000, {action}}}\n")
    assert rules_test.main([str(folder)]) == 0, capsys.readouterr().out
    capsys.readouterr()

    (folder / "both.yaml").write_text("rules: site\nbuilt_in: rules.yaml\ncases: []\n")
    (site / "20.yaml").write_text(f"[{{name: a, {action}}}, {{name: a, {action}}}, 5]")
    assert rules_test.main([str(folder)]) == 2
    told = capsys.readouterr().err
    assert f"{site / '10.yaml'}: /0/priority: must be from 0 to 9999; others are reserved for built-in rules" in told
    assert f"{site / '20.yaml'}: /2: a rule is an object" in told
    (site / "10.yaml").unlink()
    (site / "20.yaml").write_text(f"[{{name: a, {action}}}, {{name: a, {action}}}]")
    assert rules_test.main([str(folder)]) == 2
    assert f"{site / '20.yaml'}: /1/name: another rule has it, too" in capsys.readouterr().err


def test_conditions_that_no_case_covers_are_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = folder / "gpu.yaml"
    file.write_text(file.read_text().partition("  - name: a small one")[0])
    assert rules_test.main([str(folder), "--coverage", "--fail-under", "80"]) == 1
    assert "gpu /conditions/1: no case made it false" in capsys.readouterr().out


@pytest.mark.parametrize("share", ["nan", "101", "-1", "most"])
def test_a_share_that_no_coverage_can_have_is_a_wrong_argument(
        folder: Path, share: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        rules_test.main([str(folder), "--fail-under", share])
    assert caught.value.code == 2
    assert f"a number from 0 to 100 is required: {share}" in capsys.readouterr().err


@pytest.mark.parametrize("text", [
    "rules: nosuch.yaml\ncases: []", "rules: 5\ncases: []", "rules: []\ncases: 5", "rules: []\ncases: [5]",
    "rules: []\ncases: [{report: {}, other: 1}]", "rules: []\ncases: [{report: nosuch.json}]", "cases: [", "cases: 1",
    "rules: [{actions: [{op: nosuch}]}]\ncases: []", "rules: []\nhooks: [nosuch]\ncases: []",
    "rules: []\nhooks: 5\ncases: []", "built_in: 5\ncases: []", "built_in: nosuch.yaml\ncases: []",
    "rules: [{phase: early, scope: lab, actions: [{op: fail, args: [a]}]}]\ncases: []",
    "rules: [5]\ncases: []", "rules: [{actions: [{op: fail, args: [a]}], priority: 20000}]\ncases: []",
    "rules: []\ncases: [{report: {inventory: 5}}]", "rules: []\ncases: [{report: {inventory: {}}, node: {nosuch: 1}}]",
    "rules: []\ncases: [{report: {inventory: {}}, expect: {nosuch: 1}}]",
    "rules: []\ncases: [{report: {inventory: {}}, ports: 5}]", "rules: []\ncases: [{report: {inventory: {}}, node: 5}]",
    "rules: []\ncases: [{report: {inventory: {}}, traits: 5}]",
    "rules: []\ncases: [{report: {inventory: {}}, previous: {disks: []}}]",
    "rules: []\ncases: [{report: {inventory: {}}, previous: nosuch.json}]",
])
def test_files_that_cannot_be_used_are_refused_with_their_name(
        tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    (tmp_path / "bad.yaml").write_text(text)
    assert rules_test.main([str(tmp_path)]) == 2
    assert "bad.yaml" in capsys.readouterr().err


def test_a_folder_without_cases_is_refused(tmp_path: Path) -> None:
    assert rules_test.main([str(tmp_path)]) == 2
    assert rules_test.main([str(tmp_path / "nosuch")]) == 2


def test_one_file_is_tested_by_its_name(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert rules_test.main([str(folder / "gpu.yaml")]) == 0
    assert "3 cases, 0 failed" in capsys.readouterr().out
    (folder / "rules.txt").write_text("[]")
    for name, told in (("rules.txt", "the file has no cases"), ("lost.yaml", "there is no such file or folder")):
        assert rules_test.main([str(folder / name)]) == 2
        assert capsys.readouterr().err == f"ironic-rules-test: {folder / name}: {told}\n"
