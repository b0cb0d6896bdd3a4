"""HTTP connections and sessions of BMCs: bounded in time and in size, to no other host, and kept.

Many BMCs allow few sessions at the same time, so they are kept and ended. sushy sends its requests with the session of
requests that it gets from here: the replies of a BMC decide neither how long a thread and its memory are occupied, nor
who else gets the credentials. A request is repeated only if that changes nothing.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
import itertools
import math
import socket
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from concurrent import futures
from http.client import HTTPResponse
from typing import Any
from urllib.parse import urljoin, urlsplit

import requests
from oslo_log import log
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import NewConnectionError
from urllib3.poolmanager import pool_classes_by_scheme

from ironic_rules import context
from ironic_rules.exceptions import InvalidParameterValue
from ironic_rules.hardware import destinations, waiting
from ironic_rules.hardware.destinations import Denied
from ironic_rules.hardware.redfish.driver_info import RedfishDriverInfo
from ironic_rules.models import addresses, json_text
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.known_secrets import KNOWN
from ironic_rules.models.urls import Network
from ironic_rules.text import printable

LOG = log.getLogger(__name__)

#: Seconds after which a connection that is not used is closed: its node may have been deleted.
_IDLE_S = 600.0
#: Seconds in which no login succeeds.
_MOMENT_S = 0.05
#: Maximum number of sessions that are closed at the same time, and of those that wait for it.
_LOGOUTS_AT_ONCE, _MAX_LOGOUTS = 16, 2000


class _CachedConnection:
    """A connection, from the beginning of its login.

    :ivar future: the connection, or why there is none
    :ivar ran_out: whether there is none because the time of the thread that has tried was over
    :ivar users: the number of threads that use it or wait for it
    """

    __slots__ = ("future", "ran_out", "used_at", "users")

    def __init__(self) -> None:
        self.future: futures.Future[Any] = futures.Future()
        self.ran_out = False
        self.users = 0
        self.used_at = time.monotonic()


class Connections:
    """Bounded cache of connections (of sushy); the least recently used ones are closed. Thread-safe.

    One thread logs in to a BMC, and others that need the same connection wait for it. A connection is closed when the
    last thread that uses it has left.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._cache: OrderedDict[RedfishDriverInfo, _CachedConnection] = OrderedDict()
        #: the cached connections of a user at a BMC; one as a rule
        self._of_user: dict[tuple[str, str | None], set[RedfishDriverInfo]] = {}
        self._logouts = _Logouts()

    @contextlib.contextmanager
    def use(self, access: RedfishDriverInfo, log_in: Callable[[], Any], limit: int,
            ends: tuple[type[Exception], ...]) -> Iterator[Any]:
        """Provide the connection, cached as one of at most ``limit``.

        :param log_in: makes it; what it raises is raised here, also for those that have waited for it
        :param ends: what the block raises if the connection must not be used again
        """
        while True:
            cached, is_new = self._take(access)
            try:
                if is_new:
                    self._make(access, cached, log_in)
                left_s = waiting.left_s()
                connection = cached.future.result(None if math.isinf(left_s) else max(0.0, left_s))
            except BaseException as exc:  # whatever ends the login
                # A thread that waits no longer for a login does not end it.
                self._leave(access, cached, limit, cached.future.done() and cached.future.exception() is not None)
                if not is_new and cached.ran_out and isinstance(exc, Exception) and waiting.left_s() > 0:
                    continue  # the thread that has tried had less time
                raise
            break
        is_over = False
        try:
            yield connection
        except ends:
            is_over = True
            raise
        finally:
            self._leave(access, cached, limit, is_over)

    def _take(self, access: RedfishDriverInfo) -> tuple[_CachedConnection, bool]:
        """Return the connection, and whether the caller has to log in; :meth:`_leave` follows."""
        with self._guard:
            cached = self._cache.get(access)
            is_new = cached is None
            if cached is None:
                cached = self._cache[access] = _CachedConnection()
                self._of_user.setdefault((access.address, access.username), set()).add(access)
            self._cache.move_to_end(access)
            cached.users += 1
            return cached, is_new

    def _make(self, access: RedfishDriverInfo, cached: _CachedConnection, log_in: Callable[[], Any]) -> None:
        try:
            cached.future.set_result(log_in())
        except BaseException as exc:  # otherwise those who wait for the login would not end
            cached.ran_out = waiting.left_s() < _MOMENT_S
            cached.future.set_exception(exc)
            raise
        with self._guard:
            # A user has one password.
            former = [other for other in self._of_user.get((access.address, access.username), ())
                      if other.password != access.password]
            closed = [connection for connection in map(self._pop, former) if not connection.users]
        self._close(closed)

    def _leave(self, access: RedfishDriverInfo, cached: _CachedConnection, limit: int, is_over: bool) -> None:
        now = time.monotonic()
        closed = []
        with self._guard:
            cached.users -= 1
            cached.used_at = now
            if is_over and self._cache.get(access) is cached:
                self._pop(access)
            if self._cache.get(access) is not cached and not cached.users:
                closed.append(cached)
            closed += map(self._pop, self._needless(limit, now))
        self._close(closed)

    def _needless(self, limit: int, now: float) -> list[RedfishDriverInfo]:
        """Return the connections that are too many, and the oldest one if it is idle; none in use."""
        most = max(1, len(self._cache) - limit)
        unused = itertools.islice((item for item in self._cache.items() if not item[1].users), most)
        return [access for access, cached in unused if len(self._cache) > limit or cached.used_at < now - _IDLE_S]

    def _pop(self, access: RedfishDriverInfo) -> _CachedConnection:
        """Forget a connection; the caller closes it."""
        of_user = self._of_user[access.address, access.username]
        of_user.discard(access)
        if not of_user:
            del self._of_user[access.address, access.username]
        return self._cache.pop(access)

    def _close(self, closed: list[_CachedConnection]) -> None:
        for cached in closed:
            if cached.future.exception() is None:
                self._logouts.add(cached.future.result())

    def close(self, seconds: float) -> None:
        """Close all connections, within a time; those in use when they are left."""
        with self._guard:
            closed = [cached for cached in self._cache.values() if not cached.users]
            self._cache.clear()
            self._of_user.clear()
        self._close(closed)
        if count := self._logouts.wait(seconds):
            LOG.warning("%d sessions at BMCs were not closed within %s seconds; they end by themselves", count, seconds)

    def __len__(self) -> int:
        with self._guard:
            return len(self._cache)


