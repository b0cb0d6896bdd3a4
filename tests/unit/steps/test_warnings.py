from __future__ import annotations

from ironic_rules.steps import preview
from ironic_rules.steps.declaration import StepInfo
from ironic_rules.steps.merge import ScheduledStep
from ironic_rules.steps.offers import Offer
from tests.walking import walking

CORE = Offer(tuple(StepInfo("deploy", name, priority, core=True) for name, priority in (
    ("deploy", 100), ("write_image", 80), ("boot_instance", 20))))


def run(name, priority, source="template CUSTOM_A", **args):
    interface, _, step = name.partition(".")
    return ScheduledStep(interface, step, args, priority, source)


def told(*runs, core=True):
    """Return kind and place of each warning about the steps, among the core steps unless these are left out."""
    own = [ScheduledStep.by_default(info) for info in CORE.steps] if core else []
    runs = sorted([*own, *runs], key=lambda step: -step.priority)
    return [(found.kind, found.where) for found in preview.warnings_of_deployment(CORE, runs)]


def settings(**values):
    return [{"name": name, "value": value} for name, value in values.items()]


@walking("step, expected", [
    # The example of document 003.
    (run("raid.create_configuration", 10), [("after-instance", "/deploy_steps/3")]),
    (run("bios.apply_configuration", 1), [("after-instance", "/deploy_steps/3")]),
    (run("firmware.update", 19), [("after-instance", "/deploy_steps/3")]),
    (run("raid.create_configuration", 21), []), (run("bios.pretend", 10), []), (run("power.power_off", 10), []),
    (run("deploy.send_mail", 10), [])])
def test_hardware_is_configured_before_the_instance_starts(step, expected):
    assert told(step) == expected


def test_the_text_names_the_step_its_priority_and_its_source():
    [found] = preview.warnings_of_deployment(Offer(()),
                                             [run("deploy.boot_instance", 20), run("raid.delete_configuration", 10)])

    assert str(found) == ("raid.delete_configuration with priority 10 runs after deploy.boot_instance: it can destroy "
                          "the instance's data, and reboots the machine (template CUSTOM_A)")
    assert found.to_wire() == {"kind": "after-instance", "pointer": "/deploy_steps/1", "text": found.text}


@walking("first, second, warns", [
    (run("bios.apply_configuration", 90, settings=settings(VMX="on", Turbo="on")),
     run("bios.apply_configuration", 89, "template CUSTOM_B", settings=settings(VMX="off")), True),
    (run("bios.apply_configuration", 90, settings=settings(VMX="on")),
     run("bios.apply_configuration", 89, "template CUSTOM_B", settings=settings(VMX="on", Turbo="off")), False),
    (run("bios.apply_configuration", 90, settings=settings(VMX="on")),
     run("bios.apply_configuration", 89, settings=settings(VMX="off")), False),
    (run("management.set_boot_device", 90, device="pxe"),
     run("management.set_boot_device", 89, "template CUSTOM_B", device="disk"), True),
    (run("raid.create_configuration", 90, logical_disks=[{"size_gb": 1}]),
     run("raid.create_configuration", 89, "template CUSTOM_B", logical_disks=[{"size_gb": 2}]), False),
    (run("raid.create_configuration", 90, logical_disks=[{"size_gb": 1}]),
     run("raid.apply_configuration", 89, "template CUSTOM_B", delete_existing=True, raid_config={}), True),
    (run("raid.create_configuration", 90, logical_disks=[{"size_gb": 1, "is_root_volume": True}]),
     run("raid.apply_configuration", 89, "template CUSTOM_B",
         raid_config={"logical_disks": [{"size_gb": 2, "is_root_volume": True}]}), True),
    (run("raid.create_configuration", 90, logical_disks=[{"size_gb": 1, "is_root_volume": True}]),
     run("raid.create_configuration", 89, "template CUSTOM_B", create_root_volume=False,
         logical_disks=[{"size_gb": 2, "is_root_volume": True}]), False)])
def test_two_templates_that_disagree(first, second, warns):
    assert told(first, second) == ([("set-differently", "/deploy_steps/2")] if warns else [])


def test_a_value_that_differs_is_not_shown():
    [found] = preview.warnings_of_deployment(Offer(()), [
        run("bios.apply_configuration", 90, settings=settings(AdminPassword="s3cr3t")),
        run("bios.apply_configuration", 89, "template CUSTOM_B", settings=settings(AdminPassword="0ther"))])

    assert found.text == ("bios.apply_configuration: template CUSTOM_A and template CUSTOM_B set AdminPassword "
                          "differently; the latter runs last")


def test_arguments_of_any_form_do_no_harm():
    odd = [None, 1, "x", [], {}, [1], [{}], [{"name": 1, "value": 1}], {"logical_disks": 1}, {"logical_disks": [1]}]

    for one in odd:
        for other in odd:
            preview.warnings_of_deployment(CORE, [
                run("raid.apply_configuration", 90, raid_config=one, settings=one, delete_existing=one),
                run("raid.apply_configuration", 90, "template CUSTOM_B", raid_config=other, settings=other,
                    delete_existing=other)])


def test_nothing_is_deployed_without_core_steps():
    assert told(run("power.power_on", 50), core=False) == [("no-core-steps", "")]
    assert told(run("deploy.boot_instance", 20, "code"), core=False) == []
    # A node without core steps has none to be left out.
    assert preview.warnings_of_deployment(Offer(()), [run("power.power_on", 50)]) == []


def test_what_takes_effect_at_the_next_boot_needs_one():
    assert told(run("management.set_boot_mode", 10, mode="uefi")) == [("no-reboot", "/deploy_steps/3")]
    assert told(run("management.set_boot_mode", 90, mode="uefi")) == []
    assert told(run("management.set_boot_mode", 10, mode="uefi"), run("power.reboot", 5)) == []


def test_there_is_a_limit():
    steps = [run("raid.create_configuration", 10) for _ in range(200)]

    assert len(told(*steps)) == preview.MAX_WARNINGS
