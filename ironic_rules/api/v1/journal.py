"""``/v1/inspection_journal``: Rejected reports of ramdisks. Ramdisks only learn that they were.

``/v1/shared_macs``: addresses by which no report is accepted, because many machines have them.
"""

from __future__ import annotations

from typing import ClassVar

import sqlalchemy as sa
from oslo_log import log

from ironic_rules.api import filters, links, pagination, schemas, versions
from ironic_rules.api.expose import expose
from ironic_rules.api.filters import QueryValues
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.api.v1 import node_access, node_replies, node_update
from ironic_rules.db import inspection_journal, node_sets
from ironic_rules.exceptions import Invalid, shared_mac_not_found
from ironic_rules.inspection import enrolment
from ironic_rules.models import addresses, secrets
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.rejected_reports import REASONS, JournalEntry
from ironic_rules.policies import rules
from ironic_rules.text import is_uuid

LOG = log.getLogger(__name__)

#: The inspect interface that waits for the report of a ramdisk.
_IN_BAND = "agent"
_FIELDS = ("uuid", "created_at", "seen_at", "times", "reason", "detail", "source", "node_uuid", "macs", "bmc_addresses",
           "nodes")
_SORT_KEYS = ("id", "created_at", "seen_at", "times", "reason", "source")


def _address(value: str) -> str:
    """An IP address, normalized."""
    address = addresses.normalize(value)
    if address is None:
        raise ValueError("must be an IP address")
    return address


_LIST = filters.Listing(sort_keys=_SORT_KEYS, fields=(*_FIELDS, "links"), mac=filters.mac, address=_address,
                        node=filters.uuid, reason=filters.one_of(*REASONS))
_OF_NODE = filters.Listing(sort_keys=_SORT_KEYS, fields=(*_FIELDS, "links"), reason=filters.one_of(*REASONS))


class EnrollController(Resource):
    """``/v1/inspection_journal/{entry}/enroll``."""

    @expose(since=versions.INSPECTION_RULES, policy=rules.JOURNAL_ENROLL, body=schemas.ENROLL, status=201)
    def post(self, request: Request, entry: str, body: JSONObject) -> JSONObject:
        """Create a node for the machine of an entry, in ``inspect wait``, with ports for all of its MAC addresses.

        The body has fields as for ``POST /v1/nodes``; the inspect interface is ``agent``. The machine's next report
        is accepted. After the inspection the node is in ``enroll``, as a discovered one.

        :returns: the node
        :raises journal_entry_not_found: 404
        :raises Invalid: 400, the machine cannot be recognized, or is another one than the body says
        :raises machine_enrolled: 409, nodes have addresses of the machine
        :raises DriverNotFound, InterfaceNotFound: 400
        :raises node_already_exists, DuplicateNodeName: 409;  no_valid_host: 503, no conductor is alive
        """
        ident = _uuid(entry)

        with request.db.reader() as conn:
            row = inspection_journal.get(conn, ident)
            values = node_update.new_node(request, conn, {**body, "inspect_interface": _IN_BAND})

        def create(conn: sa.Connection) -> JSONObject:
            node = enrolment.enroll(conn, row, values, request.conf.inspector.ignored_macs)
            return node_replies.show_node(request, conn, node)

        created = request.db.write(create)
        LOG.info("Node %s is created for the machine of entry %s of the inspection journal", created["uuid"], ident)
        request.pxe_filter.update_pxe_filters(request.context)
        request.reply.headers.append(("Location", links.url(request.base, "nodes", created["uuid"])))
        return created


class InspectionJournalController(Resource):
    """Since API 1.96. One entry for each machine and reason."""

    below_item: ClassVar = {"enroll": EnrollController()}

    @expose(since=versions.INSPECTION_RULES, policy=rules.JOURNAL_GET, query=_LIST)
    def get_all(self, request: Request, query: QueryValues) -> JSONObject:
        """List entries, oldest first; ``mac``, ``address`` (of a BMC), ``node`` (its UUID) and ``reason`` filter them.

        ``nodes`` are the near matches, each with the evidence that it shares with the machine. The machine was rejected
        ``times`` times since ``created_at``, the last time at ``seen_at``.
        """
        return _listed(request, query, {})

    @expose(since=versions.INSPECTION_RULES, policy=rules.JOURNAL_GET)
    def get_one(self, request: Request, entry: str) -> JSONObject:
        """Return one entry; with its ``report``, without secrets, if ``[inspection_journal]keep_reports`` is true.

        :raises journal_entry_not_found: 404
        """
        with request.db.reader() as conn:
            row = inspection_journal.get(conn, _uuid(entry))
        return _view(request, row, _FIELDS) | {"report": secrets.mask(row.report)}


class NodeJournalController(Resource):
    """The entries of the journal with the node as a near match."""

    @expose(since=versions.INSPECTION_RULES, policy=rules.JOURNAL_GET, query=_OF_NODE)
    def get_all(self, request: Request, node: str, query: QueryValues) -> JSONObject:
        """List the rejected reports that have something of the node.

        :raises NodeNotFound: 404
        """
        with request.db.reader() as conn:
            row = node_access.find(request, conn, node)
        return _listed(request, query, {"node": row.uuid})


class SharedMACsController(Resource):
    """``/v1/shared_macs``, since API 1.96: MAC addresses that identify no machine."""

    @expose(since=versions.INSPECTION_RULES, policy=rules.SHARED_MAC_GET)
    def get_all(self, request: Request) -> JSONObject:
        """List the addresses that machines of several nodes have reported, sorted.

        ``nodes`` are those whose reports had the address while another node had it, the first at ``created_at``;
        ``port_of`` is the node that has it as a port, or null.
        """
        with request.db.reader() as conn:
            return {"shared_macs": node_sets.list_shared_macs(conn)}

    @expose(since=versions.INSPECTION_RULES, policy=rules.SHARED_MAC_DELETE, status=204)
    def delete(self, request: Request, address: str) -> None:
        """Forget that an address is shared, until reports say so again.

        :raises shared_mac_not_found: 404
        """
        mac = addresses.mac_from_pxelinux(address)
        if mac is None or not request.db.write(lambda conn: node_sets.forget_shared_mac(conn, mac)):
            raise shared_mac_not_found(address=address)


def _uuid(entry: str) -> str:
    if not is_uuid(entry):
        raise Invalid("An entry is identified by its UUID.")
    return entry.lower()


def _listed(request: Request, query: QueryValues, more: dict[str, str]) -> JSONObject:
    page = pagination.page(request, query)
    fields = query.get("fields") or _FIELDS
    filters = {name: query[name] for name in ("mac", "address", "node", "reason") if name in query} | more
    with request.db.reader() as conn:
        entries = inspection_journal.list_entries(conn, filters, page)
    return pagination.collection(request, "inspection_journal", entries, page,
                                 lambda shown: [_view(request, entry, fields) for entry in shown])


def _view(request: Request, entry: JournalEntry, fields: tuple[str, ...]) -> JSONObject:
    shown = {name: getattr(entry, name) for name in _FIELDS if name in fields}
    shown["links"] = links.resource(request.base, "inspection_journal", entry.uuid)
    return shown
