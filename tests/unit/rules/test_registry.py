from __future__ import annotations

from typing import Any

import pytest
from stevedore import extension

from ironic_rules import rules
from ironic_rules.exceptions import ConfigurationError
from ironic_rules.rules import actions, signatures
from ironic_rules.rules.signatures import BadOperation, Registry, UnknownName, read_parameters
from tests.unit.rules import world


class Greet(rules.InspectionRuleActionBase):
    """An action as in another package, with the document's interface only."""

    formatted_params = ["name"]
    supports_early = True

    def call_early(self, rule, name, times=1, polite: bool = False):  # type: ignore[no-untyped-def, override]
        rule.plugin_data["greeting"] = [name] * times

    def __call__(self, task, rule, name, times=1, polite: bool = False):  # type: ignore[no-untyped-def, override]
        task.node.extra["greeting"] = f"{name} {times} {polite}"
        task.node.save()


class NotAnAction:
    pass


class NoCallEarly(rules.InspectionRuleActionBase):
    supports_early = True

    def __call__(self, task: Any, rule: Any) -> None:
        pass


class WrongFormatted(rules.InspectionRuleActionBase):
    formatted_params = ["nosuch"]

    def __call__(self, task: Any, rule: Any) -> None:
        pass


class NoCall(rules.InspectionRuleActionBase):
    pass


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Registry:
    """A registry of actions instead of the real one."""
    empty = Registry("action", rules.ACTIONS._read)
    monkeypatch.setattr("ironic_rules.rules.compiler.ACTIONS", empty)
    return empty


def test_plugin_works_like_our_own(registry: Registry) -> None:
    registry.add("greet", Greet)
    facts = world.facts(node={"extra": {}})
    world.run(world.rule(actions=[
        {"op": "greet", "args": {"name": "{inventory[hostname]}", "polite": True}},
    ]), given=facts)
    assert world.effects(facts)["node"] == {"extra": {"greeting": "rack07-node3 1 True"}}


def test_plugin_works_early(registry: Registry) -> None:
    registry.add("greet", Greet)
    facts = world.facts(early=True)
    world.run(world.rule(phase="early", actions=[{"op": "greet", "args": ["{inventory[hostname]}", 2]}]), given=facts,
              phase="early")
    assert facts.plugin_data == {"greeting": ["rack07-node3", "rack07-node3"]}


def test_parameters_that_are_not_formatted_stay_as_written(registry: Registry) -> None:
    registry.add("greet", Greet)
    facts = world.facts(node={"extra": {}})
    world.run(world.rule(actions=[{"op": "greet", "args": ["a", "{not a template"]}]), given=facts)
    assert world.effects(facts)["node"]["extra"]["greeting"] == "a {not a template False"


@pytest.mark.parametrize(("args", "where"), [
    ([], "/actions/0/args"), (["a", 1, True, 4], "/actions/0/args/3"), ({"name": "a", "tims": 1},
    "/actions/0/args/tims"),
    (["a", 1, "yes"], "/actions/0/args/2"),
])
def test_arguments_of_a_plugin_are_checked(registry: Registry, args: Any, where: str) -> None:
    registry.add("greet", Greet)
    assert [problem.where for problem in world.validate(world.rule(actions=[{"op": "greet", "args": args}]))] == [where]


@pytest.mark.parametrize(("target", "reason"), [
    (NotAnAction, "not a subclass"), (NoCallEarly, "does not define call_early"), (WrongFormatted, "does not accept"),
    (NoCall, "does not define __call__"), (Greet(), "not a subclass"),
])
def test_what_can_not_serve_is_refused(registry: Registry, target: Any, reason: str) -> None:
    with pytest.raises(BadOperation, match=reason):
        registry.add("x", target)


def test_name_declared_twice_is_refused(registry: Registry) -> None:
    registry.add("greet", Greet)
    with pytest.raises(BadOperation, match="registered twice"):
        registry.add("greet", NotAnAction)


def test_same_object_again_is_no_conflict(registry: Registry) -> None:
    registry.add("greet", Greet)
    registry.add("greet", Greet)
    assert registry.names() == ["greet"]


def test_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match="did you mean 'set-attribute'"):
        rules.ACTIONS.get("set_atribute")


def test_name_like_no_other_is_answered_with_all() -> None:
    with pytest.raises(UnknownName, match="known: changed, contains, eq, ge"):
        rules.OPERATORS.get("zzzzzz")


def found(monkeypatch: pytest.MonkeyPatch, **targets: Any) -> None:
    """Make stevedore find these entry points."""
    def manager(namespace: str, invoke_on_load: bool, on_load_failure_callback: Any) -> extension.ExtensionManager[Any]:
        return extension.ExtensionManager.make_test_instance(
            [extension.Extension(name, None, target, None) for name,
             target in targets.items()])  # type: ignore[arg-type]

    monkeypatch.setattr(actions.stevedore, "ExtensionManager", manager)


def test_installed_actions_are_registered(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    found(monkeypatch, greet=Greet)
    assert rules.load_plugins(registry=registry) == ["greet"]
    assert rules.load_plugins(registry=registry) == ["greet"]
    assert "greet" in registry


def test_every_bad_plugin_is_named(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    found(monkeypatch, one=NotAnAction, two=NoCall)
    with pytest.raises(ConfigurationError, match=r"'one'.*'two'"):
        rules.load_plugins(registry=registry)


def test_nothing_installed_is_no_error(registry: Registry) -> None:
    assert rules.load_plugins(namespace="ironic_rules.nothing", registry=registry) == []


def plain(a: str, b: int, c: list[str], d: dict[str, Any], e: bool, f: Any, g=None, *rest: Any,
          **options: Any):  # type: ignore[no-untyped-def]
    """A function with annotations of other authors."""


def test_plain_annotations_give_kinds() -> None:
    found_kinds = {parameter.name: parameter.kind for parameter in read_parameters(plain, skip=0)}
    assert found_kinds == {
        "a": signatures.TEXT, "b": signatures.INTEGER, "c": signatures.LIST, "d": signatures.OBJECT,
        "e": signatures.BOOLEAN, "f": signatures.ANY,
        "g": signatures.ANY, "rest": signatures.ANY, "options": signatures.ANY,
    }
