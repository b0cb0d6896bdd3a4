from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import assume
from hypothesis import strategies as st

from ironic_rules.client import rule_text
from tests import strategies
from tests.walking import walking

RULES = [
    {"name": "flash", "scope": None,
     "conditions": [{"op": "!eq", "args": ["{inventory[bmc_address]}", "2024-01-01"]}],
     "actions": [{"op": "log", "args": {"msg": "two\nlines\n"}}, {"op": "add-trait", "args": ["1.0e5"], "loop": [
         f"a text that is too long for one line with number {number}" for number in range(2)]}]},
    {"uuid": "8a4b", "description": "é\u2028", "actions": []},
]
#: A list of short values is one line, all else has a line for each value; no line is folded.
TEXT = """\
- name: flash
  scope: null
  conditions:
  - op: '!eq'
    args: ['{inventory[bmc_address]}', '2024-01-01']
  actions:
  - op: log
    args:
      msg: |
        two
        lines
  - op: add-trait
    args: ['1.0e5']
    loop:
    - a text that is too long for one line with number 0
    - a text that is too long for one line with number 1

- uuid: 8a4b
  description: "é\\L"
  actions: []
"""


def same(left: Any, right: Any) -> bool:
    """Return whether both are the same JSON, with the same types and the same order of keys."""
    return json.dumps(left) == json.dumps(right)


def test_rules_are_written_for_comparison_line_by_line():
    assert rule_text.write(RULES) == TEXT
    assert rule_text.documents(TEXT) == [RULES]
    assert rule_text.documents(rule_text.write([])) == [[]]


@pytest.mark.slow
@pytest.mark.parametrize("batch", strategies.batches(50))
def test_what_is_written_is_read_as_it_was(batch):

    def one(rules: Any) -> None:
        try:
            json.dumps(rules, allow_nan=False, ensure_ascii=False).encode()
        except ValueError:
            assume(False)
        assume(all(isinstance(rule, dict) for rule in rules))
        found, = rule_text.documents(rule_text.write(rules))
        assert same(found, rules), rules

    strategies.check(batch, one, rules=st.lists(strategies.changed(strategies.RULES, 3), max_size=2))


@walking("text, prefer_json, complaint", [
    ('[{"a": 1,\n "a": 2}]', False, r"line 2, column 2: .*duplicate key"),
    ('{"a": 1,\n "b": [}\n', True, "^line 2, column 8: Expecting value"),
    ("a: [1\nb: 2\n", False, r"line 2, column "),
    ("[" * 100_000, False, "nested too deeply"),
    ('{"a": NaN}', True, "NaN is not a value of JSON"),
])
def test_a_problem_has_its_line(text, prefer_json, complaint):
    with pytest.raises(ValueError, match=complaint):
        rule_text.documents(text, prefer_json=prefer_json)


def test_numbers_that_json_lacks_are_left_to_the_reader_of_the_rules():
    (found,), = rule_text.documents("- !!float .inf\n")

    assert math.isinf(found)
