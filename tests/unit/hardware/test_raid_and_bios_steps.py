"""Invalid arguments of RAID and BIOS steps, the allocation of drives to volumes, and the fake interfaces."""

from __future__ import annotations

import pytest

from ironic_rules.exceptions import InvalidParameterValue, IronicRulesError
from ironic_rules.hardware import fake
from ironic_rules.hardware.redfish import raid
from ironic_rules.hardware.redfish.raid import GIB, Drive
from ironic_rules.models import states
from ironic_rules.steps import execution
from ironic_rules.steps.procedures import DEPLOYMENT
from tests.unit.hardware.test_fake import ALL_FAKE
from tests.unit.inspection.tasks import make_task
from tests.walking import walking

ROOT = {"size_gb": "MAX", "raid_level": "1", "is_root_volume": True}
DATA = {"size_gb": 100, "raid_level": "5"}


@pytest.fixture
def task():
    return make_task({**ALL_FAKE, "power_state": None, "raid_config": {}, "target_raid_config": {}})


def run(hardware, task, name, **args):
    kind, _, step = name.partition(".")
    return execution.call(hardware.interface(task.node, kind), task, step, args, DEPLOYMENT)


def test_volumes_are_remembered_added_and_deleted(hardware, task):
    run(hardware, task, "raid.create_configuration", logical_disks=[ROOT])
    run(hardware, task, "raid.create_configuration", logical_disks=[DATA])
    assert task.node.raid_config == {"logical_disks": [ROOT, DATA]}

    run(hardware, task, "raid.create_configuration", logical_disks=[DATA], delete_configuration=True)
    assert task.node.raid_config == {"logical_disks": [DATA]}

    run(hardware, task, "raid.delete_configuration")
    assert task.node.raid_config == {}


def test_without_disks_the_nodes_own_target_counts(hardware, task):
    task.node.target_raid_config = {"logical_disks": [ROOT, DATA]}

    run(hardware, task, "raid.create_configuration", create_root_volume=False)

    assert task.node.raid_config == {"logical_disks": [DATA]}


def test_a_raid_configuration_is_applied(hardware, task):
    run(hardware, task, "raid.apply_configuration", raid_config={"logical_disks": [ROOT, DATA]},
        create_nonroot_volumes=False, delete_existing=True)

    assert task.node.raid_config == {"logical_disks": [ROOT]}


@walking("disks, text", [
    ([], "^/args/logical_disks: must be a list of one or more"), ("MAX", "^/args/logical_disks: must be a list"),
    (None, "^/args/logical_disks: must be a list"), ([ROOT, 1], "^/args/logical_disks/1: must be an object"),
    ([{**DATA, "size_gb": 0}], "^/args/logical_disks/0/size_gb: "),
    ([{**DATA, "size_gb": True}], "^/args/logical_disks/0/size_gb: "),
    ([{"size_gb": "max", "raid_level": "1"}], "^/args/logical_disks/0/size_gb: "),
    ([{**DATA, "raid_level": "7"}], "^/args/logical_disks/0/raid_level: must be one of JBOD"),
    ([{**DATA, "raid_level": ["1"]}], "^/args/logical_disks/0/raid_level: "),
    ([{**DATA, "is_root_volume": 1}], "^/args/logical_disks/0/is_root_volume: "),
    ([{**DATA, "share_physical_disks": True}],
     "^/args/logical_disks/0/share_physical_disks: must be false, because volumes that share drives are not supported"),
    ([{**DATA, "colour": 1}], "^/args/logical_disks/0/colour: is not one of controller"),
    ([{**DATA, "physical_disks": 5}], "^/args/logical_disks/0/physical_disks: "),
    ([{**DATA, "physical_disks": "ab"}], "^/args/logical_disks/0/physical_disks: "),
    ([{**DATA, "controller": ["x"]}], "^/args/logical_disks/0/controller: "),
    ([{**DATA, "number_of_physical_disks": True}], "^/args/logical_disks/0/number_of_physical_disks: "),
    ([{**DATA, "disk_type": "tape"}], "^/args/logical_disks/0/disk_type: must be one of hdd, ssd"),
    ([ROOT, ROOT], "only one volume can be the root volume"),
])
def test_bad_logical_disks_are_refused_with_their_place(hardware, task, disks, text):
    with pytest.raises(InvalidParameterValue, match=text):
        run(hardware, task, "raid.create_configuration", logical_disks=disks)


@pytest.mark.parametrize("name", ["delete_configuration", "delete_existing", "create_root_volume",
                                  "create_nonroot_volumes"])
def test_a_text_is_no_truth(hardware, task, name):
    task.node.raid_config = {"logical_disks": [ROOT]}

    with pytest.raises(InvalidParameterValue, match=f"^/args/{name}: must be true or false"):
        run(hardware, task, "raid.create_configuration", logical_disks=[DATA], **{name: "false"})
    assert task.node.raid_config == {"logical_disks": [ROOT]}


