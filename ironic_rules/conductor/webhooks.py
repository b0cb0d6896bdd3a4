"""Requests to the receivers of webhooks: each is checked, signed, bounded in time, and follows no redirection."""

from __future__ import annotations

import functools
import ssl
import time
from typing import NamedTuple

import httpx
from oslo_config import cfg

from ironic_rules.db.outbox import Delivery
from ironic_rules.hardware import destinations
from ironic_rules.hardware.waiting import RequestDeadline
from ironic_rules.models import urls, webhooks
from ironic_rules.models.webhooks import Webhook

#: Statuses after which the receiver is left alone for a while, in addition to 500 and more; other events than the one
#: that it has refused may be welcome.
_BUSY = frozenset({408, 425, 429})
#: The status of a receiver that wants no events any more.
_GONE = 410
#: Seconds for which a receiver can be left alone at most by its header ``Retry-After``.
_LONGEST_S = 3600


class Refusal(NamedTuple):
    """Why an event has not arrived.

    :ivar reason: without the URL, which may contain a secret
    :ivar of_event: whether other events may be tried at once
    :ivar is_final: whether the receiver wants no events any more
    :ivar retry_s: seconds for which it asks to be left alone
    """

    reason: str
    of_event: bool = False
    is_final: bool = False
    retry_s: float = 0.0


def send(conf: cfg.ConfigOpts, webhook: Webhook, delivery: Delivery) -> Refusal | None:
    """Send an event to a webhook; return why it has not arrived, None if it has."""
    timeout_s = conf.events.webhook_timeout
    try:
        destination = destinations.find(urls.parse(webhook.url), destinations.denied_networks(conf), timeout_s)
    except ValueError as exc:
        return Refusal(f"nothing was sent: {exc}")
    content, now = webhooks.message(delivery.event), int(time.time())
    identity = delivery.event.uuid
    headers = {
        "Content-Type": webhooks.MEDIA_TYPE, "User-Agent": "ironic-rules", "webhook-id": identity,
        "webhook-timestamp": str(now),
        "webhook-signature": webhooks.signature(webhook.secret, identity, now, content)}
    limit = RequestDeadline(timeout_s)
    try:
        with (
            limit, destinations.client(destination, _tls(), timeout_s) as client,
            # Without the body, of which there may be any amount.
            client.stream("POST", str(destination.url), content=content, headers=headers, extensions=limit.extensions,
                          ) as answer,
        ):
            return _judged(answer)
    except (httpx.HTTPError, httpx.InvalidURL) as exc:
        if limit.is_over:
            return Refusal(f"no answer within {timeout_s} s")
        return Refusal(f"no answer ({type(exc).__name__})")


def _judged(answer: httpx.Response) -> Refusal | None:
    status = answer.status_code
    if answer.is_success:
        return None
    reason = f"status {status}"
    if answer.is_redirect:
        return Refusal(f"{reason}: redirections are not followed")
    after = answer.headers.get("Retry-After", "")
    retry_s = float(min(int(after), _LONGEST_S)) if after.isascii() and after.isdecimal() and len(after) < 9 else 0.0
    return Refusal(reason, of_event=400 <= status < 500 and status not in _BUSY, is_final=status == _GONE,
                   retry_s=retry_s)


@functools.cache
def _tls() -> ssl.SSLContext:
    """Return the TLS context of connections; made once, because it reads the system's certificates."""
    return ssl.create_default_context()
