"""``redfish`` BIOS: the ``Attributes`` of the system's ``Bios`` resource, and the BMC's registry of them.

The registry has the type, the bounds and the values of each setting. Requests often have the text ``"1"`` where a BMC
has the number 1, and a BMC may refuse a value of the wrong type, or accept it and report the right one: requested
values are compared by type, and sent as the BMC represents them.
"""

from __future__ import annotations

import datetime
import functools
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from oslo_log import log

from ironic_rules.db import clock
from ironic_rules.exceptions import HardwareFailed, InvalidParameterValue
from ironic_rules.hardware.declared_steps import BIOSSteps
from ironic_rules.hardware.redfish import power, quirks
from ironic_rules.hardware.redfish.client import RedfishInterface, documents
from ironic_rules.hardware.redfish.inspect import SECRET
from ironic_rules.models import states
from ironic_rules.models.documents import JSON, JSONObject
from ironic_rules.models.nodes import BIOSSetting, as_text
from ironic_rules.models.task import Task
from ironic_rules.text import printable

#: Number of registries that are looked at: BMCs have up to a hundred of them, most of messages.
_MOST_FILES = 4
_LONGEST = 255
_LARGEST = 2**63 - 1

Read = Callable[[str], Any]


def registry_attributes(read: Read, root: Mapping[str, JSON], name: object) -> dict[str, Mapping[str, Any]]:
    """Return the entries of the registry ``name`` by the names of their attributes; none if the BMC does not have it.

    :param read: returns a JSON document of the BMC
    :param root: the service root
    """
    if not isinstance(name, str) or not name:
        return {}
    collection = _path(root.get("Registries"))
    paths = [] if collection is None else [path for member in _objects(read(collection), "Members")
                                           if (path := _path(member)) is not None]
    exact = [path for path in paths if path.rstrip("/").rpartition("/")[2] == name]
    likely = [path for path in paths if "bios" in path.lower() or "attribute" in path.lower()]
    for path in [*exact, *(path for path in likely if path not in exact)][:_MOST_FILES]:
        file = read(path)
        for place in _objects(file, "Location"):
            if str(place.get("Language", "en")).lower().startswith("en") and isinstance(place.get("Uri"), str):
                document = read(place["Uri"])
                if name in (file.get("Registry"), file.get("Id"), _get(document, "Id")):
                    return {entry["AttributeName"]: entry for entry in _objects(
                        _get(document, "RegistryEntries"), "Attributes") if isinstance(entry.get("AttributeName"), str)}
    return {}


def registry_setting(name: str, value: JSON, entry: Mapping[str, JSON]) -> BIOSSetting | None:
    """Return a setting with what its registry ``entry`` says; a password has no value. None: it cannot be stored."""
    if len(name) > _LONGEST or printable(name) != name:
        return None
    allowed = [str(choice["ValueName"]) for choice in _objects(entry, "Value") if "ValueName" in choice]
    kind = entry.get("Type")
    if kind == "Password" or SECRET.search(name):
        # Neither a password nor its hash is stored.
        value = None
    return BIOSSetting(
        name, as_text(value), attribute_type=kind[:_LONGEST] if isinstance(kind, str) else None,
        allowable_values=tuple(allowed) if allowed else None,
        lower_bound=_number(entry, "LowerBound"), max_length=_number(entry, "MaxLength"),
        min_length=_number(entry, "MinLength"), read_only=_boolean(entry, "ReadOnly"),
        reset_required=_boolean(entry, "ResetRequired"), unique=_boolean(entry, "IsSystemUniqueProperty"),
        upper_bound=_number(entry, "UpperBound"))


def _objects(document: JSON, key: str) -> Iterator[Mapping[str, Any]]:
    entries = _get(document, key)
    yield from (entry for entry in entries if isinstance(entry, Mapping)) if isinstance(entries, list) else ()


def _get(document: JSON, key: str) -> Any:
    return document.get(key) if isinstance(document, Mapping) else None


def _path(reference: Any) -> str | None:
    path = _get(reference, "@odata.id")
    return path if isinstance(path, str) else None


def _number(entry: Mapping[str, JSON], key: str) -> int | None:
    value = entry.get(key)
    # In Python, true is a number.
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value:
        return None
    return int(value) if abs(value) <= _LARGEST else None


def _boolean(entry: Mapping[str, JSON], key: str) -> bool | None:
    value = entry.get(key)
    return value if isinstance(value, bool) else None


_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


def converted_settings(settings: Mapping[str, JSON], present: Mapping[str, JSON]) -> JSONObject:
    """Return requested settings with values of the types that the BMC reports now.

    :param present: the settings that the BMC reports; all of ``settings`` are among them
    :raises InvalidParameterValue: a value cannot have that type
    """
    return {name: _as_type(name, value, present[name]) for name, value in settings.items()}


def differing_settings(settings: Mapping[str, Any], present: Mapping[str, Any]) -> list[str]:
    """Return the names of the settings that the BMC does not report with the requested value, whatever its type."""
    return sorted(name for name, value in settings.items() if name not in present or not _is_same(value, present[name]))


def _is_same(requested: object, reported: object) -> bool:
    try:
        requested = _as_type("", requested, reported)
    except InvalidParameterValue:
        return False
    return bool(requested == reported) and isinstance(requested, bool) == isinstance(reported, bool)


