"""``/v1/inspection_rules``: create, read, list, change, delete."""

from __future__ import annotations

from typing import Any

import pytest

from ironic_rules.exceptions import rule_changed
from tests.functional.api.conftest import at
from tests.walking import walking

RULES = "/v1/inspection_rules"
UUID = "11111111-1111-4111-8111-111111111111"
OTHER = "22222222-2222-4222-8222-222222222222"
NOBODY = "00000000-0000-0000-0000-000000000007"
LOG = {"op": "log", "args": {"msg": "hi"}}
IS_TRUE = {"op": "is-true", "args": {"value": True}}
FULL = {
    "uuid": UUID, "description": "full rule", "priority": 100, "phase": "main", "sensitive": False,
    "conditions": [
        {"op": "eq", "args": {"values": ["{inventory[cpu][architecture]}", "x86_64"]}},
        {"op": "!matches", "args": {"value": "{item}", "regex": "ib[0-9]+"}, "loop": ["eth0", "eth1"],
         "multiple": "all"},
    ],
    "actions": [
        {"op": "set-attribute", "args": {"path": "/extra/arch", "value": "{inventory[cpu][architecture]}"}},
        {"op": "set-attribute", "args": {"path": "/extra/{item[p]}", "value": "{item[v]}"},
         "loop": [{"p": "a", "v": "1"}, {"p": "b", "v": "2"}]},
    ],
}


def create(app: Any, **values: Any) -> Any:
    return app.post_json(RULES, {"actions": [LOG], **values}).json


def patched(app: Any, *operations: dict[str, Any], uuid: str = UUID, status: int = 200) -> Any:
    response = app.patch_json(f"{RULES}/{uuid}", list(operations), status=status)
    return response.json if status == 200 else response.fault["faultstring"]


def test_create_echoes_the_rule_and_adds_no_defaults_inside(app):
    response = app.post_json(RULES, FULL, status=201)

    assert {name: response.json[name] for name in FULL} == FULL
    assert response.headers["Location"] == f"http://localhost{RULES}/{UUID}"
    assert response.json["created_at"].endswith("+00:00")
    assert response.json["updated_at"] is None
    assert response.json["built_in"] is False
    assert response.json["links"] == [{"href": f"http://localhost{RULES}/{UUID}", "rel": "self"},
                                      {"href": f"http://localhost/inspection_rules/{UUID}", "rel": "bookmark"}]


def test_show_returns_what_create_returned_and_the_link_resolves(app):
    created = app.post_json(RULES, FULL).json

    assert app.get(created["links"][0]["href"]).json == created


def test_create_needs_only_actions(app):
    rule = create(app)

    assert rule["conditions"] == []
    assert (rule["priority"], rule["phase"], rule["sensitive"], rule["scope"], rule["description"]) == (
        0, "main", False, None, None)


def test_create_understands_what_the_cli_sends(app):
    rule = create(app, conditions=None, priority="5", sensitive="true", uuid=None)

    assert rule["priority"] == 5
    assert rule["sensitive"] is True


