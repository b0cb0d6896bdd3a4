"""The running filter: a loop that reads the database, and an RPC server for messages of API and conductors.

At the start it waits for the database and the disk without a limit, and reports that within five seconds.
"""

from __future__ import annotations

import contextlib
import errno
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import oslo_messaging as messaging
import sqlalchemy as sa
from oslo_config import cfg
from oslo_db import exception as db_exc
from oslo_log import log as logging

from ironic_rules.context import RequestContext
from ironic_rules.exceptions import ConfigurationError
from ironic_rules.models import addresses
from ironic_rules.pxe_filter.statistics import Statistics
from ironic_rules.pxe_filter.sync import Area, Keeper
from ironic_rules.rpc import pxe_filter as rpc
from ironic_rules.text import printable

LOG = logging.getLogger(__name__)
T = TypeVar("T")

#: Seconds until a failed operation is retried.
RETRY_S = 5.0
#: Seconds after which an operation that has not ended is reported.
SLOW_S = 4.0
#: Errors of the database, and of connections to it.
DATABASE = (db_exc.DBError, sa.exc.SQLAlchemyError)
#: Errors of a disk that is full or read-only, or that cannot be reached at the moment.
_DISK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.ESTALE, errno.ETIMEDOUT})


def eventually(work: Callable[[], T], errors: type[Exception] | tuple[type[Exception], ...] = DATABASE,
               tell: Callable[[str], None] = LOG.error) -> T:
    """Return ``work()``, repeated every five seconds while the database or the disk refuses.

    If the filter ended instead, files of the time before would decide until it was started again.

    :param errors: those of the database for which it waits
    :param tell: called with why it waits, once for each reason
    :raises ConfigurationError: for another reason than a disk that cannot be written now
    """
    reported = ""
    while True:
        try:
            with reported_if_slow("The database has not replied for %g seconds; the filter waits for it"):
                return work()
        except errors as exc:
            problem = f"The database cannot be reached; the filter waits for it: {first_line(exc)}"
        except ConfigurationError as exc:
            if not _is_of_disk(exc):
                raise
            problem = f"The disk cannot be written; the filter waits for it: {exc}"
        if problem != reported:
            tell(printable(problem))
        reported = problem
        time.sleep(RETRY_S)


@contextlib.contextmanager
def reported_if_slow(message: str) -> Iterator[None]:
    """Log ``message``, with the seconds, if the block has not ended after :data:`SLOW_S`."""
    timer = threading.Timer(SLOW_S, LOG.warning, (message, SLOW_S))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def first_line(exc: Exception) -> str:
    """Return the text of a database's error without the statement and the advice that follow."""
    return printable(str(exc).partition("\n")[0])


def _is_of_disk(exc: BaseException | None) -> bool:
    while exc is not None:
        if isinstance(exc, OSError) and exc.errno in _DISK:
            return True
        exc = exc.__cause__
    return False


#: Seconds between two looks at what the servers have taken over.
_OBSERVE_S = 1.0
#: Seconds from a message to reading the database, if the message says all that is to be written. Until then the client
#: is answered: on a host with few processors, reading takes them from the DHCP server when it reads the file. And many
#: messages cause one reading.
_READ_AFTER_S = 0.05
#: While messages are received, a reading begins at the earliest after so many times as long as the last one has taken;
#: maximum number of seconds for that. Otherwise changes by messages wait for the processor, with thousands of nodes on
#: inspection.
_REST, _MAX_REST_S = 4, 1.0
#: Maximum number of addresses in one message; more are an error of the sender.
_MAX_ADDRESSES = 100_000


class PXEFilterManager:
    """The RPC interface of the filter.

    :param changed: called after each message; with whether it was about known ports only
    """

    target = messaging.Target(version=rpc.SERVER_VERSION)

    def __init__(self, keeper: Keeper, changed: Callable[[bool], None]) -> None:
        self._keeper = keeper
        self._changed = changed

    def update_pxe_filters(self, context: RequestContext, allow: Sequence[str] | None = None,
                           deny: Sequence[str] | None = None) -> None:
        """Update the PXE filter with the given addresses.

        The state of other addresses does not change. Every message, even without addresses, is a hint that the
        database has changed.

        :param allow: MAC addresses to allow
        :param deny: MAC addresses to deny
        """
        self._changed(self._keeper.tell(_addresses(allow), _addresses(deny)))


    def served(self, context: RequestContext, addresses: Sequence[str]) -> list[str]:
        """Return those of the addresses that are allowed, as far as the DHCP servers are known to follow that."""
        return [address for address in _addresses(addresses) if self._keeper.serves(address)]


