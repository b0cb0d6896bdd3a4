"""``PUT /v1/inspection_rules``: a bundle of rules as one revision."""

from __future__ import annotations

import collections
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ironic_rules.api import app as api_app
from ironic_rules.api import patch as json_patch
from ironic_rules.inspection import rule_sets
from ironic_rules.inspection.rule_sets import RuleCaches
from tests.functional.api.conftest import Client
from tests.walking import walking

RULES = "/v1/inspection_rules"
UUID = "11111111-1111-4111-8111-111111111111"
OTHER = "22222222-2222-4222-8222-222222222222"
LOG = {"op": "log", "args": {"msg": "hi"}}
FAIL = {"op": "fail", "args": {"msg": "hunter2"}}
KINDS = ("created", "changed", "replaced", "unchanged", "removed")


def rule(name: str | None = None, **values: Any) -> dict[str, Any]:
    return {"actions": [LOG], **({"name": name} if name else {}), **values}


def put(app: Any, *given: Any, status: int = 200, headers: Any = None, **options: Any) -> Any:
    reply = app.put_json(RULES, {"rules": list(given), **options}, status=status, headers=headers)
    return reply.json if status == 200 else reply.fault["faultstring"]


def told(reply: dict[str, Any]) -> dict[str, list[Any]]:
    """Return the names by what happened to them; a rule without a name is its description."""
    return {kind: [entry["name"] or entry["description"] for entry in reply[kind]] for kind in KINDS if reply[kind]}


def shown(app: Any) -> list[dict[str, Any]]:
    rules = app.get(f"{RULES}?detail=true").json["inspection_rules"]
    return [{name: value for name, value in found.items() if name not in ("links", "updated_at")} for found in rules]


def test_rules_are_created_changed_and_removed_as_one_revision(app):
    first = put(app, rule("a"), rule("b", priority=3), rule(description="c"))
    before = {found["name"]: found for found in shown(app)}
    second = put(app, rule("b", priority="5", enabled="false"), rule(description="c"), rule("d"), prune=True)

    assert (told(first), first["revision"]) == ({"created": ["a", "b", "c"]}, 1)
    assert (told(second), second["revision"]) == (
        {"created": ["d"], "changed": ["b"], "unchanged": ["c"], "removed": ["a"]}, 2)
    assert second["changed"][0]["patch"] == [{"op": "replace", "path": "/enabled", "value": False},
                                             {"op": "replace", "path": "/priority", "value": 5}]
    after = shown(app)
    assert [found["name"] or found["description"] for found in after] == ["b", "c", "d"]
    assert [found["uuid"] for found in after[:2]] == [before["b"]["uuid"], before[None]["uuid"]]
    assert after[0]["created_at"] == before["b"]["created_at"]
    assert [entry["uuid"] for entry in second["created"]] == [after[2]["uuid"]]
    assert [second[kind][0]["pointer"] for kind in ("changed", "unchanged", "created", "removed")] == [
        "/rules/0", "/rules/1", "/rules/2", None]


def test_the_same_again_is_no_revision(app):
    given = [rule("a"), rule(uuid=UUID, scope="x"), rule(description="b"), rule(description="b")]
    first = put(app, *given)
    second = put(app, *given, prune=True)

    assert (second["revision"], told(second)) == (1, {"unchanged": ["a", None, "b", "b"]})
    assert [entry["uuid"] for entry in second["unchanged"]] == [entry["uuid"] for entry in first["created"]]


def test_a_dry_run_says_what_would_be_and_writes_nothing(app):
    put(app, rule("a"), rule("b"))
    before = shown(app)
    reply = put(app, rule("a", priority=1), rule("c"), rule(uuid=UUID), prune=True, dry_run=True)

    assert (told(reply), reply["revision"], reply["dry_run"]) == (
        {"created": ["c", None], "changed": ["a"], "removed": ["b"]}, 1, True)
    assert [entry["uuid"] for entry in reply["created"]] == [None, UUID]
    assert shown(app) == before


def test_a_bundle_is_left_alone_by_others(app):
    put(app, rule("a"), bundle="racks")
    put(app, rule("a", priority=1), prune=True)
    reply = put(app, rule("b"), rule("c", bundle="lab"), bundle="lab", prune=True)

    assert (told(reply), reply["bundle"]) == ({"created": ["b", "c"]}, "lab")
    assert [(found["bundle"], found["name"]) for found in shown(app)] == [
        ("racks", "a"), (None, "a"), ("lab", "b"), ("lab", "c")]
    assert told(put(app, bundle="lab", prune=True)) == {"removed": ["b", "c"]}


