"""Each line of the table of BMCs' deviations: a BMC that deviates so, and what the interfaces do about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from sushy import connector

from ironic_rules.exceptions import BMCError
from ironic_rules.hardware import waiting
from ironic_rules.hardware.redfish import client, quirks
from ironic_rules.hardware.redfish.bios import RedfishBIOS
from ironic_rules.hardware.redfish.client import Connections
from ironic_rules.hardware.redfish.firmware import RedfishFirmware
from ironic_rules.hardware.redfish.inspect import RedfishInspect
from ironic_rules.hardware.redfish.management import RedfishManagement
from ironic_rules.hardware.redfish.power import RedfishPower
from ironic_rules.hardware.redfish.raid import RedfishRAID
from ironic_rules.hardware.redfish.virtual_media import RedfishVirtualMediaBoot
from ironic_rules.models import machine_ids
from ironic_rules.models.internal_keys import RENEWED_BOOT_DEVICE
from tests.unit.hardware.deviating_bmc import (
    BIOS_SETTINGS,
    CHASSIS,
    MANAGER,
    MEDIA,
    OK,
    RESET,
    SETTINGS,
    SIMPLE_UPDATE,
    VOLUMES,
    Script,
    deviating,
    drive,
    ref,
)
from tests.unit.hardware.redfish_bmc import SYSTEM, members
from tests.unit.hardware.test_redfish_steps import Power
from tests.unit.inspection.tasks import make_task

TARGET, OFTEN, MODE = "BootSourceOverrideTarget", "BootSourceOverrideEnabled", "BootSourceOverrideMode"
IMAGE = "http://web/image"
NIC = f"{SYSTEM}/EthernetInterfaces/1"
ADAPTERS = f"{CHASSIS}/NetworkAdapters"


class Hardware:
    """The interfaces of a node with a BMC."""

    def __init__(self, conf: Any, url: str, **node: Any) -> None:
        found = {"management": None, "power": None, "deploy": Power()}
        self.deploy = found["deploy"]
        make = lambda cls: cls(conf, lambda node, kind: found[kind])  # noqa: E731
        found["management"] = self.management = make(RedfishManagement)
        found["power"] = self.power = make(RedfishPower)
        self.bios, self.raid, self.firmware, self.inspect, self.boot = map(
            make, (RedfishBIOS, RedfishRAID, RedfishFirmware, RedfishInspect, RedfishVirtualMediaBoot))
        self.task = make_task({
            "driver_info": {"redfish_address": url, "redfish_username": "u", "redfish_password": "s3cret-word",
                            "redfish_system_id": SYSTEM},
            "provision_state": "deploying", "raid_config": {}, "target_raid_config": {}, **node})

    def switch(self, target: str) -> None:
        self.power.set_power_state(self.task, target)

    def set_device(self, device: str = "pxe", persistent: bool = False) -> None:
        self.management.set_boot_device(self.task, device, persistent=persistent)

    def attach(self, kind: str = "cdrom") -> None:
        self.management.attach_virtual_media(self.task, kind, IMAGE)

    def update(self) -> None:
        self.firmware.update(self.task, [{"component": "bios", "url": IMAGE}])

    def create(self, size: Any = 1) -> None:
        self.raid.create_volumes(self.task, [{"size_gb": size, "raid_level": "0"}])

    def is_refused(self, act: Callable[[], Any]) -> None:
        with pytest.raises(BMCError):
            act()

    def read(self) -> Any:
        return self.inspect.inspect_hardware(self.task)


@dataclass(frozen=True)
class Case:
    """How a BMC deviates, what is requested, and what must be true then; the node, if it matters."""

    script: Callable[[Script], Any]
    act: Callable[[Hardware], Any]
    holds: Callable[[Script, Any], bool]
    node: dict[str, Any] | None = None


def boots(target: str, often: str = "Once") -> Callable[[Script, Any], bool]:
    return lambda bmc, _: (bmc.system["Boot"][TARGET], bmc.system["Boot"][OFTEN]) == (target, often)


def is_on(bmc: Script, _: Any) -> bool:
    return bool(bmc.system["PowerState"] == "On")


def sent(path: str, *bodies: Any) -> Callable[[Script, Any], bool]:
    return lambda bmc, _: bmc.sent(path) == list(bodies)


def image_in(path: str) -> Callable[[Script, Any], bool]:
    return lambda bmc, _: bool(bmc.bmc.content[path]["Image"] == IMAGE)


def adapter(bmc: Script, **port: Any) -> None:
    """Give the chassis an adapter with a port, and the system no interfaces."""
    bmc.change(f"{SYSTEM}/EthernetInterfaces", **members())
    bmc.change(CHASSIS, NetworkAdapters=ref(ADAPTERS))
    bmc.change(ADAPTERS, **members(f"{ADAPTERS}/A"))
    bmc.change(f"{ADAPTERS}/A", Id="A", Ports=ref(f"{ADAPTERS}/A/Ports"), Status=OK)
    bmc.change(f"{ADAPTERS}/A/Ports", **members(f"{ADAPTERS}/A/Ports/1"))
    bmc.change(f"{ADAPTERS}/A/Ports/1", Id="1", Status=OK, **port)


def only_manager(bmc: Script, systems: list[Any]) -> None:
    """Move the drives from the system to the manager."""
    there = f"{MANAGER}/VirtualMedia"
    bmc.change(SYSTEM, VirtualMedia=None)
    bmc.change(MANAGER, VirtualMedia=ref(there), Links={"ManagerForServers": systems})
    bmc.change(there, **members(f"{there}/CD"))
    bmc.change(f"{there}/CD", **drive(f"{there}/CD", "CD"))


def settings_resource(bmc: Script) -> None:
    bmc.change(SYSTEM, **{"@Redfish.Settings": {"SettingsObject": ref(SETTINGS)}})
    bmc.change(SETTINGS, Id="SD", Name="Future")


def macs(_: Script, found: Any) -> bool:
    addresses = [one["mac_address"] for one in found[0].inventory["interfaces"]]
    return addresses == ["52:54:00:aa:00:09"] and found[1] == addresses


def read_macs(hardware: Hardware) -> Any:
    return hardware.read(), hardware.management.get_mac_addresses(hardware.task)


OTHER = "Vendor.1.0.NoReason"
CASES = {
    "busy": [
        Case(lambda bmc: bmc.refuse("POST", RESET, 409, "Base.1.18.ActionParameterValueConflict", times=2),
             lambda it: it.switch("power on"), is_on),
        Case(lambda bmc: bmc.refuse("POST", SIMPLE_UPDATE, 503, OTHER, times=2), lambda it: it.update(),
             sent(SIMPLE_UPDATE, *3 * [{"ImageURI": IMAGE}])),
        Case(lambda bmc: bmc.refuse("POST", VOLUMES, 503, OTHER, times=2), lambda it: it.create(),
             lambda bmc, _: len(bmc.sent(VOLUMES)) == 3),
        Case(lambda bmc: bmc.refuse("PATCH", BIOS_SETTINGS, 409, OTHER, times=1),
             lambda it: it.bios.write_settings(it.task, {"VMX": "on"}),
             lambda bmc, _: bmc.bmc.content[BIOS_SETTINGS]["Attributes"] == {"VMX": "on"}),
        Case(lambda bmc: bmc.refuse("PATCH", f"{SYSTEM}/SecureBoot", 423, OTHER, times=1),
             lambda it: it.management.set_secure_boot(it.task, True),
             lambda bmc, _: bmc.bmc.content[f"{SYSTEM}/SecureBoot"]["SecureBootEnable"])],
    "in-use": [Case(lambda bmc: bmc.refuse("POST", RESET, 400, "Base.1.8.ResourceInUse", times=1),
                    lambda it: it.switch("power on"), is_on)],
    "post": [Case(lambda bmc: bmc.refuse("PATCH", SYSTEM, 400, "iLO.2.20.UnableToModifyDuringSystemPOST", times=2),
                  lambda it: it.set_device(), boots("Pxe"))],
    "not-ready": [Case(lambda bmc: bmc.refuse("POST", RESET, 400, "iLO.2.14.InvalidOperationForSystemState", times=5),
                       lambda it: it.switch("power on"), is_on)],
    "lifecycle-controller": [Case(lambda bmc: bmc.refuse("POST", f"{SYSTEM}/Bios/Reset", 500, "IDRAC.2.4.SYS518",
                                                         times=5),
                                  lambda it: it.bios.reset_settings(it.task),
                                  lambda bmc, _: len(bmc.sent(f"{SYSTEM}/Bios/Reset")) == 6)],
    "pending-job": [
        Case(lambda bmc: bmc.refuse("PATCH", BIOS_SETTINGS, 400, "IDRAC.2.8.SYS011", times=2),
             lambda it: it.bios.write_settings(it.task, {"VMX": "on"}),
             lambda bmc, _: bmc.bmc.content[BIOS_SETTINGS]["Attributes"] == {"VMX": "on"}),
        Case(lambda bmc: bmc.refuse("PATCH", SYSTEM, 400, "IDRAC.2.8.SYS011", times=2), lambda it: it.set_device(),
             lambda bmc, _: bmc.sent(SYSTEM) == 3 * [{"Boot": {TARGET: "Pxe", OFTEN: "Once"}}])],
    "eject-in-progress": [Case(lambda bmc: bmc.refuse("POST", f"{MEDIA}/1/Insert", 500, OTHER, times=1),
                               lambda it: it.attach(), image_in(f"{MEDIA}/1"))],
    "fails-once": [Case(lambda bmc: bmc.refuse("PATCH", SYSTEM, 500, OTHER, times=1), lambda it: it.set_device(),
                        boots("Pxe"))],
    "stale-etag": [Case(lambda bmc: (setattr(bmc.bmc, "etag", '"1"'), bmc.refuse(
                            "PATCH", SYSTEM, 412, OTHER, times=1, then=lambda: setattr(bmc.bmc, "etag", '"2"'))),
                        lambda it: it.set_device(), boots("Pxe"))],
    "future-state": [Case(lambda bmc: (settings_resource(bmc), bmc.refuse(
                              "PATCH", SYSTEM, 400, "Ami.1.0.OperationSupportedInFutureStateURI")),
                          lambda it: it.set_device(),
                          lambda bmc, _: bmc.bmc.content[SETTINGS]["Boot"] == {
                              TARGET: "Pxe", OFTEN: "Once", MODE: "UEFI"})],
    "all-or-none": [
        Case(lambda bmc: bmc.refuse("PATCH", SYSTEM, 400, "Base.1.5.PropertyMissing",
                                    unless=lambda body: len(body["Boot"]) == 3),
             lambda it: it.set_device(), boots("Pxe")),
        Case(lambda bmc: bmc.refuse("PATCH", SYSTEM, 400, "Base.1.5.PropertyMissing",
                                    unless=lambda body: len(body["Boot"]) == 3),
             lambda it: it.management.set_boot_mode(it.task, "bios"),
             lambda bmc, _: bmc.system["Boot"][MODE] == "Legacy")],
    "not-permanent": [Case(lambda bmc: bmc.refuse("PATCH", SYSTEM, 400, "Base.1.8.PropertyValueNotInList",
                                                  unless=lambda body: body["Boot"][OFTEN] == "Once"),
                           lambda it: it.set_device(persistent=True), boots("Pxe"))],
    "unchanged": [Case(lambda bmc: (bmc.change_boot(**{OFTEN: "Once"}), bmc.refuse(
                           "PATCH", SYSTEM, 400, "Base.1.8.PropertyValueConflict",
                           unless=lambda body: OFTEN not in body["Boot"])),
                       lambda it: it.set_device(), boots("Pxe"))],
    "fixed-mode": [Case(lambda bmc: bmc.refuse("PATCH", SYSTEM, 400, "Base.1.4.PropertyNotWritable",
                                               unless=lambda body: MODE not in body["Boot"]),
                        lambda it: it.set_device(), boots("Pxe"), {"properties": {"vendor": "ASRockRack"}})],
    "no-mode": [
        Case(lambda bmc: bmc.refuse("PATCH", SYSTEM, 400, "Base.1.4.PropertyUnknown",
                                    unless=lambda body: MODE not in body["Boot"]),
             lambda it: it.set_device(), boots("Pxe"), {"properties": {"vendor": "ASRockRack"}}),
        Case(lambda bmc: bmc.change_boot(**{MODE: None}), lambda it: it.set_device(), boots("Pxe"),
             {"properties": {"vendor": "ASRockRack"}})],
    "other-refusal": [Case(lambda bmc: bmc.refuse("PATCH", SYSTEM, 400, OTHER, times=1), lambda it: it.set_device(),
                           boots("Pxe"))],
    "reset-type": [
        Case(lambda bmc: (bmc.change(SYSTEM, PowerState="On"), bmc.refuse(
                "POST", RESET, 400, "Base.1.8.1.ActionParameterUnknown",
                unless=lambda body: body["ResetType"] in ("On", "ForceOff"))),
             lambda it: it.switch("rebooting"),
             sent(RESET, *({"ResetType": kind} for kind in ("ForceRestart", "PowerCycle", "ForceOff", "On")))),
        Case(lambda bmc: (bmc.change(SYSTEM, PowerState="On"), bmc.refuse(
                "POST", RESET, 400, "Base.1.8.1.ActionParameterNotSupported",
                unless=lambda body: body["ResetType"] == "PowerCycle")),
             lambda it: it.power.request_reboot(it.task),
             sent(RESET, {"ResetType": "ForceRestart"}, {"ResetType": "PowerCycle"}))],
    "drive-refuses": [Case(lambda bmc, status=status: bmc.refuse("POST", f"{MEDIA}/1/Insert", status, OTHER),
                           lambda it: it.attach(), image_in(f"{MEDIA}/2")) for status in (400, 405)],
    "drive-without-action": [Case(lambda bmc: bmc.change(f"{MEDIA}/1", Actions={}), lambda it: it.attach(),
                                  image_in(f"{MEDIA}/2"))],
    "apply-time": [
        Case(lambda bmc: bmc.refuse("PATCH", BIOS_SETTINGS, 400, "Base.1.8.PropertyUnknown",
                                    unless=lambda body: "@Redfish.SettingsApplyTime" not in body,
                                    args=("@Redfish.SettingsApplyTime",)),
             lambda it: it.bios.write_settings(it.task, {"VMX": "on"}),
             lambda bmc, _: bmc.bmc.content[BIOS_SETTINGS]["Attributes"] == {"VMX": "on"}),
        Case(lambda bmc: bmc.refuse("POST", VOLUMES, 400, "Base.1.8.PropertyUnknown",
                                    unless=lambda body: "@Redfish.OperationApplyTime" not in body,
                                    args=("@Redfish.OperationApplyTime",)),
             lambda it: it.create(), lambda bmc, _: len(bmc.sent(VOLUMES)) == 2)],
    "transfer-protocol": [Case(lambda bmc: bmc.refuse("POST", SIMPLE_UPDATE, 400, "Base.1.8.ActionParameterMissing",
                                                      unless=lambda body: "TransferProtocol" in body,
                                                      args=("TransferProtocol",)),
                               lambda it: it.update(),
                               sent(SIMPLE_UPDATE, {"ImageURI": IMAGE},
                                    {"ImageURI": IMAGE, "TransferProtocol": "HTTP"}))],
    "already": [
        Case(lambda bmc: bmc.refuse("POST", RESET, 400, OTHER, then=lambda: bmc.change(SYSTEM, PowerState="On")),
             lambda it: it.switch("power on"), sent(RESET, {"ResetType": "On"})),
        Case(lambda bmc: (bmc.change_boot(**{TARGET: "Pxe", OFTEN: "Once"}),
                          bmc.refuse("PATCH", SYSTEM, 400, OTHER)), lambda it: it.set_device(), boots("Pxe")),
        Case(lambda bmc: bmc.refuse("POST", f"{MEDIA}/1/Insert", 400, OTHER, then=lambda: bmc.change(
                f"{MEDIA}/1", Inserted=True, Image=IMAGE)), lambda it: it.attach(), sent(f"{MEDIA}/2/Insert")),
        Case(lambda bmc: (bmc.change(f"{MEDIA}/1", Inserted=True, Image=IMAGE), bmc.refuse(
                "POST", f"{MEDIA}/1/Eject", 409, OTHER, then=lambda: bmc.change(
                    f"{MEDIA}/1", Inserted=False, Image=None))),
             lambda it: it.management.detach_virtual_media(it.task),
             lambda bmc, _: len(bmc.sent(f"{MEDIA}/1/Eject")) == 1)],
    "already-on": [Case(lambda bmc: bmc.refuse("POST", RESET, 409, "IDRAC.2.1.PSU501",
                                               then=lambda: bmc.change(SYSTEM, PowerState="On")),
                        lambda it: it.switch("power on"), sent(RESET, {"ResetType": "On"}))],
    "power-without-effect": [
        Case(lambda bmc: bmc.ignore("POST", RESET, unless=lambda body: len(bmc.sent(RESET)) > 1),
             lambda it: it.switch("power on"), sent(RESET, *2 * [{"ResetType": "On"}])),
        Case(lambda bmc: (bmc.change(SYSTEM, PowerState="On"),
                          bmc.ignore("POST", RESET, unless=lambda body: len(bmc.sent(RESET)) > 1)),
             lambda it: it.switch("power off"), sent(RESET, *2 * [{"ResetType": "ForceOff"}]))],
    "raid-metadata": [
        Case(lambda bmc: bmc.refuse("POST", VOLUMES, 400, "Base.1.8.PropertyValueError", args=("CapacityBytes",),
                                    unless=lambda body: "CapacityBytes" not in body),
             lambda it: it.create("MAX"), lambda bmc, _: "CapacityBytes" not in bmc.sent(VOLUMES)[-1]),
        Case(lambda bmc: bmc.refuse("POST", VOLUMES, 400, "Base.1.8.PropertyValueError", args=("CapacityBytes",)),
             lambda it: it.is_refused(it.create), lambda bmc, _: all(
                 "CapacityBytes" in body for body in bmc.sent(VOLUMES)))],
    "accepted-without-effect": [Case(lambda bmc: bmc.ignore("PATCH", SYSTEM, unless=lambda body: MODE in body["Boot"]),
                                     lambda it: it.set_device(), boots("Pxe"))],
    "asrockrack": [Case(lambda bmc: bmc.change(SYSTEM, Manufacturer="ASRockRack"), lambda it: it.set_device(),
                        sent(SYSTEM, {"Boot": {TARGET: "Pxe", OFTEN: "Once", MODE: "UEFI"}}))],
    "precondition": [Case(lambda bmc: setattr(bmc.bmc, "etag", 'W/"7"'), lambda it: it.set_device(), boots("Pxe"))],
    "usb-cd": [
        Case(lambda bmc: (bmc.change(SYSTEM, Manufacturer="Supermicro"), bmc.change_boot(targets=["Cd", "UsbCd"])),
             lambda it: it.set_device("cdrom"), boots("UsbCd")),
        Case(lambda bmc: bmc.change_boot(targets=["Pxe", "UsbCd"]), lambda it: it.set_device("cdrom"),
             boots("UsbCd"))],
    "media-protocol": [Case(lambda bmc: bmc.refuse("POST", f"{MEDIA}/1/Insert", 400, "Base.1.18.ActionParameterMissing",
                                                   unless=lambda body: body.get("TransferProtocolType") == "HTTP",
                                                   args=("TransferProtocolType",)),
                            lambda it: it.attach(), image_in(f"{MEDIA}/1"))],
    "empty-body": [Case(lambda bmc, status=status: (bmc.change(f"{MEDIA}/1", Inserted=True, Image=IMAGE), bmc.refuse(
                            "POST", f"{MEDIA}/1/Eject", status, OTHER, unless=lambda body: body == {})),
                        lambda it: it.management.detach_virtual_media(it.task),
                        lambda bmc, _: not bmc.bmc.content[f"{MEDIA}/1"]["Inserted"]) for status in (400, 415)],
    "left-image": [Case(lambda bmc: bmc.change(f"{MEDIA}/1", Image="http://web/before"), lambda it: it.attach(),
                        image_in(f"{MEDIA}/1"))],
    "two-places": [Case(lambda bmc: (only_manager(bmc, [ref(SYSTEM)]), bmc.change(SYSTEM, VirtualMedia=ref(MEDIA)),
                                     [bmc.change(f"{MEDIA}/{number}", Actions={}) for number in (1, 2)]),
                        lambda it: it.attach(), image_in(f"{MANAGER}/VirtualMedia/CD"))],
    "several-systems": [Case(lambda bmc: bmc.change("/redfish/v1/Systems", **members(SYSTEM, f"{SYSTEM}1")),
                             lambda it: it.update(),
                             sent(SIMPLE_UPDATE, {"ImageURI": IMAGE, "Targets": [SYSTEM]}))],
    "shared-manager": [Case(lambda bmc: only_manager(bmc, [ref(SYSTEM), ref(f"{SYSTEM}1")]),
                            lambda it: it.is_refused(it.attach),
                            sent(f"{MANAGER}/VirtualMedia/CD/Insert"))],
    "service-tag": [Case(lambda bmc: bmc.change(SYSTEM, Manufacturer="Dell Inc.", SerialNumber="CN7016", SKU="ABC1234"),
                         lambda it: (it.read(), it.management.machine_ids(it.task)),
                         lambda _, found: found[0].inventory["system_vendor"]["serial_number"] == "ABC1234"
                         and found[1] == machine_ids.of("ABC1234", None) | machine_ids.of("CN7016", None))],
    "adapters-only": [Case(lambda bmc: adapter(bmc, Ethernet={"AssociatedMACAddresses": ["52:54:00:AA:00:09"]}),
                           read_macs, macs)],
    "port-address": [Case(lambda bmc: adapter(bmc, Oem={"Lenovo": {"PhysicalPortMacAddress": "52:54:00:AA:00:09"}}),
                          read_macs, macs)],
    "absent": [Case(lambda bmc: (adapter(bmc, Ethernet={"AssociatedMACAddresses": ["52:54:00:AA:00:09"]}),
                                 bmc.change(f"{SYSTEM}/EthernetInterfaces", **members(NIC)),
                                 bmc.change(NIC, Status={"State": "Absent"})),
                    read_macs, macs)],
    "metadata": [Case(lambda bmc: bmc.change(f"{SYSTEM}/Bios", Attributes={
                          "@odata.type": "#A", "VMX": "on", "VMX@Redfish.AllowableValues": ["on"]}),
                      lambda it: (it.bios.read_settings(it.task), it.read()),
                      lambda _, found: [one.name for one in found[0]] == ["VMX"]
                      and found[1].plugin_data["bios_settings"] == {"VMX": "on"})],
}


class Clock:
    """A time that passes by sleeping only."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture(autouse=True)
