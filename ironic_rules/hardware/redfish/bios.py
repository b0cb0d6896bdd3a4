"""``redfish`` BIOS: the ``Attributes`` of the system's ``Bios`` resource."""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from oslo_log import log

from ironic_rules.db import clock
from ironic_rules.exceptions import HardwareFailed, InvalidParameterValue
from ironic_rules.hardware.bios_steps import BIOSSteps
from ironic_rules.hardware.redfish import attributes, bios_registry, power
from ironic_rules.hardware.redfish.client import RedfishInterface, documents
from ironic_rules.models import states
from ironic_rules.models.documents import JSON, JSONObject
from ironic_rules.models.nodes import BIOSSetting
from ironic_rules.models.task import Task
from ironic_rules.text import printable

LOG = log.getLogger(__name__)

_LIMIT = "[redfish]configuration_timeout"
_MAX_TEXT = 300
#: ``Severity`` of a message about settings that were not applied, unless it is about the reset that they require.
_REFUSED = frozenset({"Warning", "Critical"})
_OF_RESET = ("reset", "reboot")
#: ``BootProgress.LastState`` of a machine that has started, and the ends of those of one that starts.
_STARTED = frozenset({"OSBootStarted", "OSRunning", "SetupEntered"})
_STARTING = ("InitializationStarted", "ConfigStarted")
#: Seconds for which a BMC may report the progress of the start before.
_STALE_S = 30


class RedfishBIOS(RedfishInterface, BIOSSteps):
    """Writes the pending settings and reboots the machine, which applies them."""

    def write_settings(self, task: Task, settings: dict[str, Any]) -> str | None:
        with self.system(task) as system:
            bios = system.bios
            present = bios.attributes or {}
            if unknown := sorted(set(settings) - set(present)):
                raise InvalidParameterValue(f"The BIOS has no setting {printable(', '.join(unknown))}.")
            wanted = attributes.converted(settings, present)
            changed = {name: wanted[name] for name in attributes.differing(wanted, present)}
            if not changed:
                return None
            on_reset = self.sushy.ApplyTime.ON_RESET
            bios.set_attributes(changed, on_reset if on_reset in (bios.supported_apply_times or ()) else None)
            what = {"path": bios.path, "settings": changed, "told_before": _told(bios.json)}
        return self._reboot(task, what)

    def reset_settings(self, task: Task) -> str | None:
        # No BMC reports the default values.
        with self.system(task) as system:
            bios = system.bios
            what = {"system": system.path, "bios": bios.path, "before": _digest(bios.attributes)}
            bios.reset_bios()
        return self._reboot(task, {**what, "begun_at": clock.now().isoformat()})

    def poll(self, task: Task, what: Mapping[str, Any]) -> str | None:
        if "system" in what:
            return self._poll_reset(task, what)
        _, bios = self.read(task, what["path"])
        present = bios.get("Attributes")
        left = attributes.differing(what["settings"], present if isinstance(present, dict) else {})
        if not left:
            return None
        told = _told(bios)
        if told is not None and told != what["told_before"]:
            raise HardwareFailed(node=task.node.uuid, reason=f"it did not apply the settings: {told}")
        return f"the BMC does not report the requested value of {printable(', '.join(left), _MAX_TEXT)}."

    def _poll_reset(self, task: Task, what: Mapping[str, Any]) -> str | None:
        """Return None when other settings are reported than before the reset, or the machine has started since.

        Settings are applied while the machine starts. They do not change if they had their default values before, so
        the end of the start counts too, or, for a BMC that does not report it, the time that a machine takes for it.
        """
        _, system = self.read(task, what["system"])
        if off := power.missing(system, states.POWER_ON):
            return off
        if "bios" not in what:
            return None  # an earlier version has begun it
        told = self.read(task, what["bios"])[1].get("Attributes")
        # While it starts, a BMC may have none to report.
        if told and _digest(told) != what["before"]:
            return None
        passed_s = (clock.now() - datetime.datetime.fromisoformat(what["begun_at"])).total_seconds()
        progress = system.get("BootProgress")
        state = str(progress.get("LastState")) if isinstance(progress, dict) else ""
        if state in _STARTED:
            enough_s = _STALE_S
        elif state.endswith(_STARTING):
            return f"the BMC reports the settings from before the reset, and that the machine starts ({state})."
        else:
            options = self.conf.redfish
            enough_s = min(options.factory_reset_wait, options.configuration_timeout)
        if passed_s >= enough_s:
            return None
        return "the BMC reports the settings from before the reset, and not when the machine has started."

    def read_settings(self, task: Task) -> list[BIOSSetting]:
        with self.system(task) as system:
            bios = system.bios.json
            present = bios.get("Attributes") or {}
            entries = self._registry(task, system, bios.get("AttributeRegistry"))
        found = (bios_registry.setting(name, value, entries.get(name, {})) for name, value in present.items())
        return [setting for setting in found if setting is not None]

    def _registry(self, task: Task, system: Any, name: Any) -> dict[str, Mapping[str, Any]]:
        """Return what is known about the settings: nothing if the BMC does not have it."""
        errors = self.sushy.exceptions
        try:
            return bios_registry.attributes(documents(system), self.root(task), name)
        except (errors.ConnectionError, errors.AccessError, errors.MissingXAuthToken):
            raise
        except errors.SushyError as exc:
            # Without the text: a BMC may return what was sent to it.
            LOG.warning("The BMC of node %s does not provide its registry of BIOS attributes: %s", task.node.uuid,
                        type(exc).__name__)
            return {}

    def _reboot(self, task: Task, what: JSONObject) -> str:
        return self.reboot_and_wait(task, what, self.conf.redfish.configuration_timeout, _LIMIT)


def _digest(attributes: Any) -> str:
    """Return what the settings are compared by: there may be hundreds of them."""
    return hashlib.sha256(json.dumps(attributes, sort_keys=True).encode()).hexdigest()


def _told(bios: Mapping[str, JSON]) -> str | None:
    """Return the time of the BMC's last attempt to apply settings and why it did not; None if it reports no problem."""
    found = bios.get("@Redfish.Settings")
    if not isinstance(found, dict):
        return None
    messages = found.get("Messages")
    for message in messages if isinstance(messages, list) else ():
        if isinstance(message, dict) and str(message.get("Severity") or message.get("MessageSeverity")) in _REFUSED:
            text = " ".join(str(message.get(key)) for key in ("Message", "MessageId") if message.get(key))
            if any(word in text.lower() for word in _OF_RESET):
                continue
            return printable(f"{text} ({found.get('Time') or 'no time'})", _MAX_TEXT)
    return None
