"""``/v1/inspection_rules/revisions``: who changed the rules when, what they were, and the way back."""

from __future__ import annotations

from typing import Any

import pytest

from ironic_rules.api.app import make_app
from ironic_rules.db import inspection_rules
from ironic_rules.inspection.rule_sets import RuleCaches, RuleSettings
from ironic_rules.rules import Limits
from tests.functional.api.conftest import Client
from tests.functional.api.test_rule_sets import FAIL, LOG, OTHER, RULES, UUID, put, rule, shown, told

REVISIONS = f"{RULES}/revisions"


def patch(app: Any, **values: Any) -> None:
    app.patch_json(f"{RULES}/{UUID}", [{"op": "replace", "path": f"/{name}", "value": value}
                                       for name, value in values.items()])


def rollback(app: Any, revision: int, status: int = 200, headers: Any = None, **body: Any) -> Any:
    reply = app.post_json(f"{REVISIONS}/{revision}/rollback", body, status=status, headers=headers)
    return reply.json if status == 200 else reply.fault["faultstring"]


def test_every_change_is_a_revision_with_who_when_and_what(app):
    app.post_json(RULES, rule(uuid=UUID), extra_environ={"REMOTE_USER": "operator-1"})
    patch(app, priority=4)
    put(app, rule("a"), rule("b"), bundle="racks")
    app.delete(f"{RULES}/{UUID}")
    rollback(app, 2)
    app.delete(RULES)

    listed = app.get(REVISIONS).json["revisions"]
    assert [(found["revision"], found["summary"]) for found in listed] == [
        (6, "removed all rules (1)"), (5, "rolled back to 2: created 1, changed 0, removed 2 rules"),
        (4, f"removed rule {UUID}"), (3, "created 2, changed 0, removed 0 rules of bundle racks"),
        (2, f"changed rule {UUID}"), (1, f"created rule {UUID}")]
    assert listed[0].keys() == {"revision", "created_at", "user", "summary", "links"}
    assert [found["user"] for found in listed] == [None] * 5 + ["operator-1"]
    assert app.get(listed[2]["links"][0]["href"]).json["revision"] == 4


def test_a_revision_shows_the_rules_as_they_were(app):
    app.post_json(RULES, rule(uuid=UUID, description="first"))
    first = shown(app)
    patch(app, description="second")
    put(app, rule("a"))
    second = shown(app)
    put(app, prune=True)

    def at(revision: int) -> list[Any]:
        rules = app.get(f"{REVISIONS}/{revision}").json["rules"]
        return [{name: value for name, value in found.items() if name not in ("links", "updated_at")}
                for found in rules]

    # Nodes are counted for a rule, not for its versions.
    assert [found.pop("nodes_counted") for found in (*first, *second)] == [0, 0, 0]
    assert (at(1), at(3), at(4)) == (first, second, [])
    assert [found["description"] for found in at(2)] == ["second"]


def test_the_list_is_paged(app):
    for number in range(5):
        put(app, rule(str(number)))

    def walk(url: str) -> list[int]:
        found: list[int] = []
        while url:
            reply = app.get(url).json
            found += [revision["revision"] for revision in reply["revisions"]]
            url = reply.get("next", "")
        return found

    assert walk(f"{REVISIONS}?limit=2") == [5, 4, 3, 2, 1]
    assert walk(f"{REVISIONS}?limit=2&sort_dir=asc") == [1, 2, 3, 4, 5]
    assert walk(f"{REVISIONS}?marker=3") == [2, 1]


def test_rolling_back_makes_the_rules_what_they_were_with_their_identity_and_order(app):
    put(app, rule("a", uuid=UUID), rule("b"), rule("c"))
    before = shown(app)
    put(app, rule("c", priority=1), rule("d"), prune=True)
    app.post_json(RULES, rule("a", uuid=UUID))

    tried = rollback(app, 1, dry_run=True)
    assert (told(tried), tried["dry_run"], tried["revision"]) == (
        {"created": ["b"], "changed": ["a", "c"], "removed": ["d"]}, True, 3)
    assert tried["created"][0]["uuid"] == before[1]["uuid"]
    made = rollback(app, 1)
    assert (told(made), made["revision"]) == (told(tried), 4)
    assert shown(app) == before
    again = rollback(app, 1)
    assert (told(again), again["revision"]) == ({"unchanged": ["a", "b", "c"]}, 4)


@pytest.mark.parametrize(("path", "status"), [("7", 404), ("0", 404), ("x", 400), ("-1", 400), ("9" * 30, 400)])
def test_a_revision_that_is_not_kept_is_404(app, path, status):
    put(app, rule("a"))
    app.get(f"{REVISIONS}/{path}", status=status)
    app.post_json(f"{REVISIONS}/{path}/rollback", {}, status=status)


def test_only_so_many_revisions_are_kept_as_configured(app, conf, db):
    conf.set_override("keep_revisions", 2, group="inspection_rules")
    for number in range(4):
        put(app, rule("a", uuid=UUID, priority=number))

    def kept() -> list[int]:
        return [found["revision"] for found in app.get(REVISIONS).json["revisions"]]

    assert kept() == [4, 3]
    rollback(app, 2, status=404)
    assert told(rollback(app, 3)) == {"changed": ["a"]}
    assert (kept(), shown(app)[0]["priority"]) == ([5, 4], 2)
    conf.set_override("keep_revisions", 0, group="inspection_rules")
    put(app, prune=True)
    assert kept() == []


