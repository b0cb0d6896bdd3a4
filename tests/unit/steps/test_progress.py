"""The deployment data that a node stores."""

from __future__ import annotations

import datetime

import pytest

from ironic_rules.models.draft import NodeDraft
from ironic_rules.steps import progress as step_progress
from ironic_rules.steps.merge import ScheduledStep
from ironic_rules.steps.procedures import CLEANING, DEPLOYMENT
from ironic_rules.steps.progress import Progress

NOW = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)
STEPS = [ScheduledStep("deploy", "deploy", {}, 100, "code"),
         ScheduledStep("raid", "create", {"size": 1}, 10, "template CUSTOM_A")]


@pytest.fixture
def node():
    draft = NodeDraft({"deploy_step": {"step": "old"}, "clean_step": {},
                       "driver_internal_info": {"agent_version": "11"}})
    Progress(DEPLOYMENT, draft).start(STEPS)
    return draft


@pytest.fixture
def progress(node):
    return Progress(DEPLOYMENT, node)


def test_a_procedure_is_a_list_of_steps_of_which_the_first_is_next(node, progress):
    assert progress.is_started
    assert not progress.is_begun
    assert (node.deploy_step, node.driver_internal_info) == ({}, {
        "agent_version": "11", "deploy_step_index": 0, "deploy_steps": [
            {"interface": "deploy", "step": "deploy", "args": {}, "priority": 100, "source": "code"},
            {"interface": "raid", "step": "create", "args": {"size": 1}, "priority": 10,
             "source": "template CUSTOM_A"}]})
    assert str(progress.current()) == "deploy.deploy (1 of 2, code)"


def test_a_step_is_begun_waits_and_is_finished(node, progress):
    run = progress.current()
    progress.begin(run, "provision: active", NOW)
    assert node.deploy_step == {"interface": "deploy", "step": "deploy", "args": {}, "priority": 100}
    assert (progress.is_begun, progress.is_waiting) == (True, False)
    assert progress.is_begun_by("provision: active")
    assert not progress.is_begun_by("provision: active, resumed: 1")

    progress.wait()
    assert progress.is_waiting

    assert progress.finish(NOW + datetime.timedelta(seconds=1.5)) == 1.5
    assert (node.deploy_step, progress.is_begun) == ({}, False)
    assert str(progress.current()) == "raid.create (2 of 2, template CUSTOM_A)"


def test_a_pass_copies_the_step_that_it_runs_and_no_other_one(node, progress):
    steps = node.current("driver_internal_info")["deploy_steps"]
    run = progress.current()

    progress.begin(run, "provision: active", NOW)
    run.step.args["size"] = 2
    progress.finish(NOW)

    assert node.current("driver_internal_info")["deploy_steps"] is steps
    assert steps[0]["args"] == {}


def test_a_clock_that_goes_back_makes_no_negative_duration(progress):
    progress.begin(progress.current(), "lock", NOW)

    assert progress.finish(NOW - datetime.timedelta(hours=1)) == 0.0


def test_after_the_last_step_none_is_left_and_all_can_be_forgotten(node, progress):
    for _ in STEPS:
        progress.begin(progress.current(), "lock", NOW)
        progress.finish(NOW)
    assert progress.current() is None

    node.driver_internal_info["user_deploy_steps"] = []
    progress.forget()

    assert (node.deploy_step, node.driver_internal_info) == ({}, {"agent_version": "11"})


def test_a_deployment_without_steps_is_done_at_once(progress):
    progress.start([])

    assert progress.current() is None


def test_steps_that_are_learnt_later_join_those_that_are_left(progress):
    progress.start([*STEPS, ScheduledStep("raid", "last", {}, 5, "code")], ["deploy.unwanted"])
    assert progress.left() == [STEPS[1], ScheduledStep("raid", "last", {}, 5, "code")]

    progress.add([
        ScheduledStep("deploy", "unwanted", {}, 50, "code"), ScheduledStep("deploy", "learnt", {}, 10, "code"),
        ScheduledStep("raid", "learnt", {}, 10, "code"), ScheduledStep("deploy", "late", {}, 500, "code")])

    # With the same priority: by interface, then in the original order.
    assert [step.name for step in progress.left()] == [
        "deploy.late", "deploy.learnt", "raid.create", "raid.learnt", "raid.last"]
    assert str(progress.current()) == "deploy.deploy (1 of 6, code)"


def test_steps_are_named_up_to_fifty():
    many = [ScheduledStep("raid", f"s{number}", {}, 1, "code") for number in range(53)]

    assert step_progress.names_of([]) == "none"
    assert step_progress.names_of(many[:2]) == "raid.s0, raid.s1"
    assert step_progress.names_of(many).endswith("raid.s49 and 3 more")


def test_each_procedure_keeps_its_own_progress(node, progress):
    cleaning = Progress(CLEANING, node)
    cleaning.start(STEPS[1:])
    cleaning.begin(cleaning.current(), "lock", NOW)

    assert (node.clean_step["step"], node.deploy_step, progress.is_begun) == ("create", {}, False)
    cleaning.forget()
    assert (node.clean_step, progress.current().number, progress.left()) == ({}, 1, STEPS[1:])


def test_a_request_notes_its_own_steps_and_forgets_what_was_noted_before(node):
    asked = [{"interface": "raid", "step": "create", "args": {}, "priority": "5"}]

    columns = DEPLOYMENT.columns(node.driver_internal_info, asked)

    assert columns == {"deploy_step": {}, "driver_internal_info": {
        "agent_version": "11", "user_deploy_steps": asked}}
    assert Progress(DEPLOYMENT, NodeDraft(columns)).requested() == [ScheduledStep("raid", "create", {}, 5, "request")]
    assert "user_deploy_steps" not in DEPLOYMENT.columns(columns["driver_internal_info"], [])["driver_internal_info"]