class _Logouts:
    """Closes sessions in threads of its own, each with one attempt."""

    def __init__(self) -> None:
        self._state = threading.Condition()
        self._waiting: deque[Any] = deque()
        self._threads = 0

    def add(self, connection: object) -> None:
        """Close a connection soon, unless too many wait for that: its BMC ends the session some time."""
        with self._state:
            if len(self._waiting) >= _MAX_LOGOUTS:
                return
            self._waiting.append(connection)
            if self._threads >= _LOGOUTS_AT_ONCE:
                return
            self._threads += 1
        threading.Thread(target=self._work, name="redfish-logout", daemon=True).start()

    def _work(self) -> None:
        while True:
            with self._state:
                if not self._waiting:
                    self._threads -= 1
                    self._state.notify_all()
                    return
                connection = self._waiting.popleft()
            try:
                connector = connection._conn
                # Not in use any more: what still is (a reader whose time is over) must not log in again.
                auth, connector._auth = connector._auth, None
                connector._session.log_out(auth)
                connector.close()
            except Exception:  # the next ones are closed, too
                LOG.exception("A session at a BMC was not closed; it ends by itself")

    def wait(self, seconds: float) -> int:
        """Wait until all are closed; return the number of those that are not, after some seconds."""
        with self._state:
            self._state.wait_for(lambda: not self._threads, seconds)
            return self._threads + len(self._waiting)


