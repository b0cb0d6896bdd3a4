"""``/v1/rules``: the rules of ironic-inspector over HTTP, without a conductor."""

from __future__ import annotations

from typing import Any

import pytest

from ironic_rules.db import conductors, legacy_rules, legacy_values, operations
from ironic_rules.exceptions import LegacyRuleGone
from ironic_rules.models.rules import OwnedValue

RULES = "/v1/rules"
UUID = "11111111-1111-4111-8111-111111111111"
ONE = f"{RULES}/{UUID}"
SET = {"action": "set-attribute", "path": "/extra/a", "value": 1}
CONDITION = {"field": "memory_mb", "op": "ge", "value": 4096}
RULE: dict[str, Any] = {"uuid": UUID, "description": "much memory", "conditions": [CONDITION], "actions": [SET]}
VERSION = "X-OpenStack-Ironic-Inspector-API-Version"


@pytest.fixture
def web(app):
    def send(method: str, path: str, body: Any = None, **headers: str) -> Any:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if body is None:
            return app.request(path, method=method, headers=named, expect_errors=True)
        return getattr(app, f"{method.lower()}_json")(path, body, headers=named, expect_errors=True)

    return send


def test_a_rule_is_created_shown_listed_and_deleted(web):
    created = web("POST", RULES, RULE)
    shown, listed = web("GET", ONE), web("GET", RULES)
    detailed = web("GET", f"{RULES}?detail=true").json["rules"]

    assert created.status_int == 201
    assert created.headers["Location"].endswith(ONE)
    assert shown.json == created.json == detailed[0]
    assert shown.json["conditions"] == [{**CONDITION, "invert": False, "multiple": "any"}]
    assert shown.json["actions"] == [SET]
    entry, = listed.json["rules"]
    assert entry == {"uuid": UUID, "description": "much memory", "scope": None, "links": [
        {"href": f"http://localhost{ONE}", "rel": "self"}]}
    assert web("DELETE", ONE).status_int == 204
    assert web("GET", ONE).status_int == 404 == web("DELETE", ONE).status_int
    web("POST", RULES, RULE)
    assert web("DELETE", RULES).status_int == 204
    assert web("GET", RULES).json == {"rules": []}


@pytest.mark.parametrize(("given", "status"), [("1.0", 200), ("1", 200), ("1.5", 200), ("1.6", 201), ("1.18", 201)])
def test_the_status_of_a_new_rule_depends_on_the_version_of_inspectors_api(web, given, status):
    assert web("POST", RULES, RULE, **{VERSION: given}).status_int == status


@pytest.mark.parametrize(("given", "status"), [("1.19", 406), ("2.0", 400), ("1.x", 400), ("1.08", 400), ("", 400)])
def test_other_versions_of_inspectors_api_are_refused(web, given, status):
    refused = web("POST", RULES, RULE, **{VERSION: given})

    assert refused.status_int == status
    assert "1.18" in refused.json["error"]["message"] == refused.fault["faultstring"]
    assert web("GET", "/v1/nodes", **{VERSION: given}).status_int == 200


@pytest.mark.parametrize("path", ["/", "/v1", "/v1/", RULES, ONE, f"{RULES}/x/y"])
def test_clients_of_inspector_are_told_the_versions(web, path):
    headers = web("GET", path).headers

    assert headers["X-OpenStack-Ironic-Inspector-API-Minimum-Version"] == "1.0"
    assert headers["X-OpenStack-Ironic-Inspector-API-Maximum-Version"] == "1.18"


def test_all_other_paths_are_as_before(web):
    reply = web("GET", "/v1/nodes/nobody")

    assert not [name for name in reply.headers if "inspector" in name.lower()]
    assert reply.json.keys() == {"error_message"}


@pytest.mark.parametrize(("method", "path", "body", "status"), [
    ("GET", ONE, None, 404), ("GET", f"{RULES}/x", None, 400), ("PATCH", ONE, None, 405), ("POST", RULES, [], 400),
    ("GET", f"{RULES}/x/y/z", None, 404)])
def test_errors_have_the_forms_of_inspector_and_of_ironic(web, method, path, body, status):
    reply = web(method, path, body)

    assert reply.status_int == status
    assert reply.json["error"]["message"] == reply.fault.get("faultstring", reply.fault.get("description"))
    assert reply.headers["Content-Length"] == str(len(reply.body))


def test_every_problem_of_a_rule_is_told_with_its_place(web):
    refused = web("POST", RULES, {"conditions": [{"field": "", "op": "eq", "value": 1}, {"field": "a", "op": "no"}],
                                  "actions": [], "colour": "red"})

    assert refused.status_int == 400
    told = refused.json["error"]["message"]
    assert [place for place in ("/conditions/0/field", "/conditions/1/op", "/actions", "/colour")
            if place not in told] == []
    assert web("GET", RULES).json == {"rules": []}


