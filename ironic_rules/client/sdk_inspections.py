"""Inspections for users of openstacksdk: dry runs, their history, the journal of rejected reports, and operations.

::

    inspections = Inspections(openstack.connect().baremetal)
    for entry in inspections.journal(reason="discovery off"):
        node = inspections.enroll(entry["uuid"], driver="ipmi", driver_info={"ipmi_address": "192.0.2.7"})
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs, quote, urlencode, urlsplit

from openstack import exceptions
from openstack.baremetal.v1 import _proxy

#: The API version that has all of these resources.
_VERSION = "1.96"
_JOURNAL = "/inspection_journal"
_OPERATIONS = "/operations"


class Inspections:
    """Calls about inspections. They return the objects of the API, as dictionaries.

    :param baremetal: ``connection.baremetal``

    Errors are openstacksdk's: NotFoundException, BadRequestException, ConflictException.
    """

    def __init__(self, baremetal: _proxy.Proxy) -> None:
        self._baremetal = baremetal

    def dry_run(self, **request: Any) -> dict[str, Any]:
        """Return what an inspection would do, which is not done.

        :param request: ``node``, ``version``, ``report``, ``rules``, ``as_if``, ``compare``, as the API has them; with
            ``nodes``, filters of a list of nodes, an operation is returned, as by :meth:`reapply_nodes`
        """
        return self._object("POST", "/inspection_rules/dry_run", request)

    def inspections(self, node: str, **query: Any) -> Iterator[dict[str, Any]]:
        """Yield the past inspections of a node, the oldest first.

        :param node: UUID or name
        :param query: ``limit`` (of each page), ``marker``, ``sort_key``, ``sort_dir``, ``fields``
        """
        return self._pages(f"/nodes/{quote(node, safe='')}/inspections", "inspections", query)

    def inspection(self, node: str, inspection: str) -> dict[str, Any]:
        """Return a past inspection of a node: its stages, the rules that matched, and what they changed."""
        return self._object("GET", f"/nodes/{quote(node, safe='')}/inspections/{quote(inspection, safe='')}")

    def reapply(self, node: str, *, dry_run: bool = False, allow_deployed: bool = False) -> dict[str, Any]:
        """Begin to run hooks and rules again over the stored data of a node; return the operation.

        :param dry_run: change nothing; :meth:`operation_nodes` has what would be changed
        :param allow_deployed: also if the node has an instance
        """
        return self._object("POST", f"/nodes/{quote(node, safe='')}/inventory/reapply",
                            {"dry_run": dry_run, "allow_deployed": allow_deployed})

    def reapply_nodes(self, *, dry_run: bool = False, allow_deployed: bool = False, **filters: Any) -> dict[str, Any]:
        """Begin to run hooks and rules again over the stored data of many nodes; return the operation.

        :param dry_run: change nothing; :meth:`operation_groups` has what would be changed, and on how many nodes
        :param allow_deployed: also if a node has an instance
        :param filters: those of lists of nodes, such as ``provision_state``; without any, all nodes
        """
        query = {name: str(value) for name, value in filters.items()}
        return self._object("POST", f"/nodes/reapply?{urlencode(query)}",
                            {"dry_run": dry_run, "allow_deployed": allow_deployed})

    def journal(self, **query: Any) -> Iterator[dict[str, Any]]:
        """Yield the machines whose reports were rejected, one for each reason, the oldest first.

        :param query: filters ``mac``, ``address`` (of a BMC), ``node`` (UUID) and ``reason``; others as of
            :meth:`inspections`
        """
        return self._pages(_JOURNAL, "inspection_journal", query)

    def journal_entry(self, entry: str) -> dict[str, Any]:
        """Return an entry of the journal; with its report, if the service keeps them."""
        return self._object("GET", f"{_JOURNAL}/{quote(entry, safe='')}")

    def enroll(self, entry: str, **fields: Any) -> dict[str, Any]:
        """Create a node for the machine of an entry of the journal; its next report is accepted.

        :param fields: of the node: ``driver``, ``name``, ``driver_info``, and others that a new node can have
        :returns: the node
        """
        return self._object("POST", f"{_JOURNAL}/{quote(entry, safe='')}/enroll", fields)

    def operations(self, **query: Any) -> Iterator[dict[str, Any]]:
        """Yield the operations on many nodes, the oldest first; ``query`` as of :meth:`inspections`."""
        return self._pages(_OPERATIONS, "operations", query)

    def operation(self, operation: str) -> dict[str, Any]:
        """Return an operation, with its ``progress`` and the nodes on which it failed."""
        return self._object("GET", f"{_OPERATIONS}/{quote(operation, safe='')}")

    def operation_nodes(self, operation: str, **query: Any) -> Iterator[dict[str, Any]]:
        """Yield the nodes of an operation, each with its ``status``, ``error`` and ``result``.

        :param query: filter ``status``; ``limit`` (of each page), ``marker``
        """
        return self._pages(f"{_OPERATIONS}/{quote(operation, safe='')}/nodes", "nodes", query)

    def operation_groups(self, operation: str) -> list[dict[str, Any]]:
        """Return the different results of a dry run on many nodes, each with the ``number`` of nodes that have it."""
        return list(self._object("GET", f"{_OPERATIONS}/{quote(operation, safe='')}/groups")["groups"])

    def cancel_operation(self, operation: str) -> None:
        """Cancel an operation: nodes that are left stay as they are, those that are done stay done."""
        exceptions.raise_from_response(
            self._baremetal.delete(f"{_OPERATIONS}/{quote(operation, safe='')}", microversion=_VERSION))

    def wait_for_operation(self, operation: str, interval: float = 2.0, timeout: float | None = None,
                           seen: Callable[[dict[str, Any]], None] | None = None) -> dict[str, Any]:
        """Wait until an operation has ended; return it as it is then.

        :param interval: seconds between two requests
        :param timeout: seconds after which it is given up; None: never
        :param seen: is called with the operation after each request
        :raises ResourceTimeout: it has not ended in time
        """
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            current = self.operation(operation)
            if seen is not None:
                seen(current)
            if current["status"] != "running":
                return current
            if end is not None and time.monotonic() + interval > end:
                raise exceptions.ResourceTimeout(
                    f"Operation {operation} has not ended in {timeout:g} seconds: {current['progress']}")
            time.sleep(interval)

    def _object(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        reply = self._baremetal.request(path, method, json=body, microversion=_VERSION)
        exceptions.raise_from_response(reply)
        return dict(reply.json())

    def _pages(self, path: str, key: str, query: dict[str, Any]) -> Iterator[dict[str, Any]]:
        parameters = dict(query)
        while True:
            reply = self._baremetal.get(path, params=parameters, microversion=_VERSION)
            exceptions.raise_from_response(reply)
            page = reply.json()
            yield from page[key]
            if "next" not in page:
                return
            # The rest of the link may have an address that is not reachable from this side of a proxy.
            parameters["marker"] = parse_qs(urlsplit(page["next"]).query)["marker"][0]
