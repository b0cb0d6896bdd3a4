"""One GET request to a BMC with a third of the work that sushy does for it: thousands of nodes are polled.

It uses the connection that sushy has made, with its certificates, its login, its headers and its limits, and makes one
attempt.
What needs more than that (a proxy, a session that has ended) is left to sushy.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import requests
import urllib3
from requests.auth import _basic_auth_str
from requests.utils import select_proxy

from ironic_rules import context
from ironic_rules.hardware.redfish import bmc_session

_HEADERS = {"OData-Version": "4.0", "Accept-Encoding": "identity"}
_CHUNK = 64 * 1024
#: Keys of what is remembered in the session of a connection.
_POOL = "_ironic_rules_pool"


def get(connector: Any, path: str, connect_timeout_s: float, read_timeout_s: float) -> tuple[int, bytes] | None:
    """Return status and body of the document at ``path``; None if sushy has to read it.

    :param connector: sushy's connector
    :raises urllib3.exceptions.HTTPError: the BMC cannot be reached
    """
    session = connector._session
    pool = _pool(connector, session)
    if pool is None:
        return None
    headers = {**session.headers, **_HEADERS, **context.request_id_header()}
    if isinstance(session.auth, tuple):
        headers["Authorization"] = _basic_auth_str(*session.auth)
    reply = pool.urlopen("GET", path, headers=headers, redirect=False, retries=False, preload_content=False,
                         timeout=urllib3.Timeout(connect=connect_timeout_s, read=read_timeout_s))
    try:
        return reply.status, _content(reply)
    finally:
        # Back to the pool if all of it was read, otherwise closed.
        reply.release_conn()


def _content(reply: urllib3.BaseHTTPResponse) -> bytes:
    """Return the body, whose size is bounded: a BMC may send anything, and compress it. The session limits the time."""
    found = bytearray()
    while chunk := reply.read1(_CHUNK):
        found += chunk
        if len(found) > bmc_session.MAX_BYTES:
            reply.close()
            raise urllib3.exceptions.ProtocolError("the body is too large")
    return bytes(found)


def _pool(connector: Any, session: requests.Session) -> Any:
    """Return the pool of HTTP connections to the BMC, which is determined once; None if a proxy is between."""
    if _POOL not in session.__dict__:
        base = connector._url
        # As for each request of sushy: also what the environment says about proxies and certificates.
        found = session.merge_environment_settings(base, {}, None, connector._verify, None)
        adapter: Any = session.get_adapter(base)
        usable = select_proxy(base, found["proxies"]) is None and urlsplit(base).path in ("", "/")
        session.__dict__[_POOL] = adapter.get_connection_with_tls_context(
            SimpleNamespace(url=base), found["verify"], proxies=None, cert=None) if usable else None
    return session.__dict__[_POOL]
