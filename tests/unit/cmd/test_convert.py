"""The command that converts legacy rules, in this process."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
import yaml

from ironic_rules.cmd import convert

INVENTORIES = Path(convert.__file__).parents[1] / "samples" / "inventories"
DELL = str(INVENTORIES / "dell-r660.json")
HIT = [{"action": "set-attribute", "path": "/extra/hit", "value": True}]
EXACT = {"description": "much memory", "actions": HIT,
         "conditions": [{"field": "memory_mb", "op": "ge", "value": 4096}]}
NOTED = {"conditions": [{"field": "local_gb", "op": "gt", "value": 0}], "actions": HIT}
HOPELESS = {"conditions": [{"field": "a..b", "op": "eq", "value": 1}], "actions": HIT}
CONVERTED = {"description": "much memory",
             "conditions": [{"op": "gt", "args": {"values": ["{inventory[memory][physical_mb]|int}", 4095]}}],
             "actions": [{"op": "set-attribute", "args": {"path": "/extra/hit", "value": True}}]}


def write(path, *documents):
    path.write_text(yaml.safe_dump_all(documents) if path.suffix == ".yaml" else json.dumps(documents[0]))
    return str(path)


@pytest.mark.parametrize(("name", "documents"), [
    ("one.json", [EXACT]), ("list.json", [[EXACT]]), ("reply.json", [{"rules": [EXACT]}]), ("one.yaml", [EXACT]),
    ("two.yaml", [None, [EXACT]])])
def test_rules_are_read_in_all_the_forms_that_they_have(tmp_path, capsys, name, documents):
    assert convert.main([write(tmp_path / name, *documents)]) == 0

    printed, report = capsys.readouterr()
    assert yaml.safe_load(printed) == [CONVERTED]
    assert "(much memory): exact\n" in report
    assert report.endswith(
        "1 rule: 1 exact, 0 exact with a note, 0 not convertible.\n"
        "What 1 of them set stays on a node when they no longer match: inspection rules undo nothing.\n")


def test_standard_input_and_a_folder(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps([EXACT, NOTED])))
    folder = tmp_path / "new" / "rules"

    assert convert.main(["-", write(tmp_path / "old.json", EXACT), "--to-dir", str(folder)]) == 0

    assert [len(yaml.safe_load((folder / name).read_text())) for name in ("rules.yaml", "old.yaml")] == [2, 1]
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == ["standard input: /0 (much memory): exact", "standard input: /1: exact with a note",
                         "  /conditions/0: The hook root-device must be enabled, which sets it; legacy rules read it "
                         "whichever hooks are enabled."]


def test_a_rule_that_cannot_be_converted_is_left_out_and_gives_status_1(tmp_path, capsys):
    invalid = {"actions": HIT, "conditions": [{"field": "a", "op": "nonsense", "value": 1}]}

    assert convert.main([write(tmp_path / "old.json", [HOPELESS, EXACT, invalid, 7])]) == 1

    printed, report = capsys.readouterr()
    assert yaml.safe_load(printed) == [CONVERTED]
    assert "/0: not convertible\n  /conditions/0: the path has a part" in report
    assert "/2: not convertible\n  /conditions/0/op" in report
    assert "/3: not convertible\n" in report
    assert "4 rules: 1 exact, 0 exact with a note, 3 not convertible." in report


def test_both_rules_are_run_over_inventories(tmp_path, capsys):
    old = write(tmp_path / "old.json", [EXACT, NOTED])
    fails = str(INVENTORIES / "ramdisk-error.json")

    assert convert.main([old, "--check", DELL, fails]) == 1

    report = capsys.readouterr().err
    assert f"{fails} is left out: the inspection fails before any rule" in report
    assert [line for line in report.splitlines() if line.startswith(f"  {DELL}")] == [
        f"  {DELL}: /extra/hit is missing instead of True."]
    # With the hook that the note names, they do the same.
    assert convert.main([old, "--check", DELL, "--hooks", f"{convert.DEFAULT_HOOKS},root-device"]) == 0


def test_the_default_hooks_are_those_of_the_service():
    from ironic_rules.conf.inspector import OPTS

    assert next(option.default for option in OPTS if option.dest == "default_hooks") == convert.DEFAULT_HOOKS


@pytest.mark.parametrize(("content", "arguments", "text"), [
    (None, [], "cannot be read"), ("", [], "contains no rules"), ("a: [", [], "neither JSON nor YAML"),
    ("7", [], "a rule is an object"), ("[" * 100_000, [], "nested"),
    (json.dumps(EXACT), ["--check", "/nonexistent.json"], "cannot be read"),
    (json.dumps(EXACT), ["--check", __file__], "is not JSON"),
    (json.dumps(EXACT), ["--check", DELL, "--hooks", "nonsense"], "nonsense"),
    (json.dumps(EXACT), ["--to-dir", "/dev/null/x"], "cannot be written"),
])
def test_what_cannot_be_read_gives_status_2(tmp_path, capsys, content, arguments, text):
    path = tmp_path / "old.json"
    if content is not None:
        path.write_text(content)

    assert convert.main([str(path), *arguments]) == 2

    printed, report = capsys.readouterr()
    assert (printed, report.startswith("ironic-rules-convert: ")) == ("", True)
    assert text in report


def test_two_files_of_one_name_are_not_written_over_each_other(tmp_path, capsys):
    files = [write(tmp_path / name, EXACT) for name in ("old.json", "old.yaml")]

    assert convert.main([*files, "--to-dir", str(tmp_path / "new")]) == 2

    assert "would both be written" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_wrong_arguments_give_status_2(capsys):
    with pytest.raises(SystemExit) as caught:
        convert.main([])

    assert caught.value.code == 2
    assert "usage: ironic-rules-convert" in capsys.readouterr().err