def clock(conf, monkeypatch, tmp_path):
    conf.set_override("connection_attempts", 1, group="redfish")
    conf.set_override("auth_type", "basic", group="redfish")
    conf.set_override("image_check_timeout", 0, group="deploy")
    monkeypatch.setattr(client, "CONNECTIONS", Connections())
    monkeypatch.setattr(connector, "time", SimpleNamespace(sleep=lambda seconds: None))
    found = Clock()
    monkeypatch.setattr(quirks, "time", found)
    monkeypatch.setattr(waiting, "_AGAIN_S", 0.0)
    return found


@pytest.fixture
def bmc():
    with deviating() as found:
        yield found


@pytest.mark.parametrize(("name", "number"), [(name, number) for name, cases in CASES.items()
                                              for number in range(len(cases))])
def test_the_answer_to_a_deviation(conf, bmc, name, number):
    case = CASES[name][number]
    case.script(bmc)

    found = case.act(Hardware(conf, bmc.bmc.url, **(case.node or {})))

    assert case.holds(bmc, found), bmc.bmc.told


def test_each_line_of_the_table_has_a_case_and_a_source():
    assert [one.name for one in quirks.DEVIATIONS] == list(dict.fromkeys(one.name for one in quirks.DEVIATIONS))
    assert {one.name for one in quirks.DEVIATIONS} == set(CASES)
    assert [one.name for one in quirks.DEVIATIONS if not one.source.startswith("https://")] == []


