"""Validation of a template's steps by the steps that all conductors offer."""

from __future__ import annotations

from ironic_rules.models.steps import Step
from ironic_rules.steps import checks, preview
from ironic_rules.steps.declaration import StepInfo
from ironic_rules.steps.offers import RegisteredSteps


def info(step="create", core=False, **required):
    args = {name: {"description": "It.", "required": value} for name, value in required.items()}
    return StepInfo("raid", step, 0, args, core=core)


def problems(step, *offers):
    """Return the problems of a step when each of the ``offers`` is another driver's."""
    registered = RegisteredSteps(
        {f"driver-{number}": {"raid": {"enabled": ["x"], "default": "x"},
                              "deploy_steps": {"raid": {"x": [offer.to_wire()]}}}}
        for number, offer in enumerate(offers))
    return [str(problem) for problem in checks.fits(registered)(step)]


def step(priority=5, **args):
    return Step("raid", "create", args, priority)


def test_a_step_that_nobody_has_is_fine():
    assert problems(step(x=1)) == problems(step(x=1), info("destroy")) == []


def test_arguments_that_nobody_takes_are_named():
    assert problems(step(**{"x/y": 1}), info(a=True), info(a=True, b=False)) == [
        "/args/x~1y: the step has no such argument", "/args/a: the step requires this argument"]


def test_what_one_interface_takes_is_fine():
    assert problems(step(b=1), info(a=True), info(b=True)) == []


def test_interfaces_that_refuse_for_different_reasons_give_the_first_ones():
    assert problems(step(c=1), info(a=True), info(c=True, core=True)) == [
        "/args: no interface with this step accepts them; the first one: /args/c: the step has no such argument; "
        "/args/a: the step requires this argument"]


def test_arguments_that_are_missing_are_warned_about_with_the_interfaces_that_require_them():
    registered = RegisteredSteps([
        {f"driver-{number}": {
            "raid": {"enabled": [name], "default": name}, "deploy_steps": {"raid": {name: [offer.to_wire()]}}}}
        for number, (name, offer) in enumerate((
            ("one", info(a=True)), ("two", info(a=False)), ("three", info(a=True)), ("four", info(b=False))))])

    assert problems(step(), info(a=True)) == []
    assert [warning.to_wire() for warning in preview.warnings_of_template(registered, [step(0), step()])] == [{
        "kind": "arguments", "pointer": "/steps/1/args/a",
        "text": "the step requires this argument; nodes with the raid interface one or three fail validation and are "
                "not deployed"}]
    # Invalid for some hardware only: accepted, too.
    assert [warning.where for warning in preview.warnings_of_template(registered, [step(a=1)])] == ["/steps/0/args/a"]


def test_a_core_step_can_only_be_left_out():
    assert problems(step(), info(core=True)) == ["/priority: must be 0: a core step can only be left out"]
    assert problems(step(0), info(core=True)) == problems(step(), info(core=True), info()) == []


def test_a_step_that_is_left_out_needs_no_arguments():
    assert problems(step(0), info(a=True)) == []
