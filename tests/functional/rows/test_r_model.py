"""The model of a rule: built-in rules, phases, sensitive rules, priorities, the table (R-01 to R-21)."""

from __future__ import annotations

import itertools
import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import mysql

from ironic_rules import rules
from ironic_rules.db.tables import inspection_rules
from ironic_rules.exceptions import ConfigurationError
from tests.functional.rows.conftest import LOG, RULES, create, finish, inspected, patch, refusal, stored, waiting
from tests.functional.whole import Whole, fault, running
from tests.walking import walking

FIRST, LAST = "11111111-1111-4111-8111-111111111111", "99999999-9999-4999-8999-999999999999"
BUILT_IN = f"""
- uuid: {FIRST}
  priority: 10001
  actions: [{{op: extend-attribute, args: [/extra/order, first]}}]
- priority: 10000
  actions: [{{op: extend-attribute, args: [/extra/order, second]}}]
- uuid: {LAST}
  priority: -1
  actions: [{{op: extend-attribute, args: [/extra/order, last]}}]
"""
SECRET = {
    "sensitive": True, "conditions": [{"op": "!eq", "args": ["hunter1", "{inventory[hostname]}"]}],
    "actions": [{"op": "set-attribute", "args": ["/driver_info/ipmi_password", "hunter2"]}],
}


def note(what: str) -> dict[str, object]:
    """Return an action that adds ``what`` to the list ``order`` of the node's ``extra``."""
    return {"op": "extend-attribute", "args": ["/extra/order", what]}


def listed(whole: Whole, query: str = "") -> list[str]:
    return [rule["uuid"] for rule in whole.app.get(RULES + query).json["inspection_rules"]]


@pytest.fixture
def built_in(tmp_path: Path) -> Iterator[Whole]:
    """A service with built-in rules and a default scope."""
    file = tmp_path / "rules.yaml"
    file.write_text(BUILT_IN)
    with running(tmp_path, f"built_in = {file}\ndefault_scope = lab\n") as whole:
        yield whole


def test_r_01_rules_give_credentials_to_discovered_nodes_that_fit_a_pattern(whole):
    create(whole, {"op": "set-attribute", "args": ["/driver_info/ipmi_username", "root"]},
           conditions=[{"op": "is-true", "args": ["{node.auto_discovered}"]},
                       {"op": "matches", "args": ["{inventory[hostname]}", "rack7-.*"]}])

    fits = inspected(whole, {"hostname": "rack7-n1"}, auto_discovered=True)
    other = inspected(whole, {"hostname": "rack8-n1"}, auto_discovered=True)
    known = inspected(whole, {"hostname": "rack7-n2"}, auto_discovered=False)

    assert [node["driver_info"] for node in (fits, other, known)] == [{"ipmi_username": "root"}, {}, {}]


def test_r_01_rules_fail_the_inspection_of_a_machine_that_does_not_fit(whole):
    create(whole, {"op": "fail", "args": ["too few CPUs"]},
           conditions=[{"op": "lt", "args": ["{inventory[cpu][count]}", 4096]}])

    node = inspected(whole)

    assert node["provision_state"] == "inspect failed"
    assert "too few CPUs" in node["last_error"]


def test_r_01_rules_keep_an_unexpected_machine_out(whole):
    create(whole, {"op": "fail", "args": ["not ours"]}, phase="early")
    before = whole.app.get("/v1/nodes").json
    _, body = whole.machine()

    assert whole.app.post_json("/v1/continue_inspection", body).status_int == 404
    assert whole.app.get("/v1/nodes").json == before


def test_r_02_built_in_rules_run_are_not_in_the_database_and_stay(built_in):
    assert built_in.app.delete(f"{RULES}/{FIRST}").status_int == 400
    assert built_in.app.delete(RULES).status_int == 204

    with built_in.db.reader() as conn:
        assert conn.execute(sa.select(sa.func.count()).select_from(inspection_rules)).scalar() == 0
    assert len(listed(built_in)) == 3
    assert inspected(built_in)["extra"] == {"order": ["first", "second", "last"]}