#: Maximum size of a document. The largest ones, registries of BIOS attributes, have a few MiB.
MAX_BYTES = 16 * 2**20
#: Maximum size of a response without its document: headers, and the sizes of its parts.
_MAX_OTHER_BYTES = 2**20
_CHUNK = 64 * 1024
#: First bytes of a ZIP archive. sushy would unpack one with a registry, whatever its size.
_ARCHIVE = b"PK"
#: Encodings that a BMC may name, in lower case. Python has others, of which some take the square of the size in time.
_ENCODINGS = frozenset(("utf-8", "utf8", "us-ascii", "iso-8859-1", "windows-1252", "utf-16", "utf-16le", "utf-16be",
                        "gb2312", "gbk", "gb18030"))
_MAX_REDIRECTS = 3
#: HTTP status of redirections that keep the method: the server has done nothing. The others are for GET only.
_SAME_METHOD, _OTHERS = frozenset({307, 308}), frozenset({301, 302, 303})
_EXPIRED = 401
_REFUSED = frozenset({_EXPIRED, 403})
#: Seconds to connect, and for the response, when a session is closed, for which no request waits.
_LOGOUT_TIMEOUTS_S = (2.0, 5.0)
_PORTS = {"http": 80, "https": 443}
_TOKEN = "X-Auth-Token"
_OPTION = "[redfish]denied_networks"