def test_a_target_that_is_wrong_is_refused(hardware, task):
    task.node.target_raid_config = {"logical_disks": [{**DATA, "raid_level": "7"}]}

    with pytest.raises(InvalidParameterValue, match=r"^/args/logical_disks/0/raid_level: "):
        run(hardware, task, "raid.create_configuration")


def test_no_volume_left_to_make_is_refused(hardware, task):
    with pytest.raises(InvalidParameterValue, match="no volume is left"):
        run(hardware, task, "raid.create_configuration", logical_disks=[DATA], create_nonroot_volumes=False)


def test_a_raid_configuration_must_be_an_object(hardware, task):
    with pytest.raises(InvalidParameterValue, match=r"^/args/raid_config: must be an object"):
        run(hardware, task, "raid.apply_configuration", raid_config=[ROOT])


def test_settings_are_remembered_and_reset(hardware, task):
    run(hardware, task, "bios.apply_configuration", settings=[{"name": "A", "value": "on"}])
    run(hardware, task, "bios.apply_configuration", settings=[{"name": "B", "value": 1}])
    assert task.node.driver_internal_info["fake_bios_settings"] == {"A": "on", "B": 1}

    run(hardware, task, "bios.factory_reset")
    assert task.node.driver_internal_info == {}


@pytest.mark.parametrize(("settings", "text"), [
    ([], "^/args/settings: must be a list"), ({"A": 1}, "^/args/settings: must be a list"),
    ([{"name": "A"}], "^/args/settings/0/value: is required"),
    ([{"name": "A", "value": 1}, {"name": "A", "value": 2}], "^/args/settings/1/name: "),
    ([{"name": "", "value": 1}], "^/args/settings/0/name: "), ([{"name": 1, "value": 1}], "^/args/settings/0/name: "),
    ([{"name": "A", "value": [1]}], "^/args/settings/0/value: "),
])
def test_bad_settings_are_refused_with_their_place(hardware, task, settings, text):
    with pytest.raises(InvalidParameterValue, match=text):
        run(hardware, task, "bios.apply_configuration", settings=settings)


def test_the_machine_is_switched_by_steps(hardware, task):
    seen = []
    for step in ("power_on", "power_off", "reboot"):
        run(hardware, task, f"power.{step}")
        seen.append(task.node.power_state)

    assert seen == ["power on", "power off", "power on"]


def test_the_boot_device_is_set_by_a_step(hardware, task):
    run(hardware, task, "management.set_boot_device", device="cdrom", persistent=True)

    assert hardware.interface(task.node, "management").get_boot_device(task) == {
        "boot_device": "cdrom", "persistent": True}


@pytest.mark.parametrize("kind", ["vendor", "power", "management", "firmware", "deploy", "bios", "raid"])
def test_every_fake_interface_can_pretend(hardware, task, monkeypatch, kind):
    slept = []
    monkeypatch.setattr(fake.time, "sleep", slept.append)

    assert run(hardware, task, f"{kind}.pretend", seconds=1.5) is None
    assert run(hardware, task, f"{kind}.pretend", asynchronous=True) == states.DEPLOYWAIT
    with pytest.raises(IronicRulesError, match=f"{kind}.pretend fails as requested: no\\\\n"):
        run(hardware, task, f"{kind}.pretend", error="no\n")
    assert slept == [1.5, 0, 0]


@pytest.mark.parametrize("args", [{"seconds": -1}, {"seconds": 3601}, {"seconds": "1"}, {"seconds": True},
                                  {"asynchronous": 1}])
def test_pretending_has_bounds(hardware, task, args):
    with pytest.raises(InvalidParameterValue, match=r"^/args/"):
        run(hardware, task, "deploy.pretend", **args)


@pytest.mark.parametrize(("name", "args"), [
    ("firmware.update", {"settings": [{"component": "bmc"}]}), ("firmware.update", {"settings": []}),
    ("vendor.send_raw", {"raw_bytes": 1}), ("management.set_boot_device", {"device": "coffee"}),
    ("management.set_boot_device", {"device": "pxe", "persistent": "false"}),
])
def test_other_fake_steps_check_their_arguments(hardware, task, name, args):
    with pytest.raises(InvalidParameterValue, match=r"^/args/"):
        run(hardware, task, name, **args)


def test_other_fake_steps_take_good_arguments(hardware, task):
    assert run(hardware, task, "firmware.update", settings=[{"component": "bmc", "url": "http://x/"}]) is None
    assert run(hardware, task, "vendor.send_raw", raw_bytes="0x00") is None


def drives(*sizes, controller="c", used=()):
    return [Drive(controller, str(number), f"/{controller}/{number}", size * GIB, number in used)
            for number, size in enumerate(sizes)]


