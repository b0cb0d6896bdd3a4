"""Sensitive rules do not reveal their conditions and actions in any route, log, error or record: S-13 to S-18.

Every place of a rule that can contain text has a unique word (``Words``); none of them may appear anywhere except where
an action wrote it.
"""

from __future__ import annotations

import http.server
import itertools
import json
import logging
import secrets
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from ironic_rules.db import inspection_rules
from ironic_rules.db.tables import node_history, node_inventory
from ironic_rules.models.fields import values_of
from ironic_rules.models.rules import RULE
from ironic_rules.rpc import api as rpc_api
from tests.functional.whole import Whole, running

RULES = "/v1/inspection_rules"
LOG_IT = {"op": "log", "args": ["x"]}


class Words:
    """Unique words by their place in a rule: lower-case letters only, so that they are valid in any place.
    """

    def __init__(self) -> None:
        self.by_place: dict[str, str] = {}

    def __getattr__(self, place: str) -> str:
        letters = "".join(secrets.choice("bcdfghjkmnpqrstvwxz") for _ in range(14))
        return self.by_place.setdefault(place, letters)

    def found_in(self, text: str, but: tuple[str, ...] = ()) -> list[str]:
        """Return the places whose word is in ``text``, ignoring case."""
        lower = text.lower()
        return [place for place, word in self.by_place.items() if place not in but and word in lower]


