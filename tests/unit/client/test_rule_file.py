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
], ids=["one in YAML", "list in YAML", "documents", "one in JSON", "JSON that is not YAML", "none", "date", "no rule"])
def test_rules_are_read_in_order(written, text, rules):
    assert rule_file.read(written(text)) == rules


def test_a_minus_is_the_standard_input(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO(YAML))

    assert rule_file.read("-") == [RULE]


@pytest.mark.parametrize(("text", "complaint"), [
    ("", "holds neither a rule nor a list"),
    ("text", "holds neither a rule nor a list"),
    ("a: [", "neither JSON nor YAML"),
    ("!!python/object:os.system {}", "neither JSON nor YAML"),
    (b"\xff\xfe\x00", "cannot be read"),
])
def test_other_files_are_refused(written, text, complaint):
    with pytest.raises(CommandError, match=complaint):
        rule_file.read(written(text))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(CommandError, match=r"nowhere\.yaml cannot be read"):
        rule_file.read(str(tmp_path / "nowhere.yaml"))
