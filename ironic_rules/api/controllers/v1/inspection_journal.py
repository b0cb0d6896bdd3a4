"""``/v1/inspection_journal``: callbacks of ramdisks that were refused. Ramdisks only learn that they were."""

from __future__ import annotations

from typing import Any

import pecan

from ironic_rules.api import filters, links, pagination, versions
from ironic_rules.api.controllers.v1 import node_access
from ironic_rules.api.expose import expose
from ironic_rules.api.resource import Resource
from ironic_rules.db import inspection_journal
from ironic_rules.exceptions import Invalid
from ironic_rules.models import addresses, secrets
from ironic_rules.models.json_values import JSONObject
from ironic_rules.models.refused_callbacks import REASONS, JournalEntry
from ironic_rules.policies import inspection_journal as policies
from ironic_rules.text import is_uuid

_FIELDS = ("uuid", "created_at", "seen_at", "times", "reason", "detail", "source", "node_uuid", "macs", "bmc_addresses",
           "nodes")
_SORT_KEYS = ("id", "created_at", "seen_at", "times", "reason", "source")


def _address(value: str) -> str:
    """An IP address, normalised."""
    found = addresses.normalize(value)
    if found is None:
        raise ValueError("must be an IP address")
    return found


_LIST = filters.Listing(sort_keys=_SORT_KEYS, fields=(*_FIELDS, "links"), mac=filters.mac, address=_address,
                        node=filters.uuid, reason=filters.one_of(*REASONS))
_OF_NODE = filters.Listing(sort_keys=_SORT_KEYS, fields=(*_FIELDS, "links"), reason=filters.one_of(*REASONS))


class InspectionJournalController(Resource):
    """Since API 1.96. One entry for each machine and reason."""

    @expose(since=versions.INSPECTION_RULES, policy=policies.GET, query=_LIST)
    def get_all(self, query: dict[str, Any]) -> dict[str, Any]:
        """List entries, oldest first; ``mac``, ``address`` (of a BMC), ``node`` (its UUID) and ``reason`` filter them.

        ``nodes`` are those that came near, and what each of them has of what the machine sent. It was refused ``times``
        times since ``created_at``, the last time at ``seen_at``.
        """
        return _listed(query, {})

    @expose(since=versions.INSPECTION_RULES, policy=policies.GET)
    def get_one(self, entry: str) -> dict[str, Any]:
        """Return one entry; with its ``report``, without secrets, if ``[inspection_journal]keep_reports`` is true.

        :raises JournalEntryNotFound: 404
        """
        if not is_uuid(entry):
            raise Invalid("An entry is identified by its UUID.")
        with pecan.request.db.reader() as conn:
            found = inspection_journal.get(conn, entry)
        return _view(found, _FIELDS) | {"report": secrets.mask(found.report)}


class NodeJournalController(Resource):
    """The entries of the journal for which a node came near."""

    @expose(since=versions.INSPECTION_RULES, policy=policies.GET, query=_OF_NODE)
    def get_all(self, node: str, query: dict[str, Any]) -> dict[str, Any]:
        """List the refused callbacks that have something of the node.

        :raises NodeNotFound: 404
        """
        with pecan.request.db.reader() as conn:
            row = node_access.find(conn, node)
        return _listed(query, {"node": row.uuid})


def _listed(query: dict[str, Any], more: dict[str, str]) -> dict[str, Any]:
    page = pagination.page(query)
    fields = query.get("fields") or _FIELDS
    asked = {name: query[name] for name in ("mac", "address", "node", "reason") if name in query} | more
    with pecan.request.db.reader() as conn:
        entries = inspection_journal.list_entries(conn, asked, page)
    return pagination.collection("inspection_journal", entries, page,
                                 lambda shown: [_view(entry, fields) for entry in shown])


def _view(entry: JournalEntry, fields: tuple[str, ...]) -> JSONObject:
    shown = {name: getattr(entry, name) for name in _FIELDS if name in fields}
    shown["links"] = links.resource("inspection_journal", entry.uuid)
    return shown
