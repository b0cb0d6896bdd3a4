"""``/v1/lookup``: a ramdisk looks up the node on which it runs, and gets its agent token."""

from __future__ import annotations

import sqlalchemy as sa
from oslo_log import log

from ironic_rules.api import filters, ramdisk, versions
from ironic_rules.api.expose import expose
from ironic_rules.api.filters import QueryValues
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.api.views import ramdisk as views
from ironic_rules.db import nodes, ports
from ironic_rules.exceptions import Invalid, LookupFailed, NodeNotFound
from ironic_rules.models import addresses as addresses_models
from ironic_rules.models import states
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.nodes import Node
from ironic_rules.policies import ramdisk as policies
from ironic_rules.text import enumeration

LOG = log.getLogger(__name__)
#: A report has at most that number of interfaces; an InfiniBand address and a comma are 60 characters.
_MAX_ADDRESSES, _MAX_CHARACTERS = 1024, 60 * 1024


def _addresses(value: str) -> tuple[str, ...]:
    return filters.names(value, _MAX_CHARACTERS)


class LookupController(Resource):
    """Since API 1.22, without authentication."""

    @expose(since=versions.RAMDISK, public=True, policy=policies.LOOKUP,
            query=filters.Query(addresses=_addresses, node_uuid=filters.uuid))
    def get_all(self, request: Request, query: QueryValues) -> JSONObject:
        """Return the node and the ramdisk's settings; the first caller gets the agent token, later ones ``******``.

        A node that discovery has created has no token until an operator manages it: callers get one that is not
        accepted anywhere.

        :raises Invalid: 400, neither a MAC address nor a UUID was given
        :raises LookupFailed: 404, always with the same text
        """
        ramdisk.require_endpoints(request.conf)
        macs = _macs(query.get("addresses", ()), infiniband=request.conf.infiniband_addresses)
        uuid = query.get("node_uuid")
        if not macs and uuid is None:
            raise Invalid("addresses or node_uuid is required, with at least one valid MAC address or a UUID.")
        with request.db.reader() as conn:
            node = _find(request, conn, uuid, macs)
        if request.conf.api.restrict_lookup and node.provision_state not in states.LOOKUP_ALLOWED:
            raise _refused(request, uuid, macs, f"node {node.uuid} is in state {node.provision_state}")
        if ramdisk.is_unapproved(node):
            # Nothing accepts it: no operator has approved the node yet.
            return views.lookup(request.base, node, ramdisk.new_token(), request.conf)
        token = request.db.write(lambda conn: ramdisk.claim_token(conn, node.id))
        if token == ramdisk.HIDDEN_TOKEN:
            LOG.warning("Lookup of node %s: its agent token was already issued", node.uuid)
        return views.lookup(request.base, node, token, request.conf)


def _macs(addresses: tuple[str, ...], *, infiniband: bool) -> list[str]:
    """Return the MAC addresses in ``addresses``, and if ``infiniband`` is true those that stand for InfiniBand ones."""
    if len(addresses) > _MAX_ADDRESSES:
        raise Invalid(f"addresses: at most {_MAX_ADDRESSES} are accepted.")
    known = (addresses_models.mac_of_interface(address, infiniband=infiniband) for address in addresses)
    return sorted({address for address in known if address is not None})


def _find(request: Request, conn: sa.Connection, uuid: str | None, macs: list[str]) -> Node:
    """Return the one node that has the UUID and every known MAC address."""
    owners = set(ports.node_ids_by_addresses(conn, macs).values()) if macs else set()
    if len(owners) > 1 or (uuid is None and not owners):
        raise _refused(request, uuid, macs,
                       f"{len(owners)} nodes have ports with the MAC addresses {enumeration(macs)}")
    try:
        node = nodes.get(conn, uuid) if uuid is not None else nodes.get_by_id(conn, owners.pop())
    except NodeNotFound as error:
        raise _refused(request, uuid, macs, str(error)) from error
    if owners and node.id not in owners:
        raise _refused(request, uuid, macs, f"the MAC addresses {enumeration(macs)} are not of node {node.uuid}")
    return node


def _refused(request: Request, uuid: str | None, macs: list[str], reason: str) -> LookupFailed:
    """Return the error, whose reason is logged: ramdisks repeat a lookup every few seconds, and anyone can send one."""
    if (unlogged := request.refused_lookups.is_due(uuid, macs, (), reason)) is not None:
        LOG.info("Lookup failed: %s%s", reason, unlogged)
    return LookupFailed()
