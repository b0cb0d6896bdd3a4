"""Waiting for a database or a disk: without a limit at the start, and reported within five seconds."""

from __future__ import annotations

import contextlib
import errno
import threading
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

import sqlalchemy as sa
from oslo_db import exception as db_exc
from oslo_log import log as logging

from ironic_rules.exceptions import ConfigurationError
from ironic_rules.text import printable

LOG = logging.getLogger(__name__)
T = TypeVar("T")

#: Seconds until a failed operation is retried.
RETRY_S = 5.0
#: Seconds after which an operation that has not ended is reported.
SLOW_S = 4.0
#: Errors of the database, and of connections to it.
DATABASE = (db_exc.DBError, sa.exc.SQLAlchemyError)
#: Of a disk that is full or read-only, or that cannot be reached at the moment.
_DISK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.ESTALE, errno.ETIMEDOUT})


def eventually(work: Callable[[], T], errors: type[Exception] | tuple[type[Exception], ...] = DATABASE,
               tell: Callable[[str], None] = LOG.error) -> T:
    """Return ``work()``, repeated every five seconds while the database or the disk refuses.

    If the filter ended instead, files of the time before would decide until it was started again.

    :param errors: those of the database for which it waits
    :param tell: called with why it waits, once for each reason
    :raises ConfigurationError: for another reason than a disk that cannot be written now
    """
    said = ""
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
        if problem != said:
            tell(printable(problem))
        said = problem
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
