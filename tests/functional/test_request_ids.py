"""The id of a request, from the client to the history, the log and the machines."""

from __future__ import annotations

import http.server
import threading

import pytest

from ironic_rules import context
from ironic_rules.conductor import recovery
from ironic_rules.hardware.agent.client import AgentClient
from ironic_rules.hardware.fake import FakePower
from ironic_rules.models import states
from tests.functional.processes import wait_for
from tests.functional.whole import running

ID = "req-11111111-2222-4333-8444-555555555555"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    with running(tmp_path_factory.mktemp("whole")) as service:
        yield service


@pytest.fixture
def seen(monkeypatch):
    """The ids of the requests for which threads switch machines."""
    ids = []
    original = FakePower.set_power_state

    def set_power_state(*given):
        ids.append(context.current().request_id)
        original(*given)

    monkeypatch.setattr(FakePower, "set_power_state", set_power_state)
    return ids


def test_workers_and_the_history_have_the_id_of_the_request(whole, seen):
    uuid = whole.enroll("manageable")
    before = whole.app.put_json(f"/v1/nodes/{uuid}/states/power", {"target": "power on"})
    whole.at_rest(uuid)
    reply = whole.app.put_json(f"/v1/nodes/{uuid}/states/provision", {"target": "inspect"},
                               headers={"X-OpenStack-Request-Id": ID, "X-OpenStack-Ironic-API-Version": "1.96"})
    whole.at_rest(uuid)
    report = whole.callback(uuid, whole.machine()[1])
    whole.at_rest(uuid)

    ids = [answer.headers["Openstack-Request-Id"] for answer in (before, reply, report)]
    assert ids[1] == ID
    # The last one: the ramdisk's machine is switched off.
    assert list(dict.fromkeys(seen)) == ids
    entries = whole.app.get(f"/v1/nodes/{uuid}/history?detail=true").json["history"]
    assert [entry["request_id"] for entry in entries] == [ids[2]]


def test_what_ends_a_wait_has_an_id_of_its_own(whole, seen):
    uuid = whole.enroll(states.INSPECTWAIT)
    with whole.option("conductor", "inspect_wait_timeout", 1):
        wait_for("the end of the wait", lambda: recovery.fail_overdue(whole.conductor) or (
            whole.row(uuid).provision_state == states.INSPECTFAIL), 20, 0.2)
    whole.at_rest(uuid)
    entry = whole.app.get(f"/v1/nodes/{uuid}/history?detail=true").json["history"][-1]
    assert [entry["request_id"]] == seen
    assert entry["request_id"].startswith("req-")


def test_agents_are_told_the_id():
    ids = []

    class Agent(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            ids.append(self.headers["X-OpenStack-Request-Id"])
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"commands": []}')

        def log_message(self, *arguments):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Agent) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        context.RequestContext(request_id=ID)
        assert AgentClient(f"http://127.0.0.1:{server.server_port}", "token", ()).commands() == []
        server.shutdown()
    assert ids == [ID]
