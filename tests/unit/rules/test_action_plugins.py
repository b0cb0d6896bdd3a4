"""Actions as entry points: our own, and the sample package of ``tests/plugins``."""

from __future__ import annotations

import asyncio
import configparser
import importlib.util
import threading
from pathlib import Path
from typing import Any

import pytest

from ironic_rules import rules
from ironic_rules.exceptions import RuleFailed
from ironic_rules.rules import actions
from ironic_rules.rules.signatures import Registry
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
    declared = dict(line.split(" = ") for line in setup["entry_points"][actions.NAMESPACE].strip().splitlines())
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
    (["a", "b", "c"], "/actions/0/args/2"), (["{item}"], "/actions/0/args/0"),
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

@pytest.mark.parametrize("error", [ValueError, SystemExit, asyncio.CancelledError])
def test_a_check_of_arguments_that_raises_refuses_the_rule(
        sample: Any, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]) -> None:
    def problems(self: Any, literals: Any) -> Any:
        yield "name", "is odd"
        raise error("swordfish")

    monkeypatch.setattr(sample, "problems", problems)
    found: list[Any] = []
    # In a thread of the API, not the main one, which signals interrupt.
    thread = threading.Thread(target=lambda: found.extend(world.validate(tag("a"))))
    thread.start()
    thread.join()
    assert [str(problem) for problem in found] == [
        "/actions/0/args/0: is odd", f"/actions/0/args: the action sample-tag cannot check them: {error.__name__}"]


@pytest.mark.parametrize("problems", [[("nosuch", "x")], ["name"], None, 5])
def test_a_check_of_arguments_that_returns_nonsense_refuses_the_rule(
        sample: Any, monkeypatch: pytest.MonkeyPatch, problems: Any) -> None:
    monkeypatch.setattr(sample, "problems", lambda self, literals: problems)
    problem, = world.validate(tag("a"))
    assert problem.where == "/actions/0/args"
    assert "the action sample-tag cannot check them: " in problem.text


def test_a_stored_rule_whose_compilation_raises_is_the_only_broken_one(
        sample: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def convert(*arguments: Any) -> Any:
        raise ZeroDivisionError("swordfish")

    monkeypatch.setattr("ironic_rules.rules.compiled_actions.compile_action", convert)
    broken = rules.compile_stored(rules.Rule.of(tag("a", phase="main", scope="lab")))
    assert isinstance(broken, rules.BrokenRule)
    assert [str(problem) for problem in broken.problems] == ["it cannot be compiled: ZeroDivisionError"]
    monkeypatch.undo()
    rule_set = rules.RuleSet([broken, world.compiled(world.rule(uuid="0d2f8a52-70f4-4f3b-8b4e-8f2f7d6f3a11"))])
    assert len(rule_set.run("main", world.facts())) == 1
    with pytest.raises(RuleFailed, match="it cannot be compiled: ZeroDivisionError"):
        rule_set.check("main", "lab")
