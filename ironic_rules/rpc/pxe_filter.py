"""Notifications of changes to every ``ironic-pxe-filter``. They are sent in the background, after the change.

The filters also find changes by themselves, so messages may be lost: while the broker is unavailable they are queued,
and dropped if the queue is full.

A conductor that is about to start a machine asks which addresses are served: over the broker, where each question
reaches one of the filters, in turns, or a filter that has no broker over a socket in the state folder.
"""

from __future__ import annotations

import contextlib
import queue
import socket
import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

import oslo_messaging as messaging
from oslo_config import cfg
from oslo_log import log as logging
from oslo_messaging.rpc import dispatcher

from ironic_rules.context import RequestContext
from ironic_rules.rpc import memory
from ironic_rules.rpc.serializer import Serializer

LOG = logging.getLogger(__name__)

TOPIC = "ironic.pxe_filter"
#: Version of the messages, which document 001 has.
VERSION = "1.0"
#: Version of the filter's RPC interface: with the question which addresses it serves.
SERVER_VERSION = "1.1"
#: Name of the socket in the state folder on which a filter without a broker answers.
SOCKET = "pxe-filter.sock"
#: Seconds that an answer may take, and between two questions about the same addresses.
_ANSWER_S, _ASK_EVERY_S = 2.0, 0.1
#: Seconds for which no question is asked over the broker after one that no filter has answered.
_SILENT_S = 60.0
#: Last word of an answer on the socket: without it, the filter ended before it had answered.
_END = "."
#: Maximum size of a question, in bytes.
_MAX_QUESTION = 1024 * 1024
#: Maximum number of messages that wait to be sent.
_QUEUE_SIZE = 1000
#: Seconds between two warnings about messages that are not sent.
_COMPLAIN_S = 60.0

#: Schemes of transports that reach only the process itself.
_LOCAL = frozenset({memory.SCHEME, "fake"})


def is_local(conf: cfg.ConfigOpts) -> bool:
    """Return whether ``transport_url`` reaches no other process."""
    url = messaging.TransportURL.parse(conf)
    return url.transport in _LOCAL or url.transport.startswith("kombu+memory")


def get_server(transport: messaging.RPCTransport, conf: cfg.ConfigOpts, endpoint: object) -> Any:
    """Return an RPC server (``start``, ``stop``, ``wait``) that calls ``endpoint`` for messages to the filters."""
    target = messaging.Target(topic=TOPIC, server=conf.host, version=SERVER_VERSION)
    server = messaging.get_rpc_server(
        transport, target, [endpoint], serializer=Serializer(), access_policy=dispatcher.DefaultRPCAccessPolicy)
    # One thread, to keep the order of the messages about one address.
    conf.set_override("executor_thread_pool_size", 1)
    return server


