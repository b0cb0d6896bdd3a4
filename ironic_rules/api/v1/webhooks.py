"""``/v1/webhooks``: receivers of events, and what could not be delivered to them."""

from __future__ import annotations

import base64
import secrets
from typing import ClassVar

import sqlalchemy as sa

from ironic_rules.api import filters, pagination, patch, schemas, versions
from ironic_rules.api.expose import expose
from ironic_rules.api.filters import QueryValues
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.api.v1 import node_access
from ironic_rules.api.v1.served import Served
from ironic_rules.db import webhooks
from ironic_rules.exceptions import Invalid, Problem, webhooks_are_off
from ironic_rules.hardware import destinations
from ironic_rules.models import urls
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.webhooks import PREFIX, WEBHOOK, Webhook, message
from ironic_rules.policies import rules as policies

_WEBHOOKS = Served("webhooks", WEBHOOK, webhooks.WEBHOOKS)
_LIST = filters.Listing.of(WEBHOOK, checked=False)
_ONE = filters.Query(fields=filters.names)
_LETTERS = filters.Query(limit=filters.positive, marker=filters.uuid)
#: Random bytes of a secret that is made here.
_SECRET_BYTES = 32


class RedeliverController(Resource):
    """``/v1/webhooks/{webhook}/redeliver``."""

    @expose(since=versions.INSPECTION_RULES, policy=policies.WEBHOOK_REDELIVER, body=schemas.REDELIVER, status=202)
    def post(self, request: Request, webhook: str, body: JSONObject | None) -> JSONObject:
        """Deliver dead letters again: those of ``events``, which are UUIDs, or all; return how many in ``events``.

        :raises webhook_not_found, dead_letter_not_found: 404
        """
        events = (body or {}).get("events")

        def write(conn: sa.Connection) -> int:
            return webhooks.redeliver(conn, _find(request, conn, webhook), events)

        return {"events": request.db.write(write)}


class DeadLettersController(Resource):
    """``/v1/webhooks/{webhook}/dead_letters``."""

    @expose(since=versions.INSPECTION_RULES, policy=policies.WEBHOOK_GET, query=_LETTERS)
    def get_all(self, request: Request, webhook: str, query: QueryValues) -> JSONObject:
        """List the events that could not be delivered, the oldest first; ``event`` is the UUID of each.

        They are kept for ``[events]dead_letter_days``.

        :raises webhook_not_found, MarkerNotFound: 404
        """
        page = pagination.page(request, query)
        with request.db.reader() as conn:
            rows = webhooks.dead_letters(conn, _find(request, conn, webhook).id, page)
        return pagination.collection(request, "dead_letters", rows, page,
                                     lambda shown: [_letter(row) for row in shown], marker="event")

    @expose(since=versions.INSPECTION_RULES, policy=policies.WEBHOOK_GET)
    def get_one(self, request: Request, webhook: str, event: str) -> JSONObject:
        """Return an event that could not be delivered, with its message in ``content``.

        :raises webhook_not_found, dead_letter_not_found: 404
        """
        with request.db.reader() as conn:
            row = webhooks.dead_letter(conn, _find(request, conn, webhook), event)
        return {**_letter(row), "content": message(row).decode()}

    @expose(since=versions.INSPECTION_RULES, policy=policies.WEBHOOK_REDELIVER, status=204)
    def delete(self, request: Request, webhook: str, event: str | None = None) -> None:
        """Delete one dead letter, or all.

        :raises webhook_not_found, dead_letter_not_found: 404
        """
        events = None if event is None else [event]
        request.db.write(lambda conn: webhooks.forget(conn, _find(request, conn, webhook), events))


