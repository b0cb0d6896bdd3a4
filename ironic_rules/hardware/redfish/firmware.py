"""``redfish`` firmware: the versions of the BIOS, the BMC and the network adapters, and their updates.

The BMC loads each image itself and installs it (``UpdateService.SimpleUpdate``). A component takes up to three phases,
each of them a poll: the BMC's task, a reboot of the machine that lets it apply the image (not for the BMC itself, which
restarts on its own), and the wait that the settings request. The progress is in the node, so any conductor continues.
"""

from __future__ import annotations

import datetime
import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from oslo_log import log

from ironic_rules.db import clock
from ironic_rules.exceptions import BMCError, InvalidParameterValue, Problem
from ironic_rules.hardware import destinations
from ironic_rules.hardware.agent import image
from ironic_rules.hardware.base import FirmwareInterface
from ironic_rules.hardware.redfish import power, quirks, reading
from ironic_rules.hardware.redfish.client import GONE, RedfishInterface, documents
from ironic_rules.models import states
from ironic_rules.models.documents import JSON, JSONObject
from ironic_rules.models.nodes import FirmwareComponent
from ironic_rules.models.task import Task
from ironic_rules.steps import declaration, procedures
from ironic_rules.steps.declaration import requested_step
from ironic_rules.text import printable

LOG = log.getLogger(__name__)

#: More adapters than a machine has.
_MOST_ADAPTERS = 32
#: Leaves room for the note of a text that is cut off.
_LONGEST = 200


class FirmwareVersions(RedfishInterface, FirmwareInterface):
    """Reads what each resource itself reports: inventories of firmware differ from vendor to vendor."""

    def read_components(self, task: Task) -> list[FirmwareComponent]:
        with self.system(task) as system:
            versions = {"bios": system.bios_version,
                        "bmc": next((manager.firmware_version for manager in system.managers), None)}
            versions.update(self._adapters(task, system))
        return [FirmwareComponent(name, printable(version, _LONGEST)) for name, version in versions.items()
                if isinstance(version, str) and version]

    def _adapters(self, task: Task, system: Any) -> JSONObject:
        read, errors = documents(system), self.sushy.exceptions
        by_name: JSONObject = {}
        try:
            for adapter in _adapters(read, system.json):
                versions = (_at(entry, "FirmwarePackageVersion") for entry in _list(adapter, "Controllers"))
                if isinstance(name := adapter.get("Id"), str):
                    by_name[printable(f"nic:{name}", _LONGEST)] = next(filter(None, versions), None)
        except (errors.ConnectionError, errors.AccessError, errors.MissingXAuthToken):
            raise
        except errors.SushyError as exc:
            # Without the text: a BMC may return what was sent to it.
            LOG.warning("The BMC of node %s does not report its network adapters: %s", task.node.uuid,
                        type(exc).__name__)
        return by_name


def _adapters(read: Callable[[str], Any], system: Mapping[str, JSON]) -> Iterator[Mapping[str, Any]]:
    remaining = _MOST_ADAPTERS
    for chassis in _list(_at(system, "Links"), "Chassis"):
        path = _at(_at(_read(read, chassis), "NetworkAdapters"), "@odata.id")
        for member in _list(read(path), "Members")[:remaining] if isinstance(path, str) else ():
            remaining -= 1
            yield _read(read, member)


def _read(read: Callable[[str], Any], reference: Any) -> Mapping[str, Any]:
    path = _at(reference, "@odata.id")
    document = read(path) if isinstance(path, str) else None
    return document if isinstance(document, Mapping) else {}


def _list(document: JSON, key: str) -> list[Any]:
    entries = _at(document, key)
    return entries if isinstance(entries, list) else []


def _at(document: JSON, key: str) -> Any:
    return document.get(key) if isinstance(document, Mapping) else None