def test_r_03_the_file_is_read_at_the_start_only(tmp_path):
    file = tmp_path / "rules.yaml"
    file.write_text("- actions: [{op: set-attribute, args: [/extra/file, as at the start]}]\n")
    with running(tmp_path, f"built_in = {file}\n") as whole:
        file.write_text("this is: [no rule")
        # The call of services that read their files again at SIGHUP.
        whole.conf.mutate_config_files()
        assert inspected(whole)["extra"] == {"file": "as at the start"}
        assert len(listed(whole)) == 1


def test_r_03_a_broken_file_stops_the_start(tmp_path):
    file = tmp_path / "rules.yaml"
    file.write_text("- actions: [{op: no-such-action}]\n- priority: high\n")

    with pytest.raises(ConfigurationError) as caught, running(tmp_path, f"built_in = {file}\n"):
        pass

    assert all(where in str(caught.value) for where in ("/0/actions/0/op", "/1/priority", "/1/actions"))


def test_r_04_the_api_shows_the_fields_of_the_table_and_built_in(built_in):
    uuid = create(built_in)["uuid"]
    fields = {"uuid", "created_at", "updated_at", "priority", "description", "scope", "sensitive", "phase",
              "conditions", "actions", "built_in"}
    more = {"name", "bundle", "enabled", "max_nodes", "nodes_counted", "valid", "problems"}

    for ident, expected in ((uuid, False), (FIRST, True)):
        shown = built_in.app.get(f"{RULES}/{ident}").json
        assert shown.keys() == fields | more | {"links"}
        assert shown["built_in"] is expected


@pytest.mark.parametrize("value", [True, False, None])
def test_r_04_built_in_can_not_be_set(whole, value):
    rule = create(whole)

    assert "/built_in" in refusal(whole, built_in=value)
    for op in ("add", "replace"):
        reply = patch(whole, rule, {"op": op, "path": "/built_in", "value": value})
        assert (reply.status_int, "built_in" in fault(reply)) == (400, True)
    assert patch(whole, rule, {"op": "remove", "path": "/built_in"}).status_int == 400


def test_r_05_built_in_rules_are_listed_and_shown(built_in):
    uuids = listed(built_in, "?detail=true")

    assert (uuids[0], uuids[2]) == (FIRST, LAST)
    for uuid in uuids:
        reply = built_in.app.get(f"{RULES}/{uuid}")
        assert (reply.status_int, reply.json["uuid"], reply.json["built_in"]) == (200, uuid, True)
    assert listed(built_in) == uuids


def test_r_06_only_built_in_rules_have_priorities_below_0_and_above_9999(built_in):
    create(built_in, note("9999"), priority=9999, scope=None)
    create(built_in, note("0"), scope=None)

    assert inspected(built_in)["extra"] == {"order": ["first", "second", "9999", "0", "last"]}
    for priority in (-1, 10000, 10001):
        assert "/priority" in refusal(built_in, priority=priority)


def test_r_07_the_default_scope_is_that_of_users_rules_which_set_none(built_in):
    assert create(built_in, note("default"))["scope"] == "lab"
    assert create(built_in, note("explicit"), scope="other")["scope"] == "other"

    assert inspected(built_in)["extra"] == {"order": ["first", "second", "last"]}
    assert inspected(built_in, inspection_scope="lab")["extra"] == {"order": ["first", "second", "default", "last"]}
    assert built_in.app.get(f"{RULES}/{FIRST}").json["scope"] is None


def test_r_08_the_phases_are_early_preprocess_and_main_which_is_the_default(whole):
    assert [create(whole, phase=phase)["phase"] for phase in ("early", "preprocess", "main")] == [
        "early", "preprocess", "main"]
    assert create(whole)["phase"] == "main"
    assert "/phase" in refusal(whole, phase="late")


def test_r_09_early_rules_run_before_the_lookup(whole, caplog):
    caplog.set_level(logging.INFO)
    create(whole, {"op": "log", "args": ["seen {inventory[hostname]}"]}, phase="early")
    _, body = whole.machine()
    body["inventory"]["hostname"] = "unknown-machine"

    assert whole.app.post_json("/v1/continue_inspection", body).status_int == 404

    assert "seen unknown-machine" in caplog.text


def test_r_09_early_rules_run_before_the_hooks(whole):
    create(whole, {"op": "set-plugin-data", "args": ["error", "refused early"]}, phase="early")

    # The hook ramdisk-error fails the inspection when it finds an error in the plugin data.
    assert "refused early" in inspected(whole)["last_error"]


