"""Notifications with a real broker: what Ironic's consumers get, and what happens while the broker is unavailable."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import kombu
import orjson
import pytest
import sqlalchemy as sa

from ironic_rules.db import clock, outbox
from ironic_rules.db.tables import event_deliveries
from ironic_rules.exceptions import ConfigurationError
from tests.functional import brokers
from tests.functional.installations import only_in_one_process
from tests.functional.processes import wait_for
from tests.functional.relay import Relay
from tests.functional.whole import OneProcess, configuration, running

pytestmark = [only_in_one_process("it has a broker of its own"), pytest.mark.servers]
QUEUE = "ironic_versioned_notifications.info"


@pytest.fixture
def broker() -> Iterator[str]:
    with brokers.temporary_vhost() as url:
        yield url


def options(url: str) -> str:
    return ("[DEFAULT]\nnotification_level = info\n[events]\ninterval = 0.1\n"
            f"[oslo_messaging_notifications]\ndriver = messagingv2\ntransport_url = {url}\n")


def received(url: str, number: int) -> list[dict[str, Any]]:
    """Wait for that many notifications, and return them."""
    found: list[dict[str, Any]] = []
    with kombu.Connection(url.replace("rabbit://", "amqp://")) as connection:
        queue = connection.SimpleQueue(QUEUE, queue_opts={"durable": False})

        def more() -> bool:
            while True:
                try:
                    message = queue.get(block=False)
                except queue.Empty:
                    return len(found) >= number
                message.ack()
                found.append(orjson.loads(orjson.loads(message.body)["oslo.message"]))

        wait_for("the notifications", more)
    return found


def test_notifications_wait_for_the_broker_and_nothing_waits_for_them(tmp_path: Path, broker: str) -> None:
    at = urlsplit(broker)
    relay = Relay(at.hostname or "", at.port or 5672)
    relayed = broker.replace(f"{at.hostname}:{at.port}" if at.port else str(at.hostname), f"127.0.0.1:{relay.port}")
    with running(tmp_path, options(relayed)) as whole:
        first = whole.app.post_json("/v1/nodes", {"driver": "fake-hardware", "name": "n-1"}).json["uuid"]
        sent = received(broker, 2)
        assert [one["event_type"] for one in sent] == ["baremetal.node.create.start", "baremetal.node.create.end"]
        assert (sent[1]["publisher_id"], sent[1]["priority"]) == ("ironic-api.conductor-1", "INFO")
        payload = sent[1]["payload"]
        assert {name: payload[f"ironic_object.{name}"] for name in ("namespace", "name", "version")} == {
            "namespace": "ironic", "name": "NodeCRUDPayload", "version": "1.15"}
        assert payload["ironic_object.data"]["uuid"] == first
        relay.cut()
        second = whole.app.post_json("/v1/nodes", {"driver": "fake-hardware", "name": "n-2"})
        assert second.status_int == 201
        assert waits(whole)
        relay.mend()
        last = received(broker, 2)[-1]
        assert last["payload"]["ironic_object.data"]["uuid"] == second.json["uuid"]
        wait_for("an empty outbox", lambda: not waits(whole))


def test_what_the_broker_refuses_is_not_lost(tmp_path: Path, broker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ironic_rules.conductor.deliveries._FIRST_S", 0.1)
    with kombu.Connection(broker.replace("rabbit://", "amqp://")) as connection:
        # The exchange has another type than each notification declares: the broker closes the channel.
        queue = kombu.Queue(QUEUE, channel=connection.channel(), durable=True)
        queue.declare()
        with running(tmp_path, options(broker)) as whole:
            assert whole.app.post_json("/v1/nodes", {"driver": "fake-hardware"}).status_int == 201

            def failed() -> bool:
                with whole.db.reader() as conn:
                    return bool(conn.scalar(sa.select(sa.func.max(event_deliveries.c.attempts))))

            wait_for("an attempt", failed)
            queue.delete()
            assert len(received(broker, 2)) == 2


def waits(whole: OneProcess) -> bool:
    with whole.db.reader() as conn:
        return outbox.read(conn, clock.now()).oldest_s > 0


@pytest.mark.parametrize(("text", "named"), [
    ("", "driver"), ("driver = no-such\n", "no-such"), ("driver = messagingv2\n", "transport_url")])
def test_a_level_without_a_way_to_send_is_refused(tmp_path: Path, text: str, named: str) -> None:
    with pytest.raises(ConfigurationError, match=named):
        configuration(tmp_path, f"[DEFAULT]\nnotification_level = info\n[oslo_messaging_notifications]\n{text}")
