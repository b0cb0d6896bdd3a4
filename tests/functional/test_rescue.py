"""Rescuing machines over HTTP, in one process, with the rescue interface ``agent``."""

from __future__ import annotations

import datetime

import pytest

from ironic_rules.conductor import heartbeat, provisioning, recovery
from ironic_rules.hardware.agent.instance import AgentRescue
from tests.functional.agents import agent
from tests.functional.test_cleaning import beat, token_of
from tests.functional.test_recovery import ADMIN, dies_at, finish
from tests.functional.whole import running


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    config = ("[DEFAULT]\nenabled_rescue_interfaces = fake,agent,no-rescue\n"
              "[deploy]\nimage_url_denied_networks =\n")
    with running(tmp_path_factory.mktemp("rescue"), config) as service:
        yield service


@pytest.fixture
def waiting(whole):
    """A node that waits for its rescue system."""
    node = whole.enroll("active", rescue_interface="agent")
    shown = whole.provision(node, "rescue", rescue_password="secret")
    assert (shown["provision_state"], shown["target_provision_state"]) == ("rescue wait", "rescue")
    return node


def assert_stopped(row):
    assert (row.power_state, row.agent_token_hash) == ("power off", None)
    assert not [key for key in row.driver_internal_info if key.startswith("rescue")]


def test_an_aborted_rescue_is_stopped_and_can_be_repeated_or_left(whole, waiting):
    shown = whole.provision(waiting, "abort")

    assert (shown["provision_state"], shown["target_provision_state"]) == ("rescue failed", "rescue")
    assert shown["last_error"] == "The rescue was aborted by request. (IR-2084)"
    assert_stopped(whole.row(waiting))
    again = whole.provision(waiting, "rescue", rescue_password="secret")
    assert again["provision_state"] == "rescue wait"
    whole.provision(waiting, "abort")
    shown = whole.provision(waiting, "unrescue")
    assert (shown["provision_state"], shown["power_state"], shown["instance_info"]) == ("active", "power on", {})


def test_a_rescue_system_that_never_calls_back_fails_the_rescue(whole, waiting):
    whole.put(waiting, provision_updated_at=datetime.datetime.now(datetime.UTC) - datetime.timedelta(hours=1))

    recovery.fail_overdue(whole.conductor)

    row = whole.at_rest(waiting)
    assert row.provision_state == "rescue failed"
    assert "[conductor]rescue_callback_timeout" in row.last_error
    assert_stopped(row)


@pytest.mark.parametrize("drop", ["unread", "done"])
def test_the_agent_is_asked_again_if_its_answer_is_lost(whole, waiting, drop):
    with agent() as running:
        running.drops[:] = [drop]
        token, callback = token_of(whole, waiting), {"callback_url": running.url}
        assert beat(whole, waiting, token, callback).provision_state == "rescue wait"
        row = beat(whole, waiting, token, callback)

    assert (row.provision_state, row.last_error) == ("rescue", None)
    assert not [key for key in row.driver_internal_info if key.startswith(("rescue", "agent_silent"))]
    sent = running.asked[-1]
    assert (sent[0], sent[1]["hashed"]) == ("rescue.finalize_rescue", True)


def test_an_agent_that_can_not_be_reached_fails_the_rescue(whole, waiting):
    # Nothing listens there.
    token, callback = token_of(whole, waiting), {"callback_url": "http://127.0.0.1:1"}
    assert beat(whole, waiting, token, callback).provision_state == "rescue wait"
    with whole.option("deploy", "agent_silence_timeout", 0):
        row = beat(whole, waiting, token, callback)

    assert row.provision_state == "rescue failed"
    assert "agent does not respond" in row.last_error
    assert_stopped(row)


def test_a_rescue_outlives_its_conductor(whole, monkeypatch):
    node = whole.enroll("active", rescue_interface="agent")
    with monkeypatch.context() as patch:
        dies_at(patch, AgentRescue, "rescue")
        provisioning.change_provision_state(whole.conductor, ADMIN, node, "rescue", {"rescue_password": "secret"})
        finish(whole.conductor)
    assert recovery.resume_orphans(whole.conductor) == 1
    assert whole.at_rest(node).provision_state == "rescue wait"
    with monkeypatch.context() as patch:
        dies_at(patch, AgentRescue, "continue_rescue")
        heartbeat.heartbeat(whole.conductor, ADMIN, node, "http://192.0.2.7:9999", None, {})
        finish(whole.conductor)
    assert recovery.resume_orphans(whole.conductor) == 1

    # Without the token of a heartbeat, the agent cannot be called.
    assert whole.at_rest(node).provision_state == "rescue wait"