def test_r_10_preprocess_rules_run_between_the_two_stages_of_the_hooks(whole):
    see = {"macs": "{plugin_data[macs]}", "arch": "{node.properties}", "ports": "{ports}"}
    create(whole, {"op": "set-plugin-data", "args": ["preprocess", see]}, phase="preprocess")
    uuid, body = waiting(whole)

    finish(whole, uuid, body)

    # validate-interfaces gives macs in its preprocess; architecture and ports work in the main stage.
    assert stored(whole, uuid)["plugin_data"]["preprocess"] == {
        "macs": [body["inventory"]["interfaces"][0]["mac_address"]], "arch": {}, "ports": []}


def test_r_10_a_hook_of_the_main_stage_works_with_what_a_preprocess_rule_left(whole):
    create(whole, {"op": "set-plugin-data", "args": ["valid_interfaces", {}]}, phase="preprocess")

    node = inspected(whole)

    assert node["provision_state"] == "manageable"
    assert whole.app.get(f"/v1/nodes/{node['uuid']}/ports").json["ports"] == []


def test_r_11_main_rules_see_what_all_hooks_did_and_their_plugin_data_are_stored(whole):
    create(whole, {"op": "set-plugin-data", "args": ["main", ["{node.properties[cpu_arch]}", "{ports[0].address}"]]})
    uuid, body = waiting(whole)

    finish(whole, uuid, body)

    inventory = body["inventory"]
    assert stored(whole, uuid)["plugin_data"]["main"] == [
        inventory["cpu"]["architecture"], inventory["interfaces"][0]["mac_address"]]


@pytest.mark.parametrize("name", ["node", "ports", "port_groups"])
def test_r_12_early_rules_can_not_name_what_belongs_to_a_node(whole, name):
    use = [f"{{{name}}}", "x"]

    text = refusal(whole, {"op": "set-plugin-data", "args": ["x", f"{{{name}}}"]}, phase="early",
                   conditions=[{"op": "eq", "args": use}, {"op": "eq", "args": ["{item}", "x"], "loop": f"{{{name}}}"}])

    assert all(where in text for where in ("/conditions/0/args/0", "/conditions/1/loop", "/actions/0/args/1"))


def test_r_12_early_rules_read_inventory_and_plugin_data(whole):
    create(whole, {"op": "set-plugin-data", "args": ["early", ["{inventory[hostname]}", "{plugin_data[sent]}"]]},
           phase="early")
    uuid, body = waiting(whole)
    body["inventory"]["hostname"] = "h"

    finish(whole, uuid, {**body, "sent": [1]})

    assert stored(whole, uuid)["plugin_data"]["early"] == ["h", [1]]


def test_r_13_fail_log_and_the_plugin_data_actions_work_in_early(whole, caplog):
    caplog.set_level(logging.INFO)
    create(whole, {"op": "log", "args": ["early words"]}, {"op": "set-plugin-data", "args": ["a", 1]},
           {"op": "extend-plugin-data", "args": ["b", 2]}, {"op": "unset-plugin-data", "args": ["sent"]}, phase="early")
    uuid, body = waiting(whole)

    finish(whole, uuid, {**body, "sent": True})

    data = stored(whole, uuid)["plugin_data"]
    assert (data["a"], data["b"], "sent" in data, "early words" in caplog.text) == (1, [2], False, True)
    create(whole, {"op": "fail", "args": ["early no"]}, phase="early")
    uuid, body = waiting(whole)
    assert whole.callback(uuid, body).status_int == 404
    assert (whole.row(uuid).provision_state, "early no" in caplog.text) == ("inspect wait", True)


EARLY = {"fail", "log", "set-plugin-data", "extend-plugin-data", "unset-plugin-data"}


@walking("op", sorted({action.name for action in rules.ACTIONS} - EARLY - {"api-call"}))
def test_r_13_actions_on_nodes_and_ports_are_refused_in_early(whole, op):
    text = refusal(whole, {"op": op, "args": {}}, phase="early")

    assert "/actions/0/op: not available in the early phase" in text


