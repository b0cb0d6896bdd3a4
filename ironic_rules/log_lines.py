"""Lines of the log: without secrets, and none that a text has forged; on standard error if they cannot be written."""

from __future__ import annotations

import contextlib
import copy
import json
import logging
import re
import sys
import time
from collections.abc import Callable, Collection, Iterable
from typing import Any

from oslo_log import formatters as oslo_formatters

from ironic_rules.context import RequestContext
from ironic_rules.context import current as current_context
from ironic_rules.models import known_secrets
from ironic_rules.text import printable

#: Seconds between two statements that a log cannot be written.
_UNWRITTEN_S = 3600.0
#: A value in a format of log lines.
_VALUE = re.compile(r"%\((\w+)\)")
#: The values of lines that are composed here, and those of the caller: name -> attribute of the context.
_IN_LINES = frozenset({
    "asctime", "msecs", "created", "process", "processName", "thread", "threadName", "levelname", "levelno", "name",
    "module", "funcName", "lineno", "pathname", "filename", "message", "instance", "request_id", "global_request_id",
    "user_identity"})
_IDENTITY = {"user": "user_id", "project": "project_id", "domain": "domain_id", "system_scope": "system_scope",
             "user_domain": "user_domain_id", "project_domain": "project_domain_id"}
#: Attributes of a record that only some callers give.
_FURTHER = frozenset({"context", "instance", "instance_uuid", "request_id", "global_request_id", "user_identity"})
#: Members of a structured record that describe the call and its caller. None of them is a text that others have sent.
_OF_THE_CALL = frozenset({
    "asctime", "time", "name", "levelname", "level", "pathname", "filename", "module", "funcname", "thread_name",
    "process_name", "hostname", "cmdline", "context"})
#: Maximum numbers of characters of a line, and of lines below it, such as those of a traceback.
_MAX_LINE = 16_384
_MAX_LINES = 1_000


def prepare_handlers() -> None:
    """From now on, hide secrets in the lines of every logger, let no text forge a line, and report lost lines."""
    for logger in all_loggers():
        for handler in logger.handlers:
            if not isinstance(handler.formatter, MaskingFormatter):
                handler.setFormatter(MaskingFormatter(handler.formatter))
                handler.handleError = LostLines(handler)  # type: ignore[method-assign]


def all_loggers() -> list[logging.Logger]:
    """Return the root logger, and those of all names."""
    return [logging.getLogger(), *(logger for logger in logging.root.manager.loggerDict.values()
                                       if isinstance(logger, logging.Logger))]


class LostLines:
    """Reports on standard error that a handler cannot write its log: the first time, and at most once per hour."""

    def __init__(self, handler: logging.Handler, clock: Callable[[], float] = time.monotonic) -> None:
        self._place = getattr(handler, "baseFilename", type(handler).__name__)
        self._clock = clock
        self._next: float | None = None
        self._lost = 0

    def __call__(self, record: logging.LogRecord) -> None:
        """Count a lost line. Called while its error is being handled."""
        self._lost += 1
        now = self._clock()
        if self._next is not None and now < self._next:
            return
        self._next = now + _UNWRITTEN_S
        text = (f"ERROR: the log {self._place} cannot be written: {printable(sys.exc_info()[1])}. Lines lost so far: "
                f"{self._lost}. This is repeated once per hour while it lasts.")
        with contextlib.suppress(OSError, ValueError, AttributeError):  # standard error is full, closed or absent too
            print(known_secrets.KNOWN.hide(text), file=sys.stderr, flush=True)