def test_a_bmc_that_conforms_gets_one_request(conf, bmc):
    hardware = Hardware(conf, bmc.bmc.url)

    for change in (lambda: hardware.switch("power on"), hardware.set_device, hardware.attach, hardware.create):
        change()

    assert [path for _, path, _ in bmc.bmc.told] == [RESET, SYSTEM, f"{MEDIA}/1/Insert", VOLUMES]
    assert hardware.task.notices == []


@pytest.mark.parametrize(("act", "path", "status"), [
    (lambda it: it.switch("power on"), RESET, 409), (lambda it: it.set_device(), SYSTEM, 503),
    (lambda it: it.attach(), f"{MEDIA}/1/Insert", 409), (lambda it: it.update(), SIMPLE_UPDATE, 503)])
def test_a_bmc_that_stays_busy_is_an_error_after_the_timeout(conf, bmc, clock, act, path, status):
    method = "PATCH" if path == SYSTEM else "POST"
    bmc.refuse(method, path, status, OTHER)
    conf.set_override("busy_timeout", 60, group="redfish")

    with pytest.raises(BMCError, match="refused a request"):
        act(Hardware(conf, bmc.bmc.url))

    assert 40 < clock.now <= 60
    assert 5 < len(bmc.sent(path)) < 15


def test_the_time_out_of_a_request_limits_how_long_a_busy_bmc_is_asked(conf, bmc, clock):
    bmc.refuse("POST", RESET, 503, OTHER)
    hardware = Hardware(conf, bmc.bmc.url)

    with pytest.raises(BMCError, match="refused a request"):
        hardware.power.set_power_state(hardware.task, "power on", timeout_s=10)

    assert 3 < clock.now <= 10


