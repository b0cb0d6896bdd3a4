"""The reader of a BMC's resources for an out-of-band inspection, several at the same time, and the BMC's tasks.

Each resource is read once, within limits. The links in one lead to further ones: ``_LINKS``. Collections are read page
by page, or with their members in one request if the BMC offers that (``$expand``). A resource that a BMC does not
provide is missing; whether the BMC itself can be reached is for the caller to determine. A task is work that a BMC does
in the background after a request.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from ironic_rules.exceptions import HardwareFailed
from ironic_rules.models.documents import JSON
from ironic_rules.text import printable

#: Maximum number of members of a collection.
MAX_ITEMS = 1024
#: After so many requests without any response, no further ones are sent.
_MAX_UNANSWERED = 3


@dataclass(frozen=True, slots=True, eq=False)
class RedfishResource:
    """A JSON document of a BMC, which may have any content: values of the wrong type are read as missing.

    :ivar kind: which resource it is to the machine, a key of ``_LINKS`` or one of its kinds
    :ivar order: its place: that of ``parent``, then the indexes of the link and of the member
    """

    kind: str
    path: str
    document: Mapping[str, JSON] = field(repr=False)
    order: tuple[int, ...] = ()
    parent: RedfishResource | None = None

    def get(self, *keys: str) -> Any:
        """Return the value at ``keys``, None if there is none."""
        return _at(self.document, keys)

    def text(self, *keys: str) -> str | None:
        """Return a text that is not blank, without surrounding white space."""
        value = self.get(*keys)
        return value.strip() or None if isinstance(value, str) else None

    def number(self, *keys: str) -> int | float | None:
        """Return a number that is not negative."""
        value = self.get(*keys)
        return value if isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0 else None

    def objects(self, *keys: str) -> list[Mapping[str, Any]]:
        """Return the objects of a list."""
        value = self.get(*keys)
        return [entry for entry in value[:MAX_ITEMS] if isinstance(entry, dict)] if isinstance(value, list) else []

    @property
    def is_present(self) -> bool:
        """True if it is not an empty slot."""
        return self.get("Status", "State") != "Absent"


@dataclass(frozen=True, slots=True)
class _Link:
    """The first of ``places`` that a resource has; ``many`` says that it links to a collection."""

    places: tuple[tuple[str, ...], ...]
    kind: str
    many: bool = True


def _link(kind: str, *places: str, many: bool = True) -> _Link:
    return _Link(tuple(tuple(place.split(".")) for place in places), kind, many)


#: Kind of resource -> the links that are followed, the most important ones first.
_LINKS = {
    "system": (
        _link("processor", "Processors"), _link("interface", "EthernetInterfaces"), _link("storage", "Storage"),
        _link("simple_storage", "SimpleStorage"), _link("chassis", "Links.Chassis", many=False),
        _link("pcie_device", "PCIeDevices", many=False), _link("bios", "Bios", many=False)),
    "storage": (
        _link("drive", "Drives", many=False), _link("volume", "Volumes"), _link("controller", "Controllers")),
    "chassis": (_link("adapter", "NetworkAdapters"), _link("pcie_device", "PCIeDevices")),
    "adapter": (_link("port", "Ports", "NetworkPorts"), _link("function", "NetworkDeviceFunctions")),
    "pcie_device": (_link("pcie_function", "PCIeFunctions", "Links.PCIeFunctions"),),
    "root": (_link("update_service", "UpdateService", many=False),),
    "update_service": (_link("firmware", "FirmwareInventory"),),
}


@dataclass(slots=True)
class FoundResources:
    """The result of reading.

    :ivar missing: path -> reason, of resources that are linked and could not be read
    :ivar unanswered: the number of requests that the BMC did not answer
    """

    resources: list[RedfishResource]
    missing: dict[str, str]
    requests: int
    unanswered: int

    def of(self, kind: str, parent: RedfishResource | None = None) -> list[RedfishResource]:
        """Return the resources of a kind, of any parent or of one, in their order at the BMC."""
        return [resource for resource in self.resources if resource.kind == kind and parent in (None, resource.parent)]

    def by_path(self, path: object) -> RedfishResource | None:
        """Return the resource with that path."""
        return next((resource for resource in self.resources if resource.path == path), None)


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """At most ``at_once`` requests at the same time, ``requests`` in all, and none after ``timeout_s`` seconds."""

    at_once: int
    requests: int
    timeout_s: float


@dataclass(frozen=True, slots=True)
class _Pending:
    link: _Link
    path: str
    order: tuple[int, ...]
    parent: RedfishResource


class Reader:
    """Reads the resources of one BMC; used once.

    :param get: sends a GET request and returns the JSON document
    :param why_not: returns the reason for an exception of ``get``, and whether it means that the BMC did not respond
    :param kinds: those that are read; None: all
    """

    def __init__(self, get: Callable[[str], Any], why_not: Callable[[Exception], tuple[str, bool]],
                 limits: ReadLimits, kinds: Collection[str] | None = None) -> None:
        self._kinds = kinds
        self._get = get
        self._why_not = why_not
        self._limits = limits
        self._expand = ""
        self._state = threading.Condition()
        self._pending: deque[_Pending] = deque()
        self._seen: set[str] = set()
        self._found = FoundResources([], {}, 0, 0)
        self._running = 0
        self._threads = 0
        self._ended = False

    def read(self, root: Mapping[str, Any], system: Mapping[str, Any], path: str) -> FoundResources:
        """Return the system, the service root, and all that they link to.

        It returns in time even if the BMC does not: requests that are not answered end in threads of their own.
        """
        self._expand = _expand_query(root)
        deadline = time.monotonic() + self._limits.timeout_s
        with self._state:
            self._add(RedfishResource("system", path, system, (0,)))
            self._add(RedfishResource("root", "/redfish/v1/", root, (1,)))
            self._start_threads()
            while self._pending or self._running:
                if not self._state.wait(max(0.0, deadline - time.monotonic())) and time.monotonic() >= deadline:
                    self._drop(f"not read within {self._limits.timeout_s:g} seconds")
                    break
            self._ended = True
            resources = sorted(self._found.resources, key=lambda resource: resource.order)
            return FoundResources(resources, dict(self._found.missing), self._found.requests, self._found.unanswered)

    def _start_threads(self) -> None:
        needed = min(self._limits.at_once, self._running + len(self._pending))
        while self._threads < needed:
            self._threads += 1
            threading.Thread(target=self._work, name="redfish-reader", daemon=True).start()

    def _work(self) -> None:
        while (request := self._next()) is not None:
            document, reason = self._read(request)
            with self._state:
                self._running -= 1
                if not self._ended:
                    self._take(request, document, reason)
                    self._start_threads()
                self._state.notify_all()

    def _next(self) -> _Pending | None:
        with self._state:
            if not self._pending or self._ended:
                self._threads -= 1
                return None
            self._running += 1
            return self._pending.popleft()

    def _read(self, request: _Pending) -> tuple[Any, str]:
        query = self._expand
        if request.link.many and query and "?" not in request.path:
            document, reason = self._send(f"{request.path}?{query}")
            if document is not None or not reason:
                return document, reason
            # A BMC may offer this for some collections and refuse it for others.
        return self._send(request.path)

    def _send(self, path: str) -> tuple[Any, str]:
        with self._state:
            if self._found.requests >= self._limits.requests:
                return None, f"not read, there are more than {self._limits.requests} resources"
            self._found.requests += 1
        try:
            document = self._get(path)
        except Exception as exc:  # noqa: BLE001  (sushy raises various ones for what a BMC may answer)
            reason, is_silent = self._why_not(exc)
            with self._state:
                self._found.unanswered += is_silent
                if self._found.unanswered >= _MAX_UNANSWERED:
                    self._drop("not read, the BMC does not respond")
            return None, reason
        return (document, "") if isinstance(document, dict) else (None, "not a JSON object")

    def _take(self, request: _Pending, document: Any, reason: str) -> None:
        if document is None:
            self._found.missing[request.path] = reason
        elif isinstance(document.get("Members"), list):
            self._take_members(request, document)
        else:
            self._add(RedfishResource(request.link.kind, request.path, document, request.order, request.parent))

    def _take_members(self, request: _Pending, collection: Mapping[str, Any]) -> None:
        members = collection["Members"][:MAX_ITEMS]
        for index, member in enumerate(members):
            path = _path(member)
            if path is None:
                continue
            order = (*request.order, index)
            if "Id" in member and path not in self._seen:
                self._seen.add(path)
                self._add(RedfishResource(request.link.kind, path, member, order, request.parent))
            else:
                self._want(_Pending(_Link((), request.link.kind, many=False), path, order, request.parent))
        following = collection.get("Members@odata.nextLink") or collection.get("@odata.nextLink")
        if following is not None and (path := _path({"@odata.id": following})) is not None:
            self._want(_Pending(request.link, path, (*request.order, MAX_ITEMS), request.parent))

    def _add(self, resource: RedfishResource) -> None:
        self._found.resources.append(resource)
        for number, link in enumerate(_LINKS.get(resource.kind, ())):
            if resource.kind == "chassis" and link.kind == "pcie_device" and resource.parent is not None \
                    and resource.parent.get("PCIeDevices"):
                # The same devices, in some BMCs with other paths.
                continue
            if self._kinds is not None and link.kind not in self._kinds:
                continue
            for index, path in enumerate(_targets(resource, link)):
                self._want(_Pending(link, path, (*resource.order, number, index), resource))

    def _want(self, request: _Pending) -> None:
        if request.path not in self._seen:
            self._seen.add(request.path)
            self._pending.append(request)

    def _drop(self, reason: str) -> None:
        for request in self._pending:
            self._found.missing[request.path] = reason
        self._pending.clear()


def _targets(resource: RedfishResource, link: _Link) -> Iterator[str]:
    value = next((reference for place in link.places if (reference := resource.get(*place))), None)
    for entry in value[:MAX_ITEMS] if isinstance(value, list) else [value]:
        path = _path(entry)
        if path is not None:
            yield path


def _path(reference: object) -> str | None:
    """Return the path that a reference has: only of this BMC, and not of a part of a resource."""
    path = reference.get("@odata.id") if isinstance(reference, dict) else None
    if not isinstance(path, str) or not path.isprintable() or "#" in path:
        return None
    return path if path.startswith("/") and not path.startswith("//") else None


def _expand_query(root: Mapping[str, JSON]) -> str:
    """Return the query by which this BMC returns a collection with its members; an empty text if it does not."""
    offered = _at(root, ("ProtocolFeaturesSupported", "ExpandQuery"))
    if not isinstance(offered, dict):
        return ""
    members = "." if offered.get("NoLinks") is True else "*" if offered.get("ExpandAll") is True else ""
    return f"$expand={members}{'($levels=1)' if offered.get('Levels') is True else ''}" if members else ""


def _at(document: JSON, keys: tuple[str, ...]) -> Any:
    for key in keys:
        if not isinstance(document, Mapping):
            return None
        document = document.get(key)
    return document


ACCEPTED = 202
#: ``TaskState`` of a failed task, and of one that has ended without saying so.
_FAILED = frozenset({"Exception", "Killed", "Cancelled", "Interrupted"})
_ENDED = frozenset({"Completed"})


def task_location(reply: Any) -> str | None:
    """Return the path of the task that a reply (of sushy's connector) has begun; None if everything is done.

    :raises ValueError: there is a task, and it has no location
    """
    if reply.status_code != ACCEPTED:
        return None
    location = reply.headers.get("Location") or (reply.json().get("@odata.id") if reply.content else None)
    if not isinstance(location, str):
        raise ValueError("a task has no location")
    return urlsplit(location).path


def task_is_running(node: str, name: str, status: int, body: Mapping[str, Any]) -> bool:
    """Return whether a task, which the BMC still knows, has not ended yet.

    :param node: UUID of the node, and ``name`` what the task does, for the error
    :param status: HTTP status of the task, and ``body`` its JSON
    :raises HardwareFailed: it has failed
    """
    state = body.get("TaskState")
    if state in _FAILED or (state in _ENDED and body.get("TaskStatus") == "Critical"):
        raise HardwareFailed(node=node, reason=f"{name} failed: its task ended as {state}{_messages(body)}.")
    return state not in _ENDED and (status == ACCEPTED or isinstance(state, str))


def _messages(body: Mapping[str, JSON]) -> str:
    """Return the messages of a task (JSON) about its failure."""
    messages = body.get("Messages")
    texts = [str(message["Message"]) for message in (messages if isinstance(messages, list) else ())
             if isinstance(message, dict) and message.get("Message")]
    return printable(": " + " ".join(texts), 300).rstrip(".") if texts else ""
