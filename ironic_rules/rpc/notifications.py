"""Ironic's versioned notifications: events, sent by oslo.messaging to topics from which other services read them."""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
from typing import Protocol

import oslo_messaging as messaging
from oslo_config import cfg

from ironic_rules.conf import opts
from ironic_rules.entry_points import in_group, installed
from ironic_rules.models import events
from ironic_rules.rpc import memory
from ironic_rules.text import printable

GROUP = "oslo_messaging_notifications"
_DRIVERS = "oslo.messaging.notify.drivers"
#: Drivers that need a broker.
_MESSAGING = frozenset({"messaging", "messagingv2", "routing"})
#: The logger of its driver for brokers, which raises no errors, with and without oslo.log's change of names.
_LOGGERS = ("oslo_messaging.notify.messaging", "oslo.messaging.notify.messaging")
#: No limit, as oslo.messaging counts, until the broker has the message. Another number would lose messages.
_FOREVER = -1


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options of oslo.messaging's notifications, and those of the drivers that are configured.

    Drivers of other packages register theirs with the global ``cfg.CONF``, by a function that takes another one, too.
    """
    for group, options in opts.messaging_opts():
        if group == GROUP:
            conf.register_opts(options, group=group)
    for name in conf[GROUP].driver:
        for entry_point in in_group(_DRIVERS).select(name=name):
            with contextlib.suppress(Exception):  # of another package: one that cannot be loaded is a problem below
                register = getattr(sys.modules[entry_point.load().__module__], "register_opts", None)
                if register is not None:
                    register(conf)


def problem_of(conf: cfg.ConfigOpts) -> tuple[str, str] | None:
    """Return the option because of which no notification could be sent, and why; None if there is none."""
    if conf.notification_level is None:
        return None
    drivers = conf[GROUP].driver
    if not drivers:
        return "driver", ("with [DEFAULT]notification_level, a driver is required, such as messagingv2; without one, "
                          "oslo.messaging would discard all notifications")
    for name in drivers:
        entry_point = next(iter(in_group(_DRIVERS).select(name=name)), None)
        if entry_point is None:
            return "driver", (f"there is no driver {printable(name, 64)}; installed are "
                              f"{', '.join(installed(_DRIVERS))}")
        try:
            entry_point.load()
        except Exception as exc:  # noqa: BLE001  (of another package)
            return "driver", f"the driver {printable(name, 64)} cannot be loaded: {printable(exc)}"
    url = messaging.TransportURL.parse(conf, conf[GROUP].transport_url)
    if url.transport == memory.SCHEME and not _MESSAGING.isdisjoint(drivers):
        return "transport_url", ("the URL of a broker is required, such as rabbit://USER:PASSWORD@HOST:5672/VHOST, "
                                 "because the service in one process has none itself")
    return None


class Notified(Protocol):
    """An event, as it is stored."""

    type: str
    level: str
    service: str
    host: str
    context: dict[str, str]
    payload_type: str
    payload: str


class NotSent(Exception):
    """A notification could not be sent, and would not be by sending it again at once."""


class _Failures(logging.Filter):
    """Notes the errors that oslo.messaging's drivers only log, by thread, in place of lines with whole payloads."""

    def __init__(self) -> None:
        super().__init__()
        self._by_thread = threading.local()

    def filter(self, record: logging.LogRecord) -> bool:
        if not record.exc_info:
            return True
        self._by_thread.last = record.exc_info[1]
        return False

    def take(self) -> BaseException | None:
        """Return the last error of this thread, once."""
        last = getattr(self._by_thread, "last", None)
        self._by_thread.last = None
        return last


#: One for all: a second one would get nothing.
_FAILURES = _Failures()


class Notifications:
    """Sends events as notifications. One per process."""

    #: Id of the message bus among the receivers of events.
    id = 0

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._level: str = conf.notification_level
        transport = messaging.get_notification_transport(conf)
        self._notifier = messaging.Notifier(
            transport, topics=conf.versioned_notifications_topics, retry=_FOREVER)
        for name in _LOGGERS:
            logging.getLogger(name).addFilter(_FAILURES)

    def wants(self, event_type: str, level: str) -> bool:
        """Return whether events of that level are notifications."""
        return events.is_at_least(level, self._level)

    def send(self, event: Notified) -> None:
        """Send one, and wait until the broker has it, however long that takes.

        :raises NotSent: it refuses it
        """
        _FAILURES.take()
        notifier = self._notifier.prepare(publisher_id=f"{event.service}.{event.host}")
        getattr(notifier, event.level)(event.context, event.type, events.primitive(event.payload_type, event.payload))
        if (error := _FAILURES.take()) is not None:
            raise NotSent(printable(error)) from error
