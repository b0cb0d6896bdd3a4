"""Webhooks of a running service, with receivers that answer well, badly, slowly or not at all."""

from __future__ import annotations

import datetime
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
import sqlalchemy as sa
from standardwebhooks.webhooks import Webhook as Verifier

from ironic_rules.conductor import deliveries
from ironic_rules.conductor import service as conductor_service
from ironic_rules.db import clock, outbox
from ironic_rules.db import webhooks as webhooks_db
from ironic_rules.db.tables import event_deliveries, events, webhooks
from tests.functional.installations import only_in_one_process
from tests.functional.processes import wait_for
from tests.functional.receivers import Receiver, receiver
from tests.functional.whole import OneProcess, fault, running

pytestmark = only_in_one_process("its outbox is looked at")
URL = "/v1/webhooks"
#: The example that the page shows for receivers.
EXAMPLE = Path(__file__).parents[2] / "doc" / "source" / "admin" / "examples" / "verify_webhook.py"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OneProcess]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(deliveries, "_FIRST_S", 0.05)
        with running(tmp_path_factory.mktemp("webhooks"), "[events]\nwebhooks = true\ninterval = 0.05\n"
                     "webhook_timeout = 1\nwebhook_workers = 2\n[deploy]\nimage_url_denied_networks =\n") as service:
            yield service


@pytest.fixture
def whole(service: OneProcess) -> Iterator[OneProcess]:
    yield service
    with service.db.writer() as conn:
        for table in (webhooks, event_deliveries, events):
            conn.execute(sa.delete(table))


@pytest.fixture
def well() -> Iterator[Receiver]:
    with receiver() as server:
        yield server


@pytest.fixture
def ill() -> Iterator[Receiver]:
    with receiver() as server:
        yield server


def hook(whole: OneProcess, server: Receiver, **fields: Any) -> dict[str, Any]:
    reply = whole.app.post_json(URL, {"url": server.url, "events": ["baremetal.node.*.end"], **fields})
    assert reply.status_int == 201, reply.text
    made: dict[str, Any] = reply.json
    return made


def enroll(whole: OneProcess, **fields: Any) -> str:
    reply = whole.app.post_json("/v1/nodes", {"driver": "fake-hardware", **fields})
    assert reply.status_int == 201, reply.text
    uuid: str = reply.json["uuid"]
    return uuid


