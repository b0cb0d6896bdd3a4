"""Messages that come too late, and requests and reports whose answers were lost, so that they are repeated."""

from __future__ import annotations

import datetime

import pytest
import sqlalchemy as sa

from ironic_rules import context
from ironic_rules.conductor import acceptance, heartbeat, provisioning
from ironic_rules.conductor.endpoint import ConductorEndpoint
from ironic_rules.db import clock
from ironic_rules.db.tables import accepted_requests
from ironic_rules.exceptions import RequestExpired
from ironic_rules.hardware.fake import FakePower
from ironic_rules.models import states
from tests.functional.whole import fault, running

KEY = {"Idempotency-Key": "8b2f-1"}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    with running(tmp_path_factory.mktemp("whole")) as service:
        yield service


def report(whole, uuid, body, version="1.96"):
    return whole.app.post_json(f"/v1/continue_inspection?node_uuid={uuid}", body,
                               headers={"X-OpenStack-Ironic-API-Version": version})


def age(whole, seconds):
    """Let what was accepted have been so earlier."""
    with whole.db.writer() as conn:
        for row in conn.execute(sa.select(accepted_requests)).all():
            conn.execute(sa.update(accepted_requests).where(accepted_requests.c.id == row.id).values(
                created_at=row.created_at - datetime.timedelta(seconds=seconds)))


@pytest.mark.parametrize(("state", "call"), [
    ("manageable", lambda *who: provisioning.change_power_state(*who, "power on", None)),
    ("manageable", lambda *who: provisioning.change_provision_state(*who, "inspect", {})),
    ("inspect wait", lambda *who: provisioning.change_provision_state(*who, "abort", {})),
    ("inspect wait", lambda *who: acceptance.accept_report(*who, {"interfaces": []}, {})),
    ("deploy wait", lambda *who: heartbeat.heartbeat(*who, "http://192.0.2.1:9999", "11.0", {})),
], ids=["power", "provision", "abort", "report", "heartbeat"])
def test_what_comes_after_its_deadline_changes_nothing(whole, state, call):
    uuid = whole.enroll(state)
    before = whole.row(uuid)
    late = context.admin()
    late.expires_at = (clock.now() - datetime.timedelta(seconds=0.5)).isoformat()

    with pytest.raises(RequestExpired):
        call(whole.conductor, context.RequestContext.from_dict(late.to_dict()), uuid)

    assert whole.row(uuid) == before
    assert (whole.inventories(uuid), whole.events(uuid)) == ([], [])
    late.expires_at = (clock.now() + datetime.timedelta(seconds=30)).isoformat()
    call(whole.conductor, late, uuid)
    assert whole.at_rest(uuid) != before


def test_calls_of_the_api_expire_when_it_no_longer_waits_for_them(whole, monkeypatch):
    uuid = whole.enroll("manageable")
    seen = []
    original = provisioning.change_power_state

    def change_power_state(conductor, caller, *arguments):
        seen.append(caller.expires_at)
        original(conductor, caller, *arguments)

    monkeypatch.setattr(provisioning, "change_power_state", change_power_state)
    whole.app.put_json(f"/v1/nodes/{uuid}/states/power", {"target": "power on"})
    remaining = datetime.datetime.fromisoformat(seen[0]) - clock.now()
    assert 20 < remaining.total_seconds() <= whole.conf.rpc_response_timeout
    whole.at_rest(uuid)  # the power is not changed during the next test


