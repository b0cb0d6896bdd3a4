"""Steps that run, and their order (document 003)."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

from ironic_rules.models.steps import STEP_INTERFACES, Step
from ironic_rules.steps import merge
from ironic_rules.steps.declaration import StepInfo
from ironic_rules.steps.merge import ScheduledStep
from tests.walking import walking

CORE = [StepInfo("deploy", name, priority, core=True) for name, priority in (
    ("deploy", 100), ("write_image", 80), ("boot_instance", 20))]
RAID = StepInfo("raid", "create_configuration", 0)
BIOS = StepInfo("bios", "apply_configuration", 0)
DISK = {"size_gb": "MAX", "raid_level": "1", "is_root_volume": True}


def template(name, *own):
    return SimpleNamespace(name=name, steps=[Step(*step) for step in own])


def raid(priority, level="1"):
    return "raid", "create_configuration", {"logical_disks": [{**DISK, "raid_level": level}]}, priority


def bios(priority, value="on"):
    return "bios", "apply_configuration", {"settings": [{"name": "VMX", "value": value}]}, priority


def names(found):
    return [step.name for step in found]


def test_the_documents_example_runs_both_templates_after_the_core_steps():
    found = merge.merge([*CORE, RAID, BIOS], [
        template("CUSTOM_BM_CONFIG_RAID_DISK_MIRROR", raid(10)),
        template("CUSTOM_BM_CONFIG_BIOS_VMX_ON", bios(10))], [])

    assert [(step.name, step.source) for step in found] == [
        ("deploy.deploy", "code"), ("deploy.write_image", "code"), ("deploy.boot_instance", "code"),
        ("bios.apply_configuration", "template CUSTOM_BM_CONFIG_BIOS_VMX_ON"),
        ("raid.create_configuration", "template CUSTOM_BM_CONFIG_RAID_DISK_MIRROR")]
    assert found[-1].as_dict() == {"interface": "raid", "step": "create_configuration", "priority": 10,
                                   "args": {"logical_disks": [DISK]}}


def test_a_default_of_priority_0_does_not_run():
    assert names(merge.merge([RAID, *CORE], [], [])) == ["deploy.deploy", "deploy.write_image", "deploy.boot_instance"]


def test_a_template_overrides_arguments_and_priority_of_the_default():
    default = StepInfo("raid", "create_configuration", 50, configured=True)

    found = merge.merge([default, *CORE], [template("CUSTOM_A", raid(90))], [])

    assert [(step.name, step.priority) for step in found][:2] == [
        ("deploy.deploy", 100), ("raid.create_configuration", 90)]
    assert (found[1].source, found[1].args, len(found)) == ("template CUSTOM_A", raid(90)[2], 4)


def test_a_template_with_priority_0_leaves_a_default_out():
    default = StepInfo("raid", "create_configuration", 50)

    assert merge.merge([default], [template("CUSTOM_A", raid(0))], []) == []


def test_a_template_with_priority_0_does_not_leave_out_what_another_one_asks_for():
    found = merge.merge([RAID], [template("CUSTOM_A", raid(0)), template("CUSTOM_B", raid(5))], [])

    assert [step.source for step in found] == ["template CUSTOM_B"]


def test_a_step_may_come_several_times_in_one_template_and_in_several():
    found = merge.merge([RAID], [template("CUSTOM_B", raid(5, "0"), raid(5, "5")), template("CUSTOM_A", raid(5, "6"))],
                        [])

    assert [step.args["logical_disks"][0]["raid_level"] for step in found] == ["6", "0", "5"]


def test_of_steps_with_one_priority_the_interface_decides():
    shuffled = [StepInfo(interface, "x", 7) for interface in sorted(STEP_INTERFACES)]

    assert [step.interface for step in merge.merge(shuffled, [], [])] == list(STEP_INTERFACES)


@walking("order", list(itertools.permutations(range(3))))
def test_the_order_of_the_templates_given_does_not_matter(order):
    templates = [template(f"CUSTOM_{number}", raid(5, "1"), bios(6), raid(5, "0")) for number in range(3)]

    assert merge.merge([RAID, *CORE], [templates[place] for place in order], []) == merge.merge(
        [RAID, *CORE], templates, [])


@walking("priority", [1, 81, 10_000])
def test_a_core_step_keeps_its_place(priority):
    asked = template("CUSTOM_A", ("deploy", "write_image", {"x": 1}, priority))

    assert merge.merge(CORE, [asked], []) == [ScheduledStep.by_default(info) for info in CORE]


def test_a_core_step_can_be_left_out():
    asked = template("CUSTOM_A", ("deploy", "write_image", {}, 0))

    assert names(merge.merge(CORE, [asked], [])) == ["deploy.deploy", "deploy.boot_instance"]


def test_which_steps_are_core_is_told_by_who_offers_them():
    offered = [StepInfo("deploy", "own", 50, core=True), StepInfo("deploy", "deploy", 100)]
    asked = template("CUSTOM_A", ("deploy", "own", {}, 99), ("deploy", "deploy", {}, 1))

    found = merge.merge(offered, [asked], [])

    assert [(step.step, step.priority) for step in found] == [("own", 50), ("deploy", 1)]


def test_the_request_wins_over_templates_step_by_step():
    asked = merge.requested_steps([
        {"interface": "raid", "step": "create_configuration", "args": {"mine": 1}, "priority": 30}])

    found = merge.merge([RAID, BIOS], [template("CUSTOM_A", raid(90), bios(40)), template("CUSTOM_B", raid(91))], asked)

    assert [(step.name, step.source) for step in found] == [
        ("bios.apply_configuration", "template CUSTOM_A"), ("raid.create_configuration", "request")]
    assert found[1].args == {"mine": 1}


def test_the_request_can_leave_out_what_a_template_asks_for():
    asked = merge.requested_steps([{"interface": "raid", "step": "create_configuration", "args": {}, "priority": "0"}])

    assert merge.merge([RAID], [template("CUSTOM_A", raid(90))], asked) == []


def test_a_request_may_repeat_a_step():
    asked = merge.requested_steps([
        {"interface": "raid", "step": "create_configuration", "args": {"n": number}, "priority": 5}
        for number in range(3)])

    assert [step.args["n"] for step in merge.merge([RAID], [], asked)] == [0, 1, 2]


def test_steps_of_unknown_interfaces_run_last_of_their_priority():
    found = merge.merge([StepInfo("network", "x", 5), StepInfo("raid", "x", 5)], [], [])

    assert names(found) == ["raid.x", "network.x"]