class _Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(500 if "status500" in self.path else 200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


@pytest.fixture(scope="module")
def cmdb() -> Iterator[str]:
    """The URL of a service that rules may call."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Answers)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def service(tmp_path_factory, cmdb):
    options = f"api_call_allowed_hosts = {cmdb.removeprefix('http://')}\n"
    with running(tmp_path_factory.mktemp("sealing"), options) as it:
        yield it


@pytest.fixture
def words() -> Words:
    return Words()


@pytest.fixture
def seen(service, caplog, monkeypatch) -> Iterator[list[str]]:
    """Everything that clients can see: each reply with its headers, and the errors of RPC methods."""
    texts: list[str] = []
    plain = type(service.app).do_request
    called = rpc_api.ConductorAPI.continue_inspection

    def do_request(self: Any, request: Any, *args: Any, **named: Any) -> Any:
        reply = plain(self, request, *args, **named)
        texts.append(f"{reply.status} {reply.headerlist} {reply.text}")
        return reply

    def continue_inspection(self: Any, *args: Any, **named: Any) -> Any:
        try:
            return called(self, *args, **named)
        except Exception as error:
            texts.append(f"{error!r} {error}")
            raise

    monkeypatch.setattr(type(service.app), "do_request", do_request)
    monkeypatch.setattr(rpc_api.ConductorAPI, "continue_inspection", continue_inspection)
    caplog.set_level(logging.DEBUG)
    # Only what [database]connection_debug enables: the rows that statements return.
    caplog.set_level(logging.INFO, "sqlalchemy.engine")
    yield texts
    service.app.delete(RULES)


def logged(caplog: Any) -> str:
    """Return all log records, with their tracebacks."""
    formatter = logging.Formatter("%(name)s %(levelname)s %(message)s")
    return "\n".join(formatter.format(record) for record in caplog.records)


def assert_sealed(words: Words, seen: list[str], caplog: Any, *others: str, but: tuple[str, ...] = ()) -> None:
    assert [(words.found_in(text, but), text[:400]) for text in seen if words.found_in(text, but)] == []
    assert {words.found_in(text, but)[0]: text[:400] for text in others if words.found_in(text, but)} == {}
    log = logged(caplog)
    assert [line for line in log.splitlines() if words.found_in(line, but)] == []


def full_rule(words: Words, cmdb: str, **more: Any) -> dict[str, Any]:
    """Return a rule with a secret word in every place."""
    return {"sensitive": True, "conditions": [
        {"op": "eq", "args": [words.value, f"{{plugin_data[{words.template}]}}"]},
        {"op": "!eq", "args": {"values": [f"a {words.text} {{inventory[hostname]}}", words.other]}},
        {"op": "matches", "args": ["{inventory[hostname]}", f"(?i){words.regex}.*"]},
        {"op": "contains", "args": {"value": words.subject, "regex": words.pattern}},
        {"op": "one-of", "args": ["{item}", [words.choice]], "loop": [words.loop, {words.loop_key: 1}],
         "multiple": "all"},
        {"op": "is-true", "args": ["{item[key]}"], "loop": {words.loop_object: words.loop_value}},
        {"op": "in-net", "args": [f"{{plugin_data[{words.address}]}}", "192.0.2.0/24"]},
    ], "actions": [
        {"op": "set-attribute", "args": [f"/extra/{words.path}", {words.key: [words.deep]}]},
        {"op": "set-attribute", "args": {"path": "/driver_info/ipmi_password", "value": words.password}},
        {"op": "extend-attribute", "args": [f"/properties/{words.list_path}", words.list_item, True]},
        {"op": "del-attribute", "args": [f"/extra/{words.removed}"]},
        {"op": "set-port-attribute", "args": ["52:54:00:00:00:01", f"/extra/{words.port_path}", words.port_value]},
        {"op": "set-plugin-data", "args": [f"{words.data_path}.x", words.data_value]},
        {"op": "set-capability", "args": [words.capability, words.capability_value]},
        {"op": "add-trait", "args": [f"CUSTOM_{words.trait.upper()}"]},
        {"op": "log", "args": {"msg": words.message, "level": "error"}, "loop": [words.action_loop]},
        {"op": "api-call", "args": {"url": f"{cmdb}/{words.url}", "headers": {"X-Key": words.header}}},
        {"op": "fail", "args": {"msg": f"{words.failure} {{plugin_data[{words.fail_template}]}}"}},
    ], **more}


def patches(rule: dict[str, Any]) -> Iterator[list[Any]]:
    """Yield patches of each form; those that name a field, for each field and its content."""
    secret = ("conditions", "actions", "condition", "action")
    others = (*(name for name in rule if name not in secret), "built_in", "created_at", "revision", "nosuch", "")
    below = ["", "/0", "/-", "/99", "/0/args", "/0/args/0", "/0/op", "/0/args/msg", "/nosuch", f"/{'x' * 300}"]
    paths = [f"/{field}{rest}" for field in secret for rest in below]
    paths += [f"/{field}{rest}" for field in others for rest in ("", "/0")]
    for path in paths:
        yield [{"op": "remove", "path": path}]
        for op, value in itertools.product(("add", "replace", "test"), (None, "x", [LOG_IT])):
            yield [{"op": op, "path": path, "value": value}]
    for op, source, target in itertools.product(
            ("copy", "move"), ("/actions", "/conditions", "/actions/0", "/actions/0/args/1", "/condition/0/args/0",
                               "/actions/8/args/msg"),
            ("/description", "/scope", "/conditions", "/actions/-", "/priority", "/uuid", "/phase", "/x")):
        yield [{"op": op, "from": source, "path": target}]
    unhide = [{"op": "replace", "path": "/sensitive", "value": False}, {"op": "remove", "path": "/sensitive"},
              {"op": "add", "path": "/sensitive", "value": None}, {"op": "add", "path": "/sensitive", "value": "no"},
              {"op": "copy", "from": "/built_in", "path": "/sensitive"}]
    hide = {"op": "add", "path": "/sensitive", "value": True}
    for one, other in itertools.permutations([*unhide, hide], 2):
        yield [one, other]
        yield [one, other, {"op": "copy", "from": "/actions", "path": "/description"}]
    for phase in ("early", "preprocess", "late"):
        yield [{"op": "add", "path": "/phase", "value": phase}]
    yield [{"op": "add", "path": "/conditions", "value": []}, *unhide[:1]]
    yield [{"op": "add", "path": "/actions", "value": [LOG_IT]}, {"op": "add", "path": "/phase", "value": "early"}]
    yield [{"op": "add", "path": "/priority", "value": 10000}]
    # Last, because they succeed: the rule is still sealed after them.
    yield [{"op": "add", "path": "/description", "value": "d"}, {"op": "test", "path": "/description", "value": "d"}]
    yield [{"op": "replace", "path": "/priority", "value": 7}]


@pytest.mark.parametrize("debug", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_no_route_shows_anything_of_a_sensitive_rule(service, words, seen, caplog, cmdb, debug):
    app = service.app
    rule = full_rule(words, cmdb, uuid="11111111-1111-4111-8111-111111111111")
    one = f"{RULES}/{rule['uuid']}"
    with service.option(None, "pecan_debug", debug):
        assert app.post_json(RULES, rule).status_int == 201
        app.post_json(RULES, {"actions": [LOG_IT]})
        stored = _stored(service, rule["uuid"])

        for url in (one, f"{one}?detail=true", RULES, f"{RULES}?detail=true", f"{RULES}?details=True"):
            app.get(url)
            app.head(url)
        fields = [name for count in (1, 2) for name in itertools.combinations(sorted(RULE.shown), count)]
        for names in fields:
            app.get(f"{one}?fields={','.join(names)}")
            app.get(f"{RULES}?fields={','.join(names)}")
        keys = (*RULE.sort_keys, "actions", "conditions")
        for key, direction in itertools.product(keys, ("asc", "desc")):
            app.get(f"{RULES}?detail=true&sort_key={key}&sort_dir={direction}&limit=1")
            app.get(f"{RULES}?detail=true&sort_key={key}&sort_dir={direction}&marker={rule['uuid']}")
        for query in ("scope=x", "phase=main", "priority=0", "actions=x", "conditions=[]", "sensitive=true", "limit=0"):
            app.get(f"{RULES}?detail=true&{query}")
        for tag in ("*", '"x"', "x"):
            app.get(one, headers={"If-Match": tag})
            app.delete(one, headers={"If-None-Match": tag, "If-Match": '"x"'})
        for patch in (*patches(rule), {}, [{"op": "add"}], "x", None):
            status = app.patch_json(one, patch).status_int
            assert status in (200, 400)
            if status == 200 and any(item["path"].startswith(("/cond", "/acti")) for item in patch):
                _put_back(service, stored)
        for again in (rule, {**rule, "sensitive": False}, {"uuid": rule["uuid"], "actions": [LOG_IT]}):
            assert app.post_json(RULES, again).status_int == 409
        for method in ("PUT", "POST", "OPTIONS"):
            app.request(one, method=method)
        app.get(one, headers={"X-OpenStack-Ironic-API-Version": "1.95"})
        assert app.get(one).json["sensitive"] is True
        assert _stored(service, rule["uuid"])["actions"] == stored["actions"]
        assert app.delete(one).status_int == 204
        app.get(one)

    assert len(seen) > 700
    assert_sealed(words, seen, caplog)


def _stored(service: Whole, uuid: str) -> dict[str, Any]:
    with service.db.reader() as conn:
        return values_of(RULE, inspection_rules.get(conn, uuid))


def _put_back(service: Whole, row: dict[str, Any]) -> None:
    values = {name: row[name] for name in ("conditions", "actions")}
    service.db.write(lambda conn: inspection_rules.update(conn, row["uuid"], values))


@pytest.mark.parametrize("sensitive", [True, False])
@pytest.mark.parametrize("field", ["conditions", "actions"])
def test_a_refused_rule_is_answered_with_places_and_reasons_only(service, words, seen, caplog, cmdb, field, sensitive):
    """S-17, also for rules that are not sensitive: the flag may have been omitted by mistake."""
    rule = full_rule(words, cmdb, sensitive=sensitive)
    for index, item in enumerate(rule[field]):
        args = item["args"]
        values = list(args.values()) if isinstance(args, dict) else args
        for wrong in ({"args": [*values, *values, *values, *values]}, {"args": str(args)}, {"op": words.op},
                      {"loop": words.loop_text}, {"multiple": words.multiple}, {"args": [f"{{{words.root}}}"] * 2},
                      {"args": [f"{words.open} {{"] * 2}, {"args": [f"({words.paren}", f"({words.paren}"]},
                      {"args": [[[words.nested]], {"a": words.nested}]}, {"args": [2**60, words.number]}):
            items = [*rule[field][:index], {**item, **wrong}, *rule[field][index + 1:]]
            reply = service.app.post_json(RULES, {**rule, field: items})
            if reply.status_int == 400:
                assert f"/{field}/{index}" in reply.text
            else:
                service.app.delete(RULES)
    for name in ("priority", "phase", "description", "scope", "sensitive", "uuid", field):
        service.app.post_json(RULES, {**rule, name: {"x": words.wrong_type}})
        service.app.post_json(RULES, {**rule, name: words.wrong_text * 30})
    service.app.post(RULES, json.dumps(rule)[:-9], content_type="application/json")
    service.app.post(RULES, json.dumps(rule).replace('{"op"', '{"op": 1, "op"'), content_type="application/json")

    refused = [text for text in seen if text.startswith("400")]
    assert len(refused) > 50
    assert_sealed(words, refused, caplog)


WRITTEN = ("path", "key", "deep", "list_path", "list_item", "data_path", "data_value", "capability", "capability_value",
           "trait")


def inspect(service: Whole, words: Words, **fields: Any) -> tuple[dict[str, Any], list[str]]:
    """Inspect a node; return it, and all data that are stored about its inspection."""
    _, body = service.machine()
    body["inventory"]["hostname"] = "host"
    node = service.enroll("manageable", **fields)
    shown = service.inspect(node, body)
    for path in ("", "/history", "/inventory", "/ports", "/traits"):
        service.app.get(f"/v1/nodes/{node}{path}")
    for event in service.app.get(f"/v1/nodes/{node}/history").json["history"]:
        service.app.get(f"/v1/nodes/{node}/history/{event['uuid']}")
    with service.db.reader() as conn:
        node_id = service.row(node).id
        kept = [repr(tuple(row)) for table in (node_history, node_inventory)
                for row in conn.execute(sa.select(table).where(table.c.node_id == node_id))]
    return shown, [repr(service.row(node)), *kept]


def test_a_rule_that_matches_shows_what_it_wrote_and_no_more(service, words, seen, caplog, cmdb):
    rule = full_rule(words, cmdb, description="what everybody may know")
    rule["conditions"] = [{"op": "!eq", "args": [words.value, f"{{plugin_data[{words.template}]}}"]},
                          {"op": "!matches", "args": ["{inventory[hostname]}", words.regex]},
                          {"op": "!one-of", "args": ["{item}", [words.choice]], "loop": [words.loop]}]
    rule["actions"] = [item for item in rule["actions"] if item["op"] not in ("fail", "set-port-attribute")]
    service.app.post_json(RULES, rule)

    node, kept = inspect(service, words)

    assert node["provision_state"] == "manageable", node["last_error"]
    assert node["extra"] == {words.path: {words.key: [words.deep]}}
    assert any("what everybody may know" in text for text in seen)
    assert "message withheld" in logged(caplog)
    # The password is in the row of the node, where it belongs, and masked in replies.
    assert_sealed(words, seen, caplog, *kept[1:], but=WRITTEN)


def test_a_rule_that_does_not_match_leaves_nothing(service, words, seen, caplog, cmdb):
    service.app.post_json(RULES, full_rule(words, cmdb))

    node, kept = inspect(service, words)

    assert node["provision_state"] == "manageable"
    assert_sealed(words, seen, caplog, *kept)


def failing(words: Words, cmdb: str) -> dict[str, list[dict[str, Any]]]:
    """Return actions that fail, by the kind of failure."""
    written = {"op": "set-attribute", "args": [f"/extra/{words.path}", words.deep]}
    data = {"op": "set-plugin-data", "args": [words.data, words.data]}
    return {
        "fail": [{"op": "fail", "args": [words.failure]}],
        "fail with a template": [{"op": "fail", "args": [f"{words.failure} {{inventory[hostname]}}"]}],
        "missing path": [written, {"op": "set-plugin-data", "args": [words.data, f"{{inventory[{words.missing}]}}"]}],
        "missing path in text": [{"op": "fail", "args": [f"{words.failure} {{plugin_data[{words.missing}][x]}}"]}],
        "missing loop": [{"op": "add-trait", "args": ["{item}"], "loop": f"{{plugin_data[{words.missing}]}}"}],
        "loop of the wrong type": [
            data, {"op": "add-trait", "args": ["{item}"], "loop": f"{{plugin_data[{words.data}]}}"}],
        "blocked path": [written, {"op": "set-attribute", "args": [f"/extra/{words.path}/{words.below}", 1]}],
        "blocked list": [written, {"op": "extend-attribute", "args": [f"/extra/{words.path}", words.item]}],
        "blocked data": [data, {"op": "set-plugin-data", "args": [f"{words.data}.{words.below}", words.item]}],
        "bad type": [data, {"op": "set-attribute", "args": ["/name", f"{{plugin_data[{words.data}]}} {words.blank}"]}],
        "bad text": [data, {"op": "set-attribute", "args": [f"/{{plugin_data[{words.data}]}}", words.item]}],
        "bad trait": [data, {"op": "add-trait", "args": [f"{{plugin_data[{words.data}]}}"]}],
        "bad capability": [data, {"op": "set-capability",
                                  "args": ["x", f"{words.item},{{plugin_data[{words.data}]}}"]}],
        "no such port": [data, {"op": "set-port-attribute", "args": ["52:54:00:ff:ff:ff", "/extra/x", words.item]}],
        "api call": [{"op": "api-call",
                      "args": {"url": f"{cmdb}/status500/{words.url}", "headers": {"X": words.header}}}],
        "bad api call": [data, {"op": "api-call", "args": [f"{cmdb}/{words.url}/{{plugin_data[{words.data}]}} \t"]}],
        "taken name": [{"op": "set-attribute", "args": ["/name", words.taken]}],
        "no such driver": [{"op": "set-attribute", "args": ["/driver", words.driver]}],
        "no such interface": [{"op": "set-attribute", "args": ["/deploy_interface", words.interface]}],
        "no such group": [{"op": "set-attribute", "args": ["/conductor_group", words.group]},
                          {"op": "set-attribute", "args": ["/driver", words.driver]}],
    }


@pytest.mark.parametrize("phase", ["preprocess", "main"])
@pytest.mark.parametrize("how", list(failing(Words(), "http://127.0.0.1")))
def test_a_rule_that_fails_says_which_and_no_more(service, words, seen, caplog, cmdb, how, phase):
    actions = failing(words, cmdb)[how]
    if how == "taken name":
        service.enroll(name=words.taken)
        seen.clear()
    reply = service.app.post_json(RULES, {"sensitive": True, "phase": phase, "actions": actions})
    assert reply.status_int == 201, reply.text

    node, kept = inspect(service, words)

    assert node["provision_state"] == "inspect failed"
    assert node["last_error"]
    assert (reply.json["uuid"] in node["last_error"]) or "withheld" in node["last_error"]
    assert_sealed(words, seen, caplog, *kept)


@pytest.mark.parametrize("actions", ["fail", "missing path in text", "blocked data"])
def test_an_early_rule_that_refuses_gives_the_uniform_404(service, words, seen, caplog, cmdb, actions):
    service.app.post_json(RULES, {
        "sensitive": True, "phase": "early", "actions": failing(words, cmdb)[actions],
        "conditions": [{"op": "!eq", "args": [words.value, f"{{plugin_data[{words.template}]}}"]}]})
    _, body = service.machine()
    node = service.enroll("manageable")
    service.provision(node, "inspect")

    refused = service.callback(node, body)
    service.app.delete(RULES)
    unknown = service.callback("00000000-0000-4000-8000-000000000007", body)

    assert (refused.status_int, refused.body) == (404, unknown.body)
    assert service.show(node)["provision_state"] == "inspect wait"
    assert "details are withheld" in logged(caplog)
    assert_sealed(words, seen, caplog, repr(service.row(node)))


def test_a_rule_that_became_invalid_says_which_and_no_more(service, words, seen, caplog, cmdb):
    uuid = service.app.post_json(RULES, {"sensitive": True, "actions": [LOG_IT]}).json["uuid"]
    actions = [{"op": words.op, "args": {words.name: words.value}}]
    conditions = [{"op": "matches", "args": [f"{{{words.root}}}", f"({words.regex}"]}]
    service.db.write(lambda conn: inspection_rules.update(conn, uuid, {"actions": actions, "conditions": conditions}))

    node, kept = inspect(service, words)

    assert node["provision_state"] == "inspect failed"
    assert uuid in node["last_error"]
    assert_sealed(words, seen, caplog, *kept)


def test_a_database_that_refuses_a_rule_is_logged_without_it(service, words, seen, caplog, cmdb):
    rule = full_rule(words, cmdb, uuid="22222222-2222-4222-8222-222222222222")
    service.app.post_json(RULES, rule)
    with service.db.writer() as conn:
        for change in ("UPDATE", "INSERT"):
            conn.exec_driver_sql(f"CREATE TRIGGER no_{change} BEFORE {change} ON inspection_rules "
                                 "BEGIN SELECT RAISE(ABORT, 'no'); END")
    try:
        created = service.app.post_json(RULES, {**rule, "uuid": None})
        patched = service.app.patch_json(f"{RULES}/{rule['uuid']}", [
            {"op": "replace", "path": "/actions", "value": rule["actions"]}])
    finally:
        with service.db.writer() as conn:
            for change in ("UPDATE", "INSERT"):
                conn.exec_driver_sql(f"DROP TRIGGER no_{change}")

    assert (created.status_int, patched.status_int) == (500, 500)
    assert "Unexpected error" in logged(caplog)
    assert_sealed(words, seen, caplog)
