"""``redfish`` management: boot device, boot mode, the BMC's clock, MAC addresses."""

from __future__ import annotations

import datetime
import functools
from collections.abc import Mapping, Sequence
from typing import Any

from oslo_log import log

from ironic_rules.exceptions import BMCError, InvalidParameterValue
from ironic_rules.hardware.base import DEVICE_TYPES, ManagementInterface, boot_device_args
from ironic_rules.hardware.boot import device as boot_device
from ironic_rules.hardware.redfish import inspect, virtual_media
from ironic_rules.hardware.redfish.client import RedfishInterface, documents
from ironic_rules.hardware.redfish.quirks import (
    ALL_THREE,
    BOOT_DEVICE,
    BOOT_MODE,
    POWER,
    SECURE_BOOT,
    Form,
    Made,
    first_form,
    service_tag,
)
from ironic_rules.hardware.redfish.reading import ReadLimits
from ironic_rules.models import machine_ids
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.task import Task
from ironic_rules.steps import declaration
from ironic_rules.steps.declaration import requested_step

LOG = log.getLogger(__name__)

_DEVICES = {"pxe": "Pxe", "disk": "Hdd", "cdrom": "Cd", "bios": "BiosSetup"}
_NAMES = {**{value: name for name, value in _DEVICES.items()}, "UsbCd": "cdrom"}
_MODES = {"uefi": "UEFI", "bios": "Legacy"}
#: Properties of a boot override.
_TARGET, _DURATION, _MODE = "BootSourceOverrideTarget", "BootSourceOverrideEnabled", "BootSourceOverrideMode"
_ALWAYS, _ONCE = "Continuous", "Once"
_USB_CD = "UsbCd"
_CDS = frozenset({"Cd", _USB_CD})
_TIME = {"description": "a time with an offset, such as 2026-11-21T12:00:00+00:00", "type": ["string", "null"],
         "format": "date-time"}
#: The length excludes a trailing line feed, before which ``$`` also matches.
_OFFSET = {"description": "an offset such as +01:00", "type": ["string", "null"], "maxLength": 6,
           "pattern": "^[+-](0[0-9]|1[0-4]):[0-5][0-9]$"}


