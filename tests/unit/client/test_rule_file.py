from __future__ import annotations

import io
import json

import pytest
from osc_lib.exceptions import CommandError

from ironic_rules.client import rule_file
from ironic_rules.models import facts
from ironic_rules.models.rules import RULE as FIELDS
from ironic_rules.models.rules import WRITABLE

RULE = {"description": "one", "actions": [{"op": "fail", "args": {"msg": "no"}}]}
YAML = "description: one\nactions:\n- op: fail\n  args: {msg: 'no'}\n"


@pytest.fixture
def written(tmp_path):
    def write(text: str | bytes) -> str:
        path = tmp_path / "rules"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)

    return write


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A directory with rules in several files, and the name by which it is read."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "rules"
    path.mkdir()
    (path / "b.json").write_text('{"description": "of b"}', encoding="utf-8")
    (path / "a.yaml").write_text("- {description: a0}\n- {description: a1}\n", encoding="utf-8")
    (path / "c.yml").write_text("description: c0\n---\n- {description: c1}\n", encoding="utf-8")
    (path / ".hidden.yaml").write_text("[", encoding="utf-8")
    (path / "README.md").write_text("[", encoding="utf-8")
    (path / "more.yaml").mkdir()
    (path / "more.yaml" / "d.yaml").write_text("[", encoding="utf-8")
    return path


@pytest.mark.parametrize(("text", "rules"), [
    (YAML, [RULE]),
    ("- {actions: []}\n- {actions: [1]}\n", [{"actions": []}, {"actions": [1]}]),
    (f"{YAML}---\n- {{actions: []}}\n", [RULE, {"actions": []}]),
    ('{"actions": []}', [{"actions": []}]),
    ('[{"actions":\t[]}, {"description": "\\ud83d\\ude00"}]', [{"actions": []}, {"description": "😀"}]),
    ("[]", []),
    ("description: 2024-01-01\n", [{"description": "2024-01-01"}]),
    ("- 5\n", [5]),
    ("- [52:54:00:12:34:56, 1:30, 1:30.5, =]\n", [["52:54:00:12:34:56", "1:30", "1:30.5", "="]]),
    ("- [40, -3, 1_000, 0x1f, 2.5, -1.0e+3]\n", [[40, -3, 1000, 31, 2.5, -1000.0]]),
    ("- &base {priority: 5}\n- {<<: *base, description: x}\n", [{"priority": 5}, {"priority": 5, "description": "x"}]),
    (f"{YAML}---\n", [RULE]),
], ids=["one in YAML", "list in YAML", "documents", "one in JSON", "JSON that is not YAML", "none", "date", "no rule",
        "MAC address", "numbers", "merge key", "empty document"])
def test_rules_are_read_in_order(written, text, rules):
    assert rule_file.read(written(text)).rules == rules


def test_a_minus_is_the_standard_input(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO(YAML))

    assert rule_file.read("-").rules == [RULE]


@pytest.mark.parametrize(("text", "complaint"), [
    ("", "contains neither a rule nor a list"),
    ("text", "contains neither a rule nor a list"),
    ("a: [", "neither JSON nor YAML"),
    ("!!python/object:os.system {}", "neither JSON nor YAML"),
    ("- op: !eq\n", r"line 1, column 7: .*must be quoted, as in op: \"!eq\""),
    ("priority: 1\npriority: 2\n", "line 2, column 1: duplicate key"),
    ("a: 0b_\n", "neither JSON nor YAML"),
    (b"\xff\xfe\x00", "cannot be read"),
])
def test_other_files_are_refused(written, text, complaint):
    with pytest.raises(CommandError, match=complaint):
        rule_file.read(written(text))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(CommandError, match=r"nowhere\.yaml cannot be read"):
        rule_file.read(str(tmp_path / "nowhere.yaml"))


def test_the_files_of_a_directory_are_read_by_name(folder):
    given = rule_file.read("rules")

    assert [rule["description"] for rule in given.rules] == ["a0", "a1", "of b", "c0", "c1"]
    assert [place.of("/op") for place in given.places] == [
        "rules/a.yaml: /0/op", "rules/a.yaml: /1/op", "rules/b.json: /op", "rules/c.yml (document 1): /op",
        "rules/c.yml (document 2): /0/op"]


