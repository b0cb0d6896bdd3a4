"""The arguments of ipmitool, and the handling of its output: a script of that name is in the search path."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from uuid import UUID

import pytest

from ironic_rules.exceptions import BMCError, ConfigurationError, InvalidParameterValue
from ironic_rules.hardware.ipmi import tool
from ironic_rules.hardware.ipmi.interfaces import IPMIToolManagement, IPMIToolPower
from ironic_rules.hardware.ipmi.tool import Pauses, Suites
from ironic_rules.models import machine_ids
from tests.unit.inspection.tasks import make_task

INFO = {"ipmi_address": "192.0.2.1", "ipmi_username": "u; id", "ipmi_password": "p4$s`word"}
SCRIPT = """\
#!{python} -IS
import json, os, pathlib, sys, time
folder = pathlib.Path({folder!r})
arguments = sys.argv[1:]
file = arguments[arguments.index("-f") + 1]
call = {{"arguments": arguments, "password": open(file).read(), "mode": os.stat(file).st_mode & 0o777, "file": file,
        "kg": os.environb.get(b"IPMI_KGKEY", b"").hex()}}
with open(folder / "calls", "a") as calls:
    calls.write(json.dumps(call) + chr(10))
plan = json.loads((folder / "plan").read_text())
if "runs" in plan:
    number = len((folder / "calls").read_text().splitlines()) - 1
    plan = plan["runs"][min(number, len(plan["runs"]) - 1)]
