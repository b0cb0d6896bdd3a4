"""What the endpoints for ramdisks share: whether they are served, and the agent token.

The token is a secret shared with one ramdisk: issued once, stored only as a hash.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time

import sqlalchemy as sa
from oslo_config import cfg

from ironic_rules.db import conductors, nodes
from ironic_rules.exceptions import NotFound, NoValidHost
from ironic_rules.models import states
from ironic_rules.models.nodes import Node

#: What later callers get instead of the token. IPA aborts when it receives it, so a second ramdisk is detected.
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
    """Whether any conductor is alive. One per process; hundreds of ramdisks may report per second.

    :param heartbeat_timeout: seconds
    """

    def __init__(self, heartbeat_timeout: float) -> None:
        self._heartbeat_timeout_s = heartbeat_timeout
        self._alive_until = 0.0

    def require(self, conn: sa.Connection) -> None:
        """Check it; before any lookup, so that every caller gets the same reply.

        :raises NoValidHost: 503, there is none
        """
        now = time.monotonic()
        if now < self._alive_until:
            return
        if not conductors.is_any_alive(conn, self._heartbeat_timeout_s):
            raise NoValidHost
        self._alive_until = now + _ALIVE_FOR_S


def hashed_token(token: str) -> str:
    """Return the SHA-256 of ``token`` in hex. The token is random, so a fast hash is enough."""
    return hashlib.sha256(token.encode()).hexdigest()


def new_token() -> str:
    """Return a random token, 43 characters, which nothing accepts until the node has its hash."""
    return secrets.token_urlsafe(32)


def claim_token(conn: sa.Connection, node_id: int) -> str:
    """Return a new token for the node, or ``******`` if it has one already."""
    token = new_token()
    return token if nodes.claim_agent_token(conn, node_id, hashed_token(token)) else HIDDEN_TOKEN


def claim_token_after_callback(conn: sa.Connection, node_id: int) -> str:
    """As :func:`claim_token`, for a ramdisk whose data have been accepted, by a conductor that does not do it.

    Its inspection may have ended meanwhile, which invalidates tokens: then it gets a token that is not accepted
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
