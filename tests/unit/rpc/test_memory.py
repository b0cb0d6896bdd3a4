from __future__ import annotations

import threading
import time

import pytest
from futurist._thread import ThreadWorker
from oslo_config import cfg
from oslo_context.context import get_current

from ironic_rules import conf as service_conf
from ironic_rules import context, exceptions
from ironic_rules.rpc import transport as rpc_transport
from ironic_rules.rpc.api import ConductorAPI
from tests.functional.processes import wait_for


class Endpoint:
    """Answers RPC as a conductor would."""

    def __init__(self):
        self.seen = []

    def continue_inspection(self, ctxt, node_id, inventory, plugin_data):
        self.seen.append((ctxt.request_id, node_id, inventory, plugin_data))

    def validate_interfaces(self, ctxt, node_id):
        if node_id == "locked":
            raise exceptions.NodeLocked(node="n", host="h")
        return {"power": {"result": True, "reason": None}}


@pytest.fixture
def rpc(monkeypatch):
    # Threads of a server that is stopped end at their next poll, by default once a second.
    monkeypatch.setattr(ThreadWorker, "MAX_IDLE_FOR", 0.02)
    conf = cfg.ConfigOpts()
    service_conf.register_opts(conf)
    conf([], default_config_files=[])
    rpc_transport.set_default_url(conf, "ironic-rules-memory://")
    transport = rpc_transport.get_transport(conf)
    endpoint = Endpoint()
    # A separate group isolates tests: the broker is one per process.
    group = f"g{id(endpoint)}"
    server = rpc_transport.get_server(transport, conf, endpoint, group)
    server.start()
    yield ConductorAPI(transport, conf), endpoint, group
    server.stop()
    server.wait()
    transport.cleanup()


def test_arguments_and_context_arrive_as_they_were_sent(rpc):
    api, endpoint, group = rpc
    ctxt = context.admin()
    inventory = {"interfaces": [{"mac_address": "52:54:00:12:34:ab", "speed_mbps": None}], "memory": {"total": 2**40}}
    api.continue_inspection(ctxt, "node", inventory, None, group=group)
    assert endpoint.seen == [(ctxt.request_id, "node", inventory, None)]


def test_what_an_older_conductor_cannot_do_is_a_503(rpc, caplog):
    api, endpoint, group = rpc
    with pytest.raises(exceptions.Unavailable):
        api.continue_inspection(context.admin(), "node", {}, None, "a rule is broken", group=group)
    assert endpoint.seen == []
    assert f"The conductors of group '{group}' are older" in caplog.text


def test_results_come_back(rpc):
    api, _, group = rpc
    assert api.validate_interfaces(context.admin(), 7, group=group) == {"power": {"result": True, "reason": None}}


def test_an_error_comes_back_as_itself_without_a_traceback(rpc):
    api, _, group = rpc
    with pytest.raises(exceptions.NodeLocked) as caught:
        api.validate_interfaces(context.admin(), "locked", group=group)
    assert type(caught.value) is exceptions.NodeLocked
    assert str(caught.value) == str(exceptions.NodeLocked(node="n", host="h"))


def test_nobody_listening_is_a_503():
    conf = cfg.ConfigOpts()
    service_conf.register_opts(conf)
    conf([], default_config_files=[])
    rpc_transport.set_default_url(conf, "ironic-rules-memory://")
    transport = rpc_transport.get_transport(conf)
    api = ConductorAPI(transport, conf)
    conf.set_override("rpc_response_timeout", 1)
    with pytest.raises(exceptions.RPCTimeout) as caught:
        api.validate_interfaces(context.admin(), 1, group="no-conductor")
    assert caught.value.code == 503
    transport.cleanup()