def test_the_problems_of_all_files_of_a_directory_are_told_at_once(folder):
    (folder / "a.yaml").write_text("- {description: !!set {a, b}}\n", encoding="utf-8")
    (folder / "b.json").write_text('{"description": [}', encoding="utf-8")
    (folder / "d.yaml").symlink_to("nowhere")
    (folder / "e.yaml").write_text("# nothing yet\n", encoding="utf-8")

    with pytest.raises(CommandError) as raised:
        rule_file.read("rules")

    assert [line.partition(":")[0] for line in str(raised.value).splitlines()] == [
        "rules/b.json is neither JSON nor YAML", "rules/d.yaml cannot be read",
        "rules/e.yaml contains neither a rule nor a list of rules", "rules/a.yaml"]
    assert "line 1, column 18" in str(raised.value)


def test_a_directory_without_rules_is_refused(tmp_path):
    with pytest.raises(CommandError, match=r"has no files \*\.yaml, \*\.yml, \*\.json"):
        rule_file.read(str(tmp_path))


@pytest.mark.parametrize(("error", "explained"), [
    ("/rules/2/op: b; c: d; /rules/3: must be an object; /rules/1/conditions/0: no such operator (HTTP 400) "
     "(Request-ID: req-1)",
     ["rules/a.yaml: /1/conditions/0: no such operator", "rules/b.json: /op: b; c: d",
      "rules/c.yml (document 1): must be an object", "Nothing was changed. (HTTP 400) (Request-ID: req-1)"]),
    ("/rules/0/actions/0/args/a: b: c", ["rules/a.yaml: /0/actions/0/args/a: b: c", "Nothing was changed."]),
    ("/bundle: too long; /rules/4/name: is taken (HTTP 400)",
     ["/bundle: too long", "rules/c.yml (document 2): /0/name: is taken", "Nothing was changed. (HTTP 400)"]),
    ("/rules/99/name: is taken", ["/rules/99/name: is taken", "Nothing was changed."]),
    ("Not allowed (HTTP 403)", ["Not allowed (HTTP 403)"]),
], ids=["several", "pointer", "not of a rule", "unknown rule", "another error"])
def test_a_problem_is_told_with_its_place_in_the_file(folder, error, explained):
    assert rule_file.read("rules").explained(error).splitlines() == explained


#: A rule as Ironic 39 replies.
PRINTED = {"uuid": "d1f65bac-7c46-4d25-af9d-7974c84c1b1d", "created_at": "2026-11-28T07:08:04.155948+00:00",
           "updated_at": None, "priority": 5, "sensitive": False, "phase": "main", "conditions": [], **RULE,
           "links": [{"href": "http://127.0.0.1:6385/v1/inspection/d1f65bac", "rel": "self"}]}
SENT = {name: PRINTED[name] for name in ("uuid", "priority", "sensitive", "phase", "conditions", *RULE)}


def test_fields_that_services_print_and_none_takes_are_those_of_the_model():
    assert set(FIELDS.shown) - set(WRITABLE) == rule_file.PRINTED[rule_file.RULES]
    assert {*facts.FACT.shown, "operation"} - set(facts.WRITABLE) == rule_file.PRINTED[rule_file.FACTS]


def test_what_a_service_has_printed_is_read_as_rules_that_can_be_written(written):
    listed = [{name: value for name, value in PRINTED.items() if name != "links"}]
    by_hand = {**RULE, "valid": True}
    for text in ({"inspection_rules": [PRINTED]}, listed, PRINTED):
        given = rule_file.read(written(json.dumps(text))).writable()
        assert given.rules == [SENT] and list(given.unsendable()) == []

    given = rule_file.read(written(json.dumps({"inspection_rules": [{"links": []}, by_hand]}))).writable()

    assert given.rules == [{}, by_hand]
    assert given.located("/rules/1/valid").endswith("rules: /inspection_rules/1/valid")


def test_a_printed_rule_without_its_content_is_not_sent_and_a_page_is_refused(written):
    hidden = {**PRINTED, "sensitive": True, "conditions": None, "actions": None}
    text = {"inspection_rules": [hidden, {**PRINTED, "built_in": True}, PRINTED]}

    problems = list(rule_file.read(written(json.dumps(text))).writable().unsendable())

    assert [index for index, _ in problems] == [0, 1]
    assert problems[0][1].startswith("the rule is sensitive") and "built-in" in problems[1][1]
    with pytest.raises(CommandError, match="one page of a list of rules"):
        rule_file.read(written(json.dumps({**text, "next": "http://x/?marker=u"}))).writable()
