"""``/v1/continue_inspection``: where a ramdisk sends its inspection data (document 001)."""

from __future__ import annotations

import time

from oslo_log import log

from ironic_rules.api import filters, schemas, versions
from ironic_rules.api.expose import expose
from ironic_rules.api.filters import QueryValues
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.api.v1 import ramdisk
from ironic_rules.context import Mark, hashed_token
from ironic_rules.db import accepted_requests, clock, ports
from ironic_rules.db import discovery as discovery_db
from ironic_rules.exceptions import (
    Invalid,
    InvalidInventory,
    LookupFailed,
    MachineUnknown,
    NodeLocked,
    NotFound,
    Unavailable,
)
from ironic_rules.inspection import discovery, lookup, payload
from ironic_rules.models import addresses, machine_ids
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.json_text import Oddity
from ironic_rules.models.nodes import NodeFound
from ironic_rules.models.rejected_reports import DISCOVERY_OFF, EARLY_RULE, MALFORMED, WRONG_STATE, RejectedReport
from ironic_rules.policies import base
from ironic_rules.text import printable

LOG = log.getLogger(__name__)

_MAX_SOURCE = 64


_QUERY = filters.Query(node_uuid=filters.uuid)


def _note_malformed(request: Request, error: Invalid) -> None:
    """Note a report whose body is rejected: by the addresses in the report, the journal finds it."""
    macs, bmc_addresses = payload.addresses_in(request.environ.get("ironic_rules.body", b""))
    node_uuid = _QUERY.load(request.environ.get("QUERY_STRING", "")).get("node_uuid")
    request.context.source = _source(request)
    request.journal.note(RejectedReport(
        MALFORMED, str(error), request.context.source, clock.now(), node_uuid, macs, bmc_addresses))


def _source(request: Request) -> str | None:
    # Behind a proxy, some servers pass what a client says of itself.
    return printable(request.environ.get("REMOTE_ADDR") or "", _MAX_SOURCE) or None


class ContinueInspectionController(Resource):
    """In the base version as in Inspector; since API 1.84 it also replaces a lookup."""

    @expose(public=True, policy=base.CONTINUE_INSPECTION, query=_QUERY, body=schemas.CONTINUE_INSPECTION,
            allow_nul=True, refused=_note_malformed)
    def post(self, request: Request, body: JSONObject, query: QueryValues, oddities: list[Oddity]) -> JSONObject:
        """Store the data and continue the node's inspection; 200 means that they are stored.

        A repetition of a report that was accepted in the last ten minutes, as its answer may have been lost, gets the
        first answer again, without the token.

        If no node is found for the machine and ``[auto_discovery]enabled`` is true, a node is created.

        One odd value does not cost a machine its report: see ``inspection.payload``.

        :param oddities: of the text of the body
        :returns: ``{"uuid"}``; since 1.84 the same as ``/v1/lookup``
        :raises Invalid: 400, the data are malformed, or have nothing by which a node can be found
        :raises LookupFailed: 404, always with the same text: no node, several, not waiting for data, or refused by an
            early rule
        :raises Unavailable: 503, safe to retry
        """
        ramdisk.require_endpoints(request.conf)
        minor = request.version
        if versions.MIN < minor < versions.CONTINUE_INSPECTION:
            raise NotFound(versions.required(versions.CONTINUE_INSPECTION))
        digest = request.report_digests.of(query.get("node_uuid"), request.environ["ironic_rules.body"])
        request.context.source = _source(request)
        try:
            sent = payload.split(body, oddities, infiniband=request.conf.infiniband_addresses)
        except InvalidInventory as error:
            _note_malformed(request, error)
            raise
        refused: LookupFailed | None = None
        began = time.monotonic()
        try:
            node, is_new, refusal = _find(request, query.get("node_uuid"), sent)
            request.context.lookup_s = time.monotonic() - began
            # The reply to a repetition has no token: a second one would not be valid.
            request.context.mark = Mark(
                digest, "", ramdisk.lookup_reply(request.base, node, ramdisk.HIDDEN_TOKEN, request.conf))
            # The token of a discovered node is accepted nowhere: no operator has approved the node yet.
            claims = not is_new and minor >= versions.CONTINUE_INSPECTION
            token = ramdisk.new_token()
            claimed = _hand_over(request, node, sent, is_new, refusal, token if claims else None)
            if is_new:
                request.numbers.count("discovered_nodes")
        except LookupFailed as error:
            refused = error
        except Invalid as error:
            _note(request, MALFORMED, str(error), query.get("node_uuid"), sent)
            raise
        if refused is not None:
            request.numbers.count("api_callbacks_refused", refused.kind)
            try:
                if (first := _first_answer(request, digest)) is not None:
                    return first if minor >= versions.CONTINUE_INSPECTION else {"uuid": first["node"]["uuid"]}
                # Not while it is handled: oslo.log would add its text to the line.
                _log_refusal(request, refused, query.get("node_uuid"), sent)
                _note(request, refused.kind, refused.reason, query.get("node_uuid"), sent)
                raise refused
            finally:
                del refused  # as in _find
        if minor < versions.CONTINUE_INSPECTION:
            return {"uuid": node.uuid}
        if claimed is False:
            token = ramdisk.HIDDEN_TOKEN
        elif claims and not claimed:
            token = request.db.write(lambda conn: ramdisk.claim_token_after_callback(conn, node.id))
        return ramdisk.lookup_reply(request.base, node, token, request.conf)


