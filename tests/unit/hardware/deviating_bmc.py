"""A Redfish BMC that does what is requested, unless a script says otherwise: a deviation is a line or three.

``Script(bmc).refuse("PATCH", SYSTEM, 400, "Base.1.5.PropertyMissing", unless=lambda body: …)`` refuses requests;
``change`` alters the documents. What is not refused is carried out: power, boot override, virtual media, settings.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from tests.unit.hardware.redfish_bmc import BMC, ROOT, SYSTEM, documents, members, serving

MANAGER, CHASSIS = "/redfish/v1/Managers/1", "/redfish/v1/Chassis/1"
RESET = f"{SYSTEM}/Actions/ComputerSystem.Reset"
MEDIA = f"{SYSTEM}/VirtualMedia"
SETTINGS = f"{SYSTEM}/SD"
BIOS_SETTINGS = f"{SYSTEM}/Bios/Settings"
VOLUMES = f"{SYSTEM}/Storage/1/Volumes"
UPDATE = "/redfish/v1/UpdateService"
SIMPLE_UPDATE = f"{UPDATE}/Actions/UpdateService.SimpleUpdate"
OK = {"State": "Enabled", "Health": "OK"}
_TYPES = ["On", "ForceOff", "GracefulShutdown", "ForceRestart", "PowerCycle", "Nmi"]
_POWER = {"On": "On", "ForceOn": "On", "ForceRestart": "On", "PowerCycle": "On", "ForceOff": "Off",
          "GracefulShutdown": "Off"}


def ref(path: str) -> dict[str, str]:
    return {"@odata.id": path}


def drive(path: str, *kinds: str, **values: Any) -> dict[str, Any]:
    """Return a virtual drive, whose actions are below its path."""
    return {"Id": path.rpartition("/")[2], "Name": "Drive", "MediaTypes": list(kinds), "Inserted": False, "Image": None,
            "Actions": {f"#VirtualMedia.{verb}Media": {"target": f"{path}/{verb}"} for verb in ("Insert", "Eject")},
            **values}


def content() -> dict[str, Any]:
    """Return the documents of a BMC that conforms to the standard, with one machine that is off."""
    system = {
        "Manufacturer": "Vendor", "SerialNumber": "S1", "BiosVersion": "1", "UUID": None,
        "Boot": {"BootSourceOverrideTarget": "None", "BootSourceOverrideEnabled": "Disabled",
                 "BootSourceOverrideMode": "UEFI",
                 "BootSourceOverrideTarget@Redfish.AllowableValues": ["None", "Pxe", "Cd", "Hdd", "BiosSetup"]},
        "Actions": {"#ComputerSystem.Reset": {"target": RESET, "ResetType@Redfish.AllowableValues": list(_TYPES)}},
        "VirtualMedia": ref(MEDIA), "Bios": ref(f"{SYSTEM}/Bios"), "Storage": ref(f"{SYSTEM}/Storage"),
        "SecureBoot": ref(f"{SYSTEM}/SecureBoot"), "EthernetInterfaces": ref(f"{SYSTEM}/EthernetInterfaces"),
        "Links": {"ManagedBy": [ref(MANAGER)], "Chassis": [ref(CHASSIS)]}}
    found = documents(system, {
        "VirtualMedia": members(f"{MEDIA}/1", f"{MEDIA}/2", f"{MEDIA}/3"),
        **{f"VirtualMedia/{number}": drive(f"{MEDIA}/{number}", *kinds)
           for number, kinds in ((1, ("CD", "DVD")), (2, ("CD", "DVD")), (3, ("USBStick", "Floppy")))},
        "Bios": {"Id": "Bios", "Name": "Bios", "Attributes": {"VMX": "off", "Turbo": "on"},
                 "@Redfish.Settings": {"SettingsObject": ref(BIOS_SETTINGS), "SupportedApplyTimes": ["OnReset"]},
                 "Actions": {"#Bios.ResetBios": {"target": f"{SYSTEM}/Bios/Reset"}}},
        "Bios/Settings": {"Id": "Settings", "Name": "Settings", "Attributes": {}},
        "SecureBoot": {"Id": "SecureBoot", "Name": "S", "SecureBootEnable": False, "SecureBootCurrentBoot": "Disabled"},
        "EthernetInterfaces": members(f"{SYSTEM}/EthernetInterfaces/1"),
        "EthernetInterfaces/1": {"Id": "NIC.1", "Name": "NIC", "MACAddress": "52:54:00:aa:00:01", "Status": OK},
        "Storage": members(f"{SYSTEM}/Storage/1"),
        "Storage/1": {"Id": "1", "Name": "C", "Status": OK, "Volumes": ref(VOLUMES),
                      "Drives": [ref(f"{SYSTEM}/Storage/1/Drives/{number}") for number in (1, 2)]},
        **{f"Storage/1/Drives/{number}": {"Id": str(number), "Name": "D", "CapacityBytes": 20 * 1024**3, "Status": OK}
           for number in (1, 2)},
        "Storage/1/Volumes": {**members(), "@Redfish.OperationApplyTimeSupport": {
            "MaintenanceWindowResource": ref(SYSTEM), "SupportedValues": ["Immediate"]}},
        MANAGER: {"Id": "1", "Name": "M", "FirmwareVersion": "1", "Status": OK,
                  "Links": {"ManagerForServers": [ref(SYSTEM)]}},
        CHASSIS: {"Id": "1", "Name": "Chassis", "Status": OK},
        UPDATE: {"Id": "UpdateService", "Actions": {"#UpdateService.SimpleUpdate": {"target": SIMPLE_UPDATE}}}})
    found[ROOT]["UpdateService"] = ref(UPDATE)
    return found


class Script:
    """Deviations of a BMC."""

    def __init__(self, bmc: BMC) -> None:
        self.bmc = bmc
        self._rules: list[Callable[[str, str, Any], tuple[int, Any] | None]] = []
        bmc.answer = self._answer

    @property
    def system(self) -> dict[str, Any]:
        """The system, as the BMC shows it."""
        return dict(self.bmc.content[SYSTEM])

    def sent(self, path: str) -> list[Any]:
        """Return the bodies of the changes at a path."""
        return [body for _, where, body in self.bmc.told if where == path]

    def refuse(self, method: str, path: str, status: int, message: str, *, times: int | None = None,
               unless: Callable[[Any], bool] = lambda body: False, args: tuple[str, ...] = (),
               then: Callable[[], None] = lambda: None) -> None:
        """Refuse requests: the first ``times`` ones, or all, but not those for which ``unless`` is true."""
        left = [10**6 if times is None else times]

        def rule(asked: str, where: str, body: Any) -> tuple[int, Any] | None:
            if (asked, where) != (method, path) or not left[0] or unless(body):
                return None
            left[0] -= 1
            then()
            info = {"MessageId": message, "Message": f"It says {message}.", "MessageArgs": list(args)}
            return status, {"error": {"code": message, "message": "No.", "@Message.ExtendedInfo": [info]}}

        self._rules.append(rule)

    def ignore(self, method: str, path: str, *, unless: Callable[[Any], bool]) -> None:
        """Accept requests without effect."""
        self._rules.append(lambda asked, where, body: (204, None)
                           if (asked, where) == (method, path) and not unless(body) else None)

    def change(self, path: str, **values: Any) -> None:
        """Alter a document: None removes a key."""
        found = {**self.bmc.content.get(path, {}), **values}
        self.bmc.content[path] = {key: value for key, value in found.items() if value is not None}

    def change_boot(self, **values: Any) -> None:
        """Alter the boot override; ``targets`` are those that are offered."""
        targets = values.pop("targets", None)
        key = "BootSourceOverrideTarget@Redfish.AllowableValues"
        boot = {**self.system["Boot"], **values, **({} if targets is None else {key: targets})}
        self.change(SYSTEM, Boot={name: value for name, value in boot.items() if value is not None})

    def _answer(self, method: str, path: str, body: Any) -> tuple[int, Any] | None:
        for rule in self._rules:
            if (answer := rule(method, path, body)) is not None:
                return answer
        folder, _, verb = path.rpartition("/")
        if path == RESET:
            self.change(SYSTEM, PowerState=_POWER.get(body["ResetType"], self.system["PowerState"]))
        elif verb in ("Insert", "Eject") and folder in self.bmc.content:
            self.bmc.content[folder] |= {"Inserted": verb == "Insert", "Image": body["Image"] if body else None}
        return None


@contextlib.contextmanager
def deviating() -> Iterator[Script]:
    """Serve such a BMC."""
    with serving(content()) as bmc:
        yield Script(bmc)
