"""Concurrent changes: ``ETag``, ``If-Match`` and ``If-None-Match`` of rules, over real HTTP (RFC 9110)."""

from __future__ import annotations

import json
import threading
from typing import Any

import httpx
import pytest

from ironic_rules.api.app import make_app
from ironic_rules.db import inspection_rules
from ironic_rules.db.tables import inspection_rules as table
from ironic_rules.exceptions import rule_changed
from ironic_rules.inspection.rule_sets import RuleCaches, RuleSettings
from ironic_rules.models.rules import Rule
from tests.functional.api.conftest import Client, served
from tests.functional.api.tables import contents
from tests.walking import walking

RULES = "/v1/inspection_rules"
UUID = "11111111-1111-4111-8111-111111111111"
NOBODY = "00000000-0000-4000-8000-000000000007"
ONE = f"{RULES}/{UUID}"
LOG = {"op": "log", "args": {"msg": "hi"}}
RULE = {"uuid": UUID, "actions": [LOG]}
HIGHER = [{"op": "replace", "path": "/priority", "value": 7}]
BUILT_IN = {"uuid": "22222222-2222-4222-8222-222222222222", "description": None, "priority": 0, "phase": "main",
            "scope": None, "sensitive": False, "conditions": [], "actions": [LOG], "position": 1, "built_in": True}


@pytest.fixture(scope="module")
def service(shared_database):
    with served(shared_database) as client:
        yield client


@pytest.fixture
def web(service, db):
    return service


def fault(reply: httpx.Response) -> str:
    detail = json.loads(reply.json()["error_message"])
    assert detail["faultcode"] == "Client"
    assert "ETag" not in reply.headers
    return str(detail["faultstring"])


def test_create_show_and_change_answer_with_a_strong_tag(web):
    created = web.post(RULES, json=RULE)
    shown = web.get(ONE)
    changed = web.patch(ONE, json=HIGHER)

    assert (created.status_code, changed.status_code) == (201, 200)
    first, second = created.headers["ETag"], changed.headers["ETag"]
    assert first.startswith('"') and first.endswith('"') and len(first) == 34
    assert shown.headers["ETag"] == first != second
    assert web.get(ONE).headers["ETag"] == second == web.head(ONE).headers["ETag"]
    assert web.get(f"{ONE}?fields=uuid").headers["ETag"] == second
    assert web.get(RULES).headers["ETag"] not in (first, second)


@walking("patch", [
    {"op": "add", "path": "/description", "value": "x"}, {"op": "add", "path": "/scope", "value": "x"},
    {"op": "add", "path": "/phase", "value": "early"}, {"op": "add", "path": "/priority", "value": 1},
    {"op": "add", "path": "/conditions", "value": [{"op": "is-true", "args": [True]}]},
    {"op": "add", "path": "/actions", "value": [LOG, LOG]},
])
@walking("sensitive", [False, True], between="start_empty")
def test_every_field_changes_the_tag_hidden_ones_too(web, patch, sensitive):
    before = web.post(RULES, json={**RULE, "sensitive": sensitive}).headers["ETag"]

    web.patch(ONE, json=[patch])

    assert web.get(ONE).headers["ETag"] != before


@pytest.mark.parametrize("patch", [
    [], [{"op": "replace", "path": "/priority", "value": 0}], [{"op": "add", "path": "/actions", "value": [LOG]}],
    [{"op": "add", "path": "/name", "value": "a"}, {"op": "remove", "path": "/name"}],
])
def test_a_patch_that_changes_nothing_leaves_the_tag_but_of_a_sensitive_rule(web, db, patch):
    tag = web.post(RULES, json=RULE).headers["ETag"]
    before = contents(db)

    reply = web.patch(ONE, json=patch, headers={"If-Match": tag})

    assert (reply.status_code, reply.headers["ETag"], reply.json()["updated_at"]) == (200, tag, None)
    assert contents(db) == before
    tag = web.patch(ONE, json=[{"op": "add", "path": "/sensitive", "value": True}]).headers["ETag"]
    assert web.patch(ONE, json=patch).headers["ETag"] != tag


def test_no_rules_are_deleted_without_a_new_tag(web, db):
    before = contents(db), web.get(RULES).headers["ETag"]

    assert web.delete(RULES).status_code == web.delete(f"{RULES}/all").status_code == 204
    assert (contents(db), web.get(RULES).headers["ETag"]) == before


def test_a_rule_that_is_made_anew_has_a_new_tag(web):
    before = web.post(RULES, json=RULE).headers["ETag"]
    web.delete(ONE)

    assert web.post(RULES, json=RULE).headers["ETag"] != before


def test_the_tag_of_a_sensitive_rule_says_nothing_of_it(web, db):
    """Two rules that differ only in hidden fields have the same tag: it is not derived from them."""
    tags = []
    for secret in ("a", "b"):
        db.write(inspection_rules.destroy_all)
        reply = web.post(RULES, json={**RULE, "sensitive": True, "actions": [{"op": "fail", "args": [secret]}]})
        with db.writer() as conn:
            conn.execute(table.update().values(revision=1000))
        assert reply.headers["ETag"] != web.get(ONE).headers["ETag"]
        tags.append(web.get(ONE).headers["ETag"])

    assert tags[0] == tags[1]


