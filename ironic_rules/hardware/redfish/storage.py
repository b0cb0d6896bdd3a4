"""The storage of a machine with its controllers and drives, as its BMC reports them. No side effects.

The form is that of Ironic's out-of-band inspection, so that rules for one read the other: an entry for each storage
resource, which has its controllers and its drives.
"""

from __future__ import annotations

from ironic_rules.hardware.redfish.resources import MAX_ITEMS, Found, Resource
from ironic_rules.models.json_values import JSONObject

_STATUS = {"health": "Health", "state": "State", "health_rollup": "HealthRollup"}


def controllers_of(found: Found, storage: Resource) -> list[Resource]:
    """Return the controllers of a storage resource: resources of their own, or in old BMCs objects in it."""
    return found.of("controller", storage) or [
        Resource("controller", storage.path, entry) for entry in storage.objects("StorageControllers")]


def resources(found: Found) -> list[JSONObject]:
    """Return the storage resources, for ``inventory.storage_controllers``. Sizes are in bytes."""
    return [{
        "id": storage.text("Id") or "", "name": storage.text("Name"),
        "storage_controllers": [_controller(one) for one in controllers_of(found, storage)],
        "drives": [_drive(one) for one in found.of("drive", storage) if one.is_present],
    } for storage in found.of("storage")]


def _controller(one: Resource) -> JSONObject:
    return {
        "member_id": one.text("MemberId") or one.text("Id"), "name": one.text("Name"), "model": one.text("Model"),
        "manufacturer": one.text("Manufacturer"), "firmware_version": one.text("FirmwareVersion"),
        "raid_types": _texts(one, "SupportedRAIDTypes"), "speed_gbps": one.number("SpeedGbps"),
        "controller_protocols": _texts(one, "SupportedControllerProtocols"),
        "device_protocols": _texts(one, "SupportedDeviceProtocols"), **_status(one),
    }


def _drive(one: Resource) -> JSONObject:
    protocol, size = one.text("Protocol"), one.number("CapacityBytes")
    return {
        "name": one.text("Name"), "size": None if size is None else int(size), "id": one.text("Id"),
        "media_type": one.text("MediaType"), "serial_number": one.text("SerialNumber"),
        "manufacturer": one.text("Manufacturer"), "model": one.text("Model"), "revision": one.text("Revision"),
        **({} if protocol is None else {"protocol": protocol}), **_status(one),
    }


def _status(one: Resource) -> JSONObject:
    told = {name: text for name, key in _STATUS.items() if (text := one.text("Status", key)) is not None}
    return {"status": told} if told else {}


def _texts(one: Resource, key: str) -> list[str]:
    value = one.get(key)
    return [entry for entry in value[:MAX_ITEMS] if isinstance(entry, str)] if isinstance(value, list) else []
