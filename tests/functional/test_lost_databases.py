"""A conductor that has lost its database gets its share of the calls nevertheless."""

from __future__ import annotations

import contextlib

import oslo_messaging as messaging
import pytest
from oslo_db import exception as db_exc

from ironic_rules import context
from ironic_rules.conductor.conductor import DatabaseContact
from ironic_rules.conductor.endpoint import ConductorEndpoint
from ironic_rules.db import conductors
from ironic_rules.exceptions import outcome_unknown
from ironic_rules.rpc import transport as rpc_transport
from tests.functional.whole import fault, make_conductor, running
from tests.wordings import says


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    with running(tmp_path_factory.mktemp("whole")) as service:
        yield service


@pytest.fixture
def lost(whole):
    """A second conductor of the group, whose last heartbeat has failed."""
    conductor = make_conductor(whole.conf, whole.db, host="conductor-2")
    with contextlib.suppress(db_exc.DBConnectionError), conductor.contact.attempt():
        raise db_exc.DBConnectionError("gone")
    transport = rpc_transport.get_transport(whole.conf)
    whole.conf.set_override("host", "conductor-2")
    server = rpc_transport.get_server(transport, whole.conf, ConductorEndpoint(conductor), "")
    whole.conf.clear_override("host")
    server.start()
    yield conductor
    server.stop()
    server.wait()
    transport.cleanup()


def test_calls_go_to_another_conductor_at_once(whole, lost):
    for _ in range(4):
        uuid = whole.enroll("manageable")
        assert whole.ask(uuid, "inspect").status_int == 202
        assert whole.at_rest(uuid).provision_state == "inspect wait"


def test_without_another_one_the_reply_says_that_nothing_was_done(whole, lost):
    uuid = whole.enroll("manageable")
    before = whole.row(uuid)
    with contextlib.suppress(db_exc.DBConnectionError), whole.conductor.contact.attempt():
        raise db_exc.DBConnectionError("gone")
    reply = whole.ask(uuid, "inspect")
    with whole.conductor.contact.attempt():
        pass
    assert (reply.status_int, fault(reply)) == (
        503, "The conductor cannot reach its database. Nothing was changed; it is safe to repeat the request.")
    assert whole.row(uuid) == before


def test_what_was_begun_and_lost_its_database_has_an_unknown_outcome(whole, monkeypatch):
    uuid = whole.enroll("manageable")

    def away(*arguments, **named):
        raise db_exc.DBConnectionError("gone")

    monkeypatch.setattr(whole.conductor.db, "write", away)
    caller = context.admin()
    caller.expires_at = "2999-01-01T00:00:00+00:00"
    with pytest.raises(messaging.ExpectedException) as caught:
        ConductorEndpoint(whole.conductor).change_power_state(caller, uuid, "power on")
    assert says(caught.value.exc_info[1], outcome_unknown)


def test_a_heartbeat_that_fails_or_takes_too_long_loses_the_database_until_the_next_one(whole, monkeypatch):
    now = [0.0]
    contact = DatabaseContact(lambda: now[0])
    assert not contact.is_lost
    with contact.attempt():
        now[0] = 1.9
        assert not contact.is_lost
        now[0] = 2.1
        assert contact.is_lost
    assert not contact.is_lost

    def away(*arguments):
        raise db_exc.DBConnectionError("gone")

    service = whole.conductor_service
    with monkeypatch.context() as patch, pytest.raises(db_exc.DBConnectionError):
        patch.setattr(conductors, "touch", away)
        service._heartbeat()
    assert whole.conductor.contact.is_lost
    service._heartbeat()
    assert not whole.conductor.contact.is_lost