class RedfishManagement(RedfishInterface, ManagementInterface):
    """Writes the boot override of the system."""

    def get_supported_boot_devices(self, task: Task) -> list[str]:
        return list(_DEVICES)

    def get_boot_device(self, task: Task) -> JSONObject:
        with self.system(task) as system:
            boot = system.boot
            target, enabled = (getattr(value, "value", value) for value in (boot.target, boot.enabled))
        if enabled == "Disabled" or target not in _NAMES:
            return {"boot_device": None, "persistent": None}
        return {"boot_device": _NAMES[target], "persistent": None if enabled is None else enabled == "Continuous"}

    @requested_step(boot_device_args(declaration.one_of(_DEVICES)), rerunnable=True)
    def set_boot_device(self, task: Task, device: str, persistent: bool = False) -> None:
        if device not in _DEVICES:
            raise InvalidParameterValue(f"Unknown boot device '{device}'. Valid: {', '.join(_DEVICES)}.")
        change = self._override(task, device, (_ALWAYS, _ONCE) if persistent else (_ONCE,))
        if not persistent:
            boot_device.keep_for_next_boot(task)
        elif change.form.name.endswith(_ONCE):
            boot_device.renew_before_boots(task, device)
            self._warn(task, f"The BMC sets the boot device {device} for one boot only; it is set again before each "
                             "boot that this service begins, but not before others.")
        else:
            boot_device.stop_renewing(task)

    def renew_boot_device(self, task: Task, device: str) -> None:
        try:
            self._override(task, device, (_ONCE,))
        except BMCError as exc:
            self._warn(task, f"The boot device {device} was not set again: {exc}")

    def _override(self, task: Task, device: str, durations: Sequence[str]) -> Made:
        """Set the boot device for the first of some durations that the BMC accepts."""
        with self.system(task) as system:
            overrides = _Overrides(self.sushy, system)
            first = first_form(BOOT_DEVICE, (task.node.properties.get("vendor"), system.manufacturer))
            forms = [form for duration in durations for form in sorted(
                overrides.of_device(_target(system, device), duration),
                key=lambda form: first is None or not form.name.startswith(first))]
            change = self.change(BOOT_DEVICE, forms, is_shown_at_once=True)
            if not change.is_shown:
                self._warn(task, f"The BMC has accepted the boot device {device}, and does not show it.")
            return change

    def _warn(self, task: Task, text: str) -> None:
        LOG.warning("Node %s: %s", task.node.uuid, text)
        task.notices.append(text)

    def inject_nmi(self, task: Task) -> None:
        with self.system(task) as system:
            offered = {getattr(kind, "value", kind) for kind in system.get_allowed_reset_system_values()}
            if "Nmi" not in offered:
                raise BMCError(node=task.node.uuid, reason="it does not offer Nmi.")
            self.change(POWER, [Form("Nmi", functools.partial(system.reset_system, self.sushy.ResetType.NMI))])

    def get_virtual_media(self, task: Task) -> list[JSONObject]:
        with self.system(task) as system:
            return virtual_media.drives(self, task, system)

    def attach_virtual_media(self, task: Task, device_type: str, image_url: str) -> None:
        with self.system(task) as system:
            virtual_media.insert(self, task, system, device_type, image_url)

    def detach_virtual_media(self, task: Task, device_types: Sequence[str] = ()) -> None:
        with self.system(task) as system:
            virtual_media.eject(self, task, system, device_types or DEVICE_TYPES)

    def get_secure_boot(self, task: Task) -> bool | None:
        with self.system(task) as system:
            if "SecureBoot" not in system.json:
                return None
            return None if system.secure_boot.enabled is None else bool(system.secure_boot.enabled)

    def set_secure_boot(self, task: Task, is_on: bool) -> None:
        with self.system(task) as system:
            if "SecureBoot" not in system.json:
                raise self.refuse(task, "set_secure_boot")
            secure_boot = system.secure_boot

            def send() -> None:
                secure_boot.refresh(force=False)
                try:
                    secure_boot.set_enabled(is_on)
                finally:
                    secure_boot.invalidate()

            self.change(SECURE_BOOT, [Form("enabled", send)])

    def machine_ids(self, task: Task) -> set[str]:
        with self.system(task) as system:
            tag = service_tag(system.manufacturer, system.sku)
            return machine_ids.of(system.serial_number, system.uuid) | machine_ids.of(tag, None)

    def get_mac_addresses(self, task: Task) -> list[str]:
        errors = self.sushy.exceptions
        with self.system(task) as system:
            try:
                # Interfaces with a health of OK: address -> state
                interfaces = system.ethernet_interfaces.summary if "EthernetInterfaces" in system.json else {}
                if not interfaces:
                    return self._of_adapters(task, system)
            except (errors.ConnectionError, errors.AccessError, errors.MissingXAuthToken):
                raise
            except (errors.SushyError, AttributeError, KeyError, TypeError, ValueError) as exc:
                # Without the text: a BMC may return what was sent to it.
                LOG.warning("The BMC of node %s does not report its network interfaces: %s", task.node.uuid,
                            type(exc).__name__)
                return []
        return [address for address, state in interfaces.items() if getattr(state, "value", state) == "Enabled"]

    def _of_adapters(self, task: Task, system: Any) -> list[str]:
        options = self.conf.redfish
        limits = ReadLimits(options.inspection_requests_at_once, options.inspection_max_requests,
                            options.inspection_timeout)
        addresses = inspect.mac_addresses(documents(system), self.why_not, limits, self.root(task), system)
        if not addresses:
            LOG.warning("The BMC of node %s does not report its network interfaces", task.node.uuid)
        return addresses

    def get_supported_boot_modes(self, task: Task) -> list[str]:
        return list(_MODES)

    def get_boot_mode(self, task: Task) -> str | None:
        with self.system(task) as system:
            return _boot_mode(system)

    @requested_step({
        "mode": {"description": "uefi or bios.", "required": True, "schema": declaration.one_of(_MODES)},
    }, rerunnable=True)
    def set_boot_mode(self, task: Task, mode: str) -> None:
        if mode not in _MODES:
            raise InvalidParameterValue(f"Unknown boot mode '{mode}'. Valid: {', '.join(_MODES)}.")
        with self.system(task) as system:
            if _boot_mode(system) == mode:
                return
            change = self.change(BOOT_MODE, _Overrides(self.sushy, system).of_mode(_MODES[mode]), is_shown_at_once=True)
            if not change.is_shown:
                self._warn(task, f"The BMC has accepted the boot mode {mode}, and does not show it.")

    @requested_step({
        "target_datetime": {"description": "The time to set, such as 2026-11-21T12:00:00+00:00. Default: now.",
                            "schema": _TIME},
        "datetime_local_offset": {"description": "The offset of the BMC's time zone, such as +01:00.",
                                  "schema": _OFFSET},
    }, rerunnable=True)
    def set_bmc_clock(self, task: Task, target_datetime: str | None = None,
                      datetime_local_offset: str | None = None) -> None:
        """Set the clock of the BMC."""
        time = (datetime.datetime.fromisoformat(target_datetime) if target_datetime is not None
                else datetime.datetime.now(datetime.UTC))
        with self.system(task) as system:
            managers = system.managers
            if not managers:
                raise BMCError(node=task.node.uuid, reason="it does not report which manager the system has.")
            managers[0].set_datetime(time.isoformat(timespec="seconds"), datetime_local_offset)