class WebhooksController(Resource):
    """``/v1/webhooks``; the ident is a UUID or a name."""

    below_item: ClassVar = {"dead_letters": DeadLettersController(), "redeliver": RedeliverController()}

    @expose(since=versions.INSPECTION_RULES, policy=policies.WEBHOOK_GET, query=_LIST)
    def get_all(self, request: Request, query: QueryValues) -> JSONObject:
        """List webhooks, without their secrets, with all fields or with those of ``fields``."""
        return _WEBHOOKS.list_page(request, query, pagination.filters(query))

    @expose(since=versions.INSPECTION_RULES, policy=policies.WEBHOOK_GET, query=_ONE)
    def get_one(self, request: Request, webhook: str, query: QueryValues) -> JSONObject:
        """Return one webhook, without its secret.

        :raises webhook_not_found: 404
        """
        return _WEBHOOKS.get_one(request, _ident(webhook), query)

    @expose(since=versions.INSPECTION_RULES, policy=policies.WEBHOOK_CREATE, body=schemas.WEBHOOK_CREATE, status=201)
    def post(self, request: Request, body: JSONObject) -> JSONObject:
        """Create a webhook. Without ``secret``, the service makes one, and only this reply contains it.

        :raises Invalid: 400, also if the URL leads into a denied network
        :raises webhook_already_exists, duplicate_webhook_name, too_many_webhooks: 409
        :raises webhooks_are_off: 409
        """
        if not request.conf.events.webhooks:
            raise webhooks_are_off()
        values = {**WEBHOOK.defaults(), "events": ["*"], **_WEBHOOKS.given(request, body)}
        _check_url(request, values["url"])
        secret = None
        if not values.get("secret"):
            secret = values["secret"] = f"{PREFIX}{base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()}"
        row = request.db.write(lambda conn: webhooks.create(conn, values))
        shown = _WEBHOOKS.show_new(request, row)
        return shown if secret is None else {**shown, "secret": secret}

    @expose(since=versions.INSPECTION_RULES, policy=policies.WEBHOOK_UPDATE, body=patch.BODY)
    def patch(self, request: Request, webhook: str, body: list[JSONObject]) -> JSONObject:
        """Change a webhook by a JSON patch (RFC 6902). Its ``secret`` can be replaced, but not read.

        A change lets the receiver be tried at once.

        :raises webhook_not_found: 404;  Invalid: 400;  duplicate_webhook_name: 409
        """
        operations = _WEBHOOKS.operations(request, body)

        def change(conn: sa.Connection) -> Webhook:
            row = _WEBHOOKS.find(request, conn, _ident(webhook), for_update=True)
            changes = _WEBHOOKS.changes(row, operations, schemas.WEBHOOK_PATCHED)
            if "url" in changes:
                _check_url(request, changes["url"])
            if not changes.get("secret", True) or not changes.get("events", True):
                raise Invalid(problems=[Problem(f"/{name}", "cannot be removed") for name in ("secret", "events")
                                        if not changes.get(name, True)])
            changed: Webhook = _WEBHOOKS.update(conn, row, changes and {**changes, "failures": 0, "retry_at": None})
            return changed

        return _WEBHOOKS.show(request, request.db.write(change))

    @expose(since=versions.INSPECTION_RULES, policy=policies.WEBHOOK_DELETE, status=204)
    def delete(self, request: Request, webhook: str) -> None:
        """Delete a webhook, with its dead letters and what waits for it.

        :raises webhook_not_found: 404
        """
        request.db.write(lambda conn: webhooks.WEBHOOKS.destroy(conn, _find(request, conn, webhook).id))


def _ident(webhook: str) -> str:
    return node_access.check_ident(webhook, "webhook")


def _find(request: Request, conn: sa.Connection, webhook: str) -> Webhook:
    row: Webhook = _WEBHOOKS.find(request, conn, _ident(webhook))
    return row


def _check_url(request: Request, url: str) -> None:
    """Check what can be known without a name server; the conductor checks the addresses before each request.

    :raises Invalid: 400
    """
    destinations.check_address(request.conf, url, "/url")
    if urls.parse(url).user is not None:
        raise Invalid(problems=[Problem("/url", "must have no user and password: messages are signed")])


def _letter(row: sa.Row[tuple[object, ...]]) -> JSONObject:
    return {name: getattr(row, name) for name in (
        "event", "type", "subject", "level", "created_at", "attempts", "error")}
