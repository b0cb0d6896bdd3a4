"""The versions of the firmware of the BIOS, the BMC and the network adapters, by Redfish."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from oslo_log import log

from ironic_rules.hardware.base import FirmwareInterface
from ironic_rules.hardware.redfish.client import RedfishInterface, documents
from ironic_rules.models.documents import JSON, JSONObject
from ironic_rules.models.nodes import FirmwareComponent
from ironic_rules.models.task import Task
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
            found = {"bios": system.bios_version,
                     "bmc": next((manager.firmware_version for manager in system.managers), None)}
            found.update(self._adapters(task, system))
        return [FirmwareComponent(name, printable(version, _LONGEST)) for name, version in found.items()
                if isinstance(version, str) and version]

    def _adapters(self, task: Task, system: Any) -> JSONObject:
        read, errors = documents(system), self.sushy.exceptions
        found: JSONObject = {}
        try:
            for adapter in _adapters(read, system.json):
                versions = (_at(entry, "FirmwarePackageVersion") for entry in _list(adapter, "Controllers"))
                if isinstance(name := adapter.get("Id"), str):
                    found[printable(f"nic:{name}", _LONGEST)] = next((one for one in versions if one), None)
        except (errors.ConnectionError, errors.AccessError, errors.MissingXAuthToken):
            raise
        except errors.SushyError as exc:
            # Without the text: a BMC may return what was sent to it.
            LOG.warning("The BMC of node %s does not report its network adapters: %s", task.node.uuid,
                        type(exc).__name__)
        return found


def _adapters(read: Callable[[str], Any], system: Mapping[str, JSON]) -> Iterator[Mapping[str, Any]]:
    left = _MOST_ADAPTERS
    for chassis in _list(_at(system, "Links"), "Chassis"):
        path = _at(_at(_read(read, chassis), "NetworkAdapters"), "@odata.id")
        for member in _list(read(path), "Members")[:left] if isinstance(path, str) else ():
            left -= 1
            yield _read(read, member)


def _read(read: Callable[[str], Any], reference: Any) -> Mapping[str, Any]:
    path = _at(reference, "@odata.id")
    found = read(path) if isinstance(path, str) else None
    return found if isinstance(found, Mapping) else {}


def _list(document: JSON, key: str) -> list[Any]:
    found = _at(document, key)
    return found if isinstance(found, list) else []


def _at(document: JSON, key: str) -> Any:
    return document.get(key) if isinstance(document, Mapping) else None
