"""The audit log of a running service: who has changed what, without secrets, and who was refused."""

from __future__ import annotations

import base64
import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bcrypt
import orjson
import pytest
import sqlalchemy as sa
from oslo_db import exception as db_exc

from ironic_rules import context
from ironic_rules.api import audit
from ironic_rules.db.collection import CHASSIS
from ironic_rules.db.tables import events
from ironic_rules.exceptions import ConfigurationError
from tests.functional.installations import only_in_one_process
from tests.functional.processes import wait_for
from tests.functional.whole import OneProcess, running

pytestmark = only_in_one_process("its file is read")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("audit")


@pytest.fixture(scope="module")
def service(folder: Path) -> Iterator[OneProcess]:
    hashed = bcrypt.hashpw(b"right", bcrypt.gensalt(4)).decode()
    (folder / "htpasswd").write_text(f"alice:{hashed}\nbob:{hashed}\n")
    (folder / "groups").write_text("admin: alice\nreader: bob\n")
    with running(folder, f"[DEFAULT]\nauth_strategy = http_basic\nhttp_basic_auth_user_file = {folder}/htpasswd\n"
                 f"http_basic_auth_group_file = {folder}/groups\n"
                 f"[events]\nwebhooks = true\ninterval = 3600\n[audit]\nlog_file = {folder}/audit.log\n"
                 "events = true\n") as service:
        login(service, "alice")
        yield service
    for found in gc.get_objects():
        if type(found) is audit._File:
            found.close()


@pytest.fixture
def whole(service: OneProcess, folder: Path) -> OneProcess:
    (folder / "audit.log").write_text("")
    login(service, "alice")
    return service


def login(whole: OneProcess, user: str, password: str = "right") -> None:
    whole.app.authorization = ("Basic", (user, password))


def lines(folder: Path) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in (folder / "audit.log").read_bytes().splitlines()]


def test_a_change_has_who_what_and_the_difference(whole: OneProcess, folder: Path) -> None:
    uuid = whole.app.post_json("/v1/nodes", {"driver": "fake-hardware", "driver_info": {"a": 1}}).json["uuid"]
    reply = whole.app.patch_json(f"/v1/nodes/{uuid}", [
        {"op": "add", "path": "/extra/rack", "value": "r1"},
        {"op": "add", "path": "/driver_info/ipmi_password", "value": "s3cret"}])
    assert reply.status_int == 200
    whole.app.get(f"/v1/nodes/{uuid}")
    created, changed = lines(folder)
    expected = {"user": "alice", "method": "PATCH", "path": f"/v1/nodes/{uuid}", "route": "/v1/nodes/{node}",
                "policy": "baremetal:node:update", "status": 200, "outcome": "success",
                "request_id": reply.headers["openstack-request-id"]}
    assert {name: changed[name] for name in expected} == expected
    [change] = changed["changes"]
    assert (change["object"], change["id"], change["action"]) == ("node", uuid, "update")
    assert sorted((each["op"], each["path"], each["value"]) for each in change["difference"]) == [
        ("add", "/driver_info/ipmi_password", "******"), ("add", "/extra/rack", "r1")]
    assert changed["request"][1]["value"] == "******"
    assert created["changes"][0]["action"] == "create"
    assert b"s3cret" not in (folder / "audit.log").read_bytes()


def test_each_change_of_an_object_by_one_request_is_in_the_log(whole: OneProcess, folder: Path) -> None:
    uuid = whole.app.post_json("/v1/allocations", {"resource_class": "no-such-class"}).json["uuid"]
    [line] = lines(folder)
    created, failed = line["changes"]
    assert [(each["object"], each["id"], each["action"]) for each in line["changes"]] == [
        ("allocation", uuid, "create"), ("allocation", uuid, "update")]
    assert ("/state", "allocating") in [(each["path"], each["value"]) for each in created["difference"]]
    assert ("/state", "error") in [(each["path"], each["value"]) for each in failed["difference"]]


