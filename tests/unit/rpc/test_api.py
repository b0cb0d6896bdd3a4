from __future__ import annotations

import threading
import time

import amqp.exceptions
import kombu.exceptions
import oslo_messaging as messaging
import pytest

from ironic_rules import context, exceptions, service
from ironic_rules.rpc import api as rpc_api
from ironic_rules.rpc import transport as rpc_transport
from tests.functional.processes import free_port, in_time
from tests.wordings import refused


def client(url, tmp_path, **arguments):
    file = tmp_path / "rpc.conf"
    file.write_text(f"[DEFAULT]\ntransport_url = {url}\n[oslo_messaging_rabbit]\nrabbit_retry_interval = 1\n")
    conf = service.prepare_config([], config_files=[str(file)])
    return rpc_api.ConductorAPI(rpc_transport.get_transport(conf), conf, **arguments)


def test_a_broker_that_is_away_holds_nobody_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr(rpc_api, "_CONTACT_TIMEOUT_S", 0.2)
    api = client(f"rabbit://guest:guest@127.0.0.1:{free_port()}/", tmp_path)

    for _ in range(2):
        with in_time(), pytest.raises(exceptions.Unavailable):
            api.continue_inspection(context.admin(), "node", {})


@pytest.mark.parametrize("call", [
    lambda api, ctxt: api.change_provision_state(ctxt, "node", "manage", group="g"),
    lambda api, ctxt: api.change_power_state(ctxt, "node", "power on", group="g"),
    lambda api, ctxt: api.validate_interfaces(ctxt, "node", group="g"),
    lambda api, ctxt: api.continue_inspection(ctxt, "node", {}, group="g"),
    lambda api, ctxt: api.heartbeat(ctxt, "node", "http://192.0.2.1:9999", group="g"),
])
def test_what_an_operator_asks_of_a_group_without_conductor_fails_at_once(tmp_path, call):
    asked = []

    def is_served(group):
        asked.append(group)
        return False

    api = client("ironic-rules-memory://", tmp_path, is_served=is_served)

    with refused(exceptions.no_valid_host):
        call(api, context.admin())
    assert asked == ["g"]


@pytest.mark.parametrize("error", [
    kombu.exceptions.OperationalError("refused"), amqp.exceptions.RecoverableConnectionError("reset"),
    ConnectionRefusedError(111, "refused"), messaging.MessageDeliveryFailure("no")])
def test_a_broker_that_went_away_after_the_first_contact_is_a_503(tmp_path, monkeypatch, error):
    def fail(*arguments, **named):
        raise error

    api = client("ironic-rules-memory://", tmp_path)
    # oslo.messaging itself tries without a limit to open its first connection.
    monkeypatch.setattr(type(api._client), "prepare", fail)
    api._contact._made.set()

    with pytest.raises(exceptions.Unavailable):
        api.continue_inspection(context.admin(), "node", {})


def test_a_hung_conductor_leaves_threads_for_other_requests(monkeypatch):
    monkeypatch.setattr(rpc_api, "_PATIENCE_S", 1)
    waits, release, refused = rpc_api._Waits(2), threading.Event(), []
    begun = threading.Barrier(3)

    def hang():
        with waits.turn():
            begun.wait()
            release.wait(600)

    hung = [threading.Thread(target=hang) for _ in range(2)]
    for thread in hung:
        thread.start()
    begun.wait()
    # All of them together wait no longer than the first.
    with in_time():
        for _ in range(100):
            with pytest.raises(exceptions.Unavailable), waits.turn():
                refused.append("called")
    release.set()
    for thread in hung:
        thread.join()

    assert refused == []
    with waits.turn():
        pass


def test_calls_wait_for_their_turn_while_conductors_reply():
    waits, done = rpc_api._Waits(1), []

    def call(number):
        with waits.turn():
            time.sleep(0.005)
            done.append(number)

    threads = [threading.Thread(target=call, args=(number,)) for number in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(done) == list(range(10))