class MaskingFormatter(logging.Formatter):
    """Formats records as another formatter does, without secrets, and so that no text can forge a line.

    Libraries log what others have sent. Secrets that this process knows become ``******``, and characters that are not
    printable, such as line ends and terminal controls, become backslash escapes. The text before the message (time,
    level, logger, user) comes from no user, and stays: a password ``WARNING`` must not blind the log. Lines
    below the first one, those of a traceback, are indented, or begin as the first one does: none of them looks like the
    line of another record.

    Lines that are only information, such as that of each request, are composed here, equal to those of oslo.log's
    formatter, which is slower: it collects twenty values of the context twice for each line.
    """

    def __init__(self, inner: logging.Formatter | None) -> None:
        super().__init__()
        self._inner = inner or logging.Formatter()
        self._identity = ""
        #: beginning of the lines of a traceback, before the text that the other formatter gives them
        self._prefixed = "  "
        self._formats: tuple[str, str] | None = None  # with and without a request; None: the other formatter does all
        self._second = (-1, "")
        if isinstance(self._inner, oslo_formatters.ContextFormatter) and self._inner.conf.logging_exception_prefix:
            self._prefixed = ""
        if type(self._inner) is oslo_formatters.ContextFormatter and self._inner.datefmt:
            conf = self._inner.conf
            self._identity = conf.logging_user_identity_format
            formats = conf.logging_context_format_string, conf.logging_default_format_string
            if (_fields(self._identity) <= _IDENTITY.keys() and _fields(formats[0]) <= _IN_LINES
                    and _fields(formats[1]) <= _IN_LINES - {"request_id"}):
                self._formats = formats

    def format(self, record: logging.LogRecord) -> str:
        text, copied = self._information(record), record
        below: Iterable[str] = ()
        if text is None:
            # Formatters store what they make of an error in the record, each in its own form.
            copied = copy.copy(record)
            text = self._inner.format(copied)
            if not isinstance(text, str):  # structured, for a log collector
                return _hidden(text, _OF_THE_CALL)
            if isinstance(self._inner, oslo_formatters.JSONFormatter):
                return json.dumps(_hidden(json.loads(text), _OF_THE_CALL))
            if copied.exc_text or copied.stack_info:
                text, below = _divided(text, copied)
        # A message that is also before itself, as its level, only makes more hidden.
        start = max(0, text.find(copied.message)) if getattr(copied, "message", "") else 0
        text = _line(text[:start] + known_secrets.KNOWN.hide(text[start:]))
        indent = self._prefixed if record.exc_info else "  "
        return "\n".join([text, *(indent + _line(line) for line in below)]) if below else text

    def formatException(self, ei: Any) -> str:
        """Return the traceback of an error, for handlers that request it themselves, as that of journald."""
        return known_secrets.KNOWN.hide(super().formatException(ei))

    def _information(self, record: logging.LogRecord) -> str | None:
        """Return the line of a record that is only information; None for others, and those with further values.

        The record gets its ``message``, as from other formatters.
        """
        if (self._formats is None or record.levelno != logging.INFO or record.exc_info or record.stack_info
                or record.exc_text or not _FURTHER.isdisjoint(record.__dict__)):
            return None
        context = current_context()
        if context is not None and (type(context) is not RequestContext or context.resource_uuid):
            return None
        second = int(record.created)
        if self._second[0] != second:
            self._second = second, self._inner.formatTime(record, self._inner.datefmt)
        try:
            record.message = record.getMessage()
            values = {**record.__dict__, "asctime": self._second[1], "instance": "", "global_request_id": "",
                      "user_identity": ""}
        except TypeError:  # arguments that do not fit
            return None
        if context is None:
            return self._formats[1] % values
        values["request_id"] = context.request_id
        values["global_request_id"] = context.global_request_id
        values["user_identity"] = self._identity % {
            name: getattr(context, attribute) or "-" for name, attribute in _IDENTITY.items()}
        return self._formats[0 if context.request_id else 1] % values


def _divided(text: str, record: logging.LogRecord) -> tuple[str, list[str]]:
    """Return the line of a record, which ``text`` begins with, and the lines of its traceback and its stack."""
    below = "\n".join(filter(None, (record.exc_text, record.stack_info)))
    if not text.endswith(f"\n{below}"):
        return text, []
    # Secrets first: one may have a line end.
    lines = known_secrets.KNOWN.hide(below).split("\n")
    rest = len(lines) - _MAX_LINES
    # The end of a traceback tells what the error is.
    shown = lines if rest <= 0 else [*lines[:_MAX_LINES // 2], f"({rest} more lines)", *lines[-_MAX_LINES // 2:]]
    return text[:-len(below) - 1], shown


def _line(text: str) -> str:
    return text if len(text) <= _MAX_LINE and text.isprintable() else printable(text, _MAX_LINE)


def _hidden(value: object, without: Collection[str] = ()) -> Any:
    """Return the text of each part of a structured record without secrets.

    :param without: the names of parts that remain as they are
    """
    if isinstance(value, dict):
        return {name: item if name in without else _hidden(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_hidden(item) for item in value]
    return known_secrets.KNOWN.hide(value) if isinstance(value, str) else value


def _fields(text: str) -> set[str]:
    return set(_VALUE.findall(text))