def test_a_drive_that_is_missing_after_another_one_refused_is_told(conf, bmc, tmp_path):
    conf.set_override("http_root", str(tmp_path), group="deploy")
    conf.set_override("http_url", "http://web", group="deploy")
    conf.set_override("deploy_iso", IMAGE, group="deploy")
    bmc.change(MEDIA, **members(f"{MEDIA}/1", f"{MEDIA}/2"))
    bmc.change(f"{MEDIA}/2", MediaTypes=["CD", "USBStick"])
    bmc.refuse("POST", f"{MEDIA}/1/Insert", 405, OTHER)
    hardware = Hardware(conf, bmc.bmc.url)

    with pytest.raises(BMCError, match="no virtual drive is left"):
        hardware.boot.prepare_ramdisk(hardware.task, {"ipa-api-url": "http://api"})
    hardware.boot.clean_up_ramdisk(hardware.task)

    assert not bmc.bmc.content[f"{MEDIA}/2"]["Inserted"]


def test_what_is_refused_for_its_content_is_not_repeated(conf, bmc):
    bmc.refuse("POST", RESET, 400, OTHER)
    bmc.refuse("POST", VOLUMES, 500, OTHER)
    hardware = Hardware(conf, bmc.bmc.url)

    for act, path in ((lambda: hardware.switch("power on"), RESET), (hardware.create, VOLUMES)):
        with pytest.raises(BMCError, match="NoReason"):
            act()
        assert len(bmc.sent(path)) == 1