def test_a_change_that_was_rolled_back_is_not_noted(whole: OneProcess) -> None:
    attempts: list[int] = []

    def change(conn: sa.Connection) -> None:
        CHASSIS.create(conn, {"description": "one of two attempts"})
        attempts.append(1)
        if len(attempts) == 1:
            raise db_exc.DBDeadlock

    with context.noting_changes() as changes:
        whole.db.write(change)
    assert (len(attempts), [(change.kind, change.action) for change in changes]) == (2, [("chassis", "create")])


def test_refusals_are_in_the_log_and_so_are_failures(whole: OneProcess, folder: Path) -> None:
    login(whole, "bob")
    assert whole.app.post_json("/v1/nodes", {"driver": "fake-hardware"}).status_int == 403
    login(whole, "mallory", "hunter2")
    assert whole.app.get("/v1/nodes").status_int == 401
    login(whole, "alice")
    assert whole.app.post_json("/v1/nodes", {"driver": "no-such"}).status_int == 400
    assert [(line["user"], line.get("login"), line["status"], line["outcome"]) for line in lines(folder)] == [
        ("bob", None, 403, "refused"), (None, "mallory", 401, "refused"), ("alice", None, 400, "failure")]
    assert b"hunter2" not in (folder / "audit.log").read_bytes()


def test_what_rules_and_webhooks_consist_of_is_not_in_the_log(whole: OneProcess, folder: Path) -> None:
    rule = whole.app.post_json("/v1/inspection_rules", {"description": "d", "sensitive": True, "actions": [
        {"op": "set-attribute", "args": {"path": "/extra/a", "value": "topsecret1"}}]}).json["uuid"]
    whole.app.patch_json(f"/v1/inspection_rules/{rule}", [
        {"op": "replace", "path": "/actions", "value": [
            {"op": "set-attribute", "args": {"path": "/extra/a", "value": "topsecret2"}}]}])
    whole.app.put_json("/v1/inspection_rules", {"rules": [{"actions": [
        {"op": "set-attribute", "args": {"path": "/extra/a", "value": "topsecret3"}}]}], "prune": True})
    whole.app.post_json("/v1/webhooks", {"url": "https://hooks.example.com/topsecret4"})
    hook = whole.app.post_json("/v1//webhooks", {"url": "https://hooks.example.com/topsecret5"}).json["uuid"]
    whole.app.delete(f"/v1/webhooks/{hook}")
    whole.app.post_json("/v1/webhooks", {"url": "https://hooks.example.com/topsecret6"},
                        extra_environ={"SCRIPT_NAME": "/baremetal"})
    found = lines(folder)
    assert [line["outcome"] for line in found] == ["success"] * 7
    assert b"topsecret" not in (folder / "audit.log").read_bytes()
    assert found[0]["changes"][0]["difference"][0]["value"].startswith("created rule")


def test_a_flood_of_refused_logins_is_counted(whole: OneProcess, folder: Path) -> None:
    bad = {"Authorization": f"Basic {base64.b64encode(b'x').decode()}"}
    whole.app.authorization = None
    for _ in range(400):
        whole.app.get("/v1/nodes", headers=bad)
    assert 0 < len(lines(folder)) < 400


def test_the_file_is_opened_again_when_it_was_moved_away(whole: OneProcess, folder: Path) -> None:
    (folder / "audit.log").rename(folder / "audit.log.1")
    whole.app.post_json("/v1/chassis", {"description": "x"})
    assert [line["path"] for line in lines(folder)] == ["/v1/chassis"]


def test_lines_are_events_too(whole: OneProcess) -> None:
    def stored() -> list[Any]:
        with whole.db.reader() as conn:
            return list(conn.execute(sa.select(events).where(events.c.type == "baremetal.audit.request.end")))

    before = len(stored())
    whole.app.post_json("/v1/chassis", {"description": "audited"})
    last = wait_for("the event", lambda: stored()[before:])[-1]
    assert orjson.loads(last.payload)["user"] == "alice"


def test_events_that_nothing_reads_are_refused(tmp_path: Path) -> None:
    with (pytest.raises(ConfigurationError, match=r"\[audit\]events = true: nothing reads these events"),
          running(tmp_path, "[audit]\nevents = true\n")):
        pass
