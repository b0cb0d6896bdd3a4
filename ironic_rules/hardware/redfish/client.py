"""The client of BMCs: sushy, with all of its failures as one error, and a GET request of its own for polls.

sushy is imported when the first interface is created. The GET request takes a third of sushy's work, because thousands
of nodes are polled. It uses the connection that sushy has made, with its certificates, its login, its headers and its
limits, and makes one attempt. The rest (a proxy, a session that has ended) is left to sushy.
"""

from __future__ import annotations

import contextlib
import importlib
import ipaddress
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import requests
import urllib3
from oslo_config import cfg
from oslo_log import log
from requests.auth import _basic_auth_str
from requests.utils import select_proxy

from ironic_rules import context
from ironic_rules.exceptions import BMCError, ConfigurationError
from ironic_rules.hardware.base import Interface, InterfaceOf
from ironic_rules.hardware.destinations import Denied
from ironic_rules.hardware.redfish import connections, driver_info, quirks
from ironic_rules.hardware.redfish.connections import BMCSession, Connections, NoInternet
from ironic_rules.hardware.redfish.driver_info import RedfishDriverInfo
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.known_secrets import KNOWN
from ironic_rules.models.task import Task
from ironic_rules.text import installation_of, printable

_HEADERS = {"OData-Version": "4.0", "Accept-Encoding": "identity"}
_CHUNK = 64 * 1024
#: Keys of what is remembered in the session of a connection.
_POOL = "_ironic_rules_pool"


def quick_get(connector: Any, path: str, connect_timeout_s: float, read_timeout_s: float) -> tuple[int, bytes] | None:
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
    content = bytearray()
    while chunk := reply.read1(_CHUNK):
        content += chunk
        if len(content) > connections.MAX_BYTES:
            reply.close()
            raise urllib3.exceptions.ProtocolError("the body is too large")
    return bytes(content)


def _pool(connector: Any, session: requests.Session) -> Any:
    """Return the pool of HTTP connections to the BMC, which is determined once; None if a proxy is between."""
    if _POOL not in session.__dict__:
        base = connector._url
        # As for each request of sushy: also what the environment says about proxies and certificates.
        settings = session.merge_environment_settings(base, {}, None, connector._verify, None)
        adapter: Any = session.get_adapter(base)
        usable = select_proxy(base, settings["proxies"]) is None and urlsplit(base).path in ("", "/")
        session.__dict__[_POOL] = adapter.get_connection_with_tls_context(
            SimpleNamespace(url=base), settings["verify"], proxies=None, cert=None) if usable else None
    return session.__dict__[_POOL]


LOG = log.getLogger(__name__)

_MAX_REASON = 500
#: Maximum size of the documents that are read for one purpose, such as an inspection: these stay in memory together.
_MAX_READ_BYTES = 4 * connections.MAX_BYTES
#: HTTP status of what a BMC does not have (any more).
GONE = frozenset({404, 410})


def sushy() -> Any:
    """Return the package.

    :raises ConfigurationError: it is not installed
    """
    try:
        return importlib.import_module("sushy")
    except ImportError as exc:
        raise ConfigurationError("Redfish interfaces are enabled, but sushy is not installed; "
                                 + installation_of("redfish")) from exc


CONNECTIONS = Connections()


