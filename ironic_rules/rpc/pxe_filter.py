"""Notifications of changes to every ``ironic-pxe-filter``. They are sent in the background, after the change.

The filters also find changes by themselves, so messages may be lost: while the broker is unavailable they are queued,
and dropped if the queue is full.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Collection, Sequence
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
#: Version of the filter's RPC interface.
VERSION = "1.0"
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
    target = messaging.Target(topic=TOPIC, server=conf.host, version=VERSION)
    server = messaging.get_rpc_server(
        transport, target, [endpoint], serializer=Serializer(), access_policy=dispatcher.DefaultRPCAccessPolicy)
    # One thread, to keep the order of the messages about one address.
    conf.set_override("executor_thread_pool_size", 1)
    return server


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
    return PXEFilterAPI(transport if sends else None, own)


class PXEFilterAPI:
    """The client side; ``update_pxe_filters`` returns at once, even if the broker is unavailable.

    :param transport: None: nothing is sent
    :param own: the filter of this process, which gets all messages as well
    """

    def __init__(self, transport: messaging.RPCTransport | None = None, own: OwnFilter | None = None) -> None:
        self._own = own
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

    @property
    def has_own(self) -> bool:
        """Whether this process runs a filter."""
        return self._own is not None

    def await_served(self, addresses: Collection[str], timeout_s: float) -> list[str]:
        """Wait until the filter of this process serves the addresses; return those that it does not serve in time.

        Other filters do not report that.
        """
        return [] if self._own is None or not addresses else self._own.await_served(addresses, timeout_s)

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