class BMCSession(requests.Session):
    """A session of requests with the BMC at ``address``, a URL without a path."""

    def __init__(self, address: str, verify: bool | str, denied: tuple[Network, ...]) -> None:
        """Create a session; no request is sent yet.

        :param denied: networks to which none is sent, unless it is sent through a proxy
        """
        super().__init__()
        self._address, self._verify = address, verify
        self._logging_in = threading.RLock()
        self._refused = threading.local()
        # As sushy does: some BMCs hang if connections are kept.
        self.headers["Connection"] = "close"
        for scheme in _PORTS:
            self.mount(f"{scheme}://", _Adapter(denied))

    def request(self, method: Any, url: Any, *arguments: Any, **named: Any) -> requests.Response:
        """Send a request with the id of the request for which it is made, and return the whole response.

        :raises ValueError: what is requested, or a redirection of it, is not of the BMC; or the response is too large
        :raises Denied: the BMC is in a denied network
        :raises requests.RequestException: there is no response in time. It is none of those after which sushy sends the
            request again, if that could change something twice, or no time is left for it
        """
        named["headers"] = {**(named.get("headers") or {}), **context.request_id_header()}
        for _ in range(_MAX_REDIRECTS + 1):
            reply = self._request(method, url, arguments, named)
            if reply.status_code in _REFUSED:
                self._refused.reply = reply
            if reply.status_code // 100 != 3:
                return reply
            url = _followed(method, reply)
        raise ValueError(f"{printable(url, 200)} is redirected again and again")

    def _request(self, method: str, url: str, arguments: Any, named: JSONObject) -> requests.Response:
        left_s = waiting.left_s()
        if left_s <= 0:
            raise requests.RequestException("no time is left for it")
        timeout = named.get("timeout")
        connect_s, read_s = timeout if isinstance(timeout, tuple) else (timeout, timeout)
        named = {**named, "timeout": (min(connect_s, left_s), min(read_s, left_s))}
        try:
            return super().request(method, url, *arguments, **named)
        except requests.RequestException as exc:
            changes_nothing = method == "GET" or _was_not_sent(exc)
            if changes_nothing and waiting.left_s() > 0:
                raise
            raise requests.RequestException(
                exc if changes_nothing else f"it was sent, and may have been carried out: {exc}") from exc

    def send(self, request: requests.PreparedRequest, **named: Any) -> requests.Response:
        """Send a request to the BMC only, and read the response within the limits."""
        # The URL as requests has parsed it: it connects to that.
        if _origin(request.url or "") != self._origin:
            raise ValueError(f"{printable(request.url, 200)} is not a URL of {self._address}")
        reply = super().send(request, **{**named, "stream": True})
        content = bytearray()
        try:
            for chunk in reply.iter_content(_CHUNK):
                content += chunk
                if len(content) > MAX_BYTES:
                    raise ValueError(f"{printable(request.url, 200)} has more than {MAX_BYTES // 2**20} MiB")
        finally:
            reply.close()
        if content.startswith(_ARCHIVE):
            raise ValueError(f"{printable(request.url, 200)} is an archive, which may have any size unpacked")
        reply._content = bytes(content)
        # The callers of the response parse it within limits.
        reply.json = functools.partial(document, reply._content, reply.encoding)  # type: ignore[method-assign]
        if reply.status_code // 100 != 3 and (location := reply.headers.get("Location")):
            # A BMC may know itself by another name or address than we do.
            reply.headers["Location"] = urlsplit(location)._replace(scheme="", netloc="").geturl()
        return reply

    @functools.cached_property
    def _origin(self) -> tuple[str, str | None, int | None]:
        # In the form in which URLs are sent: the zone of an address is escaped.
        return _origin(requests.Request("GET", self._address).prepare().url or "")

    def get_redirect_target(self, resp: requests.Response) -> str | None:
        """Return None: ``request`` follows redirections itself."""
        return None

    def log_in_once(self, auth: object) -> None:
        """Let one thread at a time log in with ``auth`` of sushy, and only if no other one has done so since."""
        for name in ("authenticate", "refresh_session"):
            setattr(auth, name, functools.partial(self._log_in, auth, getattr(auth, name)))

    def _log_in(self, auth: object, log_in: Callable[[], None]) -> None:
        with self._logging_in:
            token = self.headers.get(_TOKEN)
            refused: requests.Response | None = getattr(self._refused, "reply", None)
            if token is not None:
                if refused is None or token != refused.request.headers.get(_TOKEN):
                    return  # another thread has logged in since
                if refused.status_code != _EXPIRED:
                    # sushy would log in again. The session lacks a privilege, and other threads use it. Where it has
                    # expired nevertheless, this error ends the connection, and the next one has a session of its own.
                    raise importlib.import_module("sushy").exceptions.AccessError(
                        refused.request.method, refused.url, refused)
            log_in()
            KNOWN.add(self.headers.get(_TOKEN))

    def log_out(self, auth: object) -> None:
        """Close the session at the BMC if there is one, with one request; that it fails is no error."""
        path = auth.get_session_resource_id() if hasattr(auth, "get_session_resource_id") else None
        if not isinstance(path, str):
            return
        try:
            self.request("DELETE", urljoin(self._address, urlsplit(path).path), verify=self._verify,
                         timeout=_LOGOUT_TIMEOUTS_S)
        except (requests.RequestException, ValueError) as exc:
            LOG.info("A session at %s was not closed, it ends by itself: %s", self._address, printable(exc, 500))


def refuse_denied(address: str, denied: tuple[Network, ...]) -> None:
    """Refuse a BMC whose URL has an IP address that is denied; a name is resolved when a connection is made.

    :raises InvalidParameterValue: it is denied
    """
    number = (urlsplit(address).hostname or "").partition("%")[0]
    if addresses.parse(number) is not None:
        try:
            destinations.refuse(address, number, denied, _OPTION)
        except Denied as exc:
            raise InvalidParameterValue(f"driver_info/redfish_address: {exc}.") from None


class NoInternet:
    """Refuses downloads of registries from elsewhere by sushy: a BMC would decide what this machine requests."""

    def get(self, url: str, **_named: Any) -> Any:
        """Refuse."""
        raise ValueError(f"{printable(url, 200)} is not a URL of the BMC")


def document(content: bytes, encoding: str | None = None) -> Any:
    """Return the value of a JSON document. BMCs also send what is not UTF-8: it is replaced.

    :param encoding: that of the document, if the BMC has named one; any but the usual ones is taken for UTF-8
    :raises ValueError: the document is not JSON, or nested too deeply
    """
    supported = encoding if encoding is not None and encoding.lower() in _ENCODINGS else "utf-8"
    text = content.decode(supported, "replace")
    return json_text.parse(text.removeprefix("\ufeff"))


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or _PORTS.get(parts.scheme)