@walking("body, where", [
    ({}, "/actions"), ({"actions": []}, "/actions"), ({"actions": None}, "/actions"), ([], ""), ("text", ""),
    (None, ""),
    ({"actions": [{"op": "nosuch"}]}, "/actions/0/op"), ({"actions": [LOG], "nosuch": 1}, "/nosuch"),
    ({"actions": [LOG], "priority": 10000}, "/priority"), ({"actions": [LOG], "priority": -1}, "/priority"),
    ({"actions": [LOG], "priority": True}, "/priority"), ({"actions": [LOG], "priority": None}, "/priority"),
    ({"actions": [LOG], "priority": 1.5}, "/priority"), ({"actions": [LOG], "uuid": "x"}, "/uuid"),
    ({"actions": [LOG], "uuid": UUID + "\n"}, "/uuid"), ({"actions": [LOG], "description": "d" * 256}, "/description"),
    ({"actions": [LOG], "phase": "late"}, "/phase"), ({"actions": [LOG], "phase": None}, "/phase"),
    ({"actions": [LOG], "sensitive": "perhaps"}, "/sensitive"), ({"actions": [LOG], "built_in": True}, "/built_in"),
    ({"actions": [LOG], "conditions": [{"op": "matches", "args": ["a", "("]}]}, "/conditions/0/args"),
    ({"actions": [LOG], "conditions": [{"op": "!!eq", "args": [1, 2]}]}, "/conditions/0/op"),
    ({"actions": [{"op": "log", "args": {"msg": "a", "x": 1}}]}, "/actions/0/args"),
    ({"actions": [{"op": "set-attribute", "args": ["/provision_state", "active"]}]}, "/actions/0/args"),
])
def test_create_refuses_a_malformed_rule_and_says_where(app, body, where):
    response = app.post_json(RULES, body, status=400)

    assert response.fault["faultcode"] == "Client"
    assert where in response.fault["faultstring"]
    assert app.get(RULES).json == {"inspection_rules": []}


def test_the_vocabulary_has_what_rules_are_written_with(app):
    shown = app.get(f"{RULES}/vocabulary").json
    operators = {found["name"]: found for found in shown["operators"]}
    assert [(found["name"], found["required"]) for found in operators["in-net"]["arguments"]] == [
        ("address", True), ("subnet", True)]
    assert operators["eq"]["arguments"][0]["is_list"] and operators["eq"]["example"].startswith("{op: eq")
    log, = (found for found in shown["actions"] if found["name"] == "log")
    assert next(found for found in log["arguments"] if found["name"] == "level")["values"][0] == "critical"
    assert "/interfaces/*/mac_address" in shown["paths"] and "phase" in shown["fields"]


def test_every_sample_can_be_tried(app):
    samples = app.get(f"{RULES}/samples").json["samples"]
    replies = {found["name"]: app.post_json(f"{RULES}/dry_run", {"report": found["report"], "imagined": True})
               for found in samples}
    assert {name: reply.json["outcome"] for name, reply in replies.items()} == dict.fromkeys(replies, "finished")
    assert "dell-r660" in replies
    app.post_json(f"{RULES}/dry_run", {"node": NOBODY, "report": {}, "imagined": True}, status=400)


def test_create_names_every_problem_at_once(app):
    text = app.post_json(RULES, {"actions": [{"op": "nosuch"}], "priority": -1, "conditions": [{"op": "lte"}]},
                         status=400).fault["faultstring"]

    assert all(where in text for where in ("/actions/0/op", "/priority", "/conditions/0/op"))


def test_create_refuses_a_taken_uuid(app):
    create(app, uuid=UUID)

    assert UUID in app.post_json(RULES, {"actions": [LOG], "uuid": UUID.upper()}, status=409).fault["faultstring"]


def test_fields_of_the_body_are_not_arguments_of_the_path(app):
    assert create(app, uuid=UUID)["uuid"] == UUID


@pytest.mark.parametrize("method", ["get", "delete"])
def test_an_unknown_rule_is_404_and_a_malformed_uuid_400(app, method):
    assert NOBODY in getattr(app, method)(f"{RULES}/{NOBODY}", status=404).fault["faultstring"]
    getattr(app, method)(f"{RULES}/detail", status=400)


def test_the_list_is_in_the_order_of_creation_without_conditions_and_actions(app):
    uuids = [create(app, description=str(number), priority=number % 2)["uuid"] for number in range(4)]

    listed = app.get(RULES).json["inspection_rules"]

    assert [rule["uuid"] for rule in listed] == uuids
    assert listed[0].keys() == {"uuid", "name", "bundle", "description", "enabled", "priority", "phase", "scope",
                                "sensitive", "built_in", "valid", "links"}


@pytest.mark.parametrize("query", ["/?detail=True", "?detail=true", "?details=True"])
def test_the_list_with_detail_shows_whole_rules(app, query):
    created = [app.post_json(RULES, FULL).json, create(app)]

    assert app.get(RULES + query).json["inspection_rules"] == created