def test_a_valid_rule_that_hardly_does_what_is_meant_has_warnings(web, db):
    db.write(lambda conn: conductors.register(conn, "c1", "", {"ipmi": {"boot": {"enabled": ["pxe", "ipxe"]}}}, "i"))
    rule = {"conditions": [{"field": "node://extr.foo", "op": "eq", "value": 1},
                           {"field": "node://name.first", "op": "is-empty"},
                           {"field": "node://extra.foo[*]", "op": "eq", "value": 1},
                           {"field": "memory_mb", "op": "lt", "value": {"a": 1}},
                           {"field": "inventory.nosuch", "op": "ge", "value": 4}],
            "actions": [{"action": "set-attribute", "path": "/driver", "value": "ipmii", "cleanup": "ipmi"},
                        {"action": "set-attribute", "path": "/boot_interface", "value": "pxe", "cleanup": "ixpe"},
                        {"action": "set-attribute", "path": "/extra/driver", "value": "ipmii"}]}

    created = web("POST", RULES, rule)

    assert created.status_int == 201
    assert [(warning["pointer"], warning["nearest"]) for warning in created.json["warnings"]] == [
        ("/conditions/0/field", None), ("/conditions/1/field", None), ("/conditions/3/value", None),
        ("/actions/0/value", "ipmi"), ("/actions/1/cleanup", "ipxe")]
    assert "there is no such field; did you mean 'extra'?" in created.json["warnings"][0]["text"]
    uuid = created.json["uuid"]
    assert "warnings" not in web("GET", f"{RULES}/{uuid}").json
    assert web("PUT", f"{RULES}/{uuid}", rule).json["warnings"] == created.json["warnings"]
    mended = web("PUT", f"{RULES}/{uuid}", {"conditions": [], "actions": rule["actions"][2:]})
    assert "warnings" not in mended.json


def test_a_rule_is_converted_and_not_stored(web):
    rule = {"conditions": [{"field": "memory_mb", "op": "ge", "value": 4096}],
            "actions": [{"action": "append-attribute", "key": "/extra/l", "value": 1}]}

    reply = web("POST", f"{RULES}?convert_only=true", rule)

    assert reply.status_int == 200
    assert (reply.json["verdict"], reply.json["problems"], reply.json["not_undone"]) == (
        "exact with a note", [], ["/actions/0"])
    assert reply.json["rule"]["conditions"] == [
        {"op": "gt", "args": {"values": ["{inventory[memory][physical_mb]|int}", 4095]}}]
    assert [note["pointer"] for note in reply.json["notes"]] == ["/actions/0"]
    assert web("GET", RULES).json["rules"] == []
    created = web("POST", "/v1/inspection_rules", reply.json["rule"], X_OpenStack_Ironic_API_Version="1.96")
    assert created.status_int == 201


def test_what_cannot_be_converted_is_an_answer_and_what_is_invalid_an_error(web):
    url = f"{RULES}?convert_only=true"

    hopeless = web("POST", url, {"actions": [{"action": "fail", "message": "x", "maintenance": True}]})

    assert (hopeless.status_int, hopeless.json["rule"]) == (200, None)
    assert [problem["pointer"] for problem in hopeless.json["problems"]] == ["/actions/0"]
    assert web("POST", url, {"actions": []}).status_int == 400
    assert web("POST", f"{RULES}?convert_only=perhaps", {"actions": []}).status_int == 400


def test_a_second_rule_with_the_same_uuid_is_a_conflict(web):
    web("POST", RULES, RULE)
    refused = web("POST", RULES, {**RULE, "description": "other"})

    assert refused.status_int == 409
    assert web("GET", ONE).json["description"] == "much memory"


def test_put_creates_or_replaces_and_keeps_the_order(web):
    created = web("PUT", ONE, {key: value for key, value in RULE.items() if key != "uuid"})
    web("POST", RULES, {"actions": [SET]})
    replaced = web("PUT", ONE, {"uuid": UUID, "actions": [SET], "scope": "hall-1"})
    other = web("PUT", ONE, {"uuid": UUID.replace("1", "2"), "actions": [SET]})

    assert (created.status_int, replaced.status_int, other.status_int) == (201, 200, 400)
    assert created.headers["ETag"] != replaced.headers["ETag"] == web("GET", ONE).headers["ETag"]
    shown = web("GET", ONE).json
    assert (shown["description"], shown["conditions"], shown["scope"]) == (None, [], "hall-1")
    assert shown["created_at"] == created.json["created_at"]
    assert web("GET", RULES).json["rules"][0]["uuid"] == UUID