def test_r_14_a_rule_can_be_changed_and_the_next_inspection_follows_it(whole):
    rule = create(whole, note("old"), description="old")
    assert inspected(whole)["extra"] == {"order": ["old"]}

    changed = patch(whole, rule, {"op": "replace", "path": "/description", "value": "new"},
                    {"op": "replace", "path": "/actions/0/args/1", "value": "new"})

    assert (changed.status_int, changed.json["description"]) == (200, "new")
    assert changed.json["updated_at"] > changed.json["created_at"] == rule["created_at"]
    assert inspected(whole)["extra"] == {"order": ["new"]}


def test_r_15_a_sensitive_rule_is_shown_without_conditions_and_actions(whole):
    created = whole.app.post_json(RULES, SECRET)
    one = f"{RULES}/{created.json['uuid']}"

    for reply in (created, *(whole.app.get(path) for path in (
            one, f"{one}?fields=conditions,actions", f"{RULES}?detail=true", f"{RULES}?fields=conditions,actions"))):
        rule = reply.json.get("inspection_rules", [reply.json])[0]
        assert (rule["conditions"], rule["actions"]) == (None, None)
        assert "hunter" not in reply.text


NOT_SENSITIVE = [
    *({"op": op, "path": "/sensitive", "value": value}
      for op in ("add", "replace") for value in (True, False, None, "false", 0, [])),
    {"op": "remove", "path": "/sensitive"}, {"op": "replace", "path": "/sensitive"},
    {"op": "test", "path": "/sensitive", "value": True},
    {"op": "copy", "from": "/built_in", "path": "/sensitive"}, {"op": "move", "from": "/scope", "path": "/sensitive"},
    {"op": "move", "from": "/sensitive", "path": "/description"},
    {"op": "copy", "from": "/actions", "path": "/description"},
    {"op": "replace", "path": "", "value": {"sensitive": False, "actions": [LOG]}},
]


def test_r_16_no_sequence_of_changes_makes_a_sensitive_rule_not_sensitive(whole):
    rule = whole.app.post_json(RULES, SECRET).json

    for operations in [*((one,) for one in NOT_SENSITIVE), *itertools.product(NOT_SENSITIVE, repeat=2)]:
        reply = patch(whole, rule, *operations)
        final = operations[-1] if operations[-1]["op"] in ("add", "replace") else None
        assert "hunter" not in reply.text, operations
        if final is not None and final.get("value") is not True:
            assert reply.status_int == 400, operations
        if reply.status_int == 200:
            assert (reply.json["sensitive"], reply.json["conditions"], reply.json["actions"]) == (True, None, None)

    shown = whole.app.get(f"{RULES}/{rule['uuid']}").json
    assert (shown["sensitive"], shown["conditions"], shown["actions"]) == (True, None, None)


def test_r_16_operations_that_say_true_pass(whole):
    rule = whole.app.post_json(RULES, SECRET).json

    assert patch(whole, rule, {"op": "replace", "path": "/sensitive", "value": True}).json["sensitive"] is True
    assert patch(whole, rule, {"op": "remove", "path": "/sensitive"},
                 {"op": "add", "path": "/sensitive", "value": True}).json["actions"] is None


@pytest.mark.parametrize("action", [
    {"op": "fail", "args": ["hunter2"]},
    {"op": "set-attribute", "args": ["/extra/x", "{plugin_data[hunter2]}"]},
    {"op": "set-port-attribute", "args": ["{item}", "/extra/x", 1], "loop": ["hunter2"]},
    {"op": "set-attribute", "args": ["{item}", "x"], "loop": ["/hunter2"]},
], ids=lambda action: action["op"])
def test_r_17_a_failing_sensitive_rule_says_only_that_it_failed(whole, caplog, action):
    caplog.set_level(logging.DEBUG)
    rule = create(whole, action, sensitive=True, conditions=SECRET["conditions"])

    node = inspected(whole)

    assert node["provision_state"] == "inspect failed"
    assert rule["uuid"] in node["last_error"]
    assert "the rule is sensitive" in node["last_error"]
    history = whole.app.get(f"/v1/nodes/{node['uuid']}/history?detail=true")
    assert "hunter" not in node["last_error"] + history.text + str(whole.events(node["uuid"])) + caplog.text


def test_r_17_an_error_of_a_plain_rule_says_what_went_wrong(whole):
    create(whole, {"op": "fail", "args": ["the disk is small"]})

    assert "the disk is small" in inspected(whole)["last_error"]