def test_fields_choose_what_is_shown(app):
    app.post_json(RULES, FULL)

    one = app.get(f"{RULES}/{UUID}?fields=uuid,priority").json
    listed = app.get(f"{RULES}/?fields=uuid,actions").json["inspection_rules"][0]

    assert one.keys() == {"uuid", "priority", "links"}
    assert listed["actions"] == FULL["actions"]
    assert listed.keys() == {"uuid", "actions", "links"}


def test_filters_narrow_the_list(app):
    create(app, uuid=UUID, scope="rack-1", phase="preprocess", priority=7)
    create(app, uuid=OTHER)

    for query in ("scope=rack-1", "phase=preprocess", "priority=7", "phase=preprocess&scope=rack-1"):
        assert [rule["uuid"] for rule in app.get(f"{RULES}?{query}").json["inspection_rules"]] == [UUID]


@walking("query", [
    "nosuch=1", "phase=late", "limit=-1", "limit=0", "limit=x", "limit=1.5", "limit=", "sort_key=actions",
    "sort_key=nosuch", "sort_dir=up", "marker=x", f"marker={NOBODY}", "fields=nosuch", "fields=uuid&detail=true",
    "detail=perhaps", "priority=high", "scope=%00", "confirm=true", "limit=99999999999999999999",
])
def test_a_malformed_query_is_refused(app, query):
    assert app.get(f"{RULES}?{query}", status=[400, 404]).fault["faultcode"] == "Client"


def test_pages_follow_each_other_and_keep_every_parameter(app):
    uuids = [create(app, scope="a b&c", priority=number)["uuid"] for number in range(5)]
    create(app, scope="other")

    seen = []
    url = f"{RULES}/?scope=a+b%26c&limit=2&sort_key=priority&sort_dir=desc&fields=uuid,priority"
    pages = 0
    while url:
        body = app.get(url).json
        seen += [rule["uuid"] for rule in body["inspection_rules"]]
        assert body["inspection_rules"][0].keys() == {"uuid", "priority", "links"}
        url = body.get("next")
        pages += 1

    assert seen == uuids[::-1]
    assert pages == 3


def test_a_page_is_never_longer_than_allowed(app, conf):
    conf.set_override("max_limit", 2, group="api")
    for _ in range(3):
        create(app)

    for query in ("", "?limit=50"):
        body = app.get(RULES + query).json
        assert len(body["inspection_rules"]) == 2
        assert "limit=2&marker=" in body["next"]


def test_below_its_version_get_is_404_and_the_rest_405(app):
    app.get(RULES, headers=at(95), status=404)
    app.get(f"{RULES}/{UUID}", headers=at(95), status=404)
    app.post_json(RULES, FULL, headers=at(95), status=405)
    app.patch_json(f"{RULES}/{UUID}", [], headers=at(95), status=405)
    app.delete(f"{RULES}/{UUID}", headers=at(95), status=405)
    app.get(RULES, extra_environ={"no-version": "1"}, status=404)


def test_patch_changes_fields_and_returns_the_rule(app):
    app.post_json(RULES, FULL)

    rule = patched(app, {"op": "add", "path": "/description", "value": "new"},
                   {"op": "replace", "path": "/priority", "value": "7"},
                   {"op": "add", "path": "/conditions/-", "value": IS_TRUE},
                   {"op": "replace", "path": "/actions", "value": [LOG]})

    assert (rule["description"], rule["priority"], rule["actions"]) == ("new", 7, [LOG])
    assert rule["conditions"] == [*FULL["conditions"], IS_TRUE]
    assert rule["updated_at"] is not None
    assert app.get(f"{RULES}/{UUID}").json == rule


