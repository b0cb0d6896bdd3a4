"""Machines with IPMI, from OpenIPMI's simulator, with the real ipmitool."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from oslo_config import cfg

from ironic_rules.conf import hardware
from ironic_rules.hardware.ipmi.interfaces import IPMIToolPower
from ironic_rules.models import machine_ids
from tests.functional.hardware.bmcs import PASSWORD, USER
from tests.functional.hardware.packets import link, one_in_three
from tests.functional.hardware.services import ramdisk_body
from tests.functional.processes import in_time, wait_for
from tests.unit.inspection.tasks import make_task

pytestmark = [pytest.mark.slow, pytest.mark.servers]
#: With it, the BMC loses 5 of the first 20 packets.
SEED = 24
MAC = "52:54:00:be:ff:01"

LAN = """\
name "machine"
set_working_mc 0x20
startlan 1
  addr 127.0.0.1 {port}
  priv_limit admin
  allowed_auths_admin none md2 md5 straight
  guid {guid}
endlan
chassis_control "{folder}/chassis 0x20"
user 2 true "{user}" "{password}" admin 10 none md2 md5 straight
"""
#: As the operating system of the machine reports it; the BMC has its octets in the order of SMBIOS.
SYSTEM_UUID = uuid.UUID("4c4c4544-0034-4810-8054-b4c04f585833")
SERIAL = "4HT81X3"
COMMANDS = """\
mc_setbmc 0x20
mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02
mc_add_fru_data 0x20 0 {size} data {fru}
mc_enable 0x20
"""
#: The machine behind the BMC: `0x20 get power` and `0x20 set power 1`; its state is in files.
CHASSIS = """\
#!/bin/sh
cd {folder}
echo "$@" >> log
verb=$2 what=$3 value=$4
case "$verb $what" in
    "get power") echo "power:$(cat power)" ;;
    "get boot") echo "boot:$(cat boot)" ;;
    "set power") echo "$value" > power ;;
    "set boot") echo "$value" > boot ;;
    "set shutdown") echo 0 > power ;;