def test_the_error_is_that_of_the_first_form(conf, bmc):
    bmc.refuse("PATCH", SYSTEM, 400, "Base.1.5.PropertyMissing", times=1)
    bmc.refuse("PATCH", SYSTEM, 400, OTHER)

    with pytest.raises(BMCError, match="PropertyMissing"):
        Hardware(conf, bmc.bmc.url).set_device()


def test_a_device_that_is_not_kept_is_set_before_each_boot_with_a_warning(conf, bmc):
    bmc.refuse("PATCH", SYSTEM, 400, "Base.1.8.PropertyValueNotInList",
               unless=lambda body: body["Boot"].get(OFTEN) == "Once")
    bmc.change(SYSTEM, PowerState="On")
    hardware = Hardware(conf, bmc.bmc.url)
    hardware.set_device("disk", persistent=True)
    assert len(hardware.task.notices) == 1 and "for one boot only" in hardware.task.notices[0]
    accepted = []
    for act in (lambda: hardware.switch("rebooting"), lambda: hardware.power.request_reboot(hardware.task),
                lambda: hardware.set_device("pxe"), lambda: hardware.switch("rebooting"),
                lambda: hardware.switch("rebooting")):
        bmc.change_boot(**{TARGET: "None", OFTEN: "Disabled"})
        act()
        accepted.append(bmc.system["Boot"][TARGET])

    assert accepted == ["Hdd", "Hdd", "Pxe", "None", "Hdd"]


def test_what_is_accepted_and_never_shown_is_a_warning(conf, bmc):
    bmc.ignore("PATCH", SYSTEM, unless=lambda body: False)
    hardware = Hardware(conf, bmc.bmc.url)

    hardware.set_device()

    assert hardware.task.notices == ["The BMC has accepted the boot device pxe, and does not show it."]
    assert RENEWED_BOOT_DEVICE not in hardware.task.node.driver_internal_info


def test_time_is_not_spent_beyond_the_limit_of_the_work(conf, bmc, monkeypatch):
    bmc.refuse("POST", RESET, 409, OTHER)
    monkeypatch.setattr("ironic_rules.hardware.waiting.left_s", lambda: 5.0)

    with pytest.raises(BMCError):
        Hardware(conf, bmc.bmc.url).switch("power on")

    assert len(bmc.sent(RESET)) < 5