def _followed(method: str, reply: requests.Response) -> str:
    """Return the URL to which a request is redirected.

    :raises requests.RequestException: it is not followed
    """
    location = reply.headers.get("Location")
    follows = reply.status_code in _SAME_METHOD or (method == "GET" and reply.status_code in _OTHERS)
    if location is None or not follows:
        raise requests.RequestException(
            f"{method} {printable(reply.url, 200)} was answered with HTTP {reply.status_code}")
    return urljoin(reply.url, location)


def _was_not_sent(exc: requests.RequestException) -> bool:
    reason = getattr(exc.args[0], "reason", None) if exc.args else None
    return isinstance(exc, requests.ConnectTimeout) or isinstance(reason, NewConnectionError)


class _Within(io.RawIOBase):
    """Reads a response from its connection. The time-out of the socket is that of all reads together."""

    def __init__(self, connection: socket.socket) -> None:
        self._raw = connection.makefile("rb", buffering=0)
        self._socket = connection
        self._until = time.monotonic() + (connection.gettimeout() or 60.0)
        self._bytes_left = MAX_BYTES + _MAX_OTHER_BYTES

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left_s = self._until - time.monotonic()
        if left_s <= 0:
            raise TimeoutError("timed out")
        self._socket.settimeout(left_s)
        count = self._raw.readinto(buffer)
        self._bytes_left -= count or 0
        if self._bytes_left < 0:
            raise OSError("the response is too large")
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Response(HTTPResponse):
    def __init__(self, sock: socket.socket, *arguments: Any, **named: Any) -> None:
        super().__init__(sock, *arguments, **named)
        self.fp.close()
        self.fp = io.BufferedReader(_Within(sock))


class _HTTPConnection(HTTPConnection):
    response_class = _Response
    denied: tuple[Network, ...] = ()

    def connect(self) -> None:
        super().connect()
        _check_peer(self, self.denied)


class _HTTPSConnection(HTTPSConnection):
    response_class = _Response
    denied: tuple[Network, ...] = ()

    def connect(self) -> None:
        super().connect()
        _check_peer(self, self.denied)


def _check_peer(connection: HTTPConnection, denied: tuple[Network, ...]) -> None:
    """Close a connection to a denied address before a request is sent: its name may have led elsewhere before."""
    if connection.proxy is None:
        try:
            destinations.refuse(connection.host, connection.sock.getpeername()[0], denied, _OPTION)
        except Denied:
            connection.close()
            raise


@functools.cache
def _pool_classes(denied: tuple[Network, ...]) -> dict[str, type[HTTPConnectionPool]]:
    class HTTPPool(HTTPConnectionPool):
        ConnectionCls = type("HTTP", (_HTTPConnection,), {"denied": denied})

    class HTTPSPool(HTTPSConnectionPool):
        ConnectionCls = type("HTTPS", (_HTTPSConnection,), {"denied": denied})

    return {"http": HTTPPool, "https": HTTPSPool}


class _Adapter(HTTPAdapter):
    """Has connections that go to no denied network, and limit the time and the size of responses with their headers."""

    def __init__(self, denied: tuple[Network, ...]) -> None:
        self._pool_classes = _pool_classes(denied)
        super().__init__()

    def init_poolmanager(self, *arguments: Any, **named: Any) -> None:
        super().init_poolmanager(*arguments, **named)
        self._limit(self.poolmanager)

    def proxy_manager_for(self, *arguments: Any, **named: Any) -> Any:
        return self._limit(super().proxy_manager_for(*arguments, **named))

    def _limit(self, manager: Any) -> Any:
        # Pools of a SOCKS proxy are of another kind; through such a proxy, only each read has a time-out.
        if manager.pool_classes_by_scheme == pool_classes_by_scheme:
            manager.pool_classes_by_scheme = self._pool_classes
        return manager
