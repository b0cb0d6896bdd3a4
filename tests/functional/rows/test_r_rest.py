"""R-61 to R-69: when rules run, and ``/v1/inspection_rules``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ironic_rules.models import states
from tests.functional.rows.conftest import LOG, RULES, create, inspected, patch, refusal
from tests.functional.whole import Whole, fault, running
from tests.walking import walking

UUID = "11111111-1111-4111-8111-111111111111"
NOBODY = "22222222-2222-4222-8222-222222222222"
BUILT_IN = "33333333-3333-4333-8333-333333333333"
FULL = {
    "uuid": UUID, "description": "all fields", "priority": 9999, "phase": "preprocess", "scope": "lab",
    "sensitive": False, "actions": [LOG],
    "conditions": [{"op": "! eq", "args": {"values": [1, "{inventory[cpu][count]}"]}}],
}


@pytest.fixture
def with_built_in(tmp_path: Path) -> Iterator[Whole]:
    """A separate service with one built-in rule. Two services at the same time would get each other's messages."""
    file = tmp_path / "rules.yaml"
    file.write_text(f"- {{uuid: {BUILT_IN}, phase: early, actions: [{{op: log, args: [built in]}}]}}\n")
    with running(tmp_path, f"built_in = {file}\n") as service:
        yield service


def listed(whole: Whole, query: str = "") -> list[dict[str, Any]]:
    """Return one page of rules."""
    reply = whole.app.get(RULES + query)
    assert reply.status_int == 200, reply.text
    rules: list[dict[str, Any]] = reply.json["inspection_rules"]
    return rules


def uuids(whole: Whole, query: str = "") -> list[str]:
    return [rule["uuid"] for rule in listed(whole, query)]


def test_r_61_rules_run_in_the_state_inspecting(whole):
    for phase in ("preprocess", "main"):
        create(whole, {"op": "set-attribute", "args": [f"/extra/{phase}", "{node.provision_state}"]}, phase=phase)

    node = inspected(whole)

    assert node["extra"] == {"preprocess": states.INSPECTING, "main": states.INSPECTING}
    assert (node["provision_state"], node["target_provision_state"]) == (states.MANAGEABLE, None)


def test_r_61_rules_run_in_the_state_inspecting_for_a_discovered_machine_too(tmp_path):
    with running(tmp_path, "\n[auto_discovery]\nenabled = true\ndriver = fake-hardware\n") as whole:
        create(whole, {"op": "set-attribute", "args": ["/extra/state", "{node.provision_state}"]})

        reply = whole.app.post_json("/v1/continue_inspection", whole.machine()[1])

        assert reply.status_int == 200, reply.text
        uuid = reply.json["node"]["uuid"]
        whole.at_rest(uuid)
        assert whole.show(uuid)["extra"] == {"state": states.INSPECTING}
        assert whole.show(uuid)["provision_state"] == states.ENROLL


@pytest.mark.parametrize("body", [{"actions": [LOG]}, {"actions": [LOG], "conditions": []},
                                  {"actions": [LOG], "conditions": None}])
def test_r_62_only_actions_are_required(whole, body):
    reply = whole.app.post_json(RULES, body)

    assert reply.status_int == 201
    assert (reply.json["conditions"], reply.json["actions"]) == ([], [LOG])
    assert (reply.json["priority"], reply.json["phase"], reply.json["sensitive"]) == (0, "main", False)
    assert uuids(whole) == [reply.json["uuid"]]


def test_r_62_a_rule_without_conditions_always_runs(whole):
    create(whole, {"op": "set-attribute", "args": ["/extra/ran", True]})

    assert inspected(whole)["extra"] == {"ran": True}


def test_r_62_every_field_but_built_in_can_be_set(whole):
    reply = whole.app.post_json(RULES, FULL)

    assert reply.status_int == 201
    assert {name: reply.json[name] for name in FULL} == FULL
    assert reply.json["built_in"] is False
    for value in (True, False, None):
        assert "/built_in: " in refusal(whole, built_in=value)