@walking("header", ["{}", "*", '"other" , {}', 'W/"x",,{},', '"a"\t,\t{}'])
@walking("method", ["PATCH", "DELETE"], between="start_empty")
def test_if_match_of_the_current_tag_changes_the_rule(web, method, header):
    tag = web.post(RULES, json=RULE).headers["ETag"]

    reply = web.request(method, ONE, json=HIGHER if method == "PATCH" else None,
                        headers={"If-Match": header.format(tag)})

    assert reply.status_code == (200 if method == "PATCH" else 204)


def test_several_lines_of_the_header_are_one_list(web):
    tag = web.post(RULES, json=RULE).headers["ETag"]

    assert web.patch(ONE, json=HIGHER, headers=[("If-Match", '"a"'), ("If-Match", tag)]).status_code == 200


@walking("headers, text", [
    ({"If-Match": '"other"'}, "If-Match"), ({"If-Match": "W/{}"}, "If-Match"), ({"If-Match": '"a", "b"'}, "If-Match"),
    ({"If-None-Match": "*"}, "If-None-Match"), ({"If-None-Match": "W/{}"}, "If-None-Match"),
    ({"If-Match": "{}", "If-None-Match": "{}"}, "If-None-Match"),
])
@walking("method", ["PATCH", "DELETE"], between="start_empty")
def test_what_does_not_hold_is_412_and_changes_nothing(web, db, method, headers, text):
    tag = web.post(RULES, json=RULE).headers["ETag"]
    before = contents(db)

    reply = web.request(method, ONE, json=HIGHER if method == "PATCH" else None,
                        headers={name: value.format(tag) for name, value in headers.items()})

    assert reply.status_code == 412
    assert fault(reply).startswith(f"{text} does not hold")
    assert contents(db) == before


def test_an_old_tag_is_412_so_that_nobody_overwrites_what_was_not_seen(web):
    """Two clients read the same rule; both change it; the second request is refused."""
    mine = yours = web.post(RULES, json=RULE).headers["ETag"]

    first = web.patch(ONE, json=HIGHER, headers={"If-Match": mine})
    second = web.patch(ONE, json=[{"op": "add", "path": "/priority", "value": 1}], headers={"If-Match": yours})
    again = web.patch(ONE, json=[{"op": "add", "path": "/priority", "value": 1}],
                      headers={"If-Match": web.get(ONE).headers["ETag"]})

    assert (first.status_code, second.status_code, again.status_code) == (200, 412, 200)


def test_the_precondition_comes_before_the_content(web):
    web.post(RULES, json=RULE)
    fails = [{"op": "test", "path": "/priority", "value": 99}]

    assert web.patch(ONE, json=fails, headers={"If-Match": '"other"'}).status_code == 412
    assert web.patch(ONE, json=fails, headers={"If-Match": "*"}).status_code == 400


@walking("header", ["other", '"a', "W/", '"a" "b"', "", '*, "a"', '"a b"', '"' + "a" * 9000 + '"'])
@walking("method, name", [("PATCH", "If-Match"), ("DELETE", "If-Match"), ("GET", "If-None-Match"), ("GET", "If-Match")],
         between="start_empty")
def test_a_malformed_header_is_400_and_changes_nothing(web, db, method, name, header):
    web.post(RULES, json=RULE)
    before = contents(db)

    reply = web.request(method, ONE, json=HIGHER if method == "PATCH" else None, headers={name: header})

    assert reply.status_code == 400
    assert fault(reply).startswith(f"{name}: ")
    assert contents(db) == before


def test_bytes_beyond_ascii_are_part_of_a_tag(web):
    web.post(RULES, json=RULE)

    assert web.delete(ONE, headers=[(b"If-Match", b'"\xc3\xa4\xff"')]).status_code == 412


@walking("header", ["*", '"other"'])
@walking("method", ["GET", "PATCH", "DELETE"])
def test_a_rule_that_does_not_exist_is_404(web, method, header):
    reply = web.request(method, f"{RULES}/{NOBODY}", json=HIGHER if method == "PATCH" else None,
                        headers={"If-Match": header, "If-None-Match": header})

    assert reply.status_code == 404


@walking("header", ["{}", "W/{}", "*", '"other", {}'])
@walking("method", ["GET", "HEAD"], between="start_empty")
def test_if_none_match_of_the_current_tag_is_304_without_a_body(web, method, header):
    tag = web.post(RULES, json=RULE).headers["ETag"]

    reply = web.request(method, ONE, headers={"If-None-Match": header.format(tag)})
    after = web.get(ONE)

    assert (reply.status_code, reply.content, reply.headers["ETag"]) == (304, b"", tag)
    assert not {"Content-Length", "Content-Type", "Transfer-Encoding"} & {name.title() for name in reply.headers}
    assert after.json()["uuid"] == UUID