time.sleep(plan.get("sleep", 0))
print(plan.get("out", ""))
print(plan.get("err", ""), file=sys.stderr)
sys.exit(plan.get("status", 0))
"""


class Tool:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def plan(self, **plan: object) -> None:
        (self._folder / "plan").write_text(json.dumps(plan))

    def calls(self) -> list[dict]:
        return [json.loads(line) for line in (self._folder / "calls").read_text().splitlines()]

    def commands(self) -> list[list[str]]:
        """Return the commands without the options for host, user and cipher suite."""
        return [call["arguments"][call["arguments"].index("-C") + 2:] for call in self.calls()]

    def runs(self) -> list[tuple[str, ...]]:
        """Return the options -C, -R and -N of each run; an empty string for none."""
        found = [call["arguments"] for call in self.calls()]
        return [tuple(one[one.index(option) + 1] if option in one else "" for option in ("-C", "-R", "-N"))
                for one in found]


@pytest.fixture
def ipmitool(tmp_path, monkeypatch, conf):
    (tmp_path / "ipmitool").write_text(SCRIPT.format(python=sys.executable, folder=str(tmp_path)))
    (tmp_path / "ipmitool").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    conf.set_override("min_command_interval", 0, group="ipmi")
    monkeypatch.setattr(tool, "_PAUSES", Pauses())
    monkeypatch.setattr(tool, "_SUITES", Suites())
    found = Tool(tmp_path)
    found.plan()
    return found


@pytest.fixture
def power(conf):
    return IPMIToolPower(conf, lambda node, kind: None)


@pytest.fixture
def management(conf):
    return IPMIToolManagement(conf, lambda node, kind: None)


def test_the_password_is_in_a_private_file_that_is_gone_afterwards(ipmitool, power):
    ipmitool.plan(out="Chassis Power is on")

    assert power.get_power_state(make_task({"driver_info": INFO})) == "power on"

    (call,) = ipmitool.calls()
    assert (call["password"], call["mode"]) == (INFO["ipmi_password"], 0o600)
    assert not os.path.exists(call["file"])
    assert not any(INFO["ipmi_password"] in text for text in call["arguments"])
    assert call["arguments"] == [
        "-I", "lanplus", "-H", "192.0.2.1", "-p", "623", "-L", "ADMINISTRATOR", "-R", "1", "-N", "2",
        "-f", call["file"], "-U", "u; id", "-C", "17", "power", "status"]


@pytest.mark.parametrize("password", [None, ""])
def test_without_a_password_ipmitool_asks_for_none(ipmitool, power, password):
    ipmitool.plan(out="Chassis Power is on")

    power.get_power_state(make_task({"driver_info": {**INFO, "ipmi_password": password}}))

    # With an empty file ipmitool reads no password, and prompts at the terminal.
    assert ipmitool.calls()[0]["password"] == "\0"


@pytest.mark.parametrize(("key", "where"), [("01" * 20, "environment"), ("01" * 19 + "00", "arguments")])
def test_the_kg_key_stays_out_of_the_list_of_processes_where_that_is_possible(ipmitool, power, key, where):
    ipmitool.plan(out="Chassis Power is off")

    power.get_power_state(make_task({"driver_info": {**INFO, "ipmi_hex_kg_key": key, "ipmi_cipher_suite": "17"}}))

    (call,) = ipmitool.calls()
    assert call["kg"] == (key if where == "environment" else "")
    assert (key in call["arguments"]) == (where == "arguments")
    assert call["arguments"][call["arguments"].index("-C") + 1] == "17"


def test_protocol_1_5(ipmitool, power):
    ipmitool.plan(out="Chassis Power is off")

    power.get_power_state(make_task({"driver_info": {**INFO, "ipmi_protocol_version": "1.5"}}))

    assert ipmitool.calls()[0]["arguments"][:2] == ["-I", "lan"]
    assert ipmitool.runs() == [("", "1", "2")]


@pytest.mark.parametrize(("info", "options"), [
    ({"ipmi_bridging": "single", "ipmi_target_channel": "7", "ipmi_target_address": "0x72"},
     ["-b", "7", "-t", "0x72"]),
    ({"ipmi_bridging": "dual", "ipmi_target_channel": 7, "ipmi_target_address": "0x72", "ipmi_transit_channel": 0,
      "ipmi_transit_address": "0x82", "ipmi_local_address": "0x20"},
     ["-m", "0x20", "-B", "0", "-T", "0x82", "-b", "7", "-t", "0x72"]),
])
def test_every_command_is_for_the_controller_behind_the_bridge(ipmitool, power, management, info, options):
    ipmitool.plan(out="Chassis Power is on")
    task = make_task({"driver_info": {**INFO, **info}})

    power.set_power_state(task, "power on")
    management.set_boot_device(task, "pxe")
    management.machine_ids(task)
    management.inject_nmi(task)

    assert len(ipmitool.calls()) == 5
    for call in ipmitool.calls():
        begin = call["arguments"].index(options[0])
        assert call["arguments"][begin:begin + len(options)] == options


def test_a_bridge_that_is_incomplete_sends_nothing(ipmitool, power, management):
    task = make_task({"driver_info": {**INFO, "ipmi_bridging": "single", "ipmi_target_channel": 7}})

    for act in (lambda: power.validate(task), lambda: power.set_power_state(task, "power on"),
                lambda: power.get_power_state(task), lambda: management.set_boot_device(task, "pxe"),
                lambda: management.inject_nmi(task)):
        with pytest.raises(InvalidParameterValue, match="ipmi_target_address is missing"):
            act()

    with pytest.raises(FileNotFoundError):
        ipmitool.calls()


def test_a_persistent_boot_device_is_set_again_before_each_boot_where_the_node_wants_it(ipmitool, conf, management):
    power = IPMIToolPower(conf, lambda node, kind: management)
    task = make_task({"driver_info": {**INFO, "ipmi_force_boot_device": "true", "ipmi_disable_boot_timeout": False}})
    ipmitool.plan(out="Chassis Power is on")
    for change in (lambda: management.set_boot_device(task, "disk", persistent=True),
                   lambda: power.set_power_state(task, "rebooting"), lambda: power.set_power_state(task, "rebooting"),
                   lambda: management.set_boot_device(task, "pxe"),
                   lambda: power.set_power_state(task, "rebooting"), lambda: power.set_power_state(task, "rebooting")):
        change()
    task.node.driver_info.pop("ipmi_force_boot_device")
    management.set_boot_device(task, "disk", persistent=True)
    power.set_power_state(task, "rebooting")

    told = [" ".join(command[1:]) for command in ipmitool.commands() if command[:2] != ["power", "status"]]
    disk = "bootdev disk options=efiboot"
    assert told == [disk, disk, "cycle", disk, "cycle", "bootdev pxe options=efiboot", "cycle", disk, "cycle",
                    "bootdev disk options=persistent,efiboot", "cycle"]


def test_a_failure_is_told_in_one_line_without_secrets(ipmitool, power):
    ipmitool.plan(status=1, err=f"Error: session\nfor {INFO['ipmi_password']} refused")

    with pytest.raises(BMCError) as caught:
        power.get_power_state(make_task({"driver_info": INFO}))

    assert ("192.0.2.1 did not execute the command 'power status': Error: session for ****** refused"
            in str(caught.value))


def test_a_tool_that_hangs_is_ended(ipmitool, power, conf):
    conf.set_override("command_retry_timeout", 1, group="ipmi")
    ipmitool.plan(sleep=30)

    with pytest.raises(BMCError, match=r"did not execute the command 'power status' within 1 seconds "
                                       r"\(\[ipmi\]command_retry_timeout\), with cipher suite 17 or 3 "
                                       r"\(\[ipmi\]cipher_suite_versions\)"):
        power.get_power_state(make_task({"driver_info": INFO}))


ON = {"out": "Chassis Power is on"}
SILENT = {"status": 1, "err": "Error: Unable to establish IPMI v2 / RMCP+ session"}
LOST = {"status": 1, "err": "> Error: no response from RAKP 1 message\nSet Session Privilege Level to ADMINISTRATOR "
                            "failed\nError: Unable to establish IPMI v2 / RMCP+ session"}
REFUSED = {"status": 1, "err": "Error in open session response message : invalid authentication algorithm\n\n"
                               "Error: Unable to establish IPMI v2 / RMCP+ session"}
LIMITED = {"status": 1, "err": "Error in open session response message : no matching cipher suite"}
BUSY = {"status": 1, "err": "Get Chassis Power Status failed: Node busy"}


@pytest.mark.parametrize(("runs", "told"), [
    ([REFUSED, ON], [("17", "1", "2"), ("3", "1", "2")]),
    ([LOST, LIMITED, LOST, ON], [("17", "1", "2"), ("3", "1", "2"), ("17", "2", "1"), ("17", "4", "1")]),
    ([SILENT, SILENT, LOST, BUSY, ON],
     [("17", "1", "2"), ("3", "1", "2"), ("17", "2", "1"), ("3", "2", "1"), ("17", "4", "1")]),
])
def test_a_run_that_has_no_answer_is_repeated_and_the_cipher_suites_take_turns(ipmitool, power, runs, told):
    ipmitool.plan(runs=runs)

    assert power.get_power_state(make_task({"driver_info": INFO})) == "power on"
    assert ipmitool.runs() == told
    power.get_power_state(make_task({"driver_info": INFO}))
    assert ipmitool.runs()[-1] == (told[-1][0], "1", "2")


def test_the_cipher_suite_is_remembered_for_its_bmc_only(ipmitool, power):
    ipmitool.plan(runs=[REFUSED, ON])
    power.get_power_state(make_task({"driver_info": INFO}))

    power.get_power_state(make_task({"driver_info": {**INFO, "ipmi_address": "192.0.2.2"}}))
    power.get_power_state(make_task({"driver_info": {**INFO, "ipmi_cipher_suite": 17}}))

    assert [suite for suite, _, _ in ipmitool.runs()] == ["17", "3", "17", "17"]


def test_cipher_suites_are_tried_from_the_last_as_in_ironic_and_without_any_ipmitool_chooses(ipmitool, power, conf):
    ipmitool.plan(runs=[REFUSED, REFUSED, ON])
    conf.set_override("cipher_suite_versions", [1, 2, 8], group="ipmi")
    power.get_power_state(make_task({"driver_info": INFO}))
    conf.set_override("cipher_suite_versions", [], group="ipmi")
    power.get_power_state(make_task({"driver_info": INFO}))

    assert [suite for suite, _, _ in ipmitool.runs()] == ["8", "2", "1", ""]


@pytest.mark.parametrize(("info", "text"), [
    ({}, r"192.0.2.1 does not accept cipher suite 17 or 3 \(\[ipmi\]cipher_suite_versions\): Error in open session"),
    ({"ipmi_cipher_suite": "8"}, r"does not accept cipher suite 8 \(driver_info/ipmi_cipher_suite\)"),
])
def test_a_bmc_that_accepts_no_cipher_suite_is_told_with_the_option(ipmitool, power, info, text):
    ipmitool.plan(**REFUSED)

    with pytest.raises(BMCError, match=text):
        power.get_power_state(make_task({"driver_info": {**INFO, **info}}))


@pytest.mark.parametrize("error", [
    "RAKP 2 message indicates an error : unauthorized name\nError: Unable to establish IPMI v2 / RMCP+ session",
    "RAKP 2 HMAC is invalid\nError: Unable to establish IPMI v2 / RMCP+ session",
    "Address lookup for nosuch failed\nCould not open socket!\nError: Unable to establish IPMI v2 / RMCP+ session",
    "Set Chassis Power Control to Up/On failed: Command not supported in present state\nClose Session command failed",
    "Unable to send RAW command (channel=0x0 netfn=0x0 lun=0x0 cmd=0x8 rsp=0xc1): Invalid command",
])
def test_an_answer_of_the_bmc_is_not_repeated(ipmitool, power, error):
    ipmitool.plan(status=1, err=error)

    with pytest.raises(BMCError, match="did not execute the command 'power status': "):
        power.get_power_state(make_task({"driver_info": INFO}))

    assert len(ipmitool.calls()) == 1


@pytest.mark.parametrize("error", [
    "Unable to send RAW command (channel=0x0 netfn=0x0 lun=0x0 cmd=0x8)",
    "Unable to set Chassis Power Control to Up/On", "Error setting Chassis Boot Parameter 5",
    "Get Device ID command failed", "Get Chassis Status failed: Timeout",
])
def test_a_missing_reply_is_repeated(ipmitool, power, error):
    ipmitool.plan(runs=[{"status": 1, "err": error}, ON])

    assert power.get_power_state(make_task({"driver_info": INFO})) == "power on"


def test_runs_keep_the_interval_between_commands_and_the_time_of_one(ipmitool, power, conf, monkeypatch):
    conf.set_override("min_command_interval", 20, group="ipmi")
    slept: list[float] = []
    monkeypatch.setattr(tool, "time", SimpleNamespace(
        monotonic=lambda: 1000.0 + sum(slept), sleep=lambda seconds: slept.append(seconds)))
    ipmitool.plan(**SILENT)

    with pytest.raises(BMCError, match=r"within 60 seconds .*, with cipher suite 17 or 3"):
        power.get_power_state(make_task({"driver_info": INFO}))

    assert slept == [0.0, 20.0, 20.0]


def test_a_missing_tool_is_told(power, conf, monkeypatch, tmp_path):
    conf.set_override("min_command_interval", 0, group="ipmi")
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(ConfigurationError, match="ipmitool is not installed"):
        power.get_power_state(make_task({"driver_info": INFO}))


def test_an_answer_that_says_nothing_is_told(ipmitool, power):
    ipmitool.plan(out="Chassis Power is unknown")

    with pytest.raises(BMCError, match="does not report the power state"):
        power.get_power_state(make_task({"driver_info": INFO}))


@pytest.mark.parametrize(("target", "text"), [
    ("up", "Unknown power state 'up'"), ("power off", "has disable_power_off; reboot it instead"),
    ("soft power off", "has disable_power_off; reboot it instead"),
    ("soft rebooting", "IPMI has no graceful reboot that keeps the power on"),
])
def test_a_power_state_is_refused_before_anything_is_done(ipmitool, power, tmp_path, target, text):
    with pytest.raises(InvalidParameterValue, match=text):
        power.set_power_state(make_task({"driver_info": INFO, "disable_power_off": True}), target)

    assert not (tmp_path / "calls").exists()


@pytest.mark.parametrize(("device", "persistent", "capabilities", "options"), [
    ("pxe", False, None, ["options=efiboot"]), ("disk", True, "a:b,boot_mode:uefi", ["options=persistent,efiboot"]),
    ("cdrom", False, "boot_mode:bios", []), ("bios", True, "boot_mode:bios,c:d", ["options=persistent"]),
    ("safe", False, 7, ["options=efiboot"]),
])
def test_boot_devices(ipmitool, management, device, persistent, capabilities, options):
    task = make_task({"driver_info": INFO, "properties": {"capabilities": capabilities}})

    management.set_boot_device(task, device, persistent)

    assert ipmitool.commands() == [
        ["raw", "0x00", "0x08", "0x03", "0x08"], ["chassis", "bootdev", device, *options]]


@pytest.mark.parametrize(("node", "default", "options"), [
    ({"instance_info": {"capabilities": {"boot_mode": "bios"}}}, "uefi", []),
    ({"instance_info": {"capabilities": '{"boot_mode": "uefi"}'}, "properties": {"capabilities": "boot_mode:bios"}},
     "bios", ["options=efiboot"]),
    ({"instance_info": {"deploy_boot_mode": "bios"}}, "uefi", []),
    ({"properties": {"capabilities": {"boot_mode": "bios"}}}, "uefi", []),
    ({"boot_mode": "bios"}, "uefi", []), ({"boot_mode": "uefi"}, "bios", ["options=efiboot"]), ({}, "bios", [])])
def test_the_boot_mode_is_that_of_the_instance_or_of_the_node_or_the_default(ipmitool, management, conf, node, default,
                                                                            options):
    conf.set_override("default_boot_mode", default, group="deploy")

    management.set_boot_device(make_task({"driver_info": INFO, **node}), "disk")

    assert ipmitool.commands()[-1] == ["chassis", "bootdev", "disk", *options]


def test_the_timeout_of_the_boot_device_may_stay(ipmitool, management):
    management.set_boot_device(make_task({"driver_info": {**INFO, "ipmi_disable_boot_timeout": False}}), "pxe")

    assert ipmitool.commands() == [["chassis", "bootdev", "pxe", "options=efiboot"]]


def test_an_unknown_boot_device_is_refused(ipmitool, management):
    with pytest.raises(InvalidParameterValue, match="Unknown boot device 'tape'"):
        management.set_boot_device(make_task({"driver_info": INFO}), "tape")


@pytest.mark.parametrize(("out", "device", "persistent"), [
    (" Boot Flags :\n   - Options apply to only next boot\n   - Boot Device Selector : Force PXE\n", "pxe", False),
    ("   - Options apply to all future boots\n   - Boot Device Selector : Force Boot from default Hard-Drive\n", "disk",
     True),
    ("   - Boot Device Selector : Force Boot from CD/DVD\n", "cdrom", False),
    ("   - Boot Device Selector : No override\n", None, None), ("", None, None),
])
def test_the_boot_device_is_read(ipmitool, management, out, device, persistent):
    ipmitool.plan(out=out)

    assert management.get_boot_device(make_task({"driver_info": INFO})) == {
        "boot_device": device, "persistent": persistent}


SYSTEM = UUID("4c4c4544-0034-4810-8054-b4c04f585833")
FRU = " Board Serial          : B-1\n Product Serial        : 4HT81X3 \n"


@pytest.mark.parametrize(("octets", "fru", "serial"), [
    (SYSTEM.bytes, FRU, "4HT81X3"), (SYSTEM.bytes_le, FRU, "4HT81X3"), (SYSTEM.bytes[::-1], FRU, "4HT81X3"),
    (SYSTEM.bytes, " Board Serial          : B-1\n", None), (SYSTEM.bytes, "", None),
])
def test_machines_are_known_by_what_the_bmc_tells_in_any_order_of_octets(ipmitool, management, octets, fru, serial):
    # The status is that of the last command that failed.
    ipmitool.plan(out=f" {octets.hex(' ')}\n{fru}", status=1)

    assert management.machine_ids(make_task({"driver_info": INFO})) >= machine_ids.of(serial, str(SYSTEM))
    (command,) = ipmitool.commands()
    assert command[0] == "exec"


def test_a_bmc_that_knows_neither_is_told(ipmitool, management):
    ipmitool.plan(err="Unable to send RAW command (channel=0x0 netfn=0x6 lun=0x0 cmd=0x37 rsp=0xc1): Invalid command",
                  status=1)

    with pytest.raises(BMCError, match=r"did not execute the command 'raw 0x06 0x37; fru print 0': Unable to send"):
        management.machine_ids(make_task({"driver_info": INFO}))


def test_commands_to_one_bmc_come_one_after_the_other():
    pauses = Pauses()

    waits = [pauses.reserve(("a", 623), 5) for _ in range(3)]

    assert waits[0] == 0
    assert [round(wait) for wait in waits[1:]] == [5, 10]
    assert pauses.reserve(("b", 623), 5) == 0


def test_validation_asks_nobody(ipmitool, power, tmp_path):
    power.validate(make_task({"driver_info": INFO}))
    with pytest.raises(InvalidParameterValue, match="ipmi_address is missing"):
        power.validate(make_task())

    assert not (tmp_path / "calls").exists()
