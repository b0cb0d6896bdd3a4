"""``/v1/lookup`` and ``/v1/heartbeat``: a ramdisk finds the node on which it runs, gets its agent token, and reports.

The token is a secret shared with one ramdisk: issued once, stored only as a hash.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Collection
from typing import Any

import sqlalchemy as sa
from oslo_config import cfg
from oslo_log import log

from ironic_rules.api import filters, links, schemas, versions
from ironic_rules.api.expose import expose
from ironic_rules.api.filters import QueryValues
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.context import hashed_token
from ironic_rules.db import accepted_requests, conductors, nodes, ports
from ironic_rules.db.session import Database
from ironic_rules.exceptions import (
    Invalid,
    InvalidParameterValue,
    LookupFailed,
    NodeNotFound,
    NotFound,
    Problem,
    no_valid_host,
)
from ironic_rules.inspection import lookup as node_lookup
from ironic_rules.models import addresses as addresses_models
from ironic_rules.models import secrets as secrets_models
from ironic_rules.models import states
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.nodes import Node, NodeFound
from ironic_rules.policies import base
from ironic_rules.text import enumeration, is_uuid, printable

LOG = log.getLogger(__name__)

#: Text that later callers get instead of the token. IPA aborts when it receives it, so a second ramdisk is detected.
HIDDEN_TOKEN = "******"
#: Seconds for which a conductor that was alive is assumed to be still.
_ALIVE_FOR_S = 0.5
#: Compared with if there is no node or no token, so that all refusals follow the same code path.
_NO_HASH = "0" * 64


def require_endpoints(conf: cfg.ConfigOpts) -> None:
    """Check that this API serves ramdisks (``[api]enable_ramdisk_endpoints``).

    :raises NotFound: 404
    """
    if not conf.api.enable_ramdisk_endpoints:
        raise NotFound()


class ConductorCheck:
    """The check whether any conductor is alive. One per process; hundreds of ramdisks may report per second.

    :param heartbeat_timeout: seconds
    """

    def __init__(self, heartbeat_timeout: float) -> None:
        self._heartbeat_timeout_s = heartbeat_timeout
        self._alive_until = 0.0

    def require(self, conn: sa.Connection) -> None:
        """Check it; before any lookup, so that every caller gets the same reply.

        :raises no_valid_host: 503, there is none
        """
        now = time.monotonic()
        if now < self._alive_until:
            return
        if not conductors.is_any_alive(conn, self._heartbeat_timeout_s):
            raise no_valid_host()
        self._alive_until = now + _ALIVE_FOR_S


def new_token() -> str:
    """Return a random token, 43 characters, which nothing accepts until the node has its hash."""
    return secrets.token_urlsafe(32)


def claim_token(conn: sa.Connection, node_id: int, expected_in: Collection[str] | None) -> str | None:
    """Return a new token for the node, or ``******`` if it has one already; None if no ramdisk is expected any more.

    :param expected_in: the provision states in which a ramdisk is expected; None: all
    :raises NodeNotFound: 404
    """
    token = new_token()
    if nodes.claim_agent_token(conn, node_id, hashed_token(token), expected_in):
        return token
    return HIDDEN_TOKEN if nodes.has_agent_token(conn, node_id) else None


def claim_token_after_callback(conn: sa.Connection, node_id: int) -> str:
    """As :func:`claim_token`, for a ramdisk whose data have been accepted, by a conductor that does not do it.

    Its inspection may have ended since, which invalidates tokens: then it gets a token that is not accepted
    anywhere. (``******`` would mean that another ramdisk has the token.)
    """
    token = new_token()
    if nodes.claim_agent_token(conn, node_id, hashed_token(token), states.LOOKUP_ALLOWED):
        return token
    return HIDDEN_TOKEN if nodes.has_agent_token(conn, node_id) else token


def is_unapproved(node: Node) -> bool:
    """Return whether discovery has created the node, and no operator has managed it since."""
    if not node.auto_discovered:
        return False
    return node.provision_state == states.ENROLL or (
        node.provision_state == states.INSPECTING and node.target_provision_state == states.ENROLL)


def token_matches(token: str, known_hash: str | None) -> bool:
    """Return whether ``token`` has the stored hash; takes the same time if no hash is stored."""
    return hmac.compare_digest(hashed_token(token), known_hash or _NO_HASH)


class HeartbeatController(Resource):
    """Since API 1.22; authenticated by the agent token only."""

    @expose(since=versions.RAMDISK, public=True, policy=base.HEARTBEAT, body=schemas.HEARTBEAT, status=202,
            hidden=True)
    def post(self, request: Request, node: str = "", *, body: JSONObject) -> None:
        """Pass the heartbeat of the ramdisk of ``node`` (a UUID) to a conductor.

        :raises InvalidParameterValue: 400, the path has no node
        :raises LookupFailed: 404, the same for a wrong node and a wrong token
        :raises NodeLocked: 409, only for the holder of the token
        :raises no_valid_host: 503, no conductor is alive
        """
        if not node:
            raise InvalidParameterValue("The UUID of the node is required as the last part of the path.")
        require_endpoints(request.conf)
        _refuse_newer_fields(body, request.version)
        row = _node_of(request, node)
        token = body.pop("agent_token")
        if not token_matches(token, row.agent_token_hash if row else None) or row is None:
            # Ramdisks repeat their heartbeats, and anyone can send one.
            if (unlogged := request.refused_heartbeats.is_due(node, (), (), "token")) is not None:
                LOG.warning("Heartbeat refused: wrong agent token for node %s%s", printable(node, 64), unlogged)
            raise LookupFailed()
        details = {name: value for name, value in body.items() if name not in ("callback_url", "agent_version")}
        try:
            request.rpc.heartbeat(request.context, row.uuid, body["callback_url"], body.get("agent_version"),
                                  group=row.conductor_group, agent_token=token, **details)
        except NotFound as error:
            raise LookupFailed() from error


def _node_of(request: Request, ident: str) -> Node | None:
    """Return the node with this UUID. Names are not accepted, because they can be guessed.

    :raises no_valid_host: 503, whatever the node
    """
    with request.db.reader() as conn:
        request.conductor_check.require(conn)
        if not is_uuid(ident):
            return None
        try:
            return nodes.get(conn, ident)
        except NodeNotFound:
            return None


def _refuse_newer_fields(body: JSONObject, minor: int) -> None:
    problems = [Problem(f"/{name}", f"needs API version 1.{since}")
                for name, since in schemas.HEARTBEAT_SINCE.items() if minor < since and body.get(name) is not None]
    if problems:
        raise Invalid(problems=problems)


#: Settings that IPA reads; others have their default.
_CONFIG: JSONObject = {
    "metrics": {"backend": "noop", "prepend_host": False, "prepend_uuid": False, "prepend_host_reverse": True,
                "global_prefix": None},
    "metrics_statsd": {"statsd_host": "localhost", "statsd_port": 8125},
    "agent_skip_bmc_detect": False,
    "disable_deep_image_inspection": False,
    "permitted_image_formats": ["raw", "gpt", "qcow2", "iso"],
    "enable_bios_bootloader_install": False,
}


#: Keys that ironic-python-agent 13.0 reads (hardware.py, utils.py). Any client that knows a MAC address of a
#: waiting node gets them: no image, config drive or BMC address.
_INSTANCE_INFO = ("root_device", "capabilities", "deploy_boot_mode")
_DRIVER_INTERNAL_INFO = (
    "agent_continue_if_ata_erase_failed", "agent_continue_if_secure_erase_failed", "agent_enable_ata_secure_erase",
    "agent_enable_discard_erase", "agent_enable_nvme_secure_erase", "agent_erase_devices_iterations",
    "agent_erase_devices_zeroize", "agent_erase_skip_read_only", "deploy_boot_mode", "disk_erasure_concurrency",
    "wipe_special_filesystems",
)


def _only(names: tuple[str, ...], info: JSONObject) -> Any:
    return secrets_models.mask({name: info[name] for name in names if name in info})


def lookup_reply(base: str, node: NodeFound, token: str, conf: cfg.ConfigOpts) -> JSONObject:
    """Return ``{"node": …, "config": …}`` with what an agent needs, and every secret in it masked.

    The agent looks into ``instance_info`` without asking whether it is there.

    :param token: the agent token, or ``******`` if it was already issued
    """
    return {
        "node": {
            "uuid": node.uuid,
            "properties": secrets_models.mask(node.properties),
            "instance_info": _only(_INSTANCE_INFO, node.instance_info),
            "driver_internal_info": _only(_DRIVER_INTERNAL_INFO, node.driver_internal_info),
            "links": links.resource(base, "nodes", node.uuid),
        },
        "config": {
            "heartbeat_timeout": conf.api.ramdisk_heartbeat_timeout, "agent_token": token, "agent_token_required": True,
            "agent_md5_checksum_enable": conf.deploy.allow_md5_checksum, **_CONFIG,
        },
    }


#: A report has at most that number of interfaces; an InfiniBand address and a comma are 60 characters.
_MAX_ADDRESSES, _MAX_CHARACTERS = 1024, 60 * 1024


def _addresses(value: str) -> tuple[str, ...]:
    return filters.names(value, _MAX_CHARACTERS)


class LookupController(Resource):
    """Since API 1.22, without authentication."""

    @expose(since=versions.RAMDISK, public=True, policy=base.LOOKUP,
            query=filters.Query(addresses=_addresses, node_uuid=filters.uuid))
    def get_all(self, request: Request, query: QueryValues) -> JSONObject:
        """Return the node and the ramdisk's settings; the first caller gets the agent token, later ones ``******``.

        A node that discovery has created has no token until an operator manages it: callers get one that is not
        accepted anywhere.

        :raises Invalid: 400, neither a MAC address nor a UUID was given
        :raises LookupFailed: 404, always with the same text
        """
        require_endpoints(request.conf)
        macs = _macs(query.get("addresses", ()), infiniband=request.conf.infiniband_addresses)
        uuid = query.get("node_uuid")
        if not macs and uuid is None:
            raise Invalid("addresses or node_uuid is required, with at least one valid MAC address or a UUID.")
        with request.db.reader() as conn:
            node = _found_node(request, conn, uuid, macs)
        expected_in = _states_with_ramdisk(request.conf, node)
        if expected_in is not None and node.provision_state not in expected_in:
            raise _refused(request, uuid, macs, f"node {node.uuid} is in state {node.provision_state}")
        if is_unapproved(node):
            # Nothing accepts it: no operator has approved the node yet.
            return lookup_reply(request.base, node, new_token(), request.conf)
        try:
            token = request.db.write(lambda conn: claim_token(conn, node.id, expected_in))
        except NodeNotFound as error:
            raise _refused(request, uuid, macs, str(error)) from error
        if token is None:
            # Between the two transactions a deployment may have ended, and the caller may be its instance.
            raise _refused(request, uuid, macs, f"node {node.uuid} is no longer in state {node.provision_state}")
        if token == HIDDEN_TOKEN:
            LOG.warning("Lookup of node %s: its agent token was already issued", node.uuid)
        return lookup_reply(request.base, node, token, request.conf)


def _states_with_ramdisk(conf: cfg.ConfigOpts, node: Node) -> Collection[str] | None:
    """Return the states in which a lookup finds the node; None: all.

    With fast track, a ramdisk may wait for the next operation.
    """
    if not conf.api.restrict_lookup:
        return None
    is_fast_track = states.is_fast_track(node.driver_info, conf.deploy.fast_track)
    return states.LOOKUP_ALLOWED | states.FAST_TRACK if is_fast_track else states.LOOKUP_ALLOWED


def _macs(addresses: tuple[str, ...], *, infiniband: bool) -> list[str]:
    """Return the MAC addresses in ``addresses``, and if ``infiniband`` is true those that stand for InfiniBand ones."""
    if len(addresses) > _MAX_ADDRESSES:
        raise Invalid(f"addresses: at most {_MAX_ADDRESSES} are accepted.")
    macs = (addresses_models.mac_of_interface(address, infiniband=infiniband) for address in addresses)
    return sorted({address for address in macs if address is not None})


def _found_node(request: Request, conn: sa.Connection, uuid: str | None, macs: list[str]) -> Node:
    """Return the node that has the UUID and the MAC addresses, as the lookup of a report weighs them."""
    try:
        named = None if uuid is None else nodes.get(conn, uuid)
    except NodeNotFound as error:
        raise _refused(request, uuid, macs, str(error)) from error
    ignored = request.conf.inspector.ignored_macs
    identifying = addresses_models.without_ignored(macs, ignored)
    owners = ports.owners_and_rules_revision(conn, identifying)[0] if identifying else []
    node_id = node_lookup.find_by_macs(conn, None if named is None else named.id, identifying, owners, ignored)
    if node_id is None:
        raise _refused(request, uuid, macs, f"{len({owner.node_id for owner in owners})} nodes have ports with the MAC "
                                            f"addresses {enumeration(macs)}, of which none is clearly this machine")
    try:
        return named or nodes.get_by_id(conn, node_id)
    except NodeNotFound as error:
        raise _refused(request, uuid, macs, str(error)) from error


def _refused(request: Request, uuid: str | None, macs: list[str], reason: str) -> LookupFailed:
    """Return the error, whose reason is logged: ramdisks repeat a lookup every few seconds, and anyone can send one."""
    if (unlogged := request.refused_lookups.is_due(uuid, macs, (), reason)) is not None:
        LOG.info("Lookup failed: %s%s", reason, unlogged)
    return LookupFailed()


class ReportDigests:
    """Makes the digests of reports, their marks: a repetition has the same.

    They are keyed: a reader of the database cannot find out what a ramdisk has sent by trying.
    """

    def __init__(self, db: Database) -> None:
        self._key = accepted_requests.digest_key(db, "reports")

    def of(self, node_uuid: str | None, body: bytes) -> str:
        """Return the digest of a report: of all of its body, and of the node that it names in its query."""
        digest = hashlib.blake2b(key=self._key, digest_size=32)
        digest.update((node_uuid or "").encode() + b"\0")
        digest.update(body)
        return digest.hexdigest()
