"""What the endpoints that ramdisks call have in common: whether they are served, and the token of each ramdisk.

The token is the secret between the service and one ramdisk: issued once, stored only as a hash.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

import sqlalchemy as sa
from oslo_config import cfg

from ironic_rules.db import nodes
from ironic_rules.exceptions import NotFound
from ironic_rules.models import states

#: What later callers get in its place. IPA gives up when it sees it, so a second ramdisk does not go unnoticed.
HIDDEN_TOKEN = "******"
#: Compared with when there is no node or no token, so that all refusals take the same way.
_NO_HASH = "0" * 64


def require_endpoints(conf: cfg.ConfigOpts) -> None:
    """Check that this API serves ramdisks (``[api]enable_ramdisk_endpoints``).

    :raises NotFound: 404
    """
    if not conf.api.enable_ramdisk_endpoints:
        raise NotFound()


def hashed_token(token: str) -> str:
    """Return the SHA-256 of ``token`` in hex. The token is random, so a fast hash is enough."""
    return hashlib.sha256(token.encode()).hexdigest()


def claim_token(conn: sa.Connection, node_id: int) -> str:
    """Return a new token for the node (43 characters), or ``******`` if it has one already."""
    token = secrets.token_urlsafe(32)
    return token if nodes.claim_agent_token(conn, node_id, hashed_token(token)) else HIDDEN_TOKEN


def claim_token_after_callback(conn: sa.Connection, node_id: int) -> str:
    """As :func:`claim_token`, for a ramdisk whose data have been accepted.

    Its inspection may have ended meanwhile, which makes tokens void: then what it gets opens nothing. (``******`` would
    tell it that another ramdisk has the token.)
    """
    token = secrets.token_urlsafe(32)
    if nodes.claim_agent_token(conn, node_id, hashed_token(token), states.LOOKUP_ALLOWED):
        return token
    return HIDDEN_TOKEN if nodes.has_agent_token(conn, node_id) else token


def void_token() -> str:
    """Return a token that opens nothing: for the machine of a discovered node, which nobody has looked at yet."""
    return secrets.token_urlsafe(32)


def token_matches(token: str, known_hash: str | None) -> bool:
    """Say whether ``token`` is the one whose hash is stored; takes as long when none is."""
    return hmac.compare_digest(hashed_token(token), known_hash or _NO_HASH)
