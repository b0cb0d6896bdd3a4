"""Rules of phase early, which run in the API before anything else: R-09, R-12, R-13."""

from __future__ import annotations

import pytest

from ironic_rules.api import app as api_app
from ironic_rules.db import inspection_rules, ports
from ironic_rules.inspection import rule_sets
from ironic_rules.inspection.rule_sets import RuleCaches
from tests.functional.api.conftest import Client
from tests.walking import walking

RULES = "/v1/inspection_rules"
FAIL = {"op": "fail", "args": ["no"]}
SCOPED = {"phase": "early", "scope": "lab", "actions": [FAIL]}
MAC = "52:54:00:12:34:ab"
DATA = {"inventory": {"interfaces": [{"name": "eth0", "mac_address": MAC}], "system_vendor": {"manufacturer": "ACME"}},
        "collected": 1}


@pytest.fixture
def waiting_node(db, make_node):
    node = make_node(provision_state="inspect wait")
    db.write(lambda conn: ports.create(conn, {"node_id": node.id, "address": MAC}))
    return node


def make_rule(app, **rule):
    return app.post_json("/v1/inspection_rules", {"phase": "early", **rule}, status=201).json


def test_r09_an_early_rule_changes_plugin_data_before_the_lookup(app, rpc, waiting_node):
    make_rule(app, actions=[{"op": "set-plugin-data", "args": ["site", "{inventory[system_vendor][manufacturer]}-1"]}])
    app.post_json("/v1/continue_inspection", DATA, status=200)
    assert rpc.calls[-1][2]["plugin_data"] == {"collected": 1, "site": "ACME-1"}


def test_a_refusal_is_the_same_404_as_an_unknown_machine(app, rpc, waiting_node, caplog):
    unknown = {"inventory": {"interfaces": [{"name": "eth0", "mac_address": "52:54:00:99:99:99"}]}}
    expected = app.post_json("/v1/continue_inspection", unknown, status=404)
    make_rule(app, conditions=[{"op": "eq", "args": ["{inventory[system_vendor][manufacturer]}", "ACME"]}],
              actions=[{"op": "fail", "args": ["no ACME here"]}])
    refused = app.post_json("/v1/continue_inspection", DATA, status=404)
    assert refused.body == expected.body
    assert "no ACME here" in caplog.text
    assert not rpc.calls


def test_r12_an_early_rule_can_not_name_the_node(app):
    rule = {"phase": "early", "actions": [{"op": "log", "args": ["{node.name}"]}]}
    assert "/actions/0" in app.post_json("/v1/inspection_rules", rule, status=400).text


def test_r13_node_actions_are_refused_in_early(app):
    rule = {"phase": "early", "actions": [{"op": "set-attribute", "args": ["/extra/a", 1]}]}
    assert "/actions/0" in app.post_json("/v1/inspection_rules", rule, status=400).text


def test_a_regex_that_a_long_text_could_keep_busy_is_refused_with_its_place(app):
    rule = {"phase": "early", "actions": [{"op": "log", "args": ["x"]}],
            "conditions": [{"op": "contains", "args": ["{plugin_data[site]}", ".{1,1000}.{1,1000}y"]}]}
    text = app.post_json("/v1/inspection_rules", rule, status=400).text
    assert "/conditions/0/args/1: the regular expression takes too much work" in text


@pytest.mark.parametrize("op", ["contains", "!contains", "matches", "!matches"])
def test_no_regex_is_tried_on_a_text_that_is_too_long(app, rpc, waiting_node, op):
    make_rule(app, conditions=[{"op": op, "args": ["{plugin_data[site]}", "x*"]}],
              actions=[{"op": "set-plugin-data", "args": ["seen", True]}])
    for length, tried in ((32768, not op.startswith("!")), (32769, False)):
        app.post_json("/v1/continue_inspection", {**DATA, "site": "x" * length}, status=200)
        assert ("seen" in rpc.calls[-1][2]["plugin_data"]) is tried


def test_an_early_rule_of_a_large_change_refuses_the_very_next_machine(app, rpc, waiting_node):
    app.post_json("/v1/continue_inspection", DATA, status=200)
    others = [{"description": str(number), "actions": [{"op": "log", "args": ["x"]}]} for number in range(101)]
    fail = {"phase": "early", "actions": [{"op": "fail", "args": ["no"]}]}
    app.put_json("/v1/inspection_rules", {"rules": [*others, fail]}, status=200)
    app.post_json("/v1/continue_inspection", DATA, status=404)
    assert len(rpc.calls) == 1


@pytest.fixture
def in_lab(conf, db, rpc):
    """The application with ``default_scope = lab``."""
    conf.set_override("default_scope", "lab", group="inspection_rules")
    return Client(api_app.make_app(conf, db, rpc, RuleCaches(db, rule_sets.prepare_rules(conf))))


def stored(db, **fields):
    """Store an early rule with a scope, as earlier versions did, and return its UUID."""
    return db.write(lambda conn: inspection_rules.create(conn, {**SCOPED, **fields})).uuid


