"""Policies of webhooks. Their URLs often contain a token, so that only administrators see them."""

from __future__ import annotations

from ironic_rules.policies.base import ADMIN, documented

GET = "baremetal:webhook:get"
CREATE = "baremetal:webhook:create"
UPDATE = "baremetal:webhook:update"
DELETE = "baremetal:webhook:delete"
REDELIVER = "baremetal:webhook:redeliver"

_ONE = "/v1/webhooks/{webhook}"
_LETTERS = f"{_ONE}/dead_letters"
RULES = [
    documented(GET, ADMIN, "List and show webhooks, and the events that could not be delivered to them",
               ("GET", "/v1/webhooks"), ("GET", _ONE), ("GET", _LETTERS), ("GET", f"{_LETTERS}/{{event}}")),
    documented(CREATE, ADMIN, "Create a webhook", ("POST", "/v1/webhooks")),
    documented(UPDATE, ADMIN, "Change a webhook", ("PATCH", _ONE)),
    documented(DELETE, ADMIN, "Delete a webhook", ("DELETE", _ONE)),
    documented(REDELIVER, ADMIN, "Deliver events again that could not be delivered, or delete them",
               ("POST", f"{_ONE}/redeliver"), ("DELETE", _LETTERS), ("DELETE", f"{_LETTERS}/{{event}}")),
]
