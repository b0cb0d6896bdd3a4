from __future__ import annotations

import io

import pytest
from osc_lib.exceptions import CommandError

from ironic_rules.client import rule_file

RULE = {"description": "one", "actions": [{"op": "fail", "args": {"msg": "no"}}]}
YAML = "description: one\nactions:\n- op: fail\n  args: {msg: 'no'}\n"


@pytest.fixture
def written(tmp_path):
    def write(text: str | bytes) -> str:
        path = tmp_path / "rules"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)

    return write


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
    assert rule_file.read(written(text)) == rules


def test_a_minus_is_the_standard_input(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO(YAML))

    assert rule_file.read("-") == [RULE]


@pytest.mark.parametrize(("text", "complaint"), [
    ("", "contains neither a rule nor a list"),
    ("text", "contains neither a rule nor a list"),
    ("a: [", "neither JSON nor YAML"),
    ("!!python/object:os.system {}", "neither JSON nor YAML"),
    ("- op: !eq\n", r"(?s)must be quoted, as in op: \"!eq\".*line 1, column 7"),
    ("priority: 1\npriority: 2\n", "(?s)duplicate key.*line 2, column 1"),
    ("a: 0b_\n", "neither JSON nor YAML"),
    (b"\xff\xfe\x00", "cannot be read"),
])
def test_other_files_are_refused(written, text, complaint):
    with pytest.raises(CommandError, match=complaint):
        rule_file.read(written(text))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(CommandError, match=r"nowhere\.yaml cannot be read"):
        rule_file.read(str(tmp_path / "nowhere.yaml"))
