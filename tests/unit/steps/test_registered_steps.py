"""Warnings about a template's steps, by the steps that all conductors offer."""

from __future__ import annotations

from ironic_rules.models.steps import Step
from ironic_rules.steps import preview
from ironic_rules.steps.declaration import StepInfo
from ironic_rules.steps.offers import RegisteredSteps
from tests.walking import walking


def info(step="create", core=False, **required):
    args = {name: {"description": "It.", "required": value} for name, value in required.items()}
    return StepInfo("raid", step, 0, args, core=core)


def registered(*offers):
    """Return what drivers offer, each of which has one of the ``offers``, a pair of interface and step."""
    return RegisteredSteps(
        {f"driver-{number}": {"raid": {"enabled": [name], "default": name},
                              "deploy_steps": {"raid": {name: [offer.to_wire()]}}}}
        for number, (name, offer) in enumerate(offers))


def warnings(step, *offers):
    return [(warning.kind, warning.where, warning.text.partition(";")[0])
            for warning in preview.warnings_of_template(registered(*offers), [step])]


def step(priority=5, **args):
    return Step("raid", "create", args, priority)


@walking("name, text", [
    ("destroy", "no enabled raid interface has this step"),
    ("creat", "no enabled raid interface has this step (did you mean create?)"),
])
def test_a_step_that_no_interface_has_is_warned_about_with_the_nearest_name(name, text):
    assert warnings(Step("raid", name, {"x": 1}, 5), ("one", info())) == [("step", "/steps/0/step", text)]


@walking("requested, offers, expected", [
    # Every interface with an own reason, and the interfaces that accept the step give none.
    (step(**{"x/y": 1}), [("one", info(a=True)), ("two", info(a=True, b=False))], [
        ("/steps/0/args/x~1y", "the step has no such argument"),
        ("/steps/0/args/a", "the step requires this argument")]),
    (step(b=1), [("one", info(a=True)), ("two", info(b=True))], [
        ("/steps/0/args/b", "the step has no such argument"), ("/steps/0/args/a", "the step requires this argument")]),
    (step(b=1), [("one", info(b=True))], []),
    # A step that is left out needs no arguments, and only then it may be a core step.
    (step(), [("one", info(core=True))], [("/steps/0/priority", "must be 0: a core step can only be left out")]),
    (step(0), [("one", info(core=True, a=True))], []),
])
def test_arguments_that_an_interface_does_not_accept_are_warned_about(requested, offers, expected):
    assert warnings(requested, *offers) == [("arguments", *one) for one in expected]


def test_a_warning_names_the_interfaces():
    offered = registered(
        ("one", info(a=True)), ("two", info(a=False)), ("three", info(a=True)), ("four", info(b=False)))

    assert [warning.to_wire() for warning in preview.warnings_of_template(offered, [step(0), step()])] == [{
        "kind": "arguments", "pointer": "/steps/1/args/a",
        "text": "the step requires this argument; nodes with the raid interface one or three fail validation and are "
                "not deployed"}]