def disk(level, size="MAX", **more):
    return {"raid_level": level, "size_gb": size, **more}


@walking("level, sizes, count, room", [
    ("0", [10, 10, 10], 3, 30), ("1", [10, 12, 10], 2, 10), ("5", [10] * 4, 4, 30), ("6", [10] * 5, 5, 30),
    ("1+0", [10] * 5, 4, 20), ("5+0", [10] * 7, 6, 40), ("6+0", [10] * 8, 8, 40),
])
def test_max_takes_all_drives_that_the_level_can_use(level, sizes, count, room):
    (volume,) = raid.lay_out([disk(level)], drives(*sizes))

    assert (len(volume.drives), volume.capacity_bytes) == (count, room * GIB)


def test_a_size_takes_as_few_drives_as_hold_it_and_the_next_volume_others():
    first, second = raid.lay_out([disk("0", 15), disk("1", 5, volume_name="v")], drives(10, 10, 10, 10))

    assert ([drive.name for drive in first.drives], [drive.name for drive in second.drives]) == (["0", "1"], ["2", "3"])
    assert (first.capacity_bytes, second.name) == (15 * GIB, "v")


def test_drives_in_use_are_left_alone_unless_they_are_named():
    (free,) = raid.lay_out([disk("0")], drives(10, 10, 10, used=(0,)))
    (named,) = raid.lay_out([disk("1", physical_disks=["0", "2"])], drives(10, 10, 10, used=(0,)))

    assert [drive.name for drive in free.drives] == ["1", "2"]
    assert [drive.name for drive in named.drives] == ["0", "2"]


def test_the_controller_can_be_named():
    (volume,) = raid.lay_out([disk("0", controller="d")], drives(10) + drives(5, controller="d"))

    assert (volume.controller, volume.capacity_bytes) == ("d", 5 * GIB)


def test_a_volume_never_spans_controllers():
    with pytest.raises(InvalidParameterValue, match="logical disk 0: there are not enough drives for MAX GB in RAID"):
        raid.lay_out([disk("1")], drives(10) + drives(10, controller="d"))


@walking("asked, text", [
    (disk("1", 50), "not enough drives for 50 GB"), (disk("5", physical_disks=["0", "1"]), "not enough drives"),
    (disk("0", physical_disks=["0", "9"]), "not enough drives"),
    (disk("0", number_of_physical_disks=9), "not enough drives"),
    (disk("0", number_of_physical_disks="2"), "not enough drives"), (disk("JBOD"), "no RAID level JBOD"),
    (disk("0", controller="e\n"), "at the controller e\\\\n"),
])
def test_what_the_drives_do_not_give_is_refused(asked, text):
    with pytest.raises(InvalidParameterValue, match=text):
        raid.lay_out([asked], drives(10, 10, 10))


@walking("asked", [disk("1", number_of_physical_disks=3), disk("1", physical_disks=["0", "1", "2"])])
def test_a_mirror_of_three_drives_holds_what_one_does(asked):
    (volume,) = raid.lay_out([asked], drives(10, 10, 10))

    assert (len(volume.drives), volume.capacity_bytes) == (3, 10 * GIB)


def test_who_names_drives_chooses_first_and_max_takes_what_is_left():
    everything, sized, named = raid.lay_out(
        [disk("0"), disk("0", 5), disk("1", physical_disks=["0", "1"])], drives(10, 10, 10, 10, 10))

    assert [[drive.name for drive in volume.drives] for volume in (everything, sized, named)] == [
        ["3", "4"], ["2"], ["0", "1"]]


def test_a_drive_is_named_once():
    with pytest.raises(InvalidParameterValue, match="logical disk 1: another logical disk names one of its drives"):
        raid.lay_out([disk("0", physical_disks=["0"]), disk("0", physical_disks=["1", "0"])], drives(10, 10))


def test_the_kind_of_the_drives_counts():
    found = [Drive("c", "0", "/0", GIB), Drive("c", "1", "/1", GIB, disk_type="hdd", interface_type="sas"),
             Drive("c", "2", "/2", GIB, disk_type="ssd", interface_type="sas")]

    def chosen(**more):
        return [drive.name for drive in raid.lay_out([disk("0", **more)], found)[0].drives]

    assert (chosen(), chosen(disk_type="ssd"), chosen(interface_type="sas")) == (["0", "1", "2"], ["2"], ["1", "2"])
    with pytest.raises(InvalidParameterValue, match="not enough drives"):
        chosen(disk_type="ssd", interface_type="sata")


def test_volumes_do_not_share_drives():
    with pytest.raises(InvalidParameterValue, match="logical disk 0: volumes that share drives"):
        raid.lay_out([disk("0", share_physical_disks=True)], drives(10))
