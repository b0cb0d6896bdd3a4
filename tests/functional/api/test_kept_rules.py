"""A rule that was checked is not compiled once more when it is in the set, and nothing is kept that was not written."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ironic_rules.api.app import make_app
from ironic_rules.inspection import rule_cases, rule_sets
from ironic_rules.inspection.rule_cases import Coverage
from ironic_rules.inspection.rule_sets import RuleCaches
from ironic_rules.rules import RuleSet, compiler
from tests.functional.api.conftest import Client
from tests.unit.rules import world

PATH = "/v1/inspection_rules"


def rule(value: int, **more: Any) -> dict[str, Any]:
    return {"actions": [{"op": "set-attribute", "args": {"path": "/extra/x", "value": value}}], **more}


@pytest.fixture
def caches(db, tmp_path: Path, conf):
    file = tmp_path / "built-in.yaml"
    file.write_text("- {priority: -1, actions: [{op: set-attribute, args: {path: /extra/built_in, value: 1}}]}\n")
    conf.set_override("built_in", str(file), group="inspection_rules")
    return RuleCaches(db, rule_sets.prepare_rules(conf, db))


@pytest.fixture
def app(caches, conf, db, rpc) -> Client:
    return Client(make_app(conf, db, rpc, caches))


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The values of the actions that were compiled since the test began."""
    values: list[int] = []
    original: Callable[..., Any] = compiler._action
    monkeypatch.setattr(compiler, "_action", lambda scope, item, where: (
        values.append(item["args"]["value"]) or original(scope, item, where)))
    return values


def written(rule_set: RuleSet) -> dict[str, Any]:
    given = world.facts({"extra": {}})
    rule_set.run("main", given)
    return given.task.node.extra


def test_what_was_compiled_to_check_a_rule_is_in_the_set(app, caches, compiled):
    created = app.post_json(PATH, rule(1), status=201).json
    assert written(caches.inspection.current()) == {"x": 1, "built_in": 1}
    app.patch_json(f"{PATH}/{created['uuid']}", [
        {"op": "replace", "path": "/actions", "value": rule(2)["actions"]}], status=200)
    assert written(caches.inspection.current()) == {"x": 2, "built_in": 1}
    app.put_json(PATH, {"rules": [rule(3, name="one", bundle="b")], "bundle": "b"}, status=200)
    assert written(caches.inspection.current()) == {"x": 3, "built_in": 1}
    assert compiled == [1, 2, 3]


def test_built_in_rules_are_compiled_once(db, tmp_path: Path, conf, compiled):
    file = tmp_path / "built-in.yaml"
    file.write_text("- {actions: [{op: set-attribute, args: {path: /extra/built_in, value: 7}}]}\n")
    conf.set_override("built_in", str(file), group="inspection_rules")
    assert written(RuleCaches(db, rule_sets.prepare_rules(conf, db)).inspection.current()) == {"built_in": 7}
    assert compiled == [7]


def test_the_rules_of_a_dry_run_are_compiled_once(app, compiled):
    asked = {"report": app.get(f"{PATH}/samples").json["samples"][0]["report"], "imagined": True}
    app.post_json(f"{PATH}/dry_run", {**asked, "rules": [rule(1), rule(2, enabled=False)]}, status=200)
    tried = app.post_json(f"{PATH}/dry_run", {**asked, "as_if": [rule(3)]}, status=200).json
    assert {"op": "add", "path": "/extra/x", "value": 3} in tried["node"]["patch"]
    assert compiled == [1, 2, 3]


def test_the_rules_of_a_revision_that_returns_are_compiled_once(app, caches, compiled):
    created = app.post_json(PATH, rule(1), status=201).json
    app.delete(f"{PATH}/{created['uuid']}", status=204)
    app.post_json(f"{PATH}/revisions/1/rollback", {}, status=200)
    assert written(caches.inspection.current()) == {"x": 1, "built_in": 1}
    assert compiled == [1, 1]


def test_the_rules_of_cases_are_compiled_once(tmp_path: Path, compiled):
    file = tmp_path / "cases.yaml"
    file.write_text(json.dumps({"rules": [rule(1), rule(2, enabled=False)], "cases": [
        {"report": {"inventory": {}}, "expect": {"changes": [{"op": "add", "path": "/extra/x", "value": 1}]}}]}))
    case, = rule_cases.run(file, Coverage(), time.monotonic)
    assert case.problems == []
    assert compiled == [1, 2]


def test_nothing_of_a_request_that_writes_nothing_is_in_the_set(app, caches):
    app.put_json(PATH, {"rules": [rule(1, name="one")]}, status=200)
    tried = app.put_json(PATH, {"rules": [rule(2, name="one")], "dry_run": True}, status=200).json
    assert len(tried["changed"]) == 1
    assert written(caches.inspection.current()) == {"x": 1, "built_in": 1}
