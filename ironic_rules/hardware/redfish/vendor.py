"""``redfish`` vendor methods: subscriptions to the events of a BMC, and ejecting virtual media."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ironic_rules.exceptions import BMCError, NotFound
from ironic_rules.hardware import destinations
from ironic_rules.hardware.base import DEVICE_TYPES, VendorInterface
from ironic_rules.hardware.redfish import virtual_media
from ironic_rules.hardware.redfish.client import RedfishInterface
from ironic_rules.hardware.vendor_methods import vendor_method
from ironic_rules.models.documents import JSON, JSONObject
from ironic_rules.models.task import Task

_TEXT = {"description": "a text", "type": "string"}
_SUBSCRIPTION = {
    "type": "object", "additionalProperties": False, "required": ["Destination"],
    "properties": {
        "Destination": {"description": "a URL with http or https to which the BMC sends events", "type": "string",
                        "pattern": r"^https?://[^\s/?#]+([/?#]\S*)?\Z", "maxLength": 2048},
        "Context": _TEXT, "Protocol": _TEXT,
        "EventTypes": {"description": "a list of texts", "type": "array", "items": _TEXT},
        "HttpHeaders": {"description": "a list of objects whose values are texts", "type": ["array", "null"],
                        "items": {"description": "an object whose values are texts", "type": "object",
                                  "additionalProperties": _TEXT}},
    },
}
_ONE = {
    "type": "object", "additionalProperties": False, "required": ["id"],
    # It becomes the end of a path.
    "properties": {"id": {"description": "the Id of a subscription", "type": "string", "maxLength": 255,
                          "pattern": r"^[A-Za-z0-9_~-][A-Za-z0-9._~-]*\Z"}},
}
_DEVICE = {"cd": "cdrom", "dvd": "cdrom", "usb": "disk", "floppy": "floppy"}
_EJECT = {
    "type": "object", "additionalProperties": False,
    "properties": {"boot_device": {"description": f"one of {', '.join(_DEVICE)}", "enum": list(_DEVICE)}},
}
#: Fields of a subscription that clients see: not its headers, which may be secret.
_SHOWN = ("Id", "Context", "Protocol", "Destination", "EventTypes")


class RedfishVendor(RedfishInterface, VendorInterface):
    """``EventService`` of the BMC, by the methods that Metal3 calls."""

    @vendor_method("POST", schema=_SUBSCRIPTION, description="Create a subscription: Destination is where the BMC "
                   "sends events; Context, Protocol, EventTypes and HttpHeaders are optional.")
    def create_subscription(self, task: Task, **subscription: Any) -> JSONObject:
        """Create a subscription and return it."""
        destinations.check(self.conf, {"/Destination": subscription["Destination"]})
        payload = {"Protocol": "Redfish", "Context": "", "EventTypes": ["Alert"], **subscription}
        headers = payload.pop("HttpHeaders", None) or ()
        if headers:
            payload["HttpHeaders"] = headers
        with _hiding(task, (value for header in headers for value in header.values())), self.system(task) as system:
            collection = self._subscriptions(task, system)
            reply = system._conn.post(collection, data=payload)
            location = reply.headers.get("Location")
            if location is None:
                created: Any = reply.json() if reply.content else {}
            else:
                created = system._conn.get(location).json()
        if not isinstance(created, Mapping) or not created.get("Id"):
            raise BMCError(node=task.node.uuid, reason="it did not say which subscription it has created.")
        return _shown(created)

    @vendor_method("DELETE", schema=_ONE, description="Delete the subscription with the given id.")
    def delete_subscription(self, task: Task, id: str) -> None:
        """Delete a subscription."""
        with self._one(task, id) as (system, path):
            system._conn.delete(path)

    @vendor_method("GET", schema=_ONE, description="Show the subscription with the given id.", locks=False)
    def get_subscription(self, task: Task, id: str) -> JSONObject:
        """Return a subscription."""
        with self._one(task, id) as (system, path):
            return _shown(system._conn.get(path).json())

    @vendor_method("GET", description="List the subscriptions of the BMC.", locks=False)
    def get_all_subscriptions(self, task: Task) -> JSONObject:
        """Return the collection of subscriptions, as the BMC represents it, except for what some BMCs show of each."""
        with self.system(task) as system:
            collection: JSONObject = system._conn.get(self._subscriptions(task, system)).json()
            return {**collection, "Members": [_shown(member, "@odata.id") for member in collection["Members"]]}

    @vendor_method("POST", schema=_EJECT, description="Eject what is in virtual drives: in all, or in those of the "
                   "type boot_device (cd, dvd, usb or floppy).")
    def eject_vmedia(self, task: Task, boot_device: str | None = None) -> None:
        """Eject virtual media."""
        with self.system(task) as system:
            virtual_media.eject(self, task, system, DEVICE_TYPES if boot_device is None else (_DEVICE[boot_device],))

    @contextlib.contextmanager
    def _one(self, task: Task, ident: str) -> Iterator[tuple[Any, str]]:
        """Provide the system, and the path of a subscription.

        :raises NotFound: 404, the BMC has no such subscription
        """
        with self.system(task) as system:
            path = f"{self._subscriptions(task, system).rstrip('/')}/{ident}"
            try:
                yield system, path
            except self.sushy.exceptions.ResourceNotFoundError as exc:
                raise NotFound(f"The BMC of node {task.node.uuid} has no subscription {ident}.") from exc

    def _subscriptions(self, task: Task, system: Any) -> str:
        service = self.root(task).get("EventService")
        path = service.get("@odata.id") if isinstance(service, Mapping) else None
        if not isinstance(path, str):
            raise BMCError(node=task.node.uuid, reason="it has no event service.")
        collection: str = system._conn.get(path).json()["Subscriptions"]["@odata.id"]
        return collection


def _shown(subscription: Mapping[str, JSON], *keys: str) -> JSONObject:
    return {name: subscription[name] for name in (*keys, *_SHOWN) if name in subscription}


@contextlib.contextmanager
def _hiding(task: Task, values: Iterable[str]) -> Iterator[None]:
    """Keep values out of errors: a BMC may return what was sent to it."""
    try:
        yield
    except BMCError as exc:
        text = str(exc)
        for value in values:
            text = text.replace(value, "******") if value else text
        raise BMCError(text) from None