class RedfishInterface(Interface):
    """Mix-in of the interfaces that access a node's BMC by Redfish."""

    properties = driver_info.PROPERTIES

    def __init__(self, conf: cfg.ConfigOpts, interface_of: InterfaceOf) -> None:
        super().__init__(conf, interface_of)
        self.sushy = sushy()
        self._denied = tuple(map(ipaddress.ip_network, conf.redfish.denied_networks))

    @staticmethod
    def at_end(seconds: float) -> None:
        """Close the sessions at all BMCs."""
        CONNECTIONS.close(seconds)

    def validate(self, task: Task) -> None:
        self.driver_info(task)

    def driver_info(self, task: Task) -> RedfishDriverInfo:
        """Return the address of the node's BMC and how to log in.

        :raises InvalidParameterValue: ``driver_info`` is incomplete or invalid, or the BMC's IP address is denied
        """
        options = self.conf.redfish
        access = driver_info.parse(task.node.driver_info, options.auth_type, options.verify_ca_allowed_paths)
        connections.refuse_denied(access.address, self._denied)
        return access

    @contextlib.contextmanager
    def system(self, task: Task) -> Iterator[Any]:
        """Provide the node's ``sushy.resources.system.system.System``, freshly read.

        :raises BMCError: instead of any exception that sushy raises in the block
        """
        access = self.driver_info(task)
        with self._connection(task, access) as connection:
            yield connection.get_system(access.system_id)

    def change(self, area: quirks.Area, forms: Sequence[quirks.Form], *, is_shown_at_once: bool = False,
               timeout_s: float | None = None) -> quirks.Made:
        """Make a change as :func:`quirks.make_change`, in a block of :meth:`system`.

        :param timeout_s: if ``[redfish]busy_timeout`` is longer
        """
        limit_s = self.conf.redfish.busy_timeout
        return quirks.make_change(area, forms, self.sushy.exceptions, min(limit_s, timeout_s or limit_s),
                                  is_shown_at_once=is_shown_at_once)

    def why_not(self, exc: Exception) -> tuple[str, bool]:
        """Return why a resource was not read, and whether the BMC did not respond."""
        if isinstance(exc, self.sushy.exceptions.ConnectionError):
            return "no response", True
        # Without the text: a BMC may return what was sent to it.
        status = getattr(exc, "status_code", None)
        return (type(exc).__name__ if status is None else f"HTTP {status}"), False

    def read(self, task: Task, path: str) -> tuple[int, JSONObject]:
        """Return the HTTP status and the JSON object at ``path`` of the node's BMC, by one request as a rule.

        A status of 404 or 410 is returned, without an object, and so is what a BMC sends without a body.

        :raises BMCError: the BMC cannot be asked, or returns another error or no object
        """
        access = self.driver_info(task)
        if not path.startswith("/") or path.startswith("//"):
            # sushy would send the credentials to the host of a URL.
            raise BMCError(node=task.node.uuid, reason=f"{printable(path, _MAX_REASON)} is not one of its paths.")
        with self._connection(task, access) as connection:
            status, body = self._get(connection._conn, path)
            value = {} if status in GONE or not body else connections.document(body)
            if not isinstance(value, dict):
                raise TypeError(f"{path} is not an object")
            return status, value

    def _get(self, connector: Any, path: str) -> tuple[int, bytes]:
        options = self.conf.redfish
        try:
            reply = quick_get(connector, path, options.connect_timeout, options.request_timeout)
        except urllib3.exceptions.HTTPError as exc:
            raise self.sushy.exceptions.ConnectionError(url=path, error=exc) from exc
        if reply is not None and (reply[0] in GONE or 200 <= reply[0] < 300):
            return reply
        # Without repetitions, during which this thread would sleep: the next poll is one.
        response = connector.get(path, server_side_retries_left=0)
        return int(response.status_code), response.content

    @contextlib.contextmanager
    def _reported(self, task: Task, access: RedfishDriverInfo) -> Iterator[None]:
        """Raise a BMCError instead of any exception that sushy raises in the block."""
        errors = self.sushy.exceptions
        try:
            yield
        except (errors.AccessError, errors.MissingXAuthToken) as exc:
            raise _error(task, access, f"{access.address} refuses the user name or the password, or the user has "
                                       "insufficient privileges", exc) from exc
        except (errors.ConnectionError, TimeoutError) as exc:
            raise _error(task, access, f"{access.address} cannot be reached", exc) from exc
        except Denied as exc:
            raise _error(task, access, str(exc), None) from exc
        except errors.UnknownDefaultError as exc:
            raise _error(task, access, f"{access.address} does not have exactly one system; set "
                                       "driver_info/redfish_system_id", None) from exc
        except errors.SushyError as exc:
            raise _error(task, access, f"{access.address} refused a request", exc) from exc
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as exc:
            # sushy assumes that the BMC's JSON conforms to the standard, and raises these errors if it does not.
            LOG.warning("The BMC of node %s sent an invalid response", task.node.uuid, exc_info=True)
            raise _error(task, access, f"{access.address} sent an invalid response", exc) from exc

    def root(self, task: Task) -> JSONObject:
        """Return the service root of the node's BMC as it was when the connection was made."""
        with self._connection(task, self.driver_info(task)) as connection:
            return connection.json if isinstance(connection.json, dict) else {}

    @contextlib.contextmanager
    def _connection(self, task: Task, access: RedfishDriverInfo) -> Iterator[Any]:
        """Provide a ``sushy.Sushy``; what fails in the block is reported as by ``_reported``."""
        errors = self.sushy.exceptions
        with self._reported(task, access), CONNECTIONS.use(
                access, lambda: self._log_in(access), self.conf.redfish.connection_cache_size,
                (errors.AccessError, errors.MissingXAuthToken, errors.ConnectionError)) as connection:
            yield connection

    def _log_in(self, access: RedfishDriverInfo) -> Any:
        options = self.conf.redfish
        kind = {"auto": self.sushy.auth.SessionOrBasicAuth, "basic": self.sushy.auth.BasicAuth,
                "session": self.sushy.auth.SessionAuth}[access.auth_type]
        KNOWN.add_login(access.username or "", access.password or "")
        auth = kind(username=access.username, password=access.password)
        connector = self.sushy.connector.Connector(
            access.address, verify=access.verify, server_side_retries=options.connection_attempts,
            server_side_retries_delay=options.connection_retry_interval,
            default_request_timeout=options.request_timeout, connect_timeout=options.connect_timeout)
        connector._session = BMCSession(access.address, access.verify, self._denied)
        if access.auth_type != "basic":
            connector._session.log_in_once(auth)
        connection = self.sushy.Sushy(access.address, auth=auth, connector=connector, public_connector=NoInternet())
        # Otherwise it would log out when it is collected, in whatever thread that happens, for as long as the BMC lets
        # it wait. The connector has it, too.
        connection._auth = None
        return connection


def documents(system: Any) -> Callable[[str], Any]:
    """Return a function that reads any JSON document of the system's BMC, also in several threads at the same time.

    sushy has classes for a part of the resources only, and reads members of collections one after the other. The
    function raises ValueError if the documents that it has read are too large together.
    """
    connector, caller = system._conn, context.current()
    remaining = _MAX_READ_BYTES

    def read(path: str) -> Any:
        nonlocal remaining
        if caller is not None:
            caller.update_store()
        if remaining > 0:
            reply = connector.get(path)
            remaining -= len(reply.content)
        if remaining <= 0:
            raise ValueError(f"{path} is not read: the documents of the BMC are too large together")
        return reply.json()

    return read


def _error(task: Task, access: RedfishDriverInfo, reason: str, exc: Exception | None) -> BMCError:
    detail = "" if exc is None else f": {' '.join(str(exc).split())}"
    # A BMC may return what was sent to it.
    if access.password:
        detail = detail.replace(access.password, "******")
    return BMCError(node=task.node.uuid, reason=reason + detail[:_MAX_REASON] + ("" if detail.endswith(".") else "."))