@walking("wrong, place", [
    ({"actions": None}, "/actions: "), ({"actions": []}, "/actions: "),
    ({"actions": [{"op": "set-attribute", "args": {"path": "/extra/a"}}]}, "/actions/0/args: missing: value"),
    ({"actions": [{"op": "set-attribute", "args": {"path": "/extra/a", "value": 1, "x": 1}}]}, "/actions/0/args/x: "),
    ({"actions": [{"op": "log", "args": ["a", "info", "c"]}]}, "/actions/0/args/2: "),
    ({"actions": [{"op": "log"}]}, "/actions/0/args: "), ({"actions": [{"args": ["a"]}]}, "/actions/0/op: "),
    ({"conditions": [{"op": "in-net", "args": ["10.0.0.1"]}]}, "/conditions/0/args: missing: subnet"),
    ({"conditions": [{"op": "in-net", "args": ["10.0.0.1", "10.0.0.0/99"]}]}, "/conditions/0/args/1: "),
    ({"conditions": [{"op": "matches", "args": ["a", "("]}]}, "/conditions/0/args/1: "),
    ({"conditions": [{"op": "is-true", "args": {"valeu": 1}}]}, "/conditions/0/args/valeu: "),
    ({"conditions": [{"op": "lte", "args": [1, 2]}]}, "/conditions/0/op: "), ({"conditions": {}}, "/conditions: "),
    ({"uuid": "not-a-uuid"}, "/uuid: "), ({"uuid": 7}, "/uuid: "), ({"priority": 10000}, "/priority: "),
    ({"priority": -1}, "/priority: "), ({"phase": "late"}, "/phase: "), ({"phase": None}, "/phase: "),
    ({"scope": "s" * 256}, "/scope: "), ({"description": 1}, "/description: "), ({"sensitive": 2}, "/sensitive: "),
    ({"surprise": 1}, "/surprise: "),
])
def test_r_62_what_is_wrong_is_refused_with_its_place_and_not_stored(whole, wrong, place):
    reply = whole.app.post_json(RULES, {"actions": [LOG], **wrong})

    assert reply.status_int == 400, reply.text
    assert place in fault(reply)
    assert listed(whole) == []


def test_r_62_every_problem_is_named_at_once(whole):
    text = refusal(whole, {"op": "log", "args": ["a", "loud"]}, priority=-1, conditions=[{"op": "lte"}])

    assert all(place in text for place in ("/actions/0/args/1: ", "/priority: ", "/conditions/0/op: "))


@walking("body", ["[]", '"text"', "null", "{", ""])
def test_r_62_what_is_no_rule_at_all_is_refused(whole, body):
    reply = whole.app.post(RULES, body, content_type="application/json")

    assert reply.status_int == 400, reply.text
    assert listed(whole) == []


def test_r_62_an_identifier_that_is_taken_is_a_conflict(whole):
    create(whole, uuid=UUID)

    assert whole.app.post_json(RULES, {"actions": [LOG], "uuid": UUID}).status_int == 409
    assert uuids(whole) == [UUID]


def test_r_63_a_rule_is_shown_and_its_links_lead_back_to_it(whole):
    created = whole.app.post_json(RULES, FULL)

    shown = whole.app.get(f"{RULES}/{UUID}")

    assert (shown.status_int, shown.json) == (200, created.json)
    own = {link["rel"]: link["href"] for link in shown.json["links"]}["self"]
    assert own == created.headers["Location"] == f"http://localhost{RULES}/{UUID}"
    assert whole.app.get(own).json == created.json
    in_list, = listed(whole)
    assert in_list["links"] == shown.json["links"]


def test_r_63_a_rule_that_does_not_exist_is_404(whole):
    reply = whole.app.get(f"{RULES}/{NOBODY}")

    assert (reply.status_int, NOBODY in fault(reply)) == (404, True)


