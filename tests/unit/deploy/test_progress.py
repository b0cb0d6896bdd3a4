"""What a node keeps of its deployment."""

from __future__ import annotations

import datetime

import pytest

from ironic_rules.deploy import progress
from ironic_rules.deploy.steps import ScheduledStep
from ironic_rules.models.draft import NodeDraft

NOW = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)
STEPS = [ScheduledStep("deploy", "deploy", {}, 100, "code"),
         ScheduledStep("raid", "create", {"size": 1}, 10, "template CUSTOM_A")]


@pytest.fixture
def node():
    draft = NodeDraft({"deploy_step": {"step": "old"}, "driver_internal_info": {"agent_url": "http://192.0.2.1"}})
    progress.plan(draft, STEPS)
    return draft


def test_a_plan_is_a_list_of_steps_of_which_the_first_is_next(node):
    assert progress.is_planned(node)
    assert not progress.is_begun(node)
    assert (node.deploy_step, node.driver_internal_info) == ({}, {
        "agent_url": "http://192.0.2.1", "deploy_step_index": 0, "deploy_steps": [
            {"interface": "deploy", "step": "deploy", "args": {}, "priority": 100, "source": "code"},
            {"interface": "raid", "step": "create", "args": {"size": 1}, "priority": 10,
             "source": "template CUSTOM_A"}]})
    assert str(progress.current(node)) == "deploy.deploy (1 of 2, code)"


def test_a_step_is_begun_waits_and_is_finished(node):
    run = progress.current(node)
    progress.begin(node, run, "provision: active", NOW)
    assert node.deploy_step == {"interface": "deploy", "step": "deploy", "args": {}, "priority": 100}
    assert (progress.is_begun(node), progress.is_waiting(node)) == (True, False)
    assert progress.is_begun_by(node, "provision: active")
    assert not progress.is_begun_by(node, "provision: active, resumed: 1")

    progress.wait(node)
    assert progress.is_waiting(node)

    assert progress.finish(node, NOW + datetime.timedelta(seconds=1.5)) == 1.5
    assert (node.deploy_step, progress.is_begun(node)) == ({}, False)
    assert str(progress.current(node)) == "raid.create (2 of 2, template CUSTOM_A)"


def test_a_clock_that_goes_back_makes_no_negative_duration(node):
    progress.begin(node, progress.current(node), "lock", NOW)

    assert progress.finish(node, NOW - datetime.timedelta(hours=1)) == 0.0


def test_after_the_last_step_none_is_left_and_all_can_be_forgotten(node):
    for _ in STEPS:
        progress.begin(node, progress.current(node), "lock", NOW)
        progress.finish(node, NOW)
    assert progress.current(node) is None

    node.driver_internal_info["user_deploy_steps"] = []
    progress.forget(node)

    assert (node.deploy_step, node.driver_internal_info) == ({}, {"agent_url": "http://192.0.2.1"})


def test_a_deployment_without_steps_is_done_at_once(node):
    progress.plan(node, [])

    assert progress.current(node) is None


def test_steps_that_are_learnt_later_join_those_that_are_left(node):
    progress.plan(node, [*STEPS, ScheduledStep("raid", "last", {}, 5, "code")], ["deploy.unwanted"])
    assert progress.left(node) == [STEPS[1], ScheduledStep("raid", "last", {}, 5, "code")]

    progress.add(node, [
        ScheduledStep("deploy", "unwanted", {}, 50, "code"), ScheduledStep("deploy", "learnt", {}, 10, "code"),
        ScheduledStep("raid", "learnt", {}, 10, "code"), ScheduledStep("deploy", "late", {}, 500, "code")])

    # Of the same priority: by interface, then what was there first.
    assert [step.name for step in progress.left(node)] == [
        "deploy.late", "deploy.learnt", "raid.create", "raid.learnt", "raid.last"]
    assert str(progress.current(node)) == "deploy.deploy (1 of 6, code)"


def test_steps_are_named_up_to_fifty():
    many = [ScheduledStep("raid", f"s{number}", {}, 1, "code") for number in range(53)]

    assert progress.names([]) == "none"
    assert progress.names(many[:2]) == "raid.s0, raid.s1"
    assert progress.names(many).endswith("raid.s49 and 3 more")
