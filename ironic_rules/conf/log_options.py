"""Options of oslo.log with which logging could not begin, or lines would be lost: found without opening a log."""

from __future__ import annotations

import configparser
import logging
import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

from oslo_config import cfg
from oslo_log import formatters, handlers
from oslo_log import log as oslo_log

from ironic_rules.context import RequestContext
from ironic_rules.exceptions import ConfigurationError
from ironic_rules.text import printable

#: Formats of lines and of their parts -> whether they are for lines of a request only.
_FORMATS = {"logging_context_format_string": True, "logging_default_format_string": False,
            "logging_debug_format_suffix": False, "logging_exception_prefix": False,
            "logging_user_identity_format": True}
_KINDS = ("loggers", "handlers", "formatters")


def problems(value: Callable[[str], Any]) -> Iterator[tuple[str, str]]:
    """Yield the names of options that cannot be used, and why.

    :param value: returns that of an option by its name; None: it has none, or one that cannot be read
    """
    if file := value("log_config_append"):  # the other options have no effect then
        if reason := _of_file(file):
            yield "log_config_append", reason
        return
    if value("use_journal") and handlers.journal is None:
        yield "use_journal", ("systemd's bindings for Python are not installed: install systemd-python; what a service "
                              "of systemd prints is in the journal without this option, too")
    if value("use_journal") or value("use_syslog"):
        try:
            oslo_log._find_facility(value("syslog_log_facility") or "")
        except TypeError as exc:
            yield "syslog_log_facility", printable(exc)
    if reason := _of_rotation(value):
        yield "log_rotate_interval", reason
    levels = logging.getLevelNamesMapping()
    if wrong := [pair for pair in value("default_log_levels") or () if not _is_level(pair.partition("=")[2], levels)]:
        yield "default_log_levels", (f"LOGGER=LEVEL entries are required, where LEVEL is a number or one of "
                                     f"{', '.join(levels)}: {printable(', '.join(wrong))}")
    if not value("use_json"):
        for name in _FORMATS:
            if reason := _of_format(name, value(name)):
                yield name, reason


def _of_file(path: str) -> str | None:
    """Return why ``logging.config.fileConfig`` would refuse a file. What it evaluates there is not evaluated here."""
    parser = configparser.ConfigParser()
    try:
        with open(path, encoding="locale") as file:
            parser.read_file(file)
        for kind in _KINDS:
            keys = [key.strip() for key in parser.get(kind, "keys").split(",") if key.strip()]
            wanted = [f"{kind[:-1]}_{key}" for key in keys]
            if kind == "loggers" and "root" not in keys:
                return "[loggers]keys must have root"
            if missing := [name for name in wanted if name not in parser]:
                return f"the section [{printable(missing[0], 64)}] is missing, which [{kind}]keys names"
    except OSError as exc:
        return f"it cannot be read: {exc.strerror}"
    except (configparser.Error, UnicodeDecodeError) as exc:
        return f"it is no configuration of logging: {printable(exc)}"
    return None


def _of_rotation(value: Callable[[str], Any]) -> str | None:
    interval = value("log_rotate_interval")
    if interval is None or str(value("log_rotation_type")).lower() != "interval":
        return None
    if str(value("log_rotate_interval_type")).lower() != "weekday":
        return None if interval >= 1 else "a whole number of at least 1 is required"
    return None if 0 <= interval <= 6 else (
        "with log_rotate_interval_type = weekday, a day from 0 (Monday) to 6 is required")


def _is_level(text: str, levels: dict[str, int]) -> bool:
    try:
        int(text)
    except ValueError:
        return text in levels
    return True


def _of_format(name: str, text: str | None) -> str | None:
    """Return why no line can be written with a format: the one of this option, while all others are empty."""
    if text is None:
        return None
    conf = SimpleNamespace(**{**dict.fromkeys(_FORMATS, ""), name: text}, instance_format="", instance_uuid_format="")
    try:
        raise LookupError
    except LookupError:
        record = logging.LogRecord("ironic_rules", logging.DEBUG, __file__, 1, "text", (), sys.exc_info(), "function")
    record.context = RequestContext(overwrite=False) if _FORMATS[name] else None
    try:
        formatters.ContextFormatter(config=conf, datefmt="%Y").format(record)
    except (KeyError, ValueError, TypeError) as exc:
        unknown = exc if isinstance(exc, KeyError) else exc.__context__
        if isinstance(unknown, KeyError):
            return f"there is no %({printable(unknown.args[0], 64)}) here"
        return f"it is no format of a log line: {printable(exc)}"
    return None


def error_of_setup(conf: cfg.ConfigOpts, error: BaseException) -> ConfigurationError:
    """Return the error for one that oslo.log has raised: options that it cannot use have been refused before."""
    if conf.log_config_append:
        reason = error.err_msg if isinstance(error, oslo_log.LogConfigError) else error
        return ConfigurationError(
            f"[DEFAULT]log_config_append = {printable(conf.log_config_append)}: logging cannot be set up with it: "
            f"{printable(reason)}.")
    if isinstance(error, OSError):
        place = "log_file" if conf.log_file else "log_dir"
        return ConfigurationError(
            f"[DEFAULT]{place} cannot be written: {error.strerror}: {error.filename}.")
    return ConfigurationError(f"Logging cannot be set up with the options of [DEFAULT]: {printable(error)}.")
