"""Actions as entry points: our own, and the sample package of ``tests/plugins``."""

from __future__ import annotations

import configparser
import importlib.util
from pathlib import Path
from typing import Any

import pytest

from ironic_rules import rules
from ironic_rules.exceptions import RuleFailed
from ironic_rules.rules import action_plugins
from ironic_rules.rules.registry import Registry
from tests.unit.rules import world

ROOT = Path(__file__).resolve().parents[3]
SAMPLE = ROOT / "tests" / "plugins" / "sample_actions" / "sample_rule_actions.py"


@pytest.fixture
def sample(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The sample action under the name ``sample-tag``, besides our own."""
    spec = importlib.util.spec_from_file_location("sample_rule_actions", SAMPLE)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    registry = Registry("action", rules.ACTIONS._read)
    for plugin in rules.ACTIONS:
        registry.add(plugin.name, type(plugin.call))
    registry.add("sample-tag", module.Tag)
    monkeypatch.setattr("ironic_rules.rules.compiler.ACTIONS", registry)
    return module.Tag


def tag(*args: Any, **values: Any) -> dict[str, Any]:
    return world.rule(actions=[{"op": "sample-tag", "args": list(args)}], **values)


def test_r45_our_own_actions_are_entry_points_too() -> None:
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg", encoding="utf-8")
    declared = dict(line.split(" = ") for line in setup["entry_points"][action_plugins.NAMESPACE].strip().splitlines())
    assert declared == {
        plugin.name: f"{type(plugin.call).__module__}:{type(plugin.call).__name__}" for plugin in rules.ACTIONS}


def test_r45_loading_the_installed_actions_finds_ours_and_changes_nothing() -> None:
    before = rules.ACTIONS.names()
    assert set(before) <= set(rules.load_plugins())
    assert rules.ACTIONS.names() == before


def test_r85_parameters_that_are_formatted_get_their_values(sample: Any) -> None:
    facts = world.facts(node={"extra": {}})
    world.run(tag("{inventory[hostname]}", "{as written"), given=facts)
    assert world.effects(facts)["node"] == {"extra": {"tags": ["rack07-node3 ({as written)"]}}


def test_r85_an_action_that_supports_early_runs_early(sample: Any) -> None:
    facts = world.facts(early=True)
    world.run(tag("{inventory[hostname]}", phase="early"), given=facts, phase="early")
    assert facts.plugin_data == {"tags": ["rack07-node3"]}


@pytest.mark.parametrize(("args", "where"), [
    ([], "/actions/0/args"), ({"nam": "x"}, "/actions/0/args/nam"), ({"name": 5}, "/actions/0/args/name"),
    (["a", "b", "c"], "/actions/0/args/2"), (["{nosuch}"], "/actions/0/args/0"),
])
def test_r86_arguments_are_those_of_the_signature(sample: Any, args: Any, where: str) -> None:
    rule = world.rule(actions=[{"op": "sample-tag", "args": args}])
    assert where in {problem.where for problem in world.validate(rule)}


def test_an_action_error_is_the_reason_of_the_failure(sample: Any) -> None:
    with pytest.raises(RuleFailed, match="a tag has no spaces"):
        world.run(tag("a b"))


def test_a_plugin_that_fails_leaves_nothing_behind(sample: Any) -> None:
    facts = world.facts(node={"extra": {}})
    with pytest.raises(RuleFailed):
        world.run(world.rule(actions=[
            {"op": "sample-tag", "args": ["fine"]}, {"op": "sample-tag", "args": ["not fine"]}]), given=facts)
    assert world.effects(facts) == {"plugin_data": {}}


def test_a_misspelt_name_is_told_the_nearest(sample: Any) -> None:
    problem, = world.validate(world.rule(actions=[{"op": "sample-tga", "args": ["x"]}]))
    assert "did you mean 'sample-tag'?" in problem.text
