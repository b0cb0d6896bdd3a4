"""Warnings in the replies that create or change a rule, and what templates can read of a node."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from ironic_rules.conductor import task_store
from ironic_rules.context import admin
from ironic_rules.db import conductors, inventory, nodes, portgroups, ports, tables
from ironic_rules.db.session import Database
from ironic_rules.inspection import rule_sets
from ironic_rules.models.fields import Type
from ironic_rules.rules import template

RULES = "/v1/inspection_rules"
UUID = "11111111-1111-4111-8111-111111111111"
LOG = {"op": "log", "args": {"msg": "hi"}}
BY_POSITION = {"op": "log", "args": ["hunter2"]}
MISSPELT = {"op": "is-none", "args": {"value": "{inventory[vendor][slott]}"}}
ASCII = {"op": "matches", "args": {"value": "{inventory[hostname]}", "regex": r"hunter\d"}}


@pytest.fixture(autouse=True)
def new_process() -> Iterator[None]:
    """No inventory was stored before."""
    inventory._catalogues.clear()
    yield
    inventory._catalogues.clear()


def places(reply: Any) -> list[str]:
    return [warning["pointer"] for warning in reply.json.get("warnings", ())]


def patch(app: Any, *operations: dict[str, Any]) -> Any:
    return app.patch_json(f"{RULES}/{UUID}", list(operations))


def store(db: Database, node: Any, data: dict[str, Any]) -> None:
    db.write(lambda conn: inventory.receive(conn, node.id, data, {}, None))


def put(name: str, value: Any) -> dict[str, Any]:
    return {"op": "add", "path": f"/{name}", "value": value}


def test_the_known_fields_are_those_of_the_drafts(db):
    with db.writer() as conn:
        node = nodes.create(conn, {"driver": "fake-hardware"})
        group = portgroups.create(conn, {"node_id": node.id})
        ports.create(conn, {"node_id": node.id, "address": "52:54:00:00:00:01", "portgroup_id": group.id})
        task = task_store.read(conn, nodes.get_by_id(conn, node.id)).task(admin())

    found = {"node": task.node.read(), "ports": task.ports[0].read(), "port_groups": task.port_groups[0]}

    assert {root: set(values) for root, values in found.items()} == {
        root: set(fields) for root, fields in template.RECORDS.items()}
    kinds = {dict: Type.OBJECT, list: Type.LIST}
    for root, values in found.items():
        for name, value in values.items():
            # No field that may be null has parts.
            assert (kinds.get(type(value)) or template.RECORDS[root][name]) == template.RECORDS[root][name], name
            assert (type(value) in kinds) == (template.RECORDS[root][name] in kinds.values()), name


@pytest.mark.parametrize("template", [
    "{node.auto_discoverd}", "{node.driver_inof[x]}", "{ports[0].adress}", "{node.__class__}", "{port_groups[0].nme}"])
def test_a_field_that_does_not_exist_is_refused_whenever_a_rule_is_written(app, template):
    wrong = {"op": "is-none", "args": {"value": template}}
    app.post_json(RULES, {"uuid": UUID, "actions": [LOG]})

    refusals = [app.post_json(RULES, {"actions": [LOG], "conditions": [wrong]}, status=400),
                app.patch_json(f"{RULES}/{UUID}", [put("conditions/-", wrong)], status=400)]

    for refusal in refusals:
        assert "/conditions/0/args/value: column" in refusal.fault["faultstring"]
        assert "there is no such field" in refusal.fault["faultstring"]


def test_warnings_are_in_the_reply_and_nowhere_else(app):
    created = app.post_json(RULES, {"uuid": UUID, "actions": [BY_POSITION], "conditions": [MISSPELT, ASCII]})
    changed = patch(app, put("priority", 5))
    mended = patch(app, put("actions", [LOG]), put("conditions", []))

    assert created.json["warnings"][0] == {
        "pointer": "/conditions/0/args/value", "text": "column 12: no inventory so far has this path",
        "nearest": "inventory[system_vendor]"}
    assert places(created) == places(changed) == [
        "/conditions/0/args/value", "/conditions/1/args/regex", "/actions/0/args"]
    assert "warnings" not in mended.json
    assert "warnings" not in app.get(f"{RULES}/{UUID}").json
    assert "hunter" not in json.dumps(created.json["warnings"])


def test_a_path_is_known_once_an_inventory_with_it_was_stored(app, db, make_node):
    rule = {"actions": [LOG], "conditions": [
        {"op": "is-none", "args": {"value": "{inventory[vendor][slot]}"}}, MISSPELT]}
    before = app.post_json(RULES, rule)
    store(db, make_node(), {"vendor": {"slot": 4}})
    after = app.post_json(RULES, {**rule, "uuid": UUID})
    changed = patch(app, put("priority", 1))

    assert places(before) == ["/conditions/0/args/value", "/conditions/1/args/value"]
    assert after.json["warnings"] == changed.json["warnings"] == [{
        "pointer": "/conditions/1/args/value", "text": "column 20: no inventory so far has this path",
        "nearest": "inventory[vendor][slot]"}]


def test_a_driver_that_no_live_conductor_offers_has_a_warning(app, db):
    rule = {"actions": [{"op": "set-attribute", "args": {"path": "/driver", "value": "ipmii"}},
                        {"op": "set-attribute", "args": {"path": "/boot_interface", "value": "pxe"}}]}
    db.write(lambda conn: conn.execute(sa.delete(tables.conductors)))
    # Nothing is known.
    assert "warnings" not in app.post_json(RULES, rule).json
    db.write(lambda conn: conductors.register(conn, "c1", "", {"ipmi": {"boot": {"enabled": ["pxe"]}}}, "i"))

    created = app.post_json(RULES, {**rule, "uuid": UUID})
    changed = patch(app, put("priority", 5))
    listed = app.put_json(RULES, {"rules": [{**rule, "name": "a"}]})

    warning = {"pointer": "/actions/0/args/value", "nearest": "ipmi",
               "text": "no conductor that runs now offers a driver of this name"}
    assert created.json["warnings"] == changed.json["warnings"] == [warning]
    assert listed.json["warnings"] == [{**warning, "pointer": f"/rules/0{warning['pointer']}"}]
    # A conductor that offers it may start later.
    db.write(lambda conn: conductors.register(conn, "c2", "", {"ipmii": {}}, "j"))
    assert "warnings" not in patch(app, put("priority", 6)).json


def test_of_a_sensitive_rule_only_what_was_sent_is_warned_of(app):
    created = app.post_json(RULES, {"uuid": UUID, "sensitive": True, "actions": [BY_POSITION], "conditions": [ASCII]})
    untouched = patch(app, put("description", "d"), put("phase", "preprocess"))
    replaced = patch(app, put("actions", [BY_POSITION, LOG, BY_POSITION]))
    removed = patch(app, {"op": "remove", "path": "/conditions"})

    assert places(created) == ["/conditions/0/args/regex", "/actions/0/args"]
    assert places(untouched) == places(removed) == []
    assert places(replaced) == ["/actions/0/args", "/actions/2/args"]
    assert "hunter" not in created.text + untouched.text + replaced.text + removed.text


def test_a_rule_that_becomes_sensitive_tells_nothing_of_what_it_had(app):
    app.post_json(RULES, {"uuid": UUID, "actions": [BY_POSITION]})

    assert places(patch(app, put("sensitive", True))) == []


def test_rules_that_are_written_together_are_warned_of_by_their_place(app):
    given = {"rules": [{"actions": [LOG]}, {"name": "a", "sensitive": True, "actions": [BY_POSITION]},
                       {"actions": [LOG], "conditions": [MISSPELT]}]}

    tried = app.put_json(RULES, {**given, "dry_run": True})
    made = app.put_json(RULES, given)
    again = app.put_json(RULES, given)

    assert places(tried) == places(made) == ["/rules/1/actions/0/args", "/rules/2/conditions/0/args/value"]
    # What is not written is not checked again; of a sensitive rule it must not show whether it is the same.
    assert places(again) == ["/rules/1/actions/0/args"]
    assert "hunter" not in tried.text + made.text + again.text


def test_warnings_about_built_in_rules_are_logged_at_start(conf, db, make_node, tmp_path: Path, caplog):
    file = tmp_path / "rules.yaml"
    file.write_text(json.dumps([{"uuid": UUID, "actions": [BY_POSITION], "conditions": [MISSPELT]},
                                {"uuid": UUID.replace("1", "2"), "sensitive": True, "actions": [BY_POSITION]}]))
    file.chmod(0o600)
    conf.set_override("built_in", str(file), "inspection_rules")
    store(db, make_node(), {"vendor": {"slot": 4}})

    rule_sets.prepare_rules(conf, db)

    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [
        f"Built-in inspection rule {UUID}: /conditions/0/args/value: column 20: no inventory so far has this path; "
        "did you mean inventory[vendor][slot]?",
        f"Built-in inspection rule {UUID}: /actions/0/args: Ironic wants arguments by name since August 2026: "
        '{"msg": ...}',
        f"Built-in inspection rule {UUID.replace('1', '2')} has warnings (1), not shown because it is sensitive"]