@pytest.mark.parametrize("operation", [
    {"op": "replace", "path": "/description", "value": "new"},
    {"op": "replace", "path": "/actions", "value": [{"op": "log", "args": ["hunter3"]}]},
    {"op": "replace", "path": "/conditions", "value": [{"op": "eq", "args": ["hunter3", "x"]}]},
    {"op": "replace", "path": "/sensitive", "value": True},
    {"op": "remove", "path": "/conditions"},
], ids=lambda operation: operation["op"] + operation["path"])
def test_r_18_a_change_of_a_sensitive_rule_returns_neither_conditions_nor_actions(whole, operation):
    reply = patch(whole, whole.app.post_json(RULES, SECRET).json, operation)

    assert (reply.status_int, reply.json["conditions"], reply.json["actions"]) == (200, None, None)
    assert "hunter" not in reply.text


def test_r_18_nor_does_the_change_that_makes_a_rule_sensitive(whole):
    rule = create(whole, {"op": "log", "args": ["hunter2"]})

    reply = patch(whole, rule, {"op": "replace", "path": "/sensitive", "value": True})

    assert (reply.status_int, reply.json["actions"], "hunter" in reply.text) == (200, None, False)


def test_r_19_priorities_are_0_to_9999_and_0_by_default_and_the_higher_runs_first(whole):
    for priority in (0, 9999, 5, 10):
        assert create(whole, note(str(priority)), priority=priority)["priority"] == priority
    rule = create(whole, note("default"))

    assert rule["priority"] == 0
    assert inspected(whole)["extra"] == {"order": ["9999", "10", "5", "0", "default"]}
    for priority in (-1, 10000):
        assert "/priority" in refusal(whole, priority=priority)
        assert patch(whole, rule, {"op": "replace", "path": "/priority", "value": priority}).status_int == 400


def test_r_20_rules_of_one_priority_run_in_the_order_of_their_creation(whole):
    # Neither by UUID nor by the last change.
    first, *_ = [create(whole, note(digit), uuid=digit * 8 + "-1111-4111-8111-111111111111") for digit in "915"]
    patch(whole, first, {"op": "replace", "path": "/description", "value": "changed later"})

    assert inspected(whole)["extra"] == {"order": ["9", "1", "5"]}


def test_r_21_rules_are_one_table_with_the_columns_of_the_document(whole):
    uuid = create(whole, LOG, conditions=[{"op": "is-true", "args": [True]}])["uuid"]
    inspector = sa.inspect(whole.db.engine)
    columns = {column["name"]: column for column in inspector.get_columns("inspection_rules")}

    assert inspector.get_pk_constraint("inspection_rules")["constrained_columns"] == ["uuid"]
    # The other tables have what the rules were earlier, the nodes that are counted for them, and their statistics.
    assert [name for name in inspector.get_table_names() if "inspection_rule" in name or "condition" in name] == [
        "inspection_rule_changed_nodes", "inspection_rule_nodes", "inspection_rule_revisions",
        "inspection_rule_statistics", "inspection_rule_versions", "inspection_rules"]
    lengths = {"uuid": 36, "description": 255, "scope": 255, "phase": 16}
    assert {name: columns[name]["type"].length for name in lengths} == lengths
    nullable = ("updated_at", "description", "scope", "phase")
    assert [columns[name]["nullable"] for name in ("created_at", *nullable)] == [False, True, True, True, True]
    assert {("scope",), ("phase",)} <= {
        tuple(index["column_names"]) for index in inspector.get_indexes("inspection_rules")}
    with whole.db.reader() as conn:
        query = sa.text("SELECT * FROM inspection_rules WHERE uuid = :uuid")
        row = conn.execute(query, {"uuid": uuid}).mappings().one()
    assert (row["priority"], row["sensitive"], row["phase"], row["updated_at"]) == (0, 0, "main", None)
    assert json.loads(row["conditions"]) == [{"op": "is-true", "args": [True]}]
    assert json.loads(row["actions"]) == [LOG]


@walking("name", ["conditions", "actions"])
def test_r_21_long_conditions_and_actions_fit_into_mysql(name):
    assert inspection_rules.c[name].type.compile(dialect=mysql.dialect()) == "LONGTEXT"