def test_preconditions_hold_for_rules_and_for_the_set(web):
    first = web("POST", RULES, RULE).headers["ETag"]
    of_set = web("GET", RULES).headers["ETag"]

    assert web("GET", ONE, If_None_Match=first).status_int == 304
    assert web("PUT", ONE, {"actions": [SET]}, If_None_Match="*").status_int == 412
    assert web("PUT", ONE, {"actions": [SET]}, If_Match=first).status_int == 200
    assert web("PUT", ONE, {"actions": [SET]}, If_Match=first).status_int == 412
    assert web("DELETE", ONE, If_Match=first).status_int == 412
    assert web("DELETE", RULES, If_Match=of_set).status_int == 412
    assert web("DELETE", RULES, If_Match=web("GET", RULES).headers["ETag"]).status_int == 204
    assert web("PUT", ONE, {"actions": [SET]}, If_Match=first).status_int == 412
    assert web("PUT", ONE, {"actions": [SET]}, If_None_Match="*").status_int == 201


def test_lists_have_pages(web):
    uuids = [web("POST", RULES, {"actions": [SET], "description": f"rule {number}"}).json["uuid"]
             for number in range(5)]
    seen, path = [], f"{RULES}?limit=2&fields=uuid,actions"
    while path:
        page = web("GET", path).json
        assert {tuple(rule) for rule in page["rules"]} == {("uuid", "actions", "links")}
        seen += [rule["uuid"] for rule in page["rules"]]
        path = page.get("next", "").removeprefix("http://localhost")

    assert seen == uuids
    assert web("GET", f"{RULES}?sort_key=conditions").status_int == 400 == web("GET", f"{RULES}?colour=red").status_int


def owned(rule: str, place: str, written: Any) -> OwnedValue:
    return OwnedValue(rule_uuid=rule, action=0, kind="path", place=place, written=written)


def test_what_rules_own_is_listed_page_by_page_with_its_secrets_masked(web, db, make_node):
    node = make_node(name="owned")
    web("POST", RULES, RULE)
    values = [owned(UUID, "/driver_info/ipmi_password", "s3cret"),
              owned(UUID, "/extra/a", {"token": "s3cret", "b": 1}), owned(UUID, "/extra/n", None)]
    db.write(lambda conn: legacy_values.save(conn, node.id, {}, values))
    first = web("GET", "/v1/nodes/owned/legacy_values?limit=2").json
    second = web("GET", first["next"].removeprefix("http://localhost")).json

    shown = [*first["legacy_values"], *second["legacy_values"]]
    assert [(value["place"], value["written"], value["rule_uuid"]) for value in shown] == [
        ("/driver_info/ipmi_password", "******", UUID), ("/extra/a", {"token": "******", "b": 1}, UUID),
        ("/extra/n", None, UUID)]
    assert "next" not in second
    assert web("GET", "/v1/nodes/owned/legacy_values?marker=99999999999").status_int == 404
    assert web("GET", "/v1/nodes/nobody/legacy_values").status_int == 404


@pytest.mark.parametrize("path", [ONE, RULES])
def test_a_rule_that_is_deleted_forgets_what_it_owns_unless_that_is_to_be_taken_back(web, db, make_node, path):
    nodes = [make_node() for _ in range(3)]
    for cleanup, kept in (("", 0), ("?cleanup=true", 1)):
        web("POST", RULES, RULE)
        for node in nodes:
            db.write(lambda conn, node=node: legacy_values.save(conn, node.id, {}, [owned(UUID, "/extra/a", 1)]))
        deleted = web("DELETE", path + cleanup)
        with db.reader() as conn:
            assert [len(legacy_values.for_node(conn, node.id)) for node in nodes] == [kept] * 3
            assert legacy_rules.uuids(conn) == set()

    assert deleted.status_int == 202
    assert deleted.json["progress"] == {"total": 3, "done": 0, "changed": 0, "failed": 0, "left": 3}
    operation = deleted.json["uuid"]
    assert deleted.headers["Location"] == f"http://localhost/v1/operations/{operation}"
    listed, = web("GET", "/v1/operations").json["operations"]
    assert (listed["uuid"], listed["kind"], listed["status"]) == (operation, "legacy-rule-cleanup", "running")
    assert web("DELETE", f"/v1/operations/{operation}").status_int == 204
    assert web("GET", f"/v1/operations/{operation}").json["status"] == "cancelled"
    with db.writer() as conn:
        row = operations.get(conn, operation)
        item, = operations.claim(conn, row.id, "someone", 1)
        assert not operations.begin(conn, row.id, item, "someone")


def test_a_value_is_not_saved_for_a_rule_that_is_gone(db, make_node):
    node = make_node()
    with pytest.raises(LegacyRuleGone):
        db.write(lambda conn: legacy_values.save(conn, node.id, {}, [owned(UUID, "/extra/a", 1)]))
