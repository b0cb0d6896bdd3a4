"""Questions about the fleet over HTTP: lists, columns, order, counts, search, and whom they may be asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import sqlalchemy as sa

from ironic_rules.db import facts, node_sets, ports
from ironic_rules.db import tables as t
from ironic_rules.db.session import Database
from ironic_rules.models.facts import TEXTS
from tests.functional.api.conftest import Client, at
from tests.functional.api.test_auth import keystone, use_policies  # noqa: F401  (a fixture)
from tests.functional.api.test_project_access import PROJECT, READER, send
from tests.walking import walking

TYPES = {"vendor": ("text", False), "memory_gib": ("integer", False), "gpus": ("text", True),
         "bmc_address": ("address", False), "serial": ("text", False),
         "macs": ("mac", True), "virtual": ("boolean", False)}
MACHINES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a": ({"vendor": "Dell", "memory_gib": 512, "gpus": ["H100", "H100"], "serial": "SN-1", "virtual": False,
           "macs": ["aa:bb:cc:00:00:01", "aa:bb:cc:00:00:02"]}, {"owner": PROJECT}),
    "b": ({"vendor": "Dell", "memory_gib": 64, "serial": "SN-2", "bmc_address": "10.0.0.2", "virtual": False},
          {"owner": "p"}),
    "c": ({"vendor": "HPE", "memory_gib": 1024, "gpus": ["A100", "H100"], "virtual": True},
          {"owner": "p", "lessee": PROJECT, "last_error": "secret reason"}),
    "d": ({}, {"instance_uuid": "dddddddd-dddd-4ddd-8ddd-dddddddddd01"})}


@pytest.fixture
def fleet(db: Database, make_node: Callable[..., Any]) -> dict[str, Any]:
    made = {name: make_node(name=f"node-{name}", **fields) for name, (_, fields) in MACHINES.items()}
    with db.writer() as conn:
        # Facts may have values of other tests.
        conn.execute(sa.delete(t.facts))
        ids = {name: facts.create(conn, {"name": name, "value": "{inventory[x]}", "unit": (
            "GiB" if name == "memory_gib" else None)}).id for name in TYPES}
        facts.learn_types(conn, {ids[name]: known for name, known in TYPES.items()})
        for name, (values, _) in MACHINES.items():
            for fact, value in values.items():
                table = facts.VALUES[TYPES[fact][0] in TEXTS]
                conn.execute(sa.insert(table), [
                    {"node_id": made[name].id, "fact_id": ids[fact], "position": position,
                     "value": item if table is facts.VALUES[True] else float(item)}
                    for position, item in enumerate(value if isinstance(value, list) else [value])])
        node_sets.add_trait(conn, made["a"].id, "CUSTOM_GPU")
        ports.create(conn, {"node_id": made["b"].id, "address": "52:54:00:00:00:0b"})
        node_sets.set_bmc_addresses(conn, made["b"].id, ["10.0.0.2"])
        for name in ("a", "c"):
            node_sets.set_machine_ids(conn, made[name].id, [f"SN-{'1' if name == 'a' else '3'}"])
    return made


def names(reply: Any) -> list[str]:
    assert reply.status_int == 200, reply.text
    return [node["name"].removeprefix("node-") for node in reply.json["nodes"]]


def ask(app: Client, where: str, more: str = "") -> list[str]:
    return names(app.get(f"/v1/nodes?where={quote(where)}{more}", expect_errors=True))


def test_lists_have_the_nodes_that_a_clause_selects(app: Client, fleet: dict[str, Any]) -> None:
    assert ask(app, "vendor = Dell and memory_gib >= 512 and not traits has CUSTOM_X") == ["a"]
    assert ask(app, "not vendor = Dell") == ["c", "d"]
    assert ask(app, "gpus has H100", "&owner=p") == ["c"]
    assert ask(app, "ports has 5254.0000.000B or name = node-d") == ["b", "d"]
    assert ask(app, "memory_gib is absent") == ["d"]
    assert names(app.get("/v1/nodes/detail?where=virtual+%3D+true")) == ["c"]
    assert names(app.get("/v1/nodes?detail=true&where=virtual+%3D+true&sort_key=name&sort_dir=desc")) == ["c"]


def test_facts_are_columns(app: Client, fleet: dict[str, Any]) -> None:
    shown = app.get("/v1/nodes?fields=name&facts=vendor,memory_gib,gpus,virtual").json["nodes"]

    assert [node["facts"] for node in shown] == [
        {"vendor": "Dell", "memory_gib": 512, "gpus": ["H100", "H100"], "virtual": False},
        {"vendor": "Dell", "memory_gib": 64, "gpus": None, "virtual": False},
        {"vendor": "HPE", "memory_gib": 1024, "gpus": ["A100", "H100"], "virtual": True},
        {"vendor": None, "memory_gib": None, "gpus": None, "virtual": None}]


@walking("direction, order", [("asc", "bacd"), ("desc", "cabd")])
def test_a_fact_is_an_order_of_pages(app: Client, fleet: dict[str, Any], direction: str, order: str) -> None:
    url: str | None = f"/v1/nodes?sort_key=fact:memory_gib&sort_dir={direction}&limit=1&facts=memory_gib"
    found = []
    while url is not None:
        reply = app.get(url)
        found += names(reply)
        url = reply.json.get("next")

    assert found == list(order)
    assert ask(app, "memory_gib > 64", f"&sort_key=fact:memory_gib&sort_dir={direction}") == [
        name for name in order if name in "ac"]


def test_conditions_of_a_rule_are_a_question(app: Client, fleet: dict[str, Any]) -> None:
    conditions = app.post_json("/v1/inspection_rules/conditions", {
        "where": "vendor = Dell and not memory_gib < 100 and gpus has H100"}).json["conditions"]

    assert app.post_json("/v1/inspection_rules", {"conditions": conditions, "actions": [
        {"op": "log", "args": {"msg": "x"}}]}).status_int == 201
    assert names(app.post_json("/v1/nodes/search?fields=name", {"conditions": conditions})) == ["a"]
    assert names(app.post_json("/v1/nodes/search", {"conditions": conditions, "where": "virtual = true"})) == []
    assert names(app.post_json("/v1/nodes/search?limit=3", {})) == ["a", "b", "c"]


@walking("method, path, body, error", [
    ("GET", "/v1/nodes?where=vendr+%3D+x", None, "where: column 1: there is no fact or field of nodes"),
    ("GET", "/v1/nodes?where=vendor+%3D+%22x", None, "where: column 10: this quote is not closed"),
    ("GET", f"/v1/nodes?where={'a' * 10241}", None, "where: must have at most 10240 characters"),
    ("GET", "/v1/nodes?where=", None, "where: The clause is empty."),
    ("GET", "/v1/nodes?facts=vendr", None, "facts: there is no fact vendr; did you mean 'vendor'?"),
    ("GET", "/v1/nodes?sort_key=fact:x", None, "sort_key: there is no fact x."),
    ("GET", "/v1/nodes?sort_key=facts", None, "sort_key"),
    ("GET", "/v1/nodes?facts=" + ",".join(f"x{number}" for number in range(60)), None, "facts: more than 50 facts."),
    ("POST", "/v1/nodes/search", {"conditions": [{"op": "eq", "args": ["{inventory[a]}", 1]}]},
     "/conditions/0/args: questions have facts and fields of nodes, but not {inventory[a]}"),
    ("POST", "/v1/nodes/search", {"conditions": [{"op": "equals"}]}, "/conditions/0/op: there is no such operator"),
    ("POST", "/v1/nodes/search?where=vendor+%3D+x", {"where": "vendor = y"},
     "where is given in the URL and in the body."),
    ("POST", "/v1/inspection_rules/conditions", {"where": "vendor = a or vendor = b"}, "use NAME in (a, b)"),
    ("POST", "/v1/inspection_rules/dry_run", {"where": "vendor = a", "nodes": {}}, "either nodes, or where"),
    ("POST", "/v1/inspection_rules/dry_run", {"where": "vendr = a"}, "did you mean 'vendor'?"),
    ("GET", "/v1/search", None, "q is required."),
    ("GET", "/v1/search?q=x&limit=101", None, "limit: must be at most 100"),
    ("GET", "/v1/facts/values", None, "At least one of facts, fields and by is required."),
    ("GET", "/v1/facts/values?fields=name", None, "fields: unknown field(s): name."),
    ("GET", "/v1/facts/values?by=vendor", None, "by must be the names of two facts"),
    ("GET", "/v1/facts/vendor/values?limit=1001", None, "limit: must be at most 1000"),
])
def test_what_cannot_be_asked_is_refused(app: Client, fleet: dict[str, Any], method: str, path: str, body: Any,
                                         error: str) -> None:
    reply = app.get(path, expect_errors=True) if method == "GET" else app.post_json(path, body, expect_errors=True)

    assert reply.status_int == 400, reply.text
    assert error in reply.fault["faultstring"]


def test_earlier_versions_have_no_questions(app: Client, fleet: dict[str, Any]) -> None:
    for path in ("nodes?where=virtual+%3D+true", "nodes?facts=vendor", "nodes?sort_key=fact:vendor"):
        assert app.get(f"/v1/{path}", headers=at(95), expect_errors=True).status_int == 406
    assert app.get("/v1/search?q=x", headers=at(95), expect_errors=True).status_int == 404


def test_values_are_counted(app: Client, fleet: dict[str, Any]) -> None:
    shown = app.get("/v1/facts/vendor/values").json
    assert shown == {"fact": "vendor", "type": "text", "unit": None, "is_list": False, "nodes": 4, "absent": 1,
                     "values": [{"value": "Dell", "nodes": 2}, {"value": "HPE", "nodes": 1}], "others": 0, "ranges": []}
    shown = app.get("/v1/facts/vendor/values?limit=1&where=not+virtual+%3D+true").json
    assert (shown["nodes"], shown["values"], shown["absent"]) == (3, [{"value": "Dell", "nodes": 2}], 1)
    # A node with two of the same counts once.
    shown = app.get("/v1/facts/gpus/values").json
    assert shown["values"] == [{"value": "H100", "nodes": 2}, {"value": "A100", "nodes": 1}]
    assert (shown["absent"], shown["others"]) == (2, None)
    shown = app.get("/v1/facts/memory_gib/values?limit=1").json
    assert (shown["unit"], shown["others"], len(shown["values"])) == ("GiB", 2, 1)
    assert [each for each in shown["ranges"] if each["nodes"]] == [
        {"from": 0, "to": 100, "nodes": 1}, {"from": 500, "to": 600, "nodes": 1},
        {"from": 1000, "to": 1100, "nodes": 1}]
    assert app.get("/v1/facts/virtual/values").json["values"] == [
        {"value": False, "nodes": 2}, {"value": True, "nodes": 1}]
    assert app.get("/v1/facts/nothing/values", expect_errors=True).status_int == 404
    shown = app.get("/v1/facts/values?facts=vendor,virtual&by=vendor,virtual&where=vendor+is+not+absent").json
    assert [each["fact"] for each in shown["facts"]] == ["vendor", "virtual"]
    assert shown["table"] == {"by": ["vendor", "virtual"], "nodes": 3, "complete": True, "others": 0, "cells": [
        {"values": ["Dell", False], "nodes": 2}, {"values": ["HPE", True], "nodes": 1}]}
    cut = app.get("/v1/facts/values?by=vendor,memory_gib&limit=1").json["table"]
    assert (cut["complete"], cut["others"]) == (False, 1)
    assert cut["cells"] == [{"values": ["Dell", 512], "nodes": 1}, {"values": ["Dell", 64], "nodes": 1}]
    of_list = app.get("/v1/facts/values?by=gpus,vendor&limit=1").json["table"]
    assert (of_list["complete"], of_list["others"], of_list["cells"]) == (False, None, [
        {"values": ["H100", "Dell"], "nodes": 1}, {"values": ["H100", "HPE"], "nodes": 1}])
    shown = app.get("/v1/facts/values?fields=provision_state,traits,resource_class&where=vendor+%3D+Dell").json
    assert shown["fields"] == [{"field": "provision_state", "values": [{"value": "enroll", "nodes": 2}]},
                               {"field": "traits", "values": [{"value": "CUSTOM_GPU", "nodes": 1}]},
                               {"field": "resource_class", "values": []}]
    assert app.get("/v1/facts/values?facts=vendor&failure=0123456789abcdef").json["nodes"] == 0


def test_the_vocabulary_completes_questions(app: Client, fleet: dict[str, Any]) -> None:
    shown = app.get("/v1/facts/vocabulary").json

    known = {each["name"]: each for each in shown["names"] if each["of"] == "fact"}
    assert known["vendor"] == {"name": "vendor", "written": "vendor", "of": "fact", "type": "text", "is_list": False,
                               "unit": None, "description": None, "values": ["Dell"]}
    fields = {each["name"]: each for each in shown["names"] if each["of"] == "node"}
    assert fields["traits"] == {"name": "traits", "written": "traits", "of": "node", "type": "text", "is_list": True,
                                "unit": None, "description": None, "values": ["CUSTOM_GPU"]}
    assert fields["owner"]["values"] == ["p", PROJECT]
    assert fields["state"]["values"][:2] == ["enroll", "active"]
    assert fields["state"]["values"] == fields["provision_state"]["values"]
    assert (fields["maintenance"]["values"], fields["name"]["values"]) == ([True, False], [])
    assert {"name": "has", "types": ["address", "boolean", "integer", "mac", "number", "text", "time"],
            "lists": True, "operand": "one"} in shown["operators"]
    assert {each["name"] for each in shown["operators"] if each["operand"] == "none"} == {"is empty", "is absent"}
    for name in ("nothing", "node[name]"):
        assert app.get(f"/v1/facts/vocabulary?names={name}", expect_errors=True).status_int == 400


def test_a_field_with_the_name_of_a_fact_is_written_exactly(app: Client, fleet: dict[str, Any]) -> None:
    app.post_json("/v1/facts", {"name": "owner", "value": "{inventory[owner]}", "description": "Who bought it"})

    of_fact, of_node = (each for each in app.get("/v1/facts/vocabulary").json["names"] if each["name"] == "owner")

    assert (of_fact["written"], of_fact["description"]) == ("owner", "Who bought it")
    assert (of_node["written"], of_node["values"]) == ("node[owner]", ["p", PROJECT])
    assert ask(app, "node[owner] = p") == ["b", "c"]


@walking("text, results", [
    ("node-a", [("name", "a")]), ("NODE-A", [("name", "a")]), ("5254.0000.000b", [("mac", "b")]),
    ("52-54-00", [("mac", "b")]), ("10.0.0", [("bmc", "b"), "bmc_address = 10.0.0.2"]),
    ("SN-1", [("serial", "a"), "serial = SN-1"]),
    ("dddddddd", [("instance", "d")]), ("gpu", ["traits has CUSTOM_GPU"]), ("del", ["vendor = Dell"]),
    ("aabb.cc00.0001", ["macs has aa:bb:cc:00:00:01"]), ("nothing like this", []), ("%", []), ("'; --", [])])
def test_one_text_is_looked_for_everywhere(app: Client, fleet: dict[str, Any], text: str, results: list[Any]) -> None:
    found = app.get(f"/v1/search?q={quote(text)}").json["results"]

    assert [(each["matched"], each["name"].removeprefix("node-")) if each["type"] == "node" else each.get("where")
            for each in found] == results
    for each in found:
        if "where" in each:
            assert ask(app, each["where"])


def test_a_rule_is_found_by_its_name(app: Client, fleet: dict[str, Any]) -> None:
    app.post_json("/v1/inspection_rules", {"name": "set rack", "actions": [{"op": "log", "args": {"msg": "x"}}]})

    found, = app.get("/v1/search?q=rack").json["results"]
    assert (found["type"], found["name"]) == ("rule", "set rack")


def test_a_project_asks_about_its_own_nodes_only(
        keystone: Client, fleet: dict[str, Any]) -> None:  # noqa: F811
    def get(path: str) -> Any:
        return send(keystone, READER, "GET", f"/v1/{path}")

    assert names(get("nodes?where=vendor+is+not+absent")) == ["a"]
    # Its facts are the owner's: a lessee does not learn them, not even by what is not there.
    assert names(get("nodes?where=not+vendor+%3D+Dell")) == []
    assert names(get("nodes?where=name+starts+node")) == ["a", "c"]
    assert [node["facts"] for node in get("nodes?facts=vendor").json["nodes"]] == [{"vendor": "Dell"}, {"vendor": None}]
    assert names(get("nodes?sort_key=fact:memory_gib")) == ["a"]
    assert get("nodes?where=last_error+starts+secret").status_int == 400
    shown = get("facts/vendor/values").json
    assert (shown["nodes"], shown["values"]) == (1, [{"value": "Dell", "nodes": 1}])
    assert [each["nodes"] for each in get("facts/values?by=vendor,virtual").json["table"]["cells"]] == [1]
    known = {each["name"]: each["values"] for each in get(
        "facts/vocabulary?names=gpus,vendor,node[owner],node[traits]").json["names"]}
    assert (known["vendor"], known["owner"], known["traits"]) == ([], ["p", PROJECT], ["CUSTOM_GPU"])
    assert "last_error" not in known
    assert {each["name"]: each["values"] for each in get("facts/vocabulary").json["names"]}["owner"] == []
    assert get("search?q=10.0.0.2").json["results"] == []
    assert get("search?q=HPE").json["results"] == []
    # The serial number of a node that is leased is its owner's.
    assert [each["type"] for each in get("search?q=SN-").json["results"]] == ["node", "fact"]
    assert get("search?q=SN-3").json["results"] == []
    assert [each.get("name") for each in get("search?q=node-").json["results"]] == ["node-a", "node-c"]
    reply = send(keystone, READER, "POST", "/v1/nodes/search", {"conditions": [
        {"op": "eq", "args": ["{node[last_error]}", "secret reason"]}]})
    assert reply.status_int == 400


def test_who_sees_all_facts_sees_no_fields_of_other_nodes(
        keystone: Client, fleet: dict[str, Any], conf: Any, tmp_path: Path) -> None:  # noqa: F811
    (tmp_path / "policy.yaml").write_text('"baremetal:fact:list_all": "role:reader"\n')
    use_policies(conf, tmp_path)

    def get(path: str) -> Any:
        return send(keystone, READER, "GET", f"/v1/{path}")

    assert get("facts/vendor/values").json["nodes"] == 4
    known = {each["name"]: each["values"] for each in get(
        "facts/vocabulary?names=vendor,node[owner],node[provision_state]").json["names"]}
    assert (known["vendor"], known["owner"]) == (["Dell"], ["p", PROJECT])
    assert "last_error" not in known
    assert get("facts/vendor/values?where=last_error+starts+secret").status_int == 400
    assert names(get("nodes?where=vendor+is+not+absent")) == ["a", "c"]
