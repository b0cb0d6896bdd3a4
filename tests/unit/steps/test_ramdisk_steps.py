"""Steps that only the ramdisk has."""

from __future__ import annotations

from types import SimpleNamespace

from ironic_rules.models.steps import Step
from ironic_rules.steps import checks, merge
from ironic_rules.steps.declaration import StepInfo
from ironic_rules.steps.offers import Offer

OFFERED = (StepInfo("deploy", "deploy", 100, core=True), StepInfo("bios", "factory_reset", 0))
OFFER = Offer(OFFERED, in_ramdisk=True)


def template(*steps):
    return SimpleNamespace(name="CUSTOM_A", steps=[Step(*step) for step in steps])


def test_a_step_that_no_interface_has_is_taken_for_the_ramdisks_with_any_arguments():
    asked = [template(("raid", "write", {"a": 1}, 50), ("raid", "write", {"b": 1}, 60))]

    assert checks.node_problems(Offer(OFFERED), asked) != []
    assert checks.node_problems(OFFER, asked) == []


def test_a_step_that_an_interface_has_is_checked_all_the_same():
    asked = [template(("bios", "factory_reset", {"a": 1}, 50))]

    assert len(checks.node_problems(OFFER, asked)) == 1


def test_the_ramdisks_steps_come_behind_the_one_that_boots_it():
    asked = [template(("raid", "write", {}, 150), ("bios", "factory_reset", {}, 140), ("raid", "late", {}, 5))]

    assert [step.step for step in merge.order(OFFER, asked)] == [
        "factory_reset", "deploy", "write", "late"]


def test_without_a_boot_nothing_moves():
    asked = [template(("raid", "write", {}, 150))]

    assert merge.order(Offer((), in_ramdisk=True), asked) == merge.order(Offer(()), asked) != []