def test_patch_remove_sets_the_default(app):
    app.post_json(RULES, {**FULL, "scope": "x", "phase": "preprocess", "actions": [LOG], "conditions": []})

    rule = patched(app, *({"op": "remove", "path": f"/{name}"} for name in
                          ("description", "priority", "phase", "scope", "sensitive", "conditions")))

    assert {name: rule[name] for name in ("description", "priority", "phase", "scope", "sensitive", "conditions")} == {
        "description": None, "priority": 0, "phase": "main", "scope": None, "sensitive": False, "conditions": []}


def test_patch_takes_the_clis_singular_names(app):
    app.post_json(RULES, FULL)

    rule = patched(app, {"op": "remove", "path": "/action/0"}, {"op": "remove", "path": "/condition/1"})

    assert rule["actions"] == FULL["actions"][1:]
    assert rule["conditions"] == FULL["conditions"][:1]


@walking("operation", [
    {"op": "remove", "path": "/actions"}, {"op": "replace", "path": "/actions", "value": []},
    {"op": "replace", "path": "/actions", "value": None}, {"op": "replace", "path": "/priority", "value": 10000},
    {"op": "replace", "path": "/priority", "value": -5}, {"op": "replace", "path": "/phase", "value": "late"},
    {"op": "replace", "path": "/uuid", "value": OTHER}, {"op": "replace", "path": "/built_in", "value": True},
    {"op": "remove", "path": "/created_at"}, {"op": "add", "path": "/updated_at", "value": None},
    {"op": "add", "path": "/nosuch", "value": 1}, {"op": "remove", "path": "/actions/9"},
    {"op": "add", "path": "/links", "value": []}, {"op": "add", "path": "/conditions/x", "value": IS_TRUE},
    {"op": "add", "path": "/position", "value": 1}, {"op": "add", "path": "priority", "value": 1},
    {"op": "add", "path": "", "value": {}}, {"op": "add", "path": "/priority"}, {"op": "nosuch", "path": "/priority"},
    {"op": "test", "path": "/priority", "value": 3}, {"path": "/priority"}, {"op": "add", "value": 1}, "text", None,
], between="start_empty")
def test_patch_refuses_what_does_not_end_in_a_valid_rule(app, operation):
    before = app.post_json(RULES, FULL).json

    app.patch_json(f"{RULES}/{UUID}", [operation], status=400)

    assert app.get(f"{RULES}/{UUID}").json == before


def test_patch_is_all_or_nothing(app):
    before = app.post_json(RULES, FULL).json

    patched(app, {"op": "replace", "path": "/priority", "value": 1}, {"op": "remove", "path": "/nosuch"}, status=400)

    assert app.get(f"{RULES}/{UUID}").json == before


def test_a_patch_must_be_a_list(app):
    app.post_json(RULES, FULL)

    app.patch_json(f"{RULES}/{UUID}", {"op": "remove", "path": "/scope"}, status=400)
    app.patch(f"{RULES}/{UUID}", "", status=400)


def test_patch_of_an_unknown_rule_is_404(app):
    patched(app, {"op": "replace", "path": "/priority", "value": 1}, uuid=NOBODY, status=404)


def test_a_change_in_between_is_409(app, monkeypatch):
    app.post_json(RULES, FULL)

    def changed(conn: Any, uuid: str, values: Any, *, revision: int, author: Any) -> None:
        raise rule_changed(rule=uuid)

    monkeypatch.setattr("ironic_rules.db.inspection_rules.update", changed)

    assert "retry" in patched(app, {"op": "remove", "path": "/description"}, status=409)


def test_delete_removes_one_rule(app):
    create(app, uuid=UUID)
    create(app, uuid=OTHER)

    response = app.delete(f"{RULES}/{UUID}")

    assert response.status_int == 204
    assert response.body == b""
    assert "Content-Type" not in response.headers
    assert [rule["uuid"] for rule in app.get(RULES).json["inspection_rules"]] == [OTHER]


@pytest.mark.parametrize("path", [RULES, f"{RULES}/", f"{RULES}/all"])
def test_delete_of_the_collection_removes_all(app, path):
    create(app)
    create(app)

    assert app.delete(path).status_int == 204
    assert app.get(RULES).json == {"inspection_rules": []}