def _addresses(sent: object) -> list[str]:
    """Return the valid addresses of a message; log the others."""
    if sent is None:
        return []
    if not isinstance(sent, (list, tuple)) or len(sent) > _MAX_ADDRESSES:
        LOG.error("A message has no list of addresses, or one that is too long; it is ignored")
        return []
    valid = []
    for address in sent:
        try:
            valid.append(addresses.normalize_mac(address))
        except ValueError as exc:
            LOG.error("A message has the address '%s': %s. It is ignored", printable(address, 64), exc)
    return valid


#: Seconds between two looks whether the database has changed.
_WATCH_S = 0.1
#: Seconds that a pass may take, with a database that does not reply: the time-outs of [database] are shorter.
_STUCK_S = 120.0
#: Seconds between two looks whether an address is served.
_SERVED_S = 0.05


class FilterService:
    """``start``, ``stop`` and ``wait`` of one filter.

    :param transport: None: the filter receives no messages, and only reads the database
    :param alive: called while the loop is running, at least every ``alive_interval_s`` seconds
    :param answers_at: socket on which the filter says which addresses it serves; None: it does so over the transport
    :param has_changed: tells whether the database has changed since the last call, if that can be told without reading
        it; it is called several times a second, by one thread
    """

    def __init__(self, conf: cfg.ConfigOpts, keeper: Keeper, transport: messaging.RPCTransport | None, *,
                 alive: Callable[[], None] = lambda: None, alive_interval_s: float = 3600.0,
                 has_changed: Callable[[], bool] | None = None, answers_at: Path | None = None) -> None:
        self._keeper = keeper
        self._has_changed = has_changed
        self._answers_at = answers_at
        self._answers: rpc.Answers | None = None
        self._period_s = conf.pxe_filter.sync_period
        self._alive = alive
        self._alive_interval_s = alive_interval_s
        self._woken = threading.Event()
        self._stopped = False
        #: time at which the database is to be read because of messages
        self._look_at = float("inf")
        self._not_before = 0.0
        #: since when the loop is in a pass; None: it waits
        self._began: float | None = None
        self._next_period = time.monotonic() + self._period_s
        self._database_is_away = False
        self._collect_s = conf.pxe_filter.collect_time
        self._told = [threading.Event() for _ in keeper.areas]
        #: endpoint that messages call
        self.manager = PXEFilterManager(keeper, self._tell)
        self._server = None if transport is None else rpc.get_server(transport, conf, self.manager)
        self._listener = threading.Thread(target=self._listen, name="rpc-start", daemon=True)
        # One for each area: what one server keeps waiting must not delay the others.
        self._writers = [threading.Thread(target=self._write_told, args=pair, name="pxe-writer", daemon=True)
                         for pair in zip(keeper.areas, self._told, strict=True)]
        self._loop = threading.Thread(target=self._run, name="pxe-filter", daemon=True)
        self._watcher = threading.Thread(target=self._watch, name="pxe-watcher", daemon=True)

    @property
    def statistics(self) -> Statistics:
        """The statistics of the filter."""
        return self._keeper.statistics

    def start(self) -> None:
        """Bring the files up to date, then continue in threads. Wait for the database and the disk without a limit.

        :raises ConfigurationError: a folder cannot be used
        """
        eventually(self._open)
        if self._server is not None:
            # In a thread: it waits for the broker, and the files must be right without one.
            self._listener.start()
        eventually(lambda: self._keeper.sync(periodic=True))
        # Before all is written: what can be written must follow messages, whatever another target refuses.
        for writer in self._writers:
            writer.start()
        while self._keeper.is_behind:  # it has logged why
            time.sleep(RETRY_S)
            eventually(lambda: self._keeper.sync(periodic=True))
        self._loop.start()
        if self._has_changed is not None:
            self._watcher.start()
        if self._answers_at is not None:
            try:
                self._answers = rpc.Answers(self._answers_at, lambda sent: [
                    address for address in _addresses(sent) if self._keeper.serves(address)])
            except OSError as exc:
                LOG.warning("The service does not learn which addresses are served: %s: %s", self._answers_at, exc)

    def is_well(self) -> bool:
        """Return whether the loop works; a database or a disk that is waited for is no reason why not."""
        began = self._began
        return began is None or time.monotonic() - began < _STUCK_S

    def _open(self) -> None:
        try:
            self._keeper.open()
        except ConfigurationError:
            self._keeper.close()  # some of the folders may be open
            raise

    def stop(self) -> None:
        """Make the loop end after its current pass."""
        self._stopped = True
        if self._answers is not None:
            self._answers.close()
        self._wake_writers()
        self._woken.set()

    def wait(self, timeout_s: float | None = None) -> None:
        """Wait for the end of the last pass."""
        for thread in (self._loop, *self._writers):
            if thread.is_alive():
                thread.join(timeout_s)

    def update_pxe_filters(self, context: RequestContext, allow: Sequence[str] | None = None,
                           deny: Sequence[str] | None = None) -> None:
        """Apply a message of this process."""
        self.manager.update_pxe_filters(context, allow, deny)

    def await_served(self, addresses: Collection[str], timeout_s: float) -> list[str]:
        """Return those of the addresses (normalized) that are not served after so many seconds."""
        deadline = time.monotonic() + timeout_s
        unserved = list(addresses)
        while unserved := [mac for mac in unserved if not self._keeper.serves(mac)]:
            if self._stopped or time.monotonic() >= deadline:
                break
            time.sleep(_SERVED_S)
        return unserved

    def look(self) -> None:
        """Make the loop read changes from the database now."""
        self._look(0)

    def _look(self, after_s: float) -> None:
        at = max(time.monotonic() + after_s, self._not_before)
        if at < self._look_at:
            self._look_at = at
            self._woken.set()

    def _listen(self) -> None:
        assert self._server is not None
        try:
            self._server.start()
        except Exception as exc:  # otherwise the errors of a thread are lost
            is_refused = type(exc).__module__.startswith("amqp.")  # by RabbitMQ: no bug
            LOG.error("The filter cannot listen for messages; it only reads the database: %s", printable(exc),
                      exc_info=not is_refused)
            return
        LOG.info("Listening for messages to %s", rpc.TOPIC)
        # Changes of earlier messages are in the database.
        self.look()

    def _watch(self) -> None:
        assert self._has_changed is not None
        while not self._stopped:
            if self._has_changed():
                self._look(0)
            time.sleep(_WATCH_S)

    def _tell(self, is_known: bool) -> None:
        """A message was applied: write what it has changed, and read the database."""
        self._wake_writers()
        self._look(_READ_AFTER_S if is_known else 0)

    def _wake_writers(self) -> None:
        for event in self._told:
            event.set()

    def _write_told(self, area: Area, event: threading.Event) -> None:
        """Write changes by messages: at once after an idle time, otherwise together with the following changes."""
        written_at = 0.0
        while not self._stopped:
            is_told = event.wait(_OBSERVE_S)
            try:
                if is_told:
                    time.sleep(max(written_at + self._collect_s - time.monotonic(), 0))
                    event.clear()
                    area.write()
                    written_at = time.monotonic()
                area.observe()
            except Exception:  # a failure must not end the thread: the next message is also to be written
                LOG.exception("Writing what messages have changed failed; the filter continues")

    def _run(self) -> None:
        while not self._stopped:
            self._alive()
            is_woken = self._woken.wait(max(self._rest_s(), 0))
            self._woken.clear()
            # Mostly it is only woken to sleep until the next reading, while a writer writes what is not written yet.
            if not self._stopped and (self._is_due or not is_woken):
                self._began = time.monotonic()
                self._pass()
                self._began = None

    @property
    def _is_due(self) -> bool:
        """True if the database is to be read."""
        return time.monotonic() >= min(self._next_period, self._look_at)

    def _rest_s(self) -> float:
        """Return the seconds until the next pass, if no message is received before."""
        rest = min(min(self._next_period, self._look_at) - time.monotonic(), self._alive_interval_s)
        return min(rest, RETRY_S) if self._keeper.is_behind else rest

    def _pass(self) -> None:
        periodic = time.monotonic() >= self._next_period
        looks = time.monotonic() >= self._look_at
        if looks:
            self._look_at = float("inf")  # before reading: what a message was about until now, is read
        began = time.monotonic()
        try:
            if periodic or (looks and not self._database_is_away):
                with reported_if_slow("The database has not replied for %g seconds; messages are processed"):
                    self._keeper.sync(periodic=periodic)
                if self._database_is_away:
                    LOG.info("The database can be read again")
                self._database_is_away = False
            elif self._keeper.is_behind:
                self._keeper.write()
        except DATABASE as exc:
            if not self._database_is_away:
                LOG.error("The database cannot be read; the files are unchanged, but messages are processed: %s",
                          first_line(exc))
            self._database_is_away = True
            if self._keeper.is_behind:
                self._keeper.write()
        except Exception:  # a failed pass must not stop the filter
            LOG.exception("A pass of the filter failed; the filter continues")
        now = time.monotonic()
        self._not_before = now + min(_REST * (now - began), _MAX_REST_S)
        # Another thread may have set a time, which must not be replaced by "never".
        if self._look_at < self._not_before:
            self._look_at = self._not_before
        if periodic:
            self._next_period = time.monotonic() + self._period_s
        if self._database_is_away:
            self._next_period = min(self._next_period, time.monotonic() + RETRY_S)