def _as_type(name: str, value: Any, reported: Any) -> Any:
    """Return a value with the type of the one that is reported; null has no type."""
    if value is None or reported is None or type(value) is type(reported):
        return value
    if isinstance(reported, bool):
        boolean = _BOOLEANS.get(str(value).lower())
        if boolean is None:
            raise _wrong(name, "true or false")
        return boolean
    if _is_number(reported):
        try:
            if isinstance(value, bool):
                raise ValueError(name)
            number = float(value)
            return int(number) if number.is_integer() and isinstance(reported, int) else number
        except (OverflowError, ValueError):
            raise _wrong(name, "a number") from None
    if isinstance(reported, str):
        if isinstance(value, bool):
            raise _wrong(name, "a text")
        return f"{value:g}" if isinstance(value, float) else str(value)
    return value


def _is_number(value: JSON) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _wrong(name: str, requirement: str) -> InvalidParameterValue:
    return InvalidParameterValue(f"The BIOS setting {printable(name)} must be {requirement}, as the BMC reports it.")


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

    def write_settings(self, task: Task, settings: JSONObject) -> str | None:
        with self.system(task) as system:
            bios = system.bios
            present = quirks.settings_of(bios.attributes)
            if unknown := sorted(set(settings) - set(present)):
                raise InvalidParameterValue(f"The BIOS has no setting {printable(', '.join(unknown))}.")
            requested = converted_settings(settings, present)
            changed = {name: requested[name] for name in differing_settings(requested, present)}
            if not changed:
                return None
            self._write(bios, changed)
            awaited = {"path": bios.path, "settings": changed, "told_before": _told(bios.json)}
        return self._reboot(task, awaited)

    def reset_settings(self, task: Task) -> str | None:
        # No BMC reports the default values.
        with self.system(task) as system:
            bios = system.bios
            awaited = {"system": system.path, "bios": bios.path, "before": _digest(quirks.settings_of(bios.attributes))}
            self.change(quirks.BIOS, [quirks.Form("reset", bios.reset_bios)])
        return self._reboot(task, {**awaited, "begun_at": clock.now().isoformat()})

    def _write(self, bios: Any, changed: JSONObject) -> None:
        on_reset = self.sushy.ApplyTime.ON_RESET
        times = [on_reset, None] if on_reset in (bios.supported_apply_times or ()) else [None]
        self.change(quirks.BIOS, [
            quirks.Form("no apply time" if when is None else "apply time",
                        functools.partial(bios.set_attributes, changed, when)) for when in times])

    def poll(self, task: Task, awaited: Mapping[str, Any]) -> str | None:
        if "system" in awaited:
            return self._poll_reset(task, awaited)
        _, bios = self.read(task, awaited["path"])
        present = bios.get("Attributes")
        differing = differing_settings(awaited["settings"], present if isinstance(present, dict) else {})
        if not differing:
            return None
        refusal = _told(bios)
        if refusal is not None and refusal != awaited["told_before"]:
            raise HardwareFailed(node=task.node.uuid, reason=f"it did not apply the settings: {refusal}")
        return f"the BMC does not report the requested value of {printable(', '.join(differing), _MAX_TEXT)}."

    def _poll_reset(self, task: Task, awaited: Mapping[str, Any]) -> str | None:
        """Return None when other settings are reported than before the reset, or the machine has started since.

        Settings are applied while the machine starts. They do not change if they had their default values before, so
        the end of the start counts too, or, for a BMC that does not report it, the time that a machine takes for it.
        """
        _, system = self.read(task, awaited["system"])
        if off := power.missing(system, states.POWER_ON):
            return off
        if "bios" not in awaited:
            return None  # an earlier version has begun it
        reported = quirks.settings_of(self.read(task, awaited["bios"])[1].get("Attributes"))
        # While it starts, a BMC may have none to report.
        if reported and _digest(reported) != awaited["before"]:
            return None
        passed_s = (clock.now() - datetime.datetime.fromisoformat(awaited["begun_at"])).total_seconds()
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
            present = quirks.settings_of(bios.get("Attributes"))
            entries = self._registry(task, system, bios.get("AttributeRegistry"))
        settings = (registry_setting(name, value, entries.get(name, {})) for name, value in present.items())
        return [setting for setting in settings if setting is not None]

    def _registry(self, task: Task, system: object, name: object) -> dict[str, Mapping[str, Any]]:
        """Return the registry's entries by setting; none if the BMC does not have the registry."""
        errors = self.sushy.exceptions
        try:
            return registry_attributes(documents(system), self.root(task), name)
        except (errors.ConnectionError, errors.AccessError, errors.MissingXAuthToken):
            raise
        except errors.SushyError as exc:
            # Without the text: a BMC may return what was sent to it.
            LOG.warning("The BMC of node %s does not provide its registry of BIOS attributes: %s", task.node.uuid,
                        type(exc).__name__)
            return {}

    def _reboot(self, task: Task, awaited: JSONObject) -> str:
        return self.reboot_and_wait(task, awaited, self.conf.redfish.configuration_timeout, _LIMIT)


def _digest(attributes: object) -> str:
    """Return the digest by which settings are compared: there may be hundreds of them."""
    return hashlib.sha256(json.dumps(attributes, sort_keys=True).encode()).hexdigest()


def _told(bios: Mapping[str, JSON]) -> str | None:
    """Return the time of the BMC's last attempt to apply settings and why it did not; None if it reports no problem."""
    applied = bios.get("@Redfish.Settings")
    if not isinstance(applied, dict):
        return None
    messages = applied.get("Messages")
    for message in messages if isinstance(messages, list) else ():
        if isinstance(message, dict) and str(message.get("Severity") or message.get("MessageSeverity")) in _REFUSED:
            text = " ".join(str(message.get(key)) for key in ("Message", "MessageId") if message.get(key))
            if any(word in text.lower() for word in _OF_RESET):
                continue
            return printable(f"{text} ({applied.get('Time') or 'no time'})", _MAX_TEXT)
    return None