def test_rolling_back_honours_if_match(app):
    tag = app.put_json(RULES, {"rules": [rule("a")]}).headers["ETag"]
    put(app, rule("b"))
    rollback(app, 1, status=412, headers={"If-Match": tag})
    rollback(app, 1, headers={"If-Match": app.get(RULES).headers["ETag"]})
    app.post(f"{REVISIONS}/2/rollback")
    assert [found["name"] for found in shown(app)] == ["a", "b"]


def test_a_sensitive_rule_is_kept_whole_and_shown_sealed(app, db):
    put(app, rule("s", uuid=UUID, sensitive=True, actions=[FAIL], conditions=[{"op": "is-true", "args": ["hunter2"]}]))
    put(app, prune=True)
    assert told(rollback(app, 1, dry_run=True)) == {"created": ["s"]}
    rollback(app, 1)
    texts = [app.get(f"{REVISIONS}{path}").text for path in ("", "/1", "/2", "/3")]
    assert not any("hunter2" in text for text in texts)
    with db.reader() as conn:
        stored, = inspection_rules.all_rules(conn)
    assert (stored.actions, stored.sensitive) == ([FAIL], True)


def test_what_became_sensitive_is_sealed_in_all_revisions_and_stays_so(app):
    app.post_json(RULES, rule(uuid=UUID, actions=[FAIL]))
    patch(app, priority=2)
    patch(app, sensitive=True)
    assert all("hunter2" not in app.get(f"{REVISIONS}/{number}").text for number in (1, 2, 3))
    reply = app.post_json(f"{REVISIONS}/1/rollback", {})
    assert told(reply.json) == {"replaced": [None]}
    assert "hunter2" not in reply.text + app.get(f"{RULES}/{UUID}").text
    assert [(found["sensitive"], found["priority"]) for found in shown(app)] == [(True, 0)]

    app.delete(f"{RULES}/{UUID}")
    assert "hunter2" not in app.get(f"{REVISIONS}/1").text
    rollback(app, 2)
    assert shown(app)[0]["actions"] is None
    app.delete(f"{RULES}/{UUID}")
    app.post_json(RULES, rule(uuid=UUID))
    rollback(app, 1)
    assert (shown(app)[0]["actions"], shown(app)[0]["sensitive"]) == (None, True)


def test_a_guess_at_a_sensitive_rule_is_not_confirmed_by_a_rollback(app):
    """The guess that is right and the one that is wrong get the same replies."""
    replies = []
    for guess in (FAIL, LOG):
        put(app, prune=True)
        first = put(app, rule("s", uuid=UUID, sensitive=True, actions=[FAIL]))
        put(app, rule("s", uuid=UUID, sensitive=True, actions=[guess]))
        replies.append(told(rollback(app, first["revision"], dry_run=True)))
    assert replies == [{"replaced": ["s"]}] * 2


@pytest.fixture
def strict(conf, db, rpc):
    """An API beside ``app`` whose rules have one action at most."""
    return Client(make_app(conf, db, rpc, RuleCaches(db, RuleSettings(limits=Limits(actions=1)))),
                  extra_environ={"REMOTE_ADDR": "192.0.2.77"})


def test_a_rule_that_is_no_longer_valid_does_not_come_back(app, strict):
    put(app, rule("a", uuid=UUID, actions=[LOG, LOG]), rule("s", uuid=OTHER, sensitive=True, actions=[FAIL, FAIL]))
    put(app, rule("b"), prune=True)

    text = rollback(strict, 1, status=400)
    assert f"/rules/{UUID}/actions: " in text
    assert f"/rules/{OTHER}: the rule is no longer valid" in text
    assert [found["name"] for found in shown(strict)] == ["b"]
    assert told(rollback(app, 1)) == {"created": ["a", "s"], "removed": ["b"]}


def test_a_rule_that_is_no_longer_valid_stays_and_comes_back_if_it_is_not_to_run(app, strict):
    put(app, rule("a", uuid=UUID, actions=[LOG, LOG]), rule("s", sensitive=True, actions=[FAIL, FAIL]),
        rule("b", uuid=OTHER))
    put(strict, rule("b", priority=1))
    assert told(rollback(strict, 1)) == {"changed": ["b"], "unchanged": ["a", "s"]}

    assert "/rules/0/actions: " in put(strict, rule("a", actions=[LOG, LOG]), status=400)
    disabled = rule("a", actions=[LOG, LOG], enabled=False)
    assert told(put(strict, disabled)) == {"changed": ["a"]}
    assert told(put(strict, disabled)) == {"unchanged": ["a"]}
    # Whether a sensitive rule has the same problems is not told.
    hidden = rule("s", sensitive=True, actions=[FAIL, FAIL], enabled=False)
    assert "/rules/0/actions: " in put(strict, hidden, status=400)

    put(strict, prune=True)
    assert "/rules/0/actions: " in put(strict, disabled, status=400)
    secret, = (found["uuid"] for found in app.get(f"{REVISIONS}/4").json["rules"] if found["sensitive"])
    assert rollback(strict, 4, status=400) == f"/rules/{secret}: the rule is no longer valid"
    put(app, hidden, rule("a", uuid=UUID, actions=[LOG, LOG], enabled=False))
    put(app, prune=True)
    assert told(rollback(strict, 6)) == {"created": ["s", "a"]}
    assert {found["name"]: found["valid"] for found in shown(strict)} == {"s": False, "a": False}