def test_a_rule_is_found_by_its_uuid_before_its_name(app):
    put(app, rule("a", uuid=UUID), rule("b", uuid=OTHER))
    reply = put(app, rule("b", uuid=UUID.upper()), rule("a", uuid=OTHER))

    assert told(reply) == {"changed": ["b", "a"]}
    assert [(found["uuid"], found["name"]) for found in shown(app)] == [(UUID, "b"), (OTHER, "a")]


def test_every_problem_of_every_rule_is_named_and_nothing_is_written(app):
    put(app, rule("taken", uuid=OTHER), bundle="lab")
    put(app, rule("here"), rule("secret", sensitive=True))
    before = shown(app)
    text = put(
        app, rule(), "text", rule(priority=-1, actions=[{"op": "nosuch"}]), rule("a"), rule("a"), rule(uuid=UUID),
        rule(uuid=UUID.upper()), rule(uuid=OTHER), rule(sensitive=True), rule("secret"), rule(bundle="lab"),
        rule("here", uuid="99999999-1111-4111-8111-111111111111"), {"name": ["x"], "uuid": 5}, rule(built_in=True),
        status=400)

    for where in ("/rules/1: ", "/rules/2/priority: ", "/rules/2/actions/0/op: ", "/rules/4/name: ", "/rules/6/uuid: ",
                  "/rules/7/uuid: is that of a rule of bundle lab", "/rules/8: ", "/rules/9/sensitive: ",
                  "/rules/10/bundle: ", "/rules/11/name: is the name of rule ", "/rules/12/name: ", "/rules/12/uuid: ",
                  "/rules/12/actions: ", "/rules/13/built_in: "):
        assert where in text
    assert not any(f"/rules/{place}" in text for place in (0, 3, 5))
    assert shown(app) == before


@walking("body", [
    None, [], {}, {"rules": {}}, {"rules": [], "nosuch": 1}, {"rules": [], "prune": "perhaps"},
    {"rules": [], "bundle": ""}, {"rules": [], "bundle": 7}, {"rules": [], "bundle": "b" * 256}, {"rules": None},
])
def test_a_malformed_request_is_refused(app, body):
    app.put_json(RULES, body, status=400)


def test_what_get_shows_is_not_what_put_takes(app):
    """A field that only the service writes is refused, not ignored."""
    put(app, rule(uuid=UUID))
    assert "/rules/0/created_at" in put(app, rule(uuid=UUID, created_at="2026-01-01T00:00:00+00:00"), status=400)


def test_the_tag_of_the_set_guards_against_what_was_not_seen(app):
    tag = app.get(RULES).headers["ETag"]
    reply = app.put_json(RULES, {"rules": [rule("a")]}, headers={"If-Match": tag})

    assert app.get(f"{RULES}?limit=1").headers["ETag"] == reply.headers["ETag"] != tag
    for dry_run in (True, False):
        put(app, rule("b"), status=412, headers={"If-Match": tag}, dry_run=dry_run)
    put(app, rule("b"), headers={"If-Match": reply.headers["ETag"]})
    app.delete(RULES, headers={"If-Match": tag}, status=412)
    app.delete(RULES, headers={"If-Match": app.get(RULES).headers["ETag"]}, status=204)


def test_of_a_sensitive_rule_a_reply_tells_only_that_it_was_replaced(app):
    secret = rule("s", sensitive=True, actions=[FAIL])
    created = app.put_json(RULES, {"rules": [secret]})
    for given in (secret, {**secret, "actions": [LOG]}):
        tried = app.put_json(RULES, {"rules": [given], "dry_run": True})
        replaced = app.put_json(RULES, {"rules": [given]})
        assert told(tried.json) == told(replaced.json) == {"replaced": ["s"]}
        assert "patch" not in tried.json["replaced"][0]
        assert tried.json["revision"] + 1 == replaced.json["revision"]
        assert "hunter2" not in created.text + tried.text + replaced.text
    assert told(put(app, rule("open"), prune=True)) == {"created": ["open"], "removed": ["s"]}
    assert told(put(app, rule("open", sensitive=True))) == {"replaced": ["open"]}


