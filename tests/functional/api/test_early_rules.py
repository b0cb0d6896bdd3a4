"""Rules of phase early, which run in the API before anything else: R-09, R-12, R-13."""

from __future__ import annotations

import pytest

from ironic_rules.db import ports

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