def shown(whole: OneProcess, made: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = whole.app.get(f"{URL}/{made['uuid']}").json
    return found


def is_empty(whole: OneProcess) -> bool:
    with whole.db.reader() as conn:
        return conn.execute(sa.select(events.c.id)).first() is None


def test_a_message_is_a_signed_cloud_event(whole: OneProcess, well: Receiver) -> None:
    made = hook(whole, well, name="cmdb")
    assert "secret" not in shown(whole, made)
    uuid = enroll(whole, driver_info={"ipmi_password": "s3cret"})
    headers, content = wait_for("a message", lambda: well.messages)[0]
    example = runpy.run_path(str(EXAMPLE))["is_genuine"]
    lower = {name.lower(): value for name, value in headers.items()}
    assert example(made["secret"], lower, content)
    assert not example(made["secret"], lower, content + b" ")
    assert not example(made["secret"], {**lower, "webhook-timestamp": "1700000000"}, content)
    verified = Verifier(made["secret"]).verify(content, {name.lower(): value for name, value in headers.items()})
    assert headers["Content-Type"] == "application/cloudevents+json"
    assert {name: verified[name] for name in ("specversion", "type", "subject", "id", "payload")} == {
        "specversion": "1.0", "type": "baremetal.node.create.end", "subject": f"nodes/{uuid}",
        "id": headers["webhook-id"], "payload": "ironic.NodeCRUDPayload"}
    assert verified["data"]["driver_info"] == {"ipmi_password": "******"}
    assert orjson.loads(content)["requestid"].startswith("req-")
    with pytest.raises(Exception, match="signature"):
        Verifier(made["secret"]).verify(content + b" ", {name.lower(): value for name, value in headers.items()})
    wait_for("an empty outbox", lambda: is_empty(whole))


@pytest.mark.parametrize(("mode", "reason"), [
    ("hang", "no answer within 1 s"), ("drip", "no answer within 1 s"), ("reset", "no answer ("),
    (302, "redirections are not followed"), (503, "status 503"), (400, "status 400")])
def test_a_bad_receiver_is_tried_again_and_keeps_nobody_waiting(whole: OneProcess, well: Receiver, ill: Receiver,
                                                                mode: str | int, reason: str) -> None:
    ill.mode, ill.headers = mode, {"Location": well.url}
    bad = hook(whole, ill)
    hook(whole, well)
    enroll(whole)
    wait_for("the message of the other one", lambda: well.messages)
    assert len(well.messages) == 1
    wait_for("the reason", lambda: reason in (shown(whole, bad)["last_error"] or ""))
    assert "t0ken" not in shown(whole, bad)["last_error"]
    ill.mode = 204
    ill.ended.set()
    wait_for("the message", lambda: ill.messages)
    wait_for("success", lambda: shown(whole, bad)["failures"] == 0)
    wait_for("an empty outbox", lambda: is_empty(whole))
    assert ill.attempts > 1
    assert len({headers["webhook-id"] for headers, _ in ill.messages}) == 1


def test_a_receiver_is_left_alone_for_as_long_as_it_asks(whole: OneProcess, ill: Receiver) -> None:
    ill.mode, ill.headers = 429, {"Retry-After": "3000"}
    made = hook(whole, ill)
    enroll(whole)
    wait_for("the time", lambda: shown(whole, made)["retry_at"])
    enroll(whole)
    assert ill.attempts == 1


def test_one_that_is_gone_is_disabled(whole: OneProcess, ill: Receiver) -> None:
    ill.mode = 410
    made = hook(whole, ill)
    enroll(whole)
    wait_for("the end", lambda: not shown(whole, made)["enabled"])


def test_dead_letters_are_read_and_delivered_again(whole: OneProcess, ill: Receiver) -> None:
    ill.mode = 400
    made = hook(whole, ill, name="dead")
    uuids = [enroll(whole) for _ in range(3)]
    wait_for("attempts", lambda: ill.attempts >= 3)
    with whole.db.writer() as conn:
        conn.execute(sa.update(event_deliveries).values(created_at=clock.now() - datetime.timedelta(hours=25)))
    wait_for("dead letters", lambda: deliveries.prune(whole.conductor) or len(letters(whole)) == 3)
    [first, *others] = letters(whole, "?limit=1")
    assert others == []
    assert (first["type"], first["subject"], first["error"]) == (
        "baremetal.node.create.end", f"nodes/{uuids[0]}", "status 400")
    assert [letter["subject"] for letter in letters(whole, f"?marker={first['event']}")] == [
        f"nodes/{uuid}" for uuid in uuids[1:]]
    whole_letter = whole.app.get(f"{URL}/dead/dead_letters/{first['event']}").json
    assert orjson.loads(whole_letter["content"])["data"]["uuid"] == uuids[0]
    ill.mode = 204
    assert whole.app.post_json(f"{URL}/dead/redeliver", {"events": [first["event"]]}).json == {"events": 1}
    wait_for("one of them", lambda: ill.messages)
    assert whole.app.delete(f"{URL}/dead/dead_letters/{letters(whole)[0]['event']}").status_int == 204
    assert whole.app.post(f"{URL}/dead/redeliver").json == {"events": 1}
    wait_for("the rest", lambda: len(ill.messages) == 2)
    assert letters(whole) == []
    assert whole.app.get(f"{URL}/dead/dead_letters/{first['event']}").status_int == 404
    wait_for("an empty outbox", lambda: is_empty(whole))
    assert shown(whole, made)["delivered_at"]


def letters(whole: OneProcess, query: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = whole.app.get(f"{URL}/dead/dead_letters{query}").json["dead_letters"]
    return found


def test_what_waits_for_a_deleted_webhook_is_deleted(whole: OneProcess, ill: Receiver) -> None:
    ill.mode, ill.headers = 503, {"Retry-After": "3000"}
    made = hook(whole, ill)
    enroll(whole)
    wait_for("an attempt", lambda: shown(whole, made)["failures"])
    assert whole.app.delete(f"{URL}/{made['uuid']}").status_int == 204
    wait_for("an empty outbox", lambda: deliveries.prune(whole.conductor) or is_empty(whole))


def test_old_events_are_deleted_after_notifications_and_webhooks_were_switched_off(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conductor_service, "PRUNE_EVERY_S", 0.1, raising=False)
    with running(tmp_path) as off:
        outbox.want(off.db.engine, outbox.Wanted("info", True, "conductor-1"))
        for _ in range(3):
            enroll(off)
        receivers = [webhooks_db.WebhookReceiver(7, ["*"], "debug")]
        assert off.db.write(lambda conn: outbox.route(conn, lambda conn: receivers, most=2)) == 2
        off.db.engine.update_execution_options(**{"ironic_rules.events": None})
        with off.db.writer() as conn:
            for table in (event_deliveries, events):
                conn.execute(sa.update(table).values(created_at=clock.now() - datetime.timedelta(days=15)))
        wait_for("an empty outbox", lambda: is_empty(off))


@pytest.mark.parametrize(("fields", "said"), [
    ({"url": "ftp://h/"}, "/url"), ({"url": "http://u:p@h/"}, "user and password"), ({"secret": "abc"}, "whsec_"),
    ({"events": []}, "/events"), ({"events": ["a b"]}, "/events/0"), ({"level": "loud"}, "/level"),
    ({"url": "http://127.0.0.1:1/"}, "image_url_denied_networks"), ({"url": "http://[::ffff:127.0.0.1]/"}, "denied"),
    ({"failures": 1}, "/failures")])
def test_what_cannot_be_a_webhook_is_refused(whole: OneProcess, fields: dict[str, Any], said: str) -> None:
    with whole.option("deploy", "image_url_denied_networks", ["127.0.0.0/8"]):
        reply = whole.app.post_json(URL, {"url": "https://receiver.example.com/", **fields})
    assert (reply.status_int, said in fault(reply)) == (400, True), reply.text


def test_a_name_that_leads_into_a_denied_network_gets_nothing(whole: OneProcess, well: Receiver) -> None:
    port = well.server_address[1]
    with whole.resolving({"inside.example.com": ["127.0.0.1"]}), whole.option(
            "deploy", "image_url_denied_networks", ["127.0.0.0/8"]):
        made = whole.app.post_json(URL, {"url": f"http://inside.example.com:{port}/"}).json
        enroll(whole)
        assert "127.0.0.0/8" in wait_for("the reason", lambda: shown(whole, made)["last_error"])
    assert well.attempts == 0


def test_a_secret_can_be_replaced_and_not_read(whole: OneProcess, well: Receiver) -> None:
    made = hook(whole, well)
    new = "whsec_" + "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo="
    for operations, status in (
            ([{"op": "test", "path": "/secret", "value": made["secret"]}], 400),
            ([{"op": "copy", "from": "/secret", "path": "/description"}], 400),
            ([{"op": "remove", "path": "/secret"}], 400),
            ([{"op": "replace", "path": "/secret", "value": new}], 200)):
        reply = whole.app.patch_json(f"{URL}/{made['uuid']}", operations)
        assert reply.status_int == status, reply.text
        assert made["secret"] not in reply.text
    enroll(whole)
    headers, content = wait_for("a message", lambda: well.messages)[0]
    Verifier(new).verify(content, {name.lower(): value for name, value in headers.items()})


def test_webhooks_that_are_off_are_refused(whole: OneProcess) -> None:
    with whole.option("events", "webhooks", False):
        reply = whole.app.post_json(URL, {"url": "https://receiver.example.com/"})
    assert (reply.status_int, "[events]webhooks" in fault(reply)) == (409, True)