_MAX_WAIT_S = 1800
_SETTINGS = {
    "description": "a list of one or more objects", "type": "array", "minItems": 1, "maxItems": 50,
    "items": {
        "description": "an object with component, url and, optionally, wait", "type": "object",
        "required": ["component", "url"], "additionalProperties": False,
        "properties": {
            "component": declaration.TEXT_ARGUMENT,
            "url": {"description": "an HTTP or HTTPS URL", "type": "string", "pattern": "^https?://[^/]"},
            "wait": {"description": f"seconds, 0 to {_MAX_WAIT_S}", "type": "integer", "minimum": 0,
                     "maximum": _MAX_WAIT_S}},
    },
}
_TASK, _REBOOT, _WAIT = "task", "reboot", "wait"
#: ``TaskState`` of a task that waits for the reboot of the machine.
_STAGED = frozenset({"Pending", "Suspended"})
#: Seconds that a machine may take to start with new firmware, if its BMC had no task for that.
_START_S = 300
_ACTION = "#UpdateService.SimpleUpdate"


class RedfishFirmware(FirmwareVersions):
    """Updates one component after the other, in the order of the settings."""

    @requested_step({
        "settings": {"description": "What to update, a list of objects with component, url and, optionally, wait: "
                                    "seconds after this update.", "required": True, "schema": _SETTINGS},
    })
    def update(self, task: Task, settings: list[JSONObject]) -> str:
        """Update the firmware of the BIOS, the BMC or network adapters."""
        image.check_urls(self.conf, {f"/args/settings/{index}/url": setting["url"]
                                     for index, setting in enumerate(settings)})
        components = self._versions(task)
        problems = [Problem(f"/args/settings/{index}/component", f"the machine has no such component; it has "
                            f"{', '.join(sorted(components)) or 'none'}")
                    for index, setting in enumerate(settings) if setting["component"] not in components]
        if problems:
            raise InvalidParameterValue(problems=problems)
        return self._send(task, settings, 0)

    def continue_step(self, task: Task, step: str, args: Mapping[str, Any]) -> str | None:
        ended = procedures.pending_poll(task.node.driver_internal_info)
        waits = super().continue_step(task, step, args)
        if waits is not None or ended is None:
            return waits
        awaited, settings = ended.what, args["settings"]
        index, phase = awaited["index"], awaited["phase"]
        setting = settings[index]
        if phase == _TASK and setting["component"] != "bmc":
            return self._reboot(task, setting, awaited)
        if phase != _WAIT and setting.get("wait"):
            return self._pause(task, setting, awaited)
        if not awaited.get("has_task", True):
            self._compare(task, setting, awaited)
        if index + 1 < len(settings):
            return self._send(task, settings, index + 1)
        return None

    def poll(self, task: Task, awaited: Mapping[str, Any]) -> str | None:
        if awaited["phase"] == _WAIT:
            left_s = (datetime.datetime.fromisoformat(awaited["until"]) - clock.now()).total_seconds()
            return None if left_s <= 0 else f"{awaited['name']}: {left_s:.0f} seconds are left to wait."
        if awaited["phase"] == _REBOOT:
            _, system = self.read(task, awaited["system"])
            if off := power.missing(system, states.POWER_ON):
                return off
        if awaited["task"] is None:
            starts = awaited["phase"] == _REBOOT and not awaited.get("has_task", True)
            return self._not_started(task, awaited) if starts else None
        status, body = self.read(task, awaited["task"])
        if status in GONE:
            return self._lost(task, awaited)
        if not reading.task_is_running(task.node.uuid, awaited["name"], status, body):
            return None
        state = printable(str(body.get("TaskState") or "running"), 64)
        if state in _STAGED and awaited["phase"] == _TASK and awaited["component"] != "bmc":
            return None
        return f"{awaited['name']}: its task has not ended ({state})."

    def _versions(self, task: Task) -> dict[str, str | None]:
        return {component.component: component.current_version for component in self.read_components(task)}

    def _lost(self, task: Task, awaited: Mapping[str, Any]) -> str | None:
        """Return None if the component has another version than before: a BMC forgets its tasks when it restarts."""
        now = self._versions(task).get(awaited["component"])
        if now is not None and now != awaited["version"]:
            return None
        return f"{awaited['name']}: the BMC no longer knows its task, and reports the version {now}, as before."

    def _not_started(self, task: Task, awaited: Mapping[str, Any]) -> str | None:
        """Return None when another version is reported, or after the time that a machine takes to start with it."""
        passed_s = (clock.now() - datetime.datetime.fromisoformat(awaited["rebooted_at"])).total_seconds()
        now = self._versions(task).get(awaited["component"])
        if passed_s >= _START_S or (now is not None and now != awaited["version"]):
            return None
        return f"{awaited['name']}: the BMC reports the version {awaited['version']}, as before."

    def _compare(self, task: Task, setting: Mapping[str, Any], awaited: Mapping[str, Any]) -> None:
        """Add a notice about an update for which the BMC had no task, and so no outcome."""
        try:
            now = self._versions(task).get(setting["component"])
        except BMCError as exc:
            task.notices.append(f"Whether {_name(setting)} has succeeded is unknown: {exc}")
            return
        if now is None or now == awaited["version"]:
            task.notices.append(f"Whether {_name(setting)} has succeeded is unknown: the BMC had no task for it, and "
                                f"reports {'no version' if now is None else f'the version {now}, as before'}.")

    def _send(self, task: Task, settings: list[JSONObject], index: int) -> str:
        setting = settings[index]
        if index:  # much time may have passed since the check of all
            destinations.check(self.conf, {f"/args/settings/{index}/url": setting["url"]})
        versions = self._versions(task)
        with self.system(task) as system:
            connector, read = system._conn, documents(system)
            target = read(_path(self.root(task)["UpdateService"]["@odata.id"])).get("Actions", {}).get(_ACTION, {})
            if "target" not in target:
                raise BMCError(node=task.node.uuid, reason="its update service does not load images (SimpleUpdate).")
            # Without a protocol at first: the URL has it, and some BMCs refuse the parameter.
            body = {"ImageURI": setting["url"], **_targets(read, self.root(task), system)}
            protocol = {"TransferProtocol": setting["url"].partition(":")[0].upper()}
            change = self.change(quirks.FIRMWARE, [
                quirks.Form(name, functools.partial(connector.post, _path(target["target"]), data={**body, **more}))
                for name, more in (("URL", {}), ("URL and protocol", protocol))])
            begun = reading.task_location(change.reply)
        return self._begin(task, setting, {
            "index": index, "phase": _TASK, "task": begun, "has_task": begun is not None,
            "version": versions.get(setting["component"])})

    def _reboot(self, task: Task, setting: Mapping[str, Any], awaited: Mapping[str, Any]) -> str:
        begun = awaited["task"]
        if begun is not None:
            status, body = self.read(task, begun)
            if status in GONE or not reading.task_is_running(task.node.uuid, _name(setting), status, body):
                begun = None
        with self.system(task) as system:
            path = system.path
        return self._begin(task, setting, {**awaited, "phase": _REBOOT, "task": begun, "system": path,
                                           "rebooted_at": clock.now().isoformat()})

    def _pause(self, task: Task, setting: Mapping[str, Any], awaited: Mapping[str, Any]) -> str:
        until = clock.now() + datetime.timedelta(seconds=setting["wait"])
        constant = {name: awaited[name] for name in ("index", "version", "has_task") if name in awaited}
        return self._begin(task, setting, {**constant, "phase": _WAIT, "until": until.isoformat()})

    def _begin(self, task: Task, setting: Mapping[str, object], awaited: JSONObject) -> str:
        """Begin a phase: store what to poll in it, and what is done; return the wait state."""
        # The time-out is not that of the requested wait.
        timeout_s = self.conf.redfish.firmware_update_timeout + (setting["wait"] if awaited["phase"] == _WAIT else 0)
        awaited |= {"name": _name(setting), "component": setting["component"]}
        wait = self.reboot_and_wait if awaited["phase"] == _REBOOT else self.wait_for
        return wait(task, awaited, timeout_s, "[redfish]firmware_update_timeout")


def _targets(read: Callable[[str], Any], root: Mapping[str, Any], system: Any) -> JSONObject:
    """Return the parameters that limit an update to a system; none if the BMC has no other one."""
    systems = _at(_at(root, "Systems"), "@odata.id")
    several = isinstance(systems, str) and len(_list(read(systems), "Members")) > 1
    return {"Targets": [str(system.path)]} if several else {}


def _name(setting: Mapping[str, object]) -> str:
    return f"the update of {printable(setting['component'], 64)}"


def _path(path: str) -> str:
    """Return a path of the BMC.

    :raises ValueError: it is not one: sushy would send the credentials to the host of a URL
    """
    if not path.startswith("/") or path.startswith("//"):
        raise ValueError(f"{printable(path, 100)} is not one of its paths")
    return path
