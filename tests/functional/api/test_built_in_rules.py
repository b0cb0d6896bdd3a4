"""Built-in rules in the API: R-02 to R-07, R-68, R-69."""

from __future__ import annotations

from pathlib import Path

import pytest
from oslo_config import cfg

from ironic_rules.api import app as api_app
from ironic_rules.db.session import Database
from ironic_rules.inspection import rule_sets
from ironic_rules.inspection.rule_sets import RuleCaches
from tests.fakes import FakeConductorAPI
from tests.functional.api.conftest import Client
from tests.walking import walking

FIRST, SECOND = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
FILE = f"""
- uuid: {FIRST}
  description: first
  priority: 20000
  actions: [{{op: log, args: [hello]}}]
- uuid: {SECOND}
  description: second
  priority: -5
  sensitive: true
  phase: preprocess
  actions: [{{op: log, args: [secret]}}]
"""
USER = {"actions": [{"op": "log", "args": ["user"]}]}


@pytest.fixture
def with_rules(conf: cfg.ConfigOpts, db: Database, rpc: FakeConductorAPI, tmp_path: Path) -> Client:
    file = tmp_path / "rules.yaml"
    file.write_text(FILE)
    conf.set_override("built_in", str(file), group="inspection_rules")
    conf.set_override("default_scope", "lab", group="inspection_rules")
    app = api_app.make_app(conf, db, rpc, RuleCaches(db, rule_sets.prepare_rules(conf)))
    return Client(app, extra_environ={"REMOTE_ADDR": "127.0.0.1"})


def uuids(app: Client, query: str = "") -> list[str]:
    return [rule["uuid"] for rule in app.get(f"/v1/inspection_rules{query}").json["inspection_rules"]]


def test_r05_built_in_rules_are_listed_after_the_stored_ones_and_shown(with_rules):
    stored = with_rules.post_json("/v1/inspection_rules", USER, status=201).json
    assert (stored["built_in"], stored["scope"]) == (False, "lab")
    assert uuids(with_rules) == [stored["uuid"], FIRST, SECOND]
    shown = with_rules.get(f"/v1/inspection_rules/{FIRST}").json
    assert (shown["built_in"], shown["priority"], shown["scope"], shown["created_at"]) == (True, 20000, None, None)
    assert shown["actions"] == [{"op": "log", "args": ["hello"]}]


def test_r15_a_sensitive_built_in_rule_shows_neither_conditions_nor_actions(with_rules):
    shown = with_rules.get(f"/v1/inspection_rules/{SECOND}").json
    assert (shown["conditions"], shown["actions"], shown["sensitive"]) == (None, None, True)
    listed = with_rules.get("/v1/inspection_rules?detail=true")
    assert "secret" not in listed.text
    assert [rule["built_in"] for rule in listed.json["inspection_rules"]] == [True, True]


def test_a_list_is_walked_page_by_page_across_both_kinds(with_rules):
    stored = [with_rules.post_json("/v1/inspection_rules", USER).json["uuid"] for _ in range(3)]
    found, url = [], "/v1/inspection_rules?limit=2"
    while url:
        reply = with_rules.get(url).json
        found += [rule["uuid"] for rule in reply["inspection_rules"]]
        url = reply.get("next", "").replace("http://localhost", "")
    assert found == [*stored, FIRST, SECOND]


@walking("query, expected", [
    ("?phase=preprocess", [SECOND]), ("?priority=20000", [FIRST]), ("?scope=lab", []),
    ("?sort_key=priority", [SECOND, FIRST]), ("?sort_dir=desc", [SECOND, FIRST]), (f"?marker={FIRST}", [SECOND]),
    (f"?marker={FIRST}&built_in=false", []),
])
def test_filters_and_order_hold_for_built_in_rules(with_rules, query, expected):
    assert uuids(with_rules, query) == expected


@pytest.mark.parametrize("uuid", [FIRST, SECOND])
def test_r68_a_built_in_rule_is_neither_changed_nor_deleted(with_rules, uuid):
    path = f"/v1/inspection_rules/{uuid}"
    patch = [{"op": "replace", "path": "/priority", "value": 1}]
    assert "built-in" in with_rules.patch_json(path, patch, status=400).text
    assert "built-in" in with_rules.delete(path, status=400).text
    with_rules.post_json("/v1/inspection_rules", {**USER, "uuid": uuid}, status=409)


def test_r69_delete_all_keeps_the_built_in_rules(with_rules):
    with_rules.post_json("/v1/inspection_rules", USER)
    with_rules.delete("/v1/inspection_rules", status=204)
    assert uuids(with_rules) == [FIRST, SECOND]


def test_r07_the_default_scope_is_for_rules_that_set_none(with_rules):
    path = "/v1/inspection_rules"
    explicit = with_rules.post_json(path, {**USER, "scope": None}).json
    assert explicit["scope"] is None
    scoped = with_rules.post_json(path, {**USER, "scope": "other"}).json
    patch = [{"op": "remove", "path": "/scope"}]
    assert with_rules.patch_json(f"{path}/{scoped['uuid']}", patch).json["scope"] == "lab"