def test_r_64_conditions_and_actions_are_listed_with_detail_only(whole):
    whole.app.post_json(RULES, FULL)

    for query in ("", "?detail=false", "?detail=False"):
        rule, = listed(whole, query)
        assert (rule["uuid"], "conditions" in rule, "actions" in rule) == (UUID, False, False)
    for query in ("?detail=true", "?detail=True", "?details=true"):
        rule, = listed(whole, query)
        assert (rule["conditions"], rule["actions"]) == (FULL["conditions"], FULL["actions"])


def test_r_64_the_list_is_filtered_by_phase_and_scope(with_built_in):
    rules = {(phase, scope): create(with_built_in, phase=phase, scope=scope)["uuid"]
             for phase in ("early", "main", "preprocess") for scope in ("lab", None)
             if (phase, scope) != ("early", "lab")}

    assert uuids(with_built_in) == [*rules.values(), BUILT_IN]
    assert uuids(with_built_in, "?phase=early") == [rules["early", None], BUILT_IN]
    assert uuids(with_built_in, "?scope=lab") == [rule for (_, scope), rule in rules.items() if scope]
    assert uuids(with_built_in, "?phase=main&scope=lab") == [rules["main", "lab"]]
    assert uuids(with_built_in, "?scope=nowhere") == []


def test_r_64_links_to_further_pages_exist_and_keep_every_filter(whole):
    wanted = [create(whole, scope="lab", phase="preprocess", priority=number)["uuid"] for number in range(5)]
    create(whole, scope="lab")
    create(whole, phase="preprocess")

    found, pages = [], 0
    url = f"{RULES}?scope=lab&phase=preprocess&limit=2&detail=true&sort_key=priority&sort_dir=desc"
    while url:
        reply = whole.app.get(url)
        assert reply.status_int == 200, reply.text
        assert all(rule["actions"] == [LOG] for rule in reply.json["inspection_rules"])
        found += [rule["uuid"] for rule in reply.json["inspection_rules"]]
        url, pages = reply.json.get("next"), pages + 1

    assert (found, pages) == (wanted[::-1], 3)


@walking("query", [
    "phase=late", "phase=", "detail=perhaps", "limit=-1", "limit=x", "marker=x",
    "sort_key=actions", "sort_key=no_such", "sort_dir=up", "fields=no_such", "no_such=1",
    "detail=true&fields=uuid", "scope=a%00b"])
def test_r_65_a_list_that_is_asked_for_in_a_wrong_way_is_400(whole, query):
    create(whole)

    reply = whole.app.get(f"{RULES}?{query}")

    assert reply.status_int == 400, reply.text
    assert fault(reply)


def test_r_66_a_patch_returns_the_changed_rule(whole):
    created = whole.app.post_json(RULES, FULL).json

    reply = patch(whole, created, {"op": "replace", "path": "/priority", "value": 0},
                  {"op": "add", "path": "/actions/-", "value": {"op": "fail", "args": {"msg": "no"}}},
                  {"op": "remove", "path": "/conditions/0"}, {"op": "remove", "path": "/scope"})

    assert reply.status_int == 200
    changed = {"priority": 0, "actions": [LOG, {"op": "fail", "args": {"msg": "no"}}], "conditions": [], "scope": None}
    assert reply.json == {**created, **changed, "updated_at": reply.json["updated_at"]}
    assert reply.json["updated_at"] > created["created_at"]
    assert whole.app.get(f"{RULES}/{UUID}").json == reply.json


def test_r_66_a_patch_of_a_rule_that_does_not_exist_is_404(whole):
    assert patch(whole, {"uuid": NOBODY}, {"op": "replace", "path": "/priority", "value": 1}).status_int == 404