def test_if_none_match_of_an_old_tag_shows_the_rule(web):
    tag = web.post(RULES, json=RULE).headers["ETag"]
    web.patch(ONE, json=HIGHER)

    reply = web.get(ONE, headers={"If-None-Match": tag})

    assert (reply.status_code, reply.json()["priority"]) == (200, 7)


def test_if_match_on_reading_is_412(web):
    tag = web.post(RULES, json=RULE).headers["ETag"]

    assert web.get(ONE, headers={"If-Match": '"other"'}).status_code == 412
    assert web.get(ONE, headers={"If-Match": tag}).status_code == 200


@pytest.mark.parametrize("path", [RULES, f"{RULES}/all"])
@pytest.mark.parametrize("header", ["*", "{}"])
def test_all_rules_together_have_the_tag_of_the_list(web, path, header):
    tag = web.post(RULES, json=RULE).headers["ETag"]

    assert web.delete(path, headers={"If-Match": tag}).status_code == 412
    assert web.get(ONE).status_code == 200
    assert web.delete(path, headers={"If-Match": header.format(web.get(RULES).headers["ETag"])}).status_code == 204
    assert web.get(ONE).status_code == 404


@pytest.mark.parametrize(("headers", "status"), [({}, 409), ({"If-Match": "*"}, 409), ({"If-Match": "{}"}, 412)])
def test_a_lost_race_is_409_and_412_with_a_tag(web, monkeypatch, headers, status):
    tag = web.post(RULES, json=RULE).headers["ETag"]

    def lost(conn: Any, uuid: str, values: Any, *, revision: int, author: Any) -> None:
        raise rule_changed(rule=uuid)

    monkeypatch.setattr("ironic_rules.db.inspection_rules.update", lost)

    reply = web.patch(ONE, json=HIGHER, headers={name: value.format(tag) for name, value in headers.items()})

    assert reply.status_code == status
    assert fault(reply)


def test_of_many_changes_with_one_tag_exactly_one_is_made(anywhere):
    tag = anywhere.post(RULES, json=RULE).headers["ETag"]
    replies: list[httpx.Response] = []

    def change(number: int) -> None:
        replies.append(anywhere.patch(ONE, json=[{"op": "add", "path": "/description", "value": str(number)}],
                                      headers={"If-Match": tag}))

    threads = [threading.Thread(target=change, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(reply.status_code for reply in replies) == [200] + [412] * 5
    made, = (reply for reply in replies if reply.status_code == 200)
    assert anywhere.get(ONE).json()["description"] == made.json()["description"]
    assert anywhere.get(ONE).headers["ETag"] == made.headers["ETag"]
    assert anywhere.delete(ONE, headers={"If-Match": tag}).status_code == 412
    assert anywhere.delete(ONE, headers={"If-Match": made.headers["ETag"]}).status_code == 204


def tag_of(conf: Any, db: Any, rpc: Any, **changed: Any) -> str:
    """Return the tag of a built-in rule, in a separate service."""
    app = Client(make_app(conf, db, rpc, RuleCaches(db, RuleSettings(built_in=(Rule.of({**BUILT_IN, **changed}),)))))
    url = f"{RULES}/{BUILT_IN['uuid']}"
    tag = app.get(url).headers["ETag"]
    app.get(url, headers={"If-None-Match": tag}, status=304)
    app.patch_json(url, HIGHER, headers={"If-Match": '"other"'}, status=400)
    app.delete(url, headers={"If-Match": tag}, status=400)
    return str(tag)


def test_the_tag_of_a_built_in_rule_follows_from_what_it_says(conf, db, rpc):
    tag = tag_of(conf, db, rpc)

    assert tag == tag_of(conf, db, rpc, position=7)
    others = [tag_of(conf, db, rpc, **changed) for changed in (
        {"description": "x"}, {"priority": 1}, {"phase": "early"}, {"scope": "x"}, {"sensitive": True},
        {"conditions": [{"op": "is-true", "args": [True]}]}, {"actions": [LOG, LOG]})]
    assert len({tag, *others}) == 8


def test_the_tag_of_a_sensitive_built_in_rule_can_not_be_guessed(conf, db, rpc, monkeypatch):
    """An attacker who knows everything but the secret, and guesses that, could compute a plain digest."""
    hidden = {"sensitive": True, "actions": [{"op": "fail", "args": ["1234"]}]}
    tag = tag_of(conf, db, rpc, **hidden)
    assert tag == tag_of(conf, db, rpc, **hidden)
    assert tag != tag_of(conf, db, rpc, sensitive=True, actions=[{"op": "fail", "args": ["1235"]}])

    monkeypatch.setattr("ironic_rules.api.v1.rule_lists._KEY", b"that of another process")

    assert tag != tag_of(conf, db, rpc, **hidden)