def test_a_repeated_request_is_carried_out_once(whole, monkeypatch):
    uuid = whole.enroll("manageable")
    done = []
    original = FakePower.set_power_state
    monkeypatch.setattr(FakePower, "set_power_state", lambda *given: (done.append(given[2]), original(*given)))
    path = f"/v1/nodes/{uuid}/states/power"

    for _ in range(3):
        reply = whole.app.put_json(path, {"target": "rebooting"}, headers=KEY)
        assert (reply.status_int, reply.headers["Location"][-7:]) == (202, "/states")
        whole.at_rest(uuid)
    assert done == ["rebooting"]

    other = whole.app.put_json(path, {"target": "power off"}, headers=KEY)
    assert (other.status_int, fault(other)) == (409, "The Idempotency-Key was used for another request on this node.")
    assert whole.app.put_json(path, {"target": "power off"}, headers={"Idempotency-Key": "a b"}).status_int == 400
    age(whole, 601)
    assert whole.app.put_json(path, {"target": "rebooting"}, headers=KEY).status_int == 202
    whole.at_rest(uuid)
    # Requests without the header are not repetitions.
    assert whole.app.put_json(path, {"target": "rebooting"}).status_int == 202
    whole.at_rest(uuid)
    assert done == ["rebooting"] * 3


def test_a_repeated_change_of_the_state_is_no_error_where_the_first_one_has_made_it_impossible(whole):
    uuid = whole.enroll("manageable")
    path, body = f"/v1/nodes/{uuid}/states/provision", {"target": "inspect"}
    assert whole.app.put_json(path, body, headers=KEY).status_int == 202
    before = whole.at_rest(uuid)

    assert whole.app.put_json(path, body, headers=KEY).status_int == 202
    assert whole.row(uuid) == before
    assert whole.app.put_json(path, body).status_int == 400
    assert before.provision_state == states.INSPECTWAIT


def test_a_message_that_is_delivered_twice_is_carried_out_once(whole, monkeypatch):
    uuid = whole.enroll("manageable")
    calls = []
    original = whole.conductor.workers.take
    monkeypatch.setattr(type(whole.conductor.workers), "take",
                        lambda workers, *given, **named: (calls.append(1), original(*given, **named))[1])
    message = context.admin()
    message.mark = context.Mark("a" * 64, "b" * 64)
    endpoint = ConductorEndpoint(whole.conductor)
    for _ in range(2):
        endpoint.change_power_state(context.RequestContext.from_dict(message.to_dict()), uuid, "power on")
        whole.at_rest(uuid)
    assert len(calls) == 1


@pytest.mark.parametrize("version", ["1.1", "1.96"])
def test_a_repeated_report_gets_the_first_answer_without_the_token(whole, version):
    _, body = whole.machine()
    uuid = whole.enroll("inspect wait", properties={"first": "answer"})
    first = report(whole, uuid, body, version)
    done = whole.at_rest(uuid)
    assert (first.status_int, done.provision_state) == (200, "manageable")

    again = report(whole, uuid, body, version)

    expected = first.json
    if version == "1.96":
        assert len(expected["config"]["agent_token"]) == 43
        expected["config"]["agent_token"] = "******"
        assert expected["node"]["properties"] == {"first": "answer"}
    assert (again.status_int, again.json) == (200, expected)
    assert whole.row(uuid) == done
    assert whole.inventories(uuid) == ["processed"]


def test_every_other_report_to_a_node_that_does_not_wait_is_refused_alike(whole):
    _, body = whole.machine()
    uuid, other = whole.enroll("inspect wait"), whole.enroll("manageable")
    assert report(whole, uuid, body).status_int == 200
    whole.at_rest(uuid)

    changed = {**body, "more": 1}
    refused = [report(whole, uuid, changed), report(whole, other, body)]
    age(whole, 601)
    refused.append(report(whole, uuid, body))
    for reply in refused:
        assert (reply.status_int, fault(reply)) == (404, "The requested node could not be found.")

    # What the next inspection brings is processed, even if it is the same.
    assert whole.inspect(uuid, body)["provision_state"] == "manageable"
    assert whole.inspect(uuid, body)["provision_state"] == "manageable"
    assert report(whole, uuid, body).status_int == 200
    assert whole.inventories(uuid) == ["processed"] * 3
    whole.put(uuid, provision_state="available")
    assert report(whole, uuid, body).json["node"]["uuid"] == uuid
    whole.app.put_json(f"/v1/nodes/{uuid}/maintenance", {})
    assert whole.app.delete(f"/v1/nodes/{uuid}").status_int == 204
    assert report(whole, uuid, body).status_int == 404
