"""``ironic-rules-memory://``: an oslo.messaging driver for servers and clients of one process.

oslo.messaging's own ways of doing without a broker are ``fake://``, which sleeps 50 ms between two looks for a message,
and kombu's memory transport under the RabbitMQ driver, which costs more than the work that the messages ask for. Here a
message goes from the sender's thread straight to the receiver's pool of threads, and the answer straight back.

As over a broker, contexts and messages are copies (the serializer made text of what they contain), errors arrive as
remote errors, and a message to one of several servers goes to each in turn. Unlike with a broker nothing is kept for a
server that is not there yet: who asks where nobody listens is told so at once.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any

import oslo_messaging as messaging
from oslo_messaging._drivers import base, common

SCHEME = "ironic-rules-memory"
DEFAULT_URL = f"{SCHEME}://"


class _Incoming(base.RpcIncomingMessage):  # type: ignore[misc]
    """A message on its way; ``answers`` gets ``(reply, serialised error)``, None for a message without an answer."""

    def __init__(self, ctxt: dict[str, Any], message: dict[str, Any],
                 answers: queue.SimpleQueue[tuple[Any, str | None]] | None) -> None:
        super().__init__(ctxt, message)
        self._answers = answers

    def reply(self, reply: Any = None, failure: Any = None) -> None:
        """Answer with ``reply``, or with an error (what ``sys.exc_info()`` returned)."""
        if self._answers is not None:
            self._answers.put((reply, common.serialize_remote_exception(failure) if failure else None))

    def requeue(self) -> None:
        """Not offered, see ``require_features``."""
        raise NotImplementedError

    def heartbeat(self) -> None:
        """Nothing to do: the caller and its answer die together."""


class _Exchange:
    """Who listens in this process: by virtual host and topic, in the order in which it is their turn."""

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
        """Hand a message over; say whether somebody was there for it."""
        with self._lock:
            listeners = self._listeners.get(key, [])
            receivers = [one for one in listeners if server in (None, one.server)]
            if not fanout and receivers:
                receivers = receivers[:1]
                listeners.remove(receivers[0])
                listeners.append(receivers[0])
            for receiver in receivers:
                # Under the lock, so that a listener that was stopped gets nothing more. It only fills a queue.
                receiver.on_incoming_callback([make()])
        return bool(receivers)


_exchange = _Exchange()


class _Listener(base.Listener):  # type: ignore[misc]
    """One server's ear."""

    on_incoming_callback: Callable[[list[_Incoming]], None]

    def __init__(self, key: tuple[str, str], server: str | None) -> None:
        super().__init__(batch_size=1, batch_timeout=None)
        self._key = key
        self.server = server

    def start(self, on_incoming_callback: Callable[[list[_Incoming]], None]) -> None:
        super().start(on_incoming_callback)
        _exchange.add(self._key, self)

    def stop(self) -> None:
        _exchange.remove(self._key, self)
        super().stop()

    def cleanup(self) -> None:
        """Nothing to do."""


class MemoryDriver(base.BaseDriver):  # type: ignore[misc]
    """The driver; oslo.messaging loads it by its entry point. URLs with different paths do not hear each other."""

    def send(self, target: messaging.Target, ctxt: dict[str, Any], message: dict[str, Any],
             wait_for_reply: bool | None = None, timeout: float | None = None, call_monitor_timeout: int | None = None,
             retry: int | None = None, transport_options: Any = None) -> Any:
        """Deliver a message; return the answer if one is asked for.

        :param timeout: seconds to wait for the answer
        :raises MessagingTimeout: nobody listens, or nobody answered in time
        """
        answers: queue.SimpleQueue[tuple[Any, str | None]] | None = queue.SimpleQueue() if wait_for_reply else None

        def make() -> _Incoming:
            return _Incoming(dict(ctxt), dict(message), answers)

        delivered = _exchange.deliver(self._key(target), target.server, bool(target.fanout), make)
        if answers is None:
            return None
        if not delivered:
            raise messaging.MessagingTimeout(f"Nobody listens to the topic {target.topic}.")
        try:
            reply, error = answers.get(timeout=timeout)
        except queue.Empty:
            raise messaging.MessagingTimeout(f"No answer to a message to the topic {target.topic}.") from None
        if error is not None:
            raise common.deserialize_remote_exception(error, self._allowed_remote_exmods)
        return reply

    def send_notification(self, target: messaging.Target, ctxt: dict[str, Any], message: dict[str, Any], version: float,
                          retry: int | None = None) -> None:
        """Not offered: this is a transport for RPC."""
        raise NotImplementedError

    def listen(self, target: messaging.Target, batch_size: int, batch_timeout: float | None) -> _Listener:
        """Return a listener for what is sent to the target's topic, as a whole or to its server."""
        return _Listener(self._key(target), target.server)

    def listen_for_notifications(self, targets_and_priorities: Any, pool: Any, batch_size: int,
                                 batch_timeout: float | None) -> _Listener:
        """Not offered: this is a transport for RPC."""
        raise NotImplementedError

    def cleanup(self) -> None:
        """Nothing to do."""

    def _key(self, target: messaging.Target) -> tuple[str, str]:
        return self._url.virtual_host or "", target.topic