esac
exit 0
"""


def fru(*product: str) -> bytes:
    """Return a FRU of a product area with these fields (Platform Management FRU Information Storage Definition)."""
    fields = b"".join(bytes([0xC0 | len(text)]) + text.encode() for text in product) + b"\xc1"
    eights = -(-(len(fields) + 4) // 8)
    area = bytes([1, eights, 25]) + fields.ljust(eights * 8 - 4, b"\0")
    return b"".join(part + bytes([-sum(part) % 256]) for part in (bytes([1, 0, 0, 0, 1, 0, 0]), area))


class Simulator:
    """A BMC with one machine, which is initially powered off."""

    def __init__(self, folder: Path, port: int) -> None:
        self._folder = folder
        self.port = port

    def power(self) -> str:
        return {"1": "on", "0": "off"}[(self._folder / "power").read_text().strip()]

    def boot_device(self) -> str:
        return (self._folder / "boot").read_text().strip()

    def switch(self, value: int) -> None:
        """Set the power state of the machine without the BMC."""
        (self._folder / "power").write_text(f"{value}\n")

    def commands(self) -> list[str]:
        """Return the commands to the machine since the last call, without queries."""
        log = self._folder / "log"
        told = [line.removeprefix("0x20 set ") for line in log.read_text().splitlines() if " set " in line]
        log.write_text("")
        return told

    def settings(self) -> dict[str, str | int]:
        """Return the ``driver_info`` of a node."""
        return {"ipmi_address": "127.0.0.1", "ipmi_port": self.port, "ipmi_username": USER, "ipmi_password": PASSWORD}


def _require(command: str, package: str) -> None:
    if shutil.which(command) is None:
        reason = f"{command} is not installed (Debian's package {package})"
        if os.environ.get("IRONIC_RULES_TEST_REQUIRE_SERVERS") == "1":
            pytest.fail(reason)
        pytest.skip(reason)


# One for each test: it keeps sessions that were refused for a while, and has room for few.
@pytest.fixture
def simulator(tmp_path_factory) -> Iterator[Simulator]:
    _require("ipmi_sim", "openipmi")
    _require("ipmitool", "ipmitool")
    folder = tmp_path_factory.mktemp("ipmi")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    (folder / "lan.conf").write_text(LAN.format(port=port, folder=folder, user=USER, password=PASSWORD,
                                                guid=SYSTEM_UUID.bytes_le.hex()))
    data = fru("Dell Inc.", "PowerEdge R740", "", "1.0", SERIAL)
    (folder / "commands").write_text(COMMANDS.format(size=len(data), fru=" ".join(map(hex, data))))
    for name, text in {"power": "0\n", "boot": "none\n", "log": ""}.items():
        (folder / name).write_text(text)
    chassis = folder / "chassis"
    chassis.write_text(CHASSIS.format(folder=folder))
    chassis.chmod(0o755)
    with (folder / "out").open("wb") as output:
        process = subprocess.Popen(
            ["ipmi_sim", "-c", str(folder / "lan.conf"), "-f", str(folder / "commands"), "-s", str(folder), "-n"],
            stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
        password = folder / "password"
        password.write_text(PASSWORD)
        ask = ["ipmitool", "-I", "lanplus", "-H", "127.0.0.1", "-p", str(port), "-U", USER, "-f", str(password),
               "-C", "3", "-R", "1", "-N", "1", "power", "status"]
        try:
            wait_for("ipmi_sim", lambda: subprocess.run(ask, capture_output=True).returncode == 0)
            yield Simulator(folder, port)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


@pytest.fixture
def node(ironic, simulator) -> str:
    simulator.switch(0)
    node = ironic.enroll("ipmi", simulator.settings())
    shown = ironic.provision(node, "manage")
    assert (shown["provision_state"], shown["power_state"], shown["last_error"]) == ("manageable", "power off", None)
    simulator.commands()
    return node


@pytest.mark.parametrize(("before", "target", "told", "ends"), [
    (0, "power on", ["power 1"], "on"), (1, "power on", [], "on"), (1, "power off", ["power 0"], "off"),
    (1, "soft power off", ["shutdown 1"], "off"), (1, "rebooting", ["power 0", "power 1"], "on"),
    (0, "rebooting", ["power 1"], "on"), (1, "soft rebooting", ["shutdown 1", "power 1"], "on"),
    (0, "power off", [], "off"),
])
def test_power(ironic, simulator, node, before, target, told, ends):
    simulator.switch(before)

    shown = ironic.power(node, target)

    assert (shown["power_state"], shown["last_error"]) == (f"power {ends}", None)
    assert (simulator.power(), simulator.commands()) == (ends, told)


def test_manage_stores_serial_number_and_uuid_of_the_machine(node, folder):
    with contextlib.closing(sqlite3.connect(next(folder.glob("state/*.sqlite")))) as database:
        stored = {value for (value,) in database.execute(
            "SELECT m.value FROM node_machine_ids m JOIN nodes n ON n.id = m.node_id WHERE n.uuid = ?", (node,))}

    assert stored >= machine_ids.of(SERIAL, str(SYSTEM_UUID))


def test_a_machine_that_must_not_be_switched_off_is_reset(ironic, simulator, node):
    ironic.http.patch(f"/v1/nodes/{node}", json=[{"op": "replace", "path": "/disable_power_off", "value": True}])
    simulator.switch(1)

    shown = ironic.power(node, "rebooting")

    assert (shown["power_state"], simulator.commands()) == ("power on", ["reset 1"])


def test_a_machine_boots_the_ramdisk_over_the_network_and_ends_manageable(ironic, simulator, node, folder):
    assert ironic.http.post("/v1/ports", json={"node_uuid": node, "address": MAC}).status_code == 201

    assert ironic.provision(node, "inspect")["provision_state"] == "inspect wait"

    assert (simulator.power(), simulator.boot_device()) == ("on", "pxe")
    script = folder / "web" / "pxelinux.cfg" / MAC.replace(":", "-")
    assert f"ipa-inspection-callback-url={ironic.url}/v1/continue_inspection" in script.read_text()
    assert ironic.http.post("/v1/continue_inspection", json=ramdisk_body(MAC)).status_code == 200
    shown = ironic.at_rest(node)
    assert (shown["provision_state"], shown["power_state"], shown["last_error"]) == ("manageable", "power off", None)
    assert simulator.power() == "off"
    assert not script.exists()


@pytest.mark.parametrize("change", [{"ipmi_password": "wrong-one"}, {"ipmi_username": "nobody"}])
def test_wrong_credentials_are_told_without_them(ironic, simulator, change):
    shown = ironic.provision(ironic.enroll("ipmi", {**simulator.settings(), **change}), "manage")

    assert shown["provision_state"] == "enroll"
    assert "127.0.0.1 did not execute the command" in shown["last_error"]
    for text in (str(shown), ironic.process.text()):
        assert PASSWORD not in text
        assert "wrong-one" not in text


def test_a_bmc_that_is_away_is_given_up_in_time(ironic, simulator):
    # Nothing listens there; packets are lost, as with a machine without power.
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        settings = {**simulator.settings(), "ipmi_port": silent.getsockname()[1]}

        shown = ironic.provision(ironic.enroll("ipmi", settings), "manage")

    assert shown["provision_state"] == "enroll"
    assert ("127.0.0.1 did not execute the command 'power status' within 2 seconds ([ipmi]command_retry_timeout), "
            "with cipher suite 17 or 3 ([ipmi]cipher_suite_versions)") in shown["last_error"]


def power_state(simulator, port: int, **options: object) -> str:
    """Return the power state that the BMC reports at that port."""
    conf = cfg.ConfigOpts()
    # Without the module's group: all ConfigOpts of a process would share its overrides.
    conf.register_opts(hardware.IPMI_OPTS, group="ipmi")
    conf([], default_config_files=[])
    for name, value in {"min_command_interval": 0, **options}.items():
        conf.set_override(name, value, group="ipmi")
    task = make_task({"driver_info": {**simulator.settings(), "ipmi_port": port}})
    return IPMIToolPower(conf, lambda node, kind: None).get_power_state(task)


@pytest.mark.parametrize("answers", [True, False])
@pytest.mark.parametrize(("options", "is_asked"), [
    ({}, False), ({"cipher_suite_versions": []}, True)], ids=["default", "chosen by ipmitool"])
def test_a_bmc_with_and_without_get_channel_cipher_suites(simulator, answers, options, is_asked):
    simulator.switch(1)

    with in_time(), link(simulator.port, answers_suites=answers) as relay:  # ipmitool by itself: 126 s
        assert power_state(simulator, relay.port, **options) == "power on"

    assert (relay.asked > 0) == is_asked


def test_a_bmc_that_loses_one_packet_in_three_is_managed(simulator):
    simulator.switch(1)

    with link(simulator.port, one_in_three(seed=SEED)) as relay:
        assert power_state(simulator, relay.port) == "power on"

    assert relay.lost * 4 >= relay.passed