SECRET = {"uuid": UUID, "sensitive": True, "description": "s",
          "conditions": [{"op": "eq", "args": ["hunter1", "{inventory[hostname]}"]}],
          "actions": [{"op": "set-attribute", "args": ["/driver_info/ipmi_password", "hunter2"]}]}


def test_a_sensitive_rule_shows_its_conditions_and_actions_nowhere(app):
    responses = [
        app.post_json(RULES, SECRET), app.get(f"{RULES}/{UUID}"), app.get(f"{RULES}?detail=true"),
        app.get(f"{RULES}?fields=actions,conditions"), app.get(f"{RULES}/{UUID}?fields=actions,conditions"),
        app.patch_json(f"{RULES}/{UUID}", [{"op": "replace", "path": "/priority", "value": 1}]),
    ]

    for response in responses:
        assert "hunter" not in response.text
        rule = response.json.get("inspection_rules", [response.json])[0]
        assert rule["conditions"] is None
        assert rule["actions"] is None


@walking("operations", [
    [{"op": "replace", "path": "/sensitive", "value": False}], [{"op": "remove", "path": "/sensitive"}],
    [{"op": "replace", "path": "/sensitive", "value": None}], [{"op": "add", "path": "/sensitive", "value": "false"}],
    [{"op": "add", "path": "/sensitive", "value": True}, {"op": "remove", "path": "/sensitive"}],
    [{"op": "copy", "from": "/actions/0/args/1", "path": "/description"}],
    [{"op": "move", "from": "/actions/0/args/1", "path": "/scope"}],
    [{"op": "test", "path": "/actions/0/args/1", "value": "hunter2"}],
    [{"op": "test", "path": "/actions", "value": []}],
    [{"op": "remove", "path": "/action/0"}], [{"op": "remove", "path": "/conditions/7"}],
    [{"op": "add", "path": "/actions/-", "value": LOG}], [{"op": "copy", "from": "/conditions", "path": "/actions"}],
    [{"op": "copy", "from": "/built_in", "path": "/sensitive"}],
    [{"op": "replace", "path": "/phase", "value": "early"}],
], between="start_empty")
def test_no_patch_uncovers_a_sensitive_rule(app, operations):
    app.post_json(RULES, SECRET)

    text = patched(app, *operations, status=400)

    assert "hunter" not in text
    assert "set-attribute" not in text
    assert app.get(f"{RULES}/{UUID}").json["sensitive"] is True


def test_a_sensitive_rule_can_be_replaced_and_stays_hidden(app):
    app.post_json(RULES, SECRET)

    rule = patched(app, {"op": "replace", "path": "/actions", "value": [LOG]}, {"op": "remove", "path": "/conditions"})

    assert rule["actions"] is None


def test_no_patch_finds_the_names_of_groups_in_a_sensitive_rule(app):
    def matches(name: str) -> list[dict[str, Any]]:
        return [{"op": "matches", "args": ["{inventory[hostname]}", f"(?P<{name}>.*)"]}]

    def log(name: str) -> list[dict[str, Any]]:
        return [{"op": "log", "args": [f"{{match[{name}]}}"]}]

    app.post_json(RULES, {**SECRET, "conditions": matches("hunter"), "actions": log("hunter")})

    answers = {patched(app, {"op": "replace", "path": path, "value": make(name)}, status=400)
               for path, make in (("/conditions", matches), ("/actions", log)) for name in ("hunter", "other")}
    answer, = answers
    assert "can only be replaced together" in answer
    assert patched(app, {"op": "replace", "path": "/conditions", "value": matches("other")},
                   {"op": "replace", "path": "/actions", "value": log("other")})["actions"] is None
    assert patched(app, {"op": "replace", "path": "/actions", "value": [LOG]})["actions"] is None


def test_a_rule_can_become_sensitive(app):
    app.post_json(RULES, FULL)

    assert patched(app, {"op": "replace", "path": "/sensitive", "value": True})["actions"] is None
