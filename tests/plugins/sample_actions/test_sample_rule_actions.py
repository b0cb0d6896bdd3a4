"""The effect of the action, without a service: the engine needs no database, no broker and no network."""

from __future__ import annotations

from typing import Any

import pytest

from ironic_rules import rules
from ironic_rules.exceptions import RuleFailed
from ironic_rules.models.draft import NodeDraft
from ironic_rules.models.task import Task

rules.load_plugins()  # finds the entry point: the package is installed


def run(args: dict[str, Any], phase: str = "main", **options: Any) -> rules.Facts:
    """Run a rule with the action on a node without tags; return the task."""
    task = None if phase == "early" else Task(NodeDraft({"extra": {}}))
    facts = rules.Facts(task, {"cpu": {"architecture": "x86_64"}}, {}, **options)
    rule = rules.Rule(phase=phase, actions=[{"op": "sample-tag", "args": args}])
    rules.evaluate(rules.compile(rule), facts)
    return facts


def test_it_tags_the_node():
    facts = run({"name": "{inventory[cpu][architecture]}", "note": "{as it is}"})

    assert facts.task.node.extra == {"tags": ["x86_64 ({as it is})"]}


def test_in_the_early_phase_it_tags_the_plugin_data():
    assert run({"name": "new"}, phase="early").plugin_data == {"tags": ["new"]}


def test_a_tag_with_a_space_fails_the_rule():
    with pytest.raises(RuleFailed, match="a tag has no spaces"):
        run({"name": "two words"})


def test_wrong_arguments_are_refused_with_the_rule():
    rule = {"actions": [{"op": "sample-tag", "args": {"nmae": "x"}}]}

    assert [problem.where for problem in rules.validate(rule)] == ["/actions/0/args/nmae", "/actions/0/args"]