def _find(request: Request, node_uuid: str | None, sent: payload.Payload) -> tuple[NodeFound, bool, str | None]:
    """Return the node of the machine, whether discovery has created it, and why its inspection has to fail, or None.

    :raises LookupFailed: 404
    :raises no_valid_host: 503, no conductor is alive that could accept the data
    """
    node: NodeFound | None = None
    unknown: Exception | None = None
    with request.db.reader() as conn:
        request.conductor_check.require(conn)
        ignored = request.conf.inspector.ignored_macs
        macs = addresses.without_ignored(sent.macs, ignored)
        owners, revision = ports.owners_and_rules_revision(conn, macs)
        try:
            node = lookup.find_node(conn, node_uuid, macs, sent.bmc_addresses, owners,
                                    request.conf.inspector.foreign_bmc, ignored=ignored,
                                    ids=lambda: machine_ids.of_report(sent.inventory, sent.plugin_data))
        except (Invalid, LookupFailed) as error:
            unknown = error
    try:
        # Before anything is done with what the lookup has found, and not in its transaction: rules take their time.
        refusal = request.early_rules.run(request.rule_cache.early(revision), sent,
                                          None if node is None else node.uuid)
        if node is not None:
            return node, False, refusal
        if refusal is not None:
            raise LookupFailed.because(
                f"no lookup finds it, and an early rule is broken: {refusal}", EARLY_RULE) from unknown
        return *_discovered(request, node_uuid, sent, unknown), None
    finally:
        del unknown  # it knows this frame, and they would keep the data in memory until cycles are collected


def _discovered(request: Request, node_uuid: str | None, sent: payload.Payload,
                refusal: Exception | None) -> tuple[NodeFound, bool]:
    """Return the node of a machine that the lookup does not find, and whether discovery has created it.

    :raises LookupFailed: 404
    """
    try:
        if not request.conf.auto_discovery.enabled and isinstance(refusal, MachineUnknown):
            refusal.kind = DISCOVERY_OFF
            refusal.reason += ", and [auto_discovery]enabled is false"
        if not request.conf.auto_discovery.enabled or node_uuid or not isinstance(refusal, LookupFailed):
            raise refusal or LookupFailed()
        if isinstance(refusal, MachineUnknown):
            return discovery.find_or_create(request.db, request.conf, sent), True
        node = discovery.find_unaccepted(request.db, request.conf, sent)
        if node is None:
            raise refusal
        return node, True
    finally:
        del refusal  # as in _find


def _first_answer(request: Request, digest: str) -> JSONObject | None:
    """Return what an equal report was answered with, if one was accepted in the last minutes."""
    with request.db.reader() as conn:
        mark = accepted_requests.find(conn, digest)
    return None if mark is None else mark.answer


def _log_refusal(request: Request, error: LookupFailed, node_uuid: str | None, sent: payload.Payload) -> None:
    """Log why a report is rejected. All reasons cause the same work, so that its duration does not tell the reason."""
    earlier = request.rejected_reports.is_due(node_uuid, sent.macs, sent.bmc_addresses, error.reason)
    if earlier is None:
        return
    with request.db.reader() as conn:
        matches = discovery_db.find_matches(conn, node_uuid, sent.macs, sent.bmc_addresses)
    request.rejected_reports.log(LOG, error, node_uuid, sent.macs, sent.bmc_addresses, matches, earlier)


def _note(request: Request, reason: str, detail: str, node_uuid: str | None = None,
          sent: payload.Payload | None = None) -> None:
    """Note a rejected report for the journal, which is written later: nothing is waited for."""
    macs, bmc_addresses = ((), ()) if sent is None else (sent.macs, sent.bmc_addresses)
    report, size = None, 0
    if sent is not None:
        report, size = {"inventory": sent.received, **sent.plugin_data}, len(request.environ["ironic_rules.body"])
    request.journal.note(RejectedReport(
        reason, detail, request.context.source, clock.now(), node_uuid, macs, bmc_addresses, report, size))


def _hand_over(request: Request, node: NodeFound, sent: payload.Payload, is_new: bool, refusal: str | None,
               token: str | None) -> bool | None:
    """Pass the data to a conductor; when this returns, they are stored.

    :param is_new: discovery has created the node for these data; it is deleted if no conductor accepts them
    :param refusal: why the inspection has to fail, or None
    :param token: what the ramdisk gets, unless it has one
    :returns: whether it is now the token of the ramdisk; None: that remains to be done
    :raises LookupFailed: 404, the node is not, or no longer, waiting for data
    :raises Unavailable: 503
    """
    request.context.token_hash = None if token is None else hashed_token(token)
    data = sent.to_store()
    try:
        claimed: bool | None = request.rpc.continue_inspection(
            request.context, node.id, data.inventory, data.plugin_data, refusal, group=node.conductor_group)
        return claimed
    except NotFound as error:
        raise LookupFailed.because("the node no longer waits for data", WRONG_STATE) from error
    except NodeLocked as error:
        # 409 would reveal the node to an unauthenticated client. A new node is locked by an earlier report of its
        # machine.
        raise (LookupFailed.because("an earlier report of the machine is processed", WRONG_STATE) if is_new
               else Unavailable()) from error
    except Exception:  # only to delete the node; the error is raised again
        if is_new:
            discovery.withdraw(request.db, node.id)
        raise
