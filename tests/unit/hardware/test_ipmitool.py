"""The arguments of ipmitool, and the handling of its output: a script of that name is in the search path."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from ironic_rules.exceptions import BMCError, ConfigurationError, InvalidParameterValue
from ironic_rules.hardware.ipmi import tool
from ironic_rules.hardware.ipmi.management import IPMIToolManagement
from ironic_rules.hardware.ipmi.power import IPMIToolPower
from ironic_rules.hardware.ipmi.tool import Pauses
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
        """Return the commands without the options for host and user."""
        return [call["arguments"][call["arguments"].index("-U") + 2:] for call in self.calls()]


@pytest.fixture
def ipmitool(tmp_path, monkeypatch, conf):
    (tmp_path / "ipmitool").write_text(SCRIPT.format(python=sys.executable, folder=str(tmp_path)))
    (tmp_path / "ipmitool").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    conf.set_override("min_command_interval", 0, group="ipmi")
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
        "-I", "lanplus", "-H", "192.0.2.1", "-p", "623", "-L", "ADMINISTRATOR", "-R", "60", "-N", "1",
        "-f", call["file"], "-U", "u; id", "power", "status"]


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


def test_a_failure_is_told_in_one_line_without_secrets(ipmitool, power):
    ipmitool.plan(status=1, err=f"Error: session\nfor {INFO['ipmi_password']} refused")

    with pytest.raises(BMCError) as caught:
        power.get_power_state(make_task({"driver_info": INFO}))

    assert ("192.0.2.1 did not execute the command 'power status': Error: session for ****** refused"
            in str(caught.value))


def test_a_tool_that_hangs_is_ended(ipmitool, power, conf, monkeypatch):
    conf.set_override("command_retry_timeout", 1, group="ipmi")
    monkeypatch.setattr(tool, "GRACE_S", -0.8)
    ipmitool.plan(sleep=30)

    with pytest.raises(BMCError, match="does not answer 'power status' in time"):
        power.get_power_state(make_task({"driver_info": INFO}))


def test_a_missing_tool_is_told(power, conf, monkeypatch, tmp_path):
    conf.set_override("min_command_interval", 0, group="ipmi")
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(ConfigurationError, match="ipmitool is not installed"):
        power.get_power_state(make_task({"driver_info": INFO}))


def test_an_answer_that_says_nothing_is_told(ipmitool, power):
    ipmitool.plan(out="Chassis Power is unknown")

    with pytest.raises(BMCError, match="does not report the power state"):
        power.get_power_state(make_task({"driver_info": INFO}))


def test_an_unknown_power_state_is_refused_before_anything_is_done(ipmitool, power, tmp_path):
    with pytest.raises(InvalidParameterValue, match="Unknown power state 'up'"):
        power.set_power_state(make_task({"driver_info": INFO}), "up")

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
