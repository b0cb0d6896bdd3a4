"""``/v1/deploy-templates``: the cases that the recorded conversations do not cover."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

import pytest
import sqlalchemy as sa

from ironic_rules.api.app import make_app
from ironic_rules.db import deploy_templates
from ironic_rules.exceptions import deploy_template_changed
from ironic_rules.models.steps import MAX_TEMPLATE_STEPS
from tests.functional.api.conftest import Client, at
from tests.functional.api.tables import contents

TEMPLATES = "/v1/deploy-templates"
ONE = f"{TEMPLATES}/CUSTOM_A"
SECRET = {"user": "root", "password": "hunter2", "deep": [{"auth_token": "hunter3"}]}
BIOS = {"interface": "bios", "step": "apply_configuration", "args": {"settings": [1]}, "priority": 150}
RAID = {"interface": "raid", "step": "create_configuration", "args": SECRET, "priority": 10}
MASKED = {**RAID, "args": {"user": "root", "password": "******", "deep": [{"auth_token": "******"}]}}


@pytest.fixture
def template(app):
    """The reply to the creation of CUSTOM_A, which has two steps."""
    return app.post_json(TEMPLATES, {"name": "CUSTOM_A", "steps": [BIOS, RAID], "extra": {"a": 1}}, status=201)


def patched(app: Client, *operations: dict[str, Any], status: int = 200, **kwargs: Any) -> Any:
    return app.patch_json(ONE, list(operations), status=status, **kwargs)


def stored_steps(db: Any) -> list[dict[str, Any]]:
    with db.reader() as conn:
        return [step.to_wire() for step in deploy_templates.get(conn, "CUSTOM_A").steps]


@pytest.mark.parametrize(("operation", "expected"), [
    ({"op": "add", "path": "/steps/-", "value": BIOS}, [BIOS, RAID, BIOS]),
    ({"op": "add", "path": "/steps/0", "value": BIOS}, [BIOS, BIOS, RAID]),
    ({"op": "remove", "path": "/steps/0"}, [RAID]),
    ({"op": "replace", "path": "/steps/1", "value": BIOS}, [BIOS, BIOS]),
    ({"op": "replace", "path": "/steps/0/priority", "value": "7"}, [{**BIOS, "priority": 7}, RAID]),
    ({"op": "add", "path": "/steps/1/args/user", "value": None}, [BIOS, {**RAID, "args": {**SECRET, "user": None}}]),
    ({"op": "add", "path": "/steps/0/args/settings/0", "value": True},
     [{**BIOS, "args": {"settings": [True, 1]}}, RAID]),
    ({"op": "replace", "path": "/steps/0/args/settings/0", "value": True},
     [{**BIOS, "args": {"settings": [True]}}, RAID]),
    ({"op": "replace", "path": "/steps/1/args/password", "value": "new"},
     [BIOS, {**RAID, "args": {**SECRET, "password": "new"}}]),
    ({"op": "move", "from": "/steps/1", "path": "/steps/0"}, [RAID, BIOS]),
    ({"op": "copy", "from": "/steps/1", "path": "/steps/-"}, [BIOS, RAID, RAID]),
    ({"op": "copy", "from": "/steps/0/priority", "path": "/steps/1/priority"}, [BIOS, {**RAID, "priority": 150}]),
    ({"op": "test", "path": "/steps/1/step", "value": "create_configuration"}, [BIOS, RAID]),
    ({"op": "add", "path": "/steps", "value": [RAID, RAID]}, [RAID, RAID]),
    ({"op": "remove", "path": "/extra/a"}, [BIOS, RAID]),
])
def test_a_patch_changes_what_it_names_and_keeps_secrets(app, db, template, operation, expected):
    reply = patched(app, operation)

    # Not ==, for which true is 1.
    assert repr(stored_steps(db)) == repr(expected)
    assert "hunter" not in reply.text
    assert reply.json == app.get(ONE).json
    assert (reply.json["updated_at"] is None) == (operation["op"] == "test")


@pytest.mark.parametrize("operation", [
    {"op": "test", "path": "/steps", "value": []}, {"op": "test", "path": "/steps/1", "value": RAID},
    {"op": "test", "path": "/steps/1/args", "value": SECRET},
    {"op": "test", "path": "/steps/1/args/password", "value": "hunter2"},
    {"op": "copy", "from": "/steps", "path": "/extra/steps"}, {"op": "copy", "from": "/steps/1", "path": "/extra/step"},
    {"op": "copy", "from": "/steps/1/args", "path": "/extra"},
    {"op": "copy", "from": "/steps/1/args/password", "path": "/steps/1/args/user"},
    {"op": "copy", "from": "/steps/1/args/password", "path": "/name"},
    {"op": "move", "from": "/steps/1/args/password", "path": "/extra/p"},
    {"op": "move", "from": "/steps/1", "path": "/steps/0/args/more"},
    {"op": "copy", "from": "/steps/nosuch/args", "path": "/extra/p"},
])
def test_no_patch_can_read_a_secret(app, db, template, operation):
    before = contents(db)

    reply = patched(app, operation, status=400)

    assert reply.fault["faultstring"] == f"/0/op: {operation['op']} cannot read the arguments of steps"
    assert contents(db) == before


@pytest.mark.parametrize(("operation", "places"), [
    ({"op": "add", "path": "/steps", "value": [BIOS, MASKED]}, ["/steps/1/args/password", "/steps/1/args/deep/0/auth"]),
    ({"op": "replace", "path": "/steps/1", "value": MASKED}, ["/steps/1/args/password"]),
    ({"op": "add", "path": "/steps/1/args/password", "value": "******"}, ["/steps/1/args/password"]),
])
def test_what_a_reply_hid_does_not_overwrite_the_secret(app, db, template, operation, places):
    reply = patched(app, operation, status=400)

    assert all(f"{place}" in reply.fault["faultstring"] for place in places)
    assert "send the secret itself" in reply.fault["faultstring"]
    assert stored_steps(db) == [BIOS, RAID]


@pytest.mark.parametrize("query", ["", "?detail=true", "?fields=steps"])
def test_secrets_are_hidden_in_lists_too(app, template, query):
    shown, = app.get(TEMPLATES + query).json["deploy-templates"]

    assert shown["steps"] == template.json["steps"] == [BIOS, MASKED]


def test_a_step_name_in_the_option_is_refused_whenever_it_is_stored(app, conf, template):
    conf.set_override("disallow_deploy_steps", ["bios.apply_configuration", "vendor.x"], group="api")

    created = app.post_json(TEMPLATES, {"name": "CUSTOM_B", "steps": [RAID, BIOS]}, status=400)
    changed = patched(app, {"op": "add", "path": "/steps/-", "value": BIOS}, status=400)

    assert created.fault["faultstring"].startswith("/steps/1/step: the step bios.apply_configuration is not allowed")
    assert changed.fault["faultstring"].startswith("/steps/0/step: ")
    assert patched(app, {"op": "remove", "path": "/steps/0"}).json["steps"] == [MASKED]


def test_a_template_has_at_most_so_many_steps(app, template):
    patched(app, {"op": "add", "path": "/steps", "value": [BIOS] * MAX_TEMPLATE_STEPS})

    assert len(app.get(ONE).json["steps"]) == MAX_TEMPLATE_STEPS
    assert "/steps: " in patched(app, {"op": "add", "path": "/steps/-", "value": BIOS}, status=400).text


def test_pages_keep_the_collections_name_and_what_was_asked(app):
    for number in (3, 1, 2):
        app.post_json(TEMPLATES, {"name": f"CUSTOM_{number}", "steps": [BIOS]})
    found, url = [], f"{TEMPLATES}?limit=2&sort_key=name&sort_dir=desc&fields=name,steps"
    while url:
        reply = app.get(url).json
        found += [(item["name"], item["steps"], sorted(item)) for item in reply["deploy-templates"]]
        url = reply.get("next", "").removeprefix("http://localhost")

    assert found == [(f"CUSTOM_{number}", [BIOS], ["links", "name", "steps"]) for number in (3, 2, 1)]


def test_a_list_without_steps_does_not_ask_for_them_and_one_with_steps_asks_once(app, db, template):
    app.post_json(TEMPLATES, {"name": "CUSTOM_B", "steps": [BIOS] * 3})
    statements = []

    def count(conn: Any, cursor: Any, statement: str, *rest: Any) -> None:
        statements.append(statement)

    sa.event.listen(db.engine, "before_cursor_execute", count)
    app.get("/v1/deploy_templates")
    app.get(f"{TEMPLATES}?fields=name,extra")
    app.get(TEMPLATES)
    sa.event.remove(db.engine, "before_cursor_execute", count)

    selects = [text for text in statements if text.startswith("SELECT")]
    assert [("FROM deploy_template_steps" in text) for text in selects] == [False, False, False, True]


def test_openstacksdks_look_for_one_is_answered_at_once(app, template):
    assert app.get("/v1/deploy_templates/CUSTOM_A?details=True", headers=at(55)).json["name"] == "CUSTOM_A"
    app.get("/v1/deploy_templates/CUSTOM_NOPE?details=True", headers=at(55), status=404)


def test_the_tag_changes_with_every_change_and_says_whether_it_is_current(app, template):
    tags = [template.headers["ETag"]]
    for operation in ({"op": "add", "path": "/name", "value": "CUSTOM_B"},
                      {"op": "add", "path": "/extra/b", "value": 1},
                      {"op": "replace", "path": "/steps/1/args/password", "value": "new"}):
        url = template.headers["Location"].removeprefix("http://localhost")
        tags.append(app.patch_json(url, [operation], headers={"If-Match": tags[-1]}, status=200).headers["ETag"])
        assert app.get(url, headers={"If-None-Match": tags[-1]}, status=304).body == b""
        app.patch_json(url, [operation], headers={"If-Match": tags[-2]}, status=412)
        app.delete(url, headers={"If-Match": tags[-2]}, status=412)
        app.get(url, headers={"If-Match": tags[-2]}, status=412)

    assert len(set(tags)) == 4
    app.delete(url, headers={"If-Match": tags[-1]}, status=204)


OPEN = {**BIOS, "args": {"settings": [1, {"a": 1.5}]}}


@pytest.mark.parametrize(("operations", "is_change"), [
    ([], False), ([{"op": "test", "path": "/name", "value": "CUSTOM_A"}], False),
    ([{"op": "add", "path": "/name", "value": "CUSTOM_A"}, {"op": "add", "path": "/extra", "value": {"a": 1}}], False),
    ([{"op": "replace", "path": "/steps", "value": [OPEN]}], False),
    ([{"op": "replace", "path": "/steps/0/args/settings/0", "value": True}], True),
    ([{"op": "replace", "path": "/extra/a", "value": True}], True),
])
def test_a_patch_that_changes_nothing_writes_nothing(app, db, operations, is_change):
    tag = app.post_json(TEMPLATES, {"name": "CUSTOM_A", "steps": [OPEN], "extra": {"a": 1}}).headers["ETag"]
    before = contents(db)

    reply = patched(app, *operations, headers={"If-Match": tag})

    assert (reply.headers["ETag"] != tag, contents(db) != before) == (is_change, is_change)
    assert reply.json == app.get(ONE).json


@pytest.mark.parametrize("guess", ["hunter2", "wrong"])
def test_whether_a_secret_is_the_same_can_not_be_seen(app, template, guess):
    reply = patched(app, {"op": "replace", "path": "/steps/1/args/password", "value": guess})

    assert reply.headers["ETag"] != template.headers["ETag"]
    assert reply.json["updated_at"] is not None


def test_a_template_that_is_made_anew_has_another_tag(app):
    body = {"uuid": "11111111-1111-4111-8111-111111111111", "name": "CUSTOM_A", "steps": [BIOS]}
    first = app.post_json(TEMPLATES, body).headers["ETag"]
    app.delete(ONE)

    assert app.post_json(TEMPLATES, body).headers["ETag"] != first


@pytest.mark.parametrize(("headers", "status"), [({}, 409), ({"If-Match": "*"}, 409), ({"If-Match": "{}"}, 412)])
def test_a_lost_race_is_409_and_412_with_a_tag(app, monkeypatch, template, headers, status):
    def lost(*args: Any, **kwargs: Any) -> None:
        raise deploy_template_changed(template="x")

    monkeypatch.setattr(deploy_templates, "update", lost)
    sent = {name: value.format(template.headers["ETag"]) for name, value in headers.items()}

    patched(app, {"op": "add", "path": "/extra/b", "value": 1}, status=status, headers=sent)


@pytest.fixture(params=[
    "sqlite", pytest.param("mysql", marks=pytest.mark.servers), pytest.param("postgresql", marks=pytest.mark.servers)])
def anywhere(request, conf, rpc, emptied):
    """The application on each database."""
    return make_app(conf, emptied(request.param), rpc)


def test_of_patches_at_once_none_is_lost(anywhere):
    """Each client adds steps by their index, until the reply says that its step exists."""
    Client(anywhere).post_json(TEMPLATES, {"name": "CUSTOM_A", "steps": [BIOS]}, status=201)
    answers: Counter[int] = Counter()

    def work(thread: int) -> None:
        client = Client(anywhere)
        for number in range(5):
            step = {**BIOS, "step": f"step_{thread}_{number}"}
            status = 0
            while status != 200:
                status = client.patch_json(ONE, [{"op": "add", "path": "/steps/-", "value": step}],
                                           expect_errors=True).status_int
                answers[status] += 1

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert answers.keys() <= {200, 409}
    assert answers[200] == 20
    shown = [step["step"] for step in Client(anywhere).get(ONE).json["steps"]]
    assert sorted(shown[1:]) == [f"step_{thread}_{number}" for thread in range(4) for number in range(5)]


def test_of_changes_with_one_tag_one_is_made(anywhere):
    tag = Client(anywhere).post_json(TEMPLATES, {"name": "CUSTOM_A", "steps": [BIOS]}).headers["ETag"]
    replies: list[Any] = []

    def change(number: int) -> None:
        replies.append(Client(anywhere).patch_json(
            ONE, [{"op": "replace", "path": "/steps/0/priority", "value": number}], headers={"If-Match": tag},
            expect_errors=True))

    threads = [threading.Thread(target=change, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(reply.status_int for reply in replies) == [200] + [412] * 5
    made, = (reply for reply in replies if reply.status_int == 200)
    assert Client(anywhere).get(ONE).json == made.json


@pytest.mark.parametrize("server", [
    pytest.param("mysql", marks=pytest.mark.servers), pytest.param("postgresql", marks=pytest.mark.servers)])
def test_a_template_that_is_deleted_while_a_list_is_read_is_not_in_it(conf, rpc, monkeypatch, emptied, server):
    """On SQLite a list is a snapshot; with the others a template may be deleted after its row and before its steps."""
    read = deploy_templates.list_templates
    database = emptied(server)
    app = Client(make_app(conf, database, rpc))
    for name in ("CUSTOM_A", "CUSTOM_B"):
        app.post_json(TEMPLATES, {"name": name, "steps": [BIOS]}, status=201)

    def then_gone(*args: Any, **kwargs: Any) -> Any:
        rows = read(*args, **kwargs)
        database.write(lambda conn: deploy_templates.destroy(conn, deploy_templates.get(conn, "CUSTOM_A")))
        return rows

    monkeypatch.setattr(deploy_templates, "list_templates", then_gone)
    shown = app.get(TEMPLATES).json["deploy-templates"]

    assert [(item["name"], item["steps"]) for item in shown] == [("CUSTOM_B", [BIOS])]