@walking("operation", [
    {"op": "replace", "path": "/built_in", "value": True}, {"op": "add", "path": "/built_in", "value": False},
    {"op": "remove", "path": "/built_in"}, {"op": "replace", "path": "/priority", "value": 10000},
    {"op": "replace", "path": "/priority", "value": -1}, {"op": "replace", "path": "/uuid", "value": NOBODY},
    {"op": "replace", "path": "/phase", "value": "late"}, {"op": "replace", "path": "/phase", "value": None},
    {"op": "remove", "path": "/actions"}, {"op": "replace", "path": "/created_at", "value": None},
    {"op": "add", "path": "/conditions/0/op", "value": "lte"}, {"op": "add", "path": "/surprise", "value": 1},
], between="no_rules")
def test_r_66_a_patch_that_does_not_lead_to_a_valid_rule_is_400_and_changes_nothing(whole, operation):
    before = whole.app.post_json(RULES, FULL).json

    reply = patch(whole, before, {"op": "replace", "path": "/description", "value": "changed"}, operation)

    assert reply.status_int == 400, reply.text
    assert operation["path"] in fault(reply) or "/1/path" in fault(reply)
    assert whole.app.get(f"{RULES}/{UUID}").json == before


@pytest.mark.parametrize("operations", [
    [{"op": "replace", "path": "/sensitive", "value": False}], [{"op": "remove", "path": "/sensitive"}],
    [{"op": "replace", "path": "/sensitive", "value": None}],
    [{"op": "replace", "path": "/sensitive", "value": True}, {"op": "replace", "path": "/sensitive", "value": False}]])
def test_r_66_a_sensitive_rule_stays_so(whole, operations):
    rule = create(whole, {"op": "log", "args": ["hunter2"]}, sensitive=True)

    reply = patch(whole, rule, *operations)

    assert (reply.status_int, "hunter2" in reply.text) == (400, False)
    shown = whole.app.get(f"{RULES}/{rule['uuid']}").json
    assert (shown["sensitive"], shown["actions"], shown["conditions"]) == (True, None, None)


def test_r_66_a_sensitive_rule_can_be_updated_and_is_not_shown(whole):
    rule = create(whole, {"op": "log", "args": ["hunter2"]}, sensitive=True)

    reply = patch(whole, rule, {"op": "replace", "path": "/priority", "value": 5},
                  {"op": "replace", "path": "/actions",
                   "value": [{"op": "set-attribute", "args": ["/extra/secret", "hunter3"]}]})

    assert (reply.status_int, reply.json["priority"], reply.json["sensitive"]) == (200, 5, True)
    assert (reply.json["actions"], reply.json["conditions"], "hunter" in reply.text) == (None, None, False)
    assert inspected(whole)["extra"]["secret"]


def test_r_66_without_its_phase_a_rule_runs_in_the_default_one(whole):
    rule = create(whole, {"op": "set-attribute", "args": ["/extra/ran", True]}, phase="preprocess")

    reply = patch(whole, rule, {"op": "remove", "path": "/phase"})

    assert (reply.status_int, reply.json["phase"]) == (200, "main")
    assert inspected(whole)["extra"] == {"ran": True}


def test_r_67_a_deleted_rule_is_gone(whole):
    kept, deleted = create(whole), create(whole, {"op": "fail", "args": {"msg": "no"}})

    reply = whole.app.delete(f"{RULES}/{deleted['uuid']}")

    assert (reply.status_int, reply.body) == (204, b"")
    assert uuids(whole) == [kept["uuid"]]
    assert inspected(whole)["provision_state"] == "manageable"
    for again in (deleted["uuid"], NOBODY):
        assert whole.app.delete(f"{RULES}/{again}").status_int == 404


def test_r_68_a_built_in_rule_can_not_be_deleted(with_built_in):
    reply = with_built_in.app.delete(f"{RULES}/{BUILT_IN}")

    assert (reply.status_int, "built-in" in fault(reply)) == (400, True)
    assert with_built_in.app.get(f"{RULES}/{BUILT_IN}").json["built_in"] is True


@pytest.mark.parametrize("path", [RULES, f"{RULES}/", f"{RULES}/all"])
def test_r_69_all_rules_are_deleted_but_the_built_in_ones(with_built_in, path):
    for sensitive in (True, False, True):
        create(with_built_in, sensitive=sensitive)
    assert len(uuids(with_built_in)) == 4

    reply = with_built_in.app.delete(path)

    assert (reply.status_int, reply.body) == (204, b"")
    assert uuids(with_built_in) == [BUILT_IN]
    assert with_built_in.app.delete(path).status_int == 204