class Answers:
    """Answers on a socket which addresses a filter serves; only its user can ask.

    :param path: of the socket; one that a filter has left is replaced
    :param served: returns those of the addresses that are served
    :raises OSError: the socket cannot be made
    """

    def __init__(self, path: Path, served: Callable[[list[str]], list[str]]) -> None:
        self._served, self._closed = served, False
        path.unlink(missing_ok=True)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.bind(str(path))
            path.chmod(0o600)
            self._socket.listen()
        except OSError:
            self._socket.close()
            raise
        threading.Thread(target=self._run, name="pxe-answers", daemon=True).start()

    def close(self) -> None:
        """End; questions are refused from now on."""
        self._closed = True
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _run(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError as exc:
                if self._closed:
                    return
                # There may be too many open files now; the next question is answered.
                LOG.warning("A question to the PXE filter is not answered: %s", exc)
                time.sleep(_ASK_EVERY_S)
                continue
            with connection, contextlib.suppress(OSError):
                connection.settimeout(_ANSWER_S)
                connection.sendall(" ".join([*self._served(_words(connection)), _END]).encode())


def _words(connection: socket.socket) -> list[str]:
    """Return the words that the other side sends before it shuts its side down.

    :raises TimeoutError: it takes too long for all of them
    """
    deadline, received = time.monotonic() + _ANSWER_S, b""
    while (part := connection.recv(65536)) and len(received) <= _MAX_QUESTION:
        received += part
        if time.monotonic() > deadline:
            raise TimeoutError
    return received.decode(errors="replace").split()


def _ask_beside(path: Path, addresses: Iterable[str]) -> list[str] | None:
    """Return what the filter beside this process says that it serves; None if there is no filter."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(_ANSWER_S)
            connection.connect(str(path))
            connection.sendall(" ".join(addresses).encode())
            connection.shutdown(socket.SHUT_WR)
            *served, end = _words(connection) or [""]
    except OSError:
        return None
    return served if end == _END else None


class OwnFilter(Protocol):
    """The filter that runs in this process."""

    def update_pxe_filters(self, context: RequestContext, allow: Sequence[str] | None = None,
                           deny: Sequence[str] | None = None) -> None:
        """Apply a message at once."""

    def await_served(self, addresses: Collection[str], timeout_s: float) -> list[str]:
        """Return those of the addresses that are not served after so many seconds."""


def make_client(transport: messaging.RPCTransport, conf: cfg.ConfigOpts, own: OwnFilter | None = None) -> PXEFilterAPI:
    """Return a client that sends according to ``[pxe_filter]notify``: by default if other processes can be reached.

    :param own: as of PXEFilterAPI
    """
    sends = not is_local(conf) if conf.pxe_filter.notify is None else conf.pxe_filter.notify
    return PXEFilterAPI(transport if sends else None, own, Path(conf.state_path) / SOCKET if is_local(conf) else None)


class PXEFilterAPI:
    """The client side; ``update_pxe_filters`` returns at once, even if the broker is unavailable.

    :param transport: None: nothing is sent
    :param own: the filter of this process, which gets all messages as well
    :param beside: the socket on which a filter that gets no messages answers; None: there is a broker
    """

    def __init__(self, transport: messaging.RPCTransport | None = None, own: OwnFilter | None = None,
                 beside: Path | None = None) -> None:
        self._own, self._beside = own, beside
        self._questions = None if transport is None else messaging.get_rpc_client(
            transport, messaging.Target(topic=TOPIC, version=SERVER_VERSION), serializer=Serializer(),
            version_cap=SERVER_VERSION, timeout=_ANSWER_S, retry=0,
            transport_options=messaging.TransportOptions(at_least_once=True))
        self._silent_until = float("-inf")
        self._client = None if transport is None else messaging.get_rpc_client(
            transport, messaging.Target(topic=TOPIC, version=VERSION, fanout=True), serializer=Serializer(),
            version_cap=VERSION, retry=0)
        self._waiting: queue.Queue[tuple[RequestContext, list[str], list[str]]] = queue.Queue(_QUEUE_SIZE)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._complained = float("-inf")

    def update_pxe_filters(self, context: RequestContext, allow: Collection[str] = (),
                           deny: Collection[str] = ()) -> None:
        """Notify all filters of the addresses to allow and to deny. To be called after the commit of the change.

        Without addresses, the filters read the changes from the database.
        """
        if self._own is not None:
            self._own.update_pxe_filters(context, list(allow), list(deny))
        if self._client is None:
            return
        try:
            self._waiting.put_nowait((context, list(allow), list(deny)))
        except queue.Full:
            self._complain("the broker does not accept them")
            return
        if self._thread is None:
            with self._lock:
                # Not at start-up: servers like gunicorn fork later, and the new process would not have the thread.
                if self._thread is None:
                    self._thread = threading.Thread(target=self._send, name="pxe-filter-casts", daemon=True)
                    self._thread.start()

    def await_served(self, context: RequestContext, addresses: Collection[str], timeout_s: float) -> list[str] | None:
        """Wait until a filter serves the addresses; return those that none serves in time; None if no filter answers.

        Of several filters, each is asked in its turn; an address is served if one of them says so.
        """
        if self._own is not None:
            return self._own.await_served(addresses, timeout_s) if addresses else []
        deadline = time.monotonic() + timeout_s
        waiting = set(addresses)
        if not waiting:
            return None
        while waiting:
            served = self._ask(context, sorted(waiting))
            if served is None:
                return None
            waiting.difference_update(served)
            if time.monotonic() >= deadline:
                break
            if waiting:
                time.sleep(_ASK_EVERY_S)
        return sorted(waiting)

    def _ask(self, context: RequestContext, addresses: list[str]) -> list[str] | None:
        if self._questions is None:
            return None if self._beside is None else _ask_beside(self._beside, addresses)
        if time.monotonic() < self._silent_until:
            return None
        try:
            return list(self._questions.call(context, "served", addresses=addresses))
        except (messaging.MessagingException, messaging.MessageUndeliverable) as exc:
            # There is no filter, or one of a version before.
            LOG.debug("No PXE filter says which addresses are served: %s", exc)
            self._silent_until = time.monotonic() + _SILENT_S
            return None

    def flush(self, timeout_s: float) -> None:
        """Wait until all messages are sent, for at most ``timeout_s`` seconds."""
        deadline = time.monotonic() + timeout_s
        while self._waiting.unfinished_tasks and time.monotonic() < deadline:
            time.sleep(0.01)

    def _send(self) -> None:
        assert self._client is not None
        while True:
            context, allow, deny = self._waiting.get()
            try:
                self._client.cast(context, "update_pxe_filters", allow=allow, deny=deny)
            except Exception as exc:  # noqa: BLE001  (the thread must continue; the error is logged)
                self._complain(str(exc))
            finally:
                with contextlib.suppress(ValueError):
                    self._waiting.task_done()

    def _complain(self, why: str) -> None:
        if time.monotonic() - self._complained >= _COMPLAIN_S:
            self._complained = time.monotonic()
            LOG.warning("Messages to the PXE filters are not sent: %s. The filters will find the changes when they "
                        "next read the database", why)