def test_a_patch_that_a_reply_shows_makes_the_new_rule_of_the_old(app):
    """The patches of PUT are those that PATCH takes."""
    actions = [{"op": "log", "args": {"msg": str(number), "level": "info"}} for number in range(6)]
    old = rule("a", uuid=UUID, description="x", actions=actions, scope="lab",
               conditions=[{"op": "eq", "args": [1, 1]}, {"op": "is-true", "args": {"value": True}}])
    news = [
        rule("a", uuid=UUID), {**old, "actions": actions[1:]}, {**old, "actions": [*actions[:3], LOG, *actions[3:]]},
        {**old, "actions": actions[::-1]}, {**old, "conditions": [{"op": "eq", "args": [1, 1.0]}]},
        {**old, "actions": [{**actions[0], "loop": {"a/b": 1, "~": None}}, *actions[1:]]},
    ]
    for new in news:
        app.delete(RULES)
        put(app, old)
        tried = put(app, new, dry_run=True)
        before = shown(app)[0]
        patch, = (entry["patch"] for entry in tried["changed"])
        app.patch_json(f"{RULES}/{UUID}", patch)
        assert shown(app)[0] == {**before, **json_patch.apply(before, json_patch.operations(patch), defaults={})}
        assert told(put(app, new)) == {"unchanged": ["a"]}
    assert len(patch) == 1


def test_names_are_unique_within_a_bundle(app):
    app.post_json(RULES, rule("a"), status=201)
    app.post_json(RULES, rule("a", bundle="lab"), status=201)
    other = app.post_json(RULES, rule("b", uuid=UUID), status=201).json

    assert "the name a" in app.post_json(RULES, rule("a"), status=409).fault["faultstring"]
    rename = [{"op": "replace", "path": "/name", "value": "a"}]
    assert app.patch_json(f"{RULES}/{UUID}", rename, status=409)
    move = [*rename, {"op": "replace", "path": "/bundle", "value": "lab"}]
    assert "in bundle lab" in app.patch_json(f"{RULES}/{UUID}", move, status=409).fault["faultstring"]
    assert app.get(f"{RULES}/{UUID}").json == other


def test_a_uuid_of_a_built_in_rule_is_refused_and_prune_leaves_them(conf, db, rpc, tmp_path: Path):
    file = tmp_path / "rules.yaml"
    file.write_text(f"- {{uuid: {UUID}, name: a, actions: [{{op: log, args: [x]}}]}}")
    conf.set_override("built_in", str(file), group="inspection_rules")
    conf.set_override("default_scope", "lab", group="inspection_rules")
    app = Client(api_app.make_app(conf, db, rpc, RuleCaches(db, rule_sets.prepare_rules(conf))))

    assert "/rules/0/uuid: is that of a built-in rule" in put(app, rule(uuid=UUID), status=400)
    put(app, rule("a"), rule("b", scope=None))
    assert [found["scope"] for found in shown(app)] == ["lab", None, None]
    assert told(put(app, prune=True)) == {"removed": ["a", "b"]}
    assert [found["uuid"] for found in shown(app)] == [UUID]


NAMES = ("a", "b", "c", None, None)
UUIDS = tuple(f"{number}1111111-1111-4111-8111-111111111111" for number in range(6))
COMPARED = ("name", "bundle", "priority", "enabled", "actions")


class Model:
    """The expected rules after each request: by UUID the fields of ``COMPARED``, in the order of creation."""

    def __init__(self) -> None:
        self.rules: dict[str, tuple[Any, ...]] = {}
        self.kept: dict[int, dict[str, tuple[Any, ...]]] = {}

    def see(self, app: Any) -> dict[str, tuple[Any, ...]]:
        return {found["uuid"]: tuple(found[name] for name in COMPARED) for found in shown(app)}


def random_rules(chance: random.Random) -> list[dict[str, Any]]:
    """Return rules that can be in one request: no name and no UUID twice."""
    names, uuids = list(NAMES), list(UUIDS)
    chance.shuffle(names)
    chance.shuffle(uuids)
    return [{**rule(names.pop(), priority=chance.randrange(2)),
             **({"uuid": uuids.pop()} if chance.random() < 0.4 else {}),
             **({"enabled": False} if chance.random() < 0.2 else {}),
             **({"actions": [LOG, LOG]} if chance.random() < 0.3 else {})} for _ in range(chance.randrange(5))]


def said(given: dict[str, Any], bundle: str | None) -> tuple[Any, ...]:
    return given.get("name"), bundle, given["priority"], given.get("enabled", True), given["actions"]