def _target(system: Any, device: str) -> str:
    """Return the BMC's name of a device: some virtual CD drives are offered as ``UsbCd`` only."""
    name = _DEVICES[device]
    offered = {getattr(kind, "value", kind) for kind in (system.boot.allowed_values if system.boot else None) or ()}
    return _USB_CD if name == "Cd" and name not in offered and _USB_CD in offered else name


class _Overrides:
    """The forms in which the override of a system's boot can be requested."""

    def __init__(self, sushy: Any, system: Any) -> None:
        self._sushy = sushy
        self._system = system
        link = system.json.get("@Redfish.Settings")
        link = link.get("SettingsObject") if isinstance(link, dict) else None
        path = link.get("@odata.id") if isinstance(link, dict) else None
        self._settings = path if isinstance(path, str) and path.startswith("/") else None
        self._now = _boot_of(system.json)

    def of_device(self, target: str, duration: str) -> list[Form]:
        """Return the forms for a device, whose names end with the duration."""
        requested = {_TARGET: target, _DURATION: duration}
        bodies = {"target and duration": requested}
        if self._now.get(_MODE) is not None:
            bodies[ALL_THREE] = {**requested, _MODE: self._now[_MODE]}
        differing = {name: value for name, value in requested.items() if self._now.get(name) != value}
        if len(differing) == 1:
            bodies["what differs"] = differing
        return self._forms(bodies, requested, f", {duration}")

    def of_mode(self, mode: str) -> list[Form]:
        """Return the forms for a boot mode."""
        bodies = {"mode": {_MODE: mode}}
        if all(isinstance(self._now.get(name), str) for name in (_TARGET, _DURATION)):
            bodies[ALL_THREE] = {_MODE: mode, _TARGET: self._now[_TARGET], _DURATION: self._now[_DURATION]}
        return self._forms(bodies, {_MODE: mode}, "")

    def _forms(self, bodies: Mapping[str, Mapping[str, Any]], requested: Mapping[str, str], suffix: str) -> list[Form]:
        # A BMC that does not report an override does not show a change of it.
        reports = next(iter(requested)) in self._now
        is_done = functools.partial(self._shows, requested) if reports else None
        forms = [Form(name + suffix, functools.partial(self._send, body), is_done) for name, body in bodies.items()]
        if self._settings is not None:
            body = bodies.get(ALL_THREE) or next(iter(bodies.values()))
            forms.append(Form(f"settings resource{suffix}", functools.partial(self._send_settings, body), is_done))
        return forms

    def _send(self, body: Mapping[str, str]) -> None:
        options = {"target": (self._sushy.BootSource, _TARGET), "mode": (self._sushy.BootSourceOverrideMode, _MODE),
                   "enabled": (self._sushy.BootSourceOverrideEnabled, _DURATION)}
        self._system.refresh(force=False)
        try:
            self._system.set_system_boot_options(
                **{name: kind(body[key]) for name, (kind, key) in options.items() if key in body})
        finally:
            # With its ETag, which changes with each change of the resource.
            self._system.invalidate()

    def _send_settings(self, body: Mapping[str, str]) -> None:
        connector = self._system._conn
        etag = connector.get(self._settings).headers.get("ETag")
        connector.patch(self._settings, data={"Boot": dict(body)}, etag=etag)

    def _shows(self, requested: Mapping[str, str]) -> bool:
        self._system.refresh(force=True)
        documents = [self._system.json]
        if self._settings is not None:
            documents.append(self._system._conn.get(self._settings).json())
        return any(all(_is_shown(name, value, _boot_of(document).get(name)) for name, value in requested.items())
                   for document in documents)


def _boot_of(document: object) -> Mapping[str, Any]:
    boot = document.get("Boot") if isinstance(document, dict) else None
    return boot if isinstance(boot, dict) else {}


def _is_shown(name: str, requested: str, shown: object) -> bool:
    if name == _TARGET and requested in _CDS:
        return shown in _CDS
    # Some BMCs report any override as a permanent one.
    return shown == requested or (name == _DURATION and shown == _ALWAYS)


def _boot_mode(system: Any) -> str | None:
    mode = system.boot.mode if system.boot else None
    return inspect.boot_mode(getattr(mode, "value", mode))
