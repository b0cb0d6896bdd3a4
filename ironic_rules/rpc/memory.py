"""``ironic-rules-memory://``: an oslo.messaging driver for servers and clients of one process.

The alternatives without a broker in oslo.messaging are ``fake://``, which polls for messages, and kombu's memory
transport with the RabbitMQ driver, which takes longer than processing the messages. Here a message is passed from the
sender's thread directly to the receiver's thread pool, and the reply directly back. Calls that wait for nothing but the
database are carried out by the sender's thread, which wakes no other thread.

As with a broker, contexts and messages are copies (the serializer encodes their content as text), errors are received
as remote errors, and messages to one of several servers are sent to each in turn. Unlike with a broker, no messages are
stored for a server that is not running yet: a call to a topic without a server fails at once.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any

import oslo_messaging as messaging
from oslo_context import context
from oslo_messaging._drivers import base, common
from oslo_messaging.rpc.server import RPCServer

from ironic_rules.models.documents import JSONObject

SCHEME = "ironic-rules-memory"
DEFAULT_URL = f"{SCHEME}://"
#: The calls that the sender's thread carries out: there is no timeout for them.
_SHORT = frozenset({"continue_inspection"})


class _Incoming(base.RpcIncomingMessage):  # type: ignore[misc]
    """A message being delivered; ``answers`` gets ``(reply, serialized error)``; None for a message without reply."""

    def __init__(self, ctxt: JSONObject, message: JSONObject,
                 answers: queue.SimpleQueue[tuple[Any, str | None]] | None) -> None:
        super().__init__(ctxt, message)
        self._answers = answers

    def reply(self, reply: object = None, failure: object = None) -> None:
        """Send ``reply``, or an error (as returned by ``sys.exc_info()``), to the caller."""
        if self._answers is not None:
            self._answers.put((reply, common.serialize_remote_exception(failure) if failure else None))

    def requeue(self) -> None:
        """Not supported, see ``require_features``."""
        raise NotImplementedError

    def heartbeat(self) -> None:
        """Do nothing: the caller and the server are the same process."""


class _Exchange:
    """The listeners of this process by virtual host and topic, in the order in which they get the next messages."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listeners: dict[tuple[str, str], list[_Listener]] = {}

    def add(self, key: tuple[str, str], listener: _Listener) -> None:
        with self._lock:
            self._listeners.setdefault(key, []).append(listener)

    def remove(self, key: tuple[str, str], listener: _Listener) -> None:
        with self._lock:
            rest = [other for other in self._listeners.pop(key, ()) if other is not listener]
            if rest:
                self._listeners[key] = rest

    def deliver(self, key: tuple[str, str], server: str | None, fanout: bool, make: Callable[[], _Incoming]) -> bool:
        """Deliver a message; return whether there was a listener for it."""
        with self._lock:
            listeners = self._listeners.get(key, [])
            receivers = [listener for listener in listeners if server in (None, listener.server)]
            if not fanout and receivers:
                receivers = receivers[:1]
                listeners.remove(receivers[0])
                listeners.append(receivers[0])
            for receiver in receivers:
                receiver.begin()
        try:
            for receiver in receivers:
                receiver.on_incoming_callback([make()])
        finally:
            for receiver in receivers:
                receiver.end()
        return bool(receivers)


_exchange = _Exchange()


class _Listener(base.Listener):  # type: ignore[misc]
    """The listener of one server."""

    on_incoming_callback: Callable[[list[_Incoming]], None]

    def __init__(self, key: tuple[str, str], server: str | None) -> None:
        super().__init__(batch_size=1, batch_timeout=None)
        self._key = key
        self.server = server
        #: number of messages that are being delivered
        self._delivering = 0
        self._changed = threading.Condition()

    def start(self, on_incoming_callback: Callable[[list[_Incoming]], None]) -> None:
        super().start(on_incoming_callback)
        _exchange.add(self._key, self)

    def stop(self) -> None:
        _exchange.remove(self._key, self)
        with self._changed:
            self._changed.wait_for(lambda: not self._delivering)
        super().stop()

    def begin(self) -> None:
        """Note that a message is delivered now."""
        with self._changed:
            self._delivering += 1

    def end(self) -> None:
        """Note that this is done."""
        with self._changed:
            self._delivering -= 1
            self._changed.notify_all()

    def cleanup(self) -> None:
        """Do nothing."""


class Server(RPCServer):  # type: ignore[misc]
    """A server whose short calls are carried out by the thread of the sender, if it is in the same process."""

    def _on_incoming(self, incoming: list[_Incoming]) -> None:
        if incoming[0].message.get("method") not in _SHORT:
            super()._on_incoming(incoming)
            return
        own = context.get_current()
        try:
            self._process_incoming(incoming)
        finally:
            # Log lines of the thread have the context of its request again, and not the copy that was received.
            if own is not None:
                own.update_store()


class MemoryDriver(base.BaseDriver):  # type: ignore[misc]
    """The driver; oslo.messaging loads it by its entry point. URLs with different paths are separate buses."""

    def send(self, target: messaging.Target, ctxt: JSONObject, message: JSONObject,
             wait_for_reply: bool | None = None, timeout: float | None = None, call_monitor_timeout: int | None = None,
             retry: int | None = None, transport_options: object = None) -> Any:
        """Deliver a message; return the reply if ``wait_for_reply`` is true.

        :param timeout: seconds to wait for the reply
        :raises MessagingTimeout: no server listens, or none replied in time
        """
        answers: queue.SimpleQueue[tuple[Any, str | None]] | None = queue.SimpleQueue() if wait_for_reply else None

        def make() -> _Incoming:
            return _Incoming(dict(ctxt), dict(message), answers)

        delivered = _exchange.deliver(self._key(target), target.server, bool(target.fanout), make)
        if answers is None:
            return None
        if not delivered:
            raise messaging.MessagingTimeout(f"No server listens to the topic {target.topic}.")
        try:
            reply, error = answers.get(timeout=timeout)
        except queue.Empty:
            raise messaging.MessagingTimeout(f"No reply to a message to the topic {target.topic}.") from None
        if error is not None:
            raise common.deserialize_remote_exception(error, self._allowed_remote_exmods)
        return reply

    def send_notification(self, target: messaging.Target, ctxt: JSONObject, message: JSONObject, version: float,
                          retry: int | None = None) -> None:
        """Not offered: this is a transport for RPC."""
        raise NotImplementedError

    def listen(self, target: messaging.Target, batch_size: int, batch_timeout: float | None) -> _Listener:
        """Return a listener for messages to the target's topic, and to its server."""
        return _Listener(self._key(target), target.server)

    def listen_for_notifications(self, targets_and_priorities: object, pool: object, batch_size: int,
                                 batch_timeout: float | None) -> _Listener:
        """Not offered: this is a transport for RPC."""
        raise NotImplementedError

    def cleanup(self) -> None:
        """Nothing to do."""

    def _key(self, target: messaging.Target) -> tuple[str, str]:
        return self._url.virtual_host or "", target.topic
