"""Steps that only the ramdisk has."""

from __future__ import annotations

from types import SimpleNamespace

from ironic_rules.deploy import plan, ramdisk_steps
from ironic_rules.hardware.steps import StepInfo
from ironic_rules.models.steps import Step

OFFERED = [StepInfo("deploy", "deploy", 100, core=True), StepInfo("bios", "factory_reset", 0)]


def template(*steps):
    return SimpleNamespace(name="CUSTOM_A", steps=[Step(*step) for step in steps])


def test_a_step_that_no_interface_has_is_taken_for_the_ramdisks_with_any_arguments():
    asked = [template(("raid", "write", {"a": 1}, 50), ("raid", "write", {"b": 1}, 60))]

    assert plan.problems(OFFERED, asked) != []
    assert plan.problems(ramdisk_steps.assumed(OFFERED, asked), asked) == []


def test_a_step_that_an_interface_has_is_checked_all_the_same():
    asked = [template(("bios", "factory_reset", {"a": 1}, 50))]

    assert len(plan.problems(ramdisk_steps.assumed(OFFERED, asked), asked)) == 1


def test_the_ramdisks_steps_come_behind_the_one_that_boots_it():
    steps = plan.order(OFFERED, [template(("raid", "write", {}, 150), ("bios", "factory_reset", {}, 140),
                                          ("raid", "late", {}, 5))])

    assert [step.step for step in ramdisk_steps.behind_boot(steps, OFFERED)] == [
        "factory_reset", "deploy", "write", "late"]


def test_without_a_boot_nothing_moves():
    steps = plan.order([], [template(("raid", "write", {}, 150))])

    assert ramdisk_steps.behind_boot(steps, []) == steps