@walking("method, path, body, where", [
    ("POST", RULES, SCOPED, "/scope"),
    ("PUT", RULES, {"rules": [SCOPED]}, "/rules/0/scope"),
    ("PUT", RULES, {"rules": [SCOPED], "bundle": "b", "dry_run": True}, "/rules/0/scope"),
    ("POST", f"{RULES}/dry_run", {"report": DATA, "imagined": True, "rules": [SCOPED]}, "/rules/0/scope"),
    ("POST", f"{RULES}/dry_run", {"report": DATA, "imagined": True, "as_if": [SCOPED]}, "/as_if/0/scope"),
])
def test_a_scope_of_an_early_rule_is_refused_with_its_place(app, method, path, body, where):
    send = app.post_json if method == "POST" else app.put_json
    problem, = send(path, body, status=400).fault["problems"]
    assert (problem["pointer"], "for every report" in problem["text"]) == (where, True)
    assert app.get(RULES).json["inspection_rules"] == []


@pytest.mark.parametrize(("before", "operations"), [
    ({"scope": "lab"}, [{"op": "replace", "path": "/phase", "value": "early"}]),
    ({"phase": "early"}, [{"op": "add", "path": "/scope", "value": "lab"}]),
    ({"phase": "early", "sensitive": True}, [{"op": "replace", "path": "/scope", "value": "lab"}]),
])
def test_no_patch_gives_an_early_rule_a_scope(app, before, operations):
    path = f"{RULES}/{app.post_json(RULES, {'actions': [FAIL], **before}).json['uuid']}"
    shown = app.get(path).json
    problem, = app.patch_json(path, operations, status=400).fault["problems"]
    assert problem["pointer"] == "/scope"
    assert app.get(path).json == shown
    as_if = {"report": DATA, "imagined": True, "as_if": [{"uuid": shown["uuid"], "patch": operations}]}
    if not before.get("sensitive"):
        assert "/as_if/0/scope" in app.post_json(f"{RULES}/dry_run", as_if, status=400).text


def test_the_default_scope_is_not_for_early_rules(in_lab):
    made = make_rule(in_lab, actions=[FAIL])
    in_lab.put_json(RULES, {"rules": [{"name": "a", "phase": "early", "actions": [FAIL]}], "bundle": "b"})
    moved = in_lab.post_json(RULES, {"actions": [FAIL]}).json
    changes = [{"op": "remove", "path": "/scope"}, {"op": "replace", "path": "/phase", "value": "early"}]
    tried = {"report": DATA, "imagined": True, "as_if": [{"uuid": moved["uuid"], "patch": changes}]}
    assert in_lab.post_json(f"{RULES}/dry_run", tried).json["outcome"] == "refused"
    in_lab.patch_json(f"{RULES}/{moved['uuid']}", changes)
    in_lab.patch_json(f"{RULES}/{made['uuid']}", changes[:1])

    assert moved["scope"] == "lab"
    assert [(rule["phase"], rule["scope"]) for rule in in_lab.get(RULES).json["inspection_rules"]] == [
        ("early", None)] * 3


def test_a_stored_early_rule_with_a_scope_runs_for_every_callback_and_is_shown_as_invalid(app, db, rpc, waiting_node):
    app.post_json("/v1/continue_inspection", DATA, status=200)
    uuid = stored(db)
    app.post_json("/v1/continue_inspection", DATA, status=404)
    assert len(rpc.calls) == 1
    path = f"{RULES}/{uuid}"
    shown = app.get(path).json
    assert (shown["scope"], shown["valid"], shown["problems"][0]["pointer"]) == ("lab", False, "/scope")
    for query in ("scope=lab", "valid=false"):
        assert [rule["uuid"] for rule in app.get(f"{RULES}?{query}").json["inspection_rules"]] == [uuid]

    # Unchanged fields are checked, too; other fields can be changed together with the scope only.
    same = {"uuid": uuid, **SCOPED}
    assert "/rules/0/scope" in app.put_json(RULES, {"rules": [same]}, status=400).text
    app.patch_json(path, [{"op": "add", "path": "/priority", "value": 1}], status=400)
    app.patch_json(path, [{"op": "remove", "path": "/scope"}])
    assert app.get(path).json["valid"]
    # Back to the revision that had it: refused, as any enabled rule that is not valid now.
    text = app.post_json(f"{RULES}/revisions/1/rollback", {}, status=400).text
    assert f"/rules/{uuid}/scope" in text


def test_a_stored_early_rule_with_a_scope_can_be_disabled(app, db, waiting_node):
    path = f"{RULES}/{stored(db)}"
    app.patch_json(path, [{"op": "replace", "path": "/enabled", "value": False}])
    app.post_json("/v1/continue_inspection", DATA, status=200)
    app.patch_json(path, [{"op": "replace", "path": "/enabled", "value": True}], status=400)


def test_stored_early_rules_with_a_scope_are_named_at_start(conf, db, caplog):
    named, other = stored(db), stored(db, enabled=False)
    rule_sets.prepare_rules(conf, db)
    warning, = (record.getMessage() for record in caplog.records if "phase early have a scope" in record.getMessage())
    assert (named in warning, other in warning) == (True, False)


def test_early_rules_of_two_scopes_meet(app, db):
    write = {"op": "set-plugin-data", "args": ["site", 1]}
    for scope in ("a", "b"):
        stored(db, scope=scope, actions=[write])
    assert [len(rule["conflicts"]) for rule in app.get(f"{RULES}/conflicts").json["conflicts"]] == [1, 1]
