"""``python -m tests.functional.hardware.emulator``: sushy-emulator with fast fake systems.

They change their power state within one second, instead of up to eleven. They also have BIOS settings, versions and
volumes, which sushy-tools supports only for systems of libvirt: it has the resources, and these systems implement them.
The service root also has an event service, which sushy-tools lacks: it keeps subscriptions and sends no events. The
rest is that of ``sushy-emulator --fake``.
"""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import flask

FACTORY = {"BootMode": "Uefi", "EmbeddedSata": "Raid", "NicBoot1": "NetworkBoot", "ProcTurboMode": "Enabled"}


EVENTS = "/redfish/v1/EventService"
SUBSCRIPTIONS = f"{EVENTS}/Subscriptions"


def get_versions(self, identity):
    return self._get(identity).get("versions", {"BiosVersion": "1.0.0"})


def set_versions(self, identity, versions):
    self._update(identity, versions=versions)


def get_bios(self, identity):
    return self._get(identity).get("bios", FACTORY)


def set_bios(self, identity, attributes):
    self._update(identity, bios={**get_bios(self, identity), **attributes})


def reset_bios(self, identity):
    self._update(identity, bios=FACTORY)


def find_or_create_storage_volume(self, data):
    return data["Id"]


def add_event_service(app: Any) -> None:
    """Add the event service to the emulator's application."""
    kept: dict[str, dict[str, Any]] = {}
    numbers = itertools.count(1)
    root = app.view_functions["root_resource"]

    def root_with_events() -> Any:
        reply = app.make_response(root())
        reply.data = json.dumps({**reply.get_json(), "EventService": {"@odata.id": EVENTS}})
        return reply

    def service() -> Any:
        return {"Id": "EventService", "Name": "Events", "Subscriptions": {"@odata.id": SUBSCRIPTIONS}}

    def collection() -> Any:
        if flask.request.method == "GET":
            members = [{"@odata.id": f"{SUBSCRIPTIONS}/{ident}"} for ident in kept]
            return {"Name": "Subscriptions", "Members": members, "Members@odata.count": len(members)}
        asked = flask.request.get_json()
        if asked["Protocol"] != "Redfish":
            return {"error": {"code": "Base.1.0.PropertyValueNotInList", "message": f"refused: {asked}"}}, 400
        ident = str(next(numbers))
        # As the standard requires, the headers are not shown.
        kept[ident] = {**asked, "Id": ident, "Name": "Subscription", "HttpHeaders": None}
        return kept[ident], 201, {"Location": f"{SUBSCRIPTIONS}/{ident}"}

    def one(ident: str) -> Any:
        if ident not in kept:
            return {"error": {"code": "Base.1.0.ResourceMissing", "message": "not here"}}, 404
        if flask.request.method == "DELETE":
            del kept[ident]
            return "", 204
        return kept[ident]

    app.view_functions["root_resource"] = root_with_events
    app.add_url_rule(EVENTS, "event_service", service)
    app.add_url_rule(SUBSCRIPTIONS, "subscriptions", collection, methods=["GET", "POST"])
    app.add_url_rule(f"{SUBSCRIPTIONS}/<ident>", "subscription", one, methods=["GET", "DELETE"])


if __name__ == "__main__":
    random.randint = lambda low, high: low
    from sushy_tools.emulator.main import app, main
    from sushy_tools.emulator.resources.systems.fakedriver import FakeDriver

    for method in (get_versions, set_versions, get_bios, set_bios, reset_bios, find_or_create_storage_volume):
        setattr(FakeDriver, method.__name__, method)
    add_event_service(app)
    main()