def test_concurrent_calls_get_their_own_answers(rpc):
    api, endpoint, group = rpc
    threads = [threading.Thread(target=lambda n=n: api.continue_inspection(context.admin(), n, {"n": n}, group=group))
               for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(node for _, node, _, _ in endpoint.seen) == list(range(20))
    assert all(inventory == {"n": node} for _, node, inventory, _ in endpoint.seen)


def test_a_waiting_consumer_uses_no_processor(rpc):
    """A transport that polls without sleeping uses a whole core here; a third of one is a clear limit."""
    before, began = time.process_time(), time.monotonic()
    threading.Event().wait(1.0)
    assert (time.process_time() - before) / (time.monotonic() - began) < 0.3


def test_messages_of_one_topic_go_to_its_servers_in_turn_and_a_stopped_one_gets_none(rpc):
    api, endpoint, group = rpc
    second = Endpoint()
    server = rpc_transport.get_server(api._client.transport, api._client.transport.conf, second, group)
    server.start()
    for number in range(6):
        api.continue_inspection(context.admin(), number, {}, None, group=group)
    assert (len(endpoint.seen), len(second.seen)) == (3, 3)
    server.stop()
    server.wait()
    for number in range(2):
        api.continue_inspection(context.admin(), number, {}, None, group=group)
    assert (len(endpoint.seen), len(second.seen)) == (5, 3)


def test_what_the_receiver_changes_is_not_seen_by_the_sender(rpc):
    api, endpoint, group = rpc
    inventory = {"disks": [{"name": "/dev/sda"}]}
    api.continue_inspection(context.admin(), 1, inventory, None, group=group)
    endpoint.seen[0][2]["disks"].clear()
    assert inventory == {"disks": [{"name": "/dev/sda"}]}


def test_a_fanout_reaches_every_server(rpc):
    api, endpoint, group = rpc
    second = Endpoint()
    server = rpc_transport.get_server(api._client.transport, api._client.transport.conf, second, group)
    server.start()
    everyone = api._client.prepare(topic=rpc_transport.conductor_topic(group), fanout=True)
    everyone.cast(context.admin(), "continue_inspection", node_id=1, inventory={}, plugin_data=None)
    server.stop()
    server.wait()  # for the requests that it has started
    wait_for("the message", lambda: endpoint.seen, interval_s=0.001)
    assert [seen[1:] for seen in (*endpoint.seen, *second.seen)] == [(1, {}, None)] * 2


def test_a_report_is_received_by_the_thread_that_sends_it_and_other_calls_by_others(rpc):
    api, endpoint, group = rpc
    threads = {}
    endpoint.validate_interfaces = lambda ctxt, node_id: threads.update(validate=threading.current_thread())
    endpoint.continue_inspection = lambda ctxt, **_: (
        ctxt.update_store(), threads.update(report=threading.current_thread()))[0]
    ctxt = context.admin()
    ctxt.update_store()
    api.continue_inspection(ctxt, "node", {}, None, group=group)
    # Log lines that follow have the sender's context again, not the receiver's copy.
    assert get_current() is ctxt
    api.validate_interfaces(ctxt, "node", group=group)
    assert threads["report"] is threading.current_thread() is not threads["validate"]


def test_a_server_stops_after_the_reports_that_it_has_begun_to_receive(rpc):
    api, endpoint, group = rpc
    began, ends, ended = threading.Event(), threading.Event(), []

    def slow(ctxt, **_):
        began.set()
        ends.wait(60)
        ended.append("report")

    endpoint.continue_inspection = slow
    slowly = f"{group}-slow"
    server = rpc_transport.get_server(api._client.transport, api._client.transport.conf, endpoint, slowly)
    server.start()
    sender = threading.Thread(target=lambda: api.continue_inspection(context.admin(), "node", {}, group=slowly))
    sender.start()
    assert began.wait(60)
    stopping = threading.Thread(target=lambda: (server.stop(), server.wait(), ended.append("server")))
    stopping.start()
    stopping.join(0.2)
    assert stopping.is_alive()
    # Others are not held up by it.
    assert api.validate_interfaces(context.admin(), 7, group=group)
    ends.set()
    sender.join(60)
    stopping.join(60)
    assert ended == ["report", "server"]