@pytest.mark.parametrize("seed", range(3))
def test_random_requests_do_what_a_simple_model_does(app, seed):
    """PUT, DELETE and rollback in any sequence: the rules are those of the model, and so is each revision."""
    chance, model, done = random.Random(seed), Model(), collections.Counter()
    for _ in range(60):
        before = model.see(app)
        revision = app.get(f"{RULES}/revisions?limit=1").json["revisions"]
        number = revision[0]["revision"] if revision else 0
        if number and chance.random() < 0.2:
            target = chance.choice(sorted(model.kept))
            app.post_json(f"{RULES}/revisions/{target}/rollback", {})
            assert model.see(app) == model.kept[target]
            done["rollback"] += 1
        elif before and chance.random() < 0.1:
            app.delete(f"{RULES}/{chance.choice(list(before))}")
        else:
            bundle, prune = chance.choice([None, "lab"]), chance.random() < 0.4
            given = random_rules(chance)
            reply = app.put_json(RULES, {"rules": given, "bundle": bundle, "prune": prune}, status="*")
            after = model.see(app)
            if reply.status_int == 400:
                assert after == before
                done["refused"] += 1
                continue
            told_of = {kind: {entry["uuid"] for entry in reply.json[kind]} for kind in KINDS}
            # Every rule that is given is there, once; other rules are as before, or pruned.
            mine = told_of["created"] | told_of["changed"] | told_of["unchanged"]
            assert len(mine) == len(given)
            contents = collections.Counter(map(repr, (said(each, bundle) for each in given)))
            assert collections.Counter(repr(after[uuid]) for uuid in mine) == contents
            assert told_of["created"] == after.keys() - before.keys()
            assert told_of["removed"] == before.keys() - after.keys()
            assert all(before[uuid] == after[uuid] for uuid in told_of["unchanged"])
            assert all(before[uuid] != after[uuid] for uuid in told_of["changed"])
            rest = {uuid: found for uuid, found in before.items() if uuid not in mine}
            assert {uuid: found for uuid, found in after.items() if uuid not in mine} == {
                uuid: found for uuid, found in rest.items() if not (prune and found[1] == bundle)}
            assert told(put(app, *given, bundle=bundle, prune=prune, dry_run=True)).keys() <= {"unchanged"}
            done["put"] += 1
        named = [found[:2] for found in model.see(app).values() if found[0] is not None]
        assert len(named) == len(set(named))
        newest = app.get(f"{RULES}/revisions?limit=1").json["revisions"]
        if newest:
            model.kept.setdefault(newest[0]["revision"], model.see(app))
    assert min(done[kind] for kind in ("put", "rollback", "refused")) >= 3


def at_once(calls: list[Callable[[], Any]]) -> list[Any]:
    with ThreadPoolExecutor(len(calls)) as pool:
        return [future.result() for future in [pool.submit(call) for call in calls]]


def test_requests_of_two_clients_at_once_follow_each_other(anywhere):
    """Each of them is made on the result of the other: no rule twice, no deadlock."""
    given = [rule(f"r{number}") for number in range(30)]

    def client(number: int) -> list[int]:
        return [anywhere.put(RULES, json={"rules": [{**each, "priority": number * 10 + turn} for each in given],
                                          "prune": True}).status_code for turn in range(4)]

    assert at_once([lambda: client(1), lambda: client(2), lambda: client(3)]) == [[200] * 4] * 3
    rules = anywhere.get(RULES).json()["inspection_rules"]
    assert [found["name"] for found in rules] == [f"r{number}" for number in range(30)]
    assert len({found["priority"] for found in rules}) == 1
    listed = anywhere.get(f"{RULES}/revisions").json()["revisions"]
    assert [found["revision"] for found in listed] == list(range(12, 0, -1))
    assert sum(found["summary"].startswith("created 30") for found in listed) == 1


def test_of_requests_with_one_tag_exactly_one_is_made(anywhere):
    tag = anywhere.get(RULES).headers["ETag"]
    replies = at_once([lambda name=name: anywhere.put(RULES, json={"rules": [rule(name)]}, headers={"If-Match": tag})
                       for name in "abcd"])

    assert sorted(reply.status_code for reply in replies) == [200, 412, 412, 412]
    assert len(anywhere.get(RULES).json()["inspection_rules"]) == 1


def test_thousands_of_rules_are_one_request(anywhere):
    given = [rule(f"r{number}", description="d" * 200, actions=[{"op": "log", "args": {"msg": "x" * 600}}])
             for number in range(2000)]
    made = anywhere.put(RULES, json={"rules": given}, timeout=60).json()
    again = anywhere.put(RULES, json={"rules": given}, timeout=60).json()

    assert (len(made["created"]), len(again["unchanged"]), again["revision"]) == (2000, 2000, 1)
    last = anywhere.get(f"{RULES}?sort_dir=desc&limit=1").json()["inspection_rules"]
    assert [found["name"] for found in last] == ["r1999"]
