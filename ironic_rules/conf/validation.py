"""Validation of the configuration when a process starts: every option is read once, also those of oslo.log.

The work on a node must not be the first to find a wrong value. Options with which logging could not begin, or lines
would be lost, are found without opening a log.
"""

from __future__ import annotations

import argparse
import configparser
import contextlib
import logging
import math
import re
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

from oslo_config import cfg, types
from oslo_log import formatters, handlers
from oslo_log import log as oslo_log

from ironic_rules import entry_points
from ironic_rules.conf import ironic, opts, sources, unread
from ironic_rules.conf.arguments import readable_files
from ironic_rules.conf.inspector import HOOK_ALIASES, hook_names
from ironic_rules.context import RequestContext
from ironic_rules.exceptions import ConfigurationError
from ironic_rules.models import secrets
from ironic_rules.models.nodes import INTERFACES
from ironic_rules.text import enumeration, printable

#: Formats of lines and of their parts -> whether they are for lines of a request only.
_FORMATS = {"logging_context_format_string": True, "logging_default_format_string": False,
            "logging_debug_format_suffix": False, "logging_exception_prefix": False,
            "logging_user_identity_format": True}
_KINDS = ("loggers", "handlers", "formatters")


def log_problems(value: Callable[[str], Any]) -> Iterator[tuple[str, str]]:
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
    """Return why ``logging.config.fileConfig`` would refuse a file. Conditions that it evaluates there are not
    evaluated here."""
    parser = configparser.ConfigParser()
    try:
        with open(path, encoding="locale") as file:
            parser.read_file(file)
        for kind in _KINDS:
            keys = [key.strip() for key in parser.get(kind, "keys").split(",") if key.strip()]
            sections = [f"{kind[:-1]}_{key}" for key in keys]
            if kind == "loggers" and "root" not in keys:
                return "[loggers]keys must have root"
            if missing := [name for name in sections if name not in parser]:
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
        return ConfigurationError(f"[DEFAULT]{place} cannot be written: {error.strerror}: {error.filename}.")
    return ConfigurationError(f"Logging cannot be set up with the options of [DEFAULT]: {printable(error)}.")


#: The groups of our options; in other groups, libraries decide what an empty value means.
OWN_GROUPS = frozenset(group for group, _ in opts.list_opts()) - {"DEFAULT"}
#: Maximum of numbers without one of their own. Greater numbers of seconds lead to dates before the year 1, and to waits
#: that the operating system refuses.
_MAX_NUMBER = 2**31 - 1
#: Minimums of options of libraries that take any number, and then cannot begin, fail every call, or never reply.
_LEAST = {("DEFAULT", "executor_thread_pool_size"): 1, ("DEFAULT", "rpc_response_timeout"): 1,
          ("database", "pool_timeout"): 0, ("database", "retry_interval"): 0,
          ("oslo_messaging_rabbit", "heartbeat_rate"): 1}
#: The place of a value that neither a file nor a variable has.
_DEFAULT = "default"
#: Maximum number of characters of a value that a message quotes.
_MAX_VALUE = 200


class OptionProblem(NamedTuple):
    """An option that cannot be used. ``reason`` says what is allowed; ``words`` are the parts of the value at fault."""

    group: str
    name: str
    reason: str
    words: Collection[str] = ()


def check(conf: cfg.ConfigOpts, *, groups: Collection[str] = (), api: bool = False, conductor: bool = False) -> None:
    """Read every registered option.

    :param groups: read only these; empty: all
    :param api: the process serves the API;  conductor: it works on nodes. Options must fit together only where they
        are used: the hosts of a deployment need not have the same file.
    :raises ConfigurationError: with all problems, each in one line: file, group, option, value, and what is allowed
    """
    if texts := problems(conf, groups=groups, api=api, conductor=conductor):
        raise ConfigurationError("\n".join(texts))


def problems(conf: cfg.ConfigOpts, *, groups: Collection[str] = (), api: bool = False,
             conductor: bool = False) -> list[str]:
    """Return one line for each problem. Parameters as of :func:`check`."""
    values = _Values()
    option_problems = list(_unreadable(conf, groups, values))
    option_problems += [OptionProblem("DEFAULT", *text) for text in log_problems(lambda name: values["DEFAULT", name])]
    if api:
        option_problems += _discovery(values)
    if conductor:
        option_problems += _heartbeats(values)
        option_problems += _dead_letters(values)
        option_problems += _not_installed(values)
    return [*(_line(conf, problem) for problem in option_problems), *unread.unprotected(conf, groups)]


def told(conf: cfg.ConfigOpts, group: str, name: str, reason: str) -> str:
    """Return the line about an option whose value has another problem than its type."""
    return _line(conf, OptionProblem(group, name, reason))


def unresolved(conf: cfg.ConfigOpts, group: str, error: cfg.NoSuchOptError) -> str:
    """Return the lines about the options of a group that refer to an option which does not exist.

    For a group that a library reads itself, so that it is not checked before.
    """
    missing = _innermost(error).opt_name
    reference = re.compile(rf"(?<!\$)(?:\$\$)*\$(?:{re.escape(missing)}\b|\{{{re.escape(missing)}\}})")
    names = [name for name, setting in sources.given(conf).get(group, {}).items() if reference.search(setting.value)]
    return "\n".join(f"[{group}]{name}: {_no_option(missing)}." for name in names) or printable(error)


def _no_option(name: str) -> str:
    return f"there is no option {printable(name, 64)} to which $ could refer; write $$ for the character"


def of_files(conf: cfg.ConfigOpts, argv: Sequence[str], default_files: list[str] | None) -> cfg.ConfigOpts:
    """Return the configuration of the same files without arguments, for one that cannot be read.

    oslo.config takes the values of some options in files, such as ``debug``, for arguments, and its error for a wrong
    one names no file.

    :param argv: the command's arguments;  default_files: as for ``conf``
    :raises ConfigurationError: a file cannot be read
    """
    arguments = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for name in ("--config-file", "--config-dir"):
        arguments.add_argument(name, action="append", default=[])
    named, _ = arguments.parse_known_args(list(argv))
    files = cfg.ConfigOpts()
    for info, group in conf._all_opt_infos():
        if info["opt"].dest not in ("config_file", "config_dir") and not isinstance(info["opt"], cfg.SubCommandOpt):
            files.register_opt(info["opt"], group=None if group is None else group.name)
    with readable_files():
        files([*(f"--config-file={path}" for path in named.config_file),
               *(f"--config-dir={path}" for path in named.config_dir)], project=conf.project,
              default_config_files=default_files)
    return files


class _Values(dict[tuple[str, str], Any]):
    """The values of the options that can be read, by group and name; None for others."""

    def __missing__(self, key: tuple[str, str]) -> None:
        return None


def _unreadable(conf: cfg.ConfigOpts, groups: Collection[str], values: _Values) -> Iterator[OptionProblem]:
    """Read the options into ``values``; yield those that cannot be read."""
    for info, group in conf._all_opt_infos():
        option: cfg.Opt = info["opt"]
        name = "DEFAULT" if group is None else group.name
        if isinstance(option, cfg.SubCommandOpt) or (groups and name not in groups):
            continue
        try:
            value = conf[option.dest] if group is None else conf[name][option.dest]
        except (ValueError, cfg.ConfigSourceValueError) as exc:
            # oslo.config's own text does not name the group, and says the place in its own way.
            yield OptionProblem(name, option.dest, allowed(option) or printable(exc.__context__ or exc).rstrip("."))
        except cfg.NoSuchOptError as exc:
            missing = _innermost(exc)
            # A default that refers to another option fails with that one, which has a line of its own.
            if _given(conf, name, option.dest)[2] != _DEFAULT:
                yield OptionProblem(name, option.dest, _no_option(missing.opt_name))
        except cfg.Error as exc:
            yield OptionProblem(name, option.dest, printable(exc).rstrip("."))
        else:
            values[name, option.dest] = value
            # An empty text is no number, and oslo.config gives None for it. Libraries may mean something by that.
            is_own = name.partition(":")[0] in OWN_GROUPS
            is_empty = value is None and isinstance(option.default, int) and is_own
            if is_empty or (isinstance(value, float) and math.isnan(value)):  # no bound excludes NaN
                yield OptionProblem(name, option.dest, allowed(option))
            elif isinstance(value, int | float) and value > _MAX_NUMBER and is_own:
                yield OptionProblem(name, option.dest, f"at most {_MAX_NUMBER} is allowed")
            elif isinstance(value, int) and value < (least := _LEAST.get((name, option.dest), value)):
                yield OptionProblem(name, option.dest, f"a whole number of at least {least} is required")


def _innermost(error: cfg.NoSuchOptError) -> cfg.NoSuchOptError:
    """Return the error for the option that does not exist; those for what refers to it follow from that one."""
    while isinstance(error.__context__, cfg.NoSuchOptError):
        error = error.__context__
    return error


def _discovery(values: _Values) -> Iterator[OptionProblem]:
    driver, enabled = values["auto_discovery", "driver"], values["DEFAULT", "enabled_hardware_types"]
    if values["auto_discovery", "enabled"] and enabled is not None and driver not in enabled:
        yield OptionProblem("auto_discovery", "driver", "with [auto_discovery]enabled, one of "
                            f"[DEFAULT]enabled_hardware_types is required: {enumeration(enabled)}")


def _heartbeats(values: _Values) -> Iterator[OptionProblem]:
    interval, timeout = (values["conductor", f"heartbeat_{name}"] for name in ("interval", "timeout"))
    if interval and timeout and timeout <= interval:
        yield OptionProblem("conductor", "heartbeat_timeout", "more than [conductor]heartbeat_interval, "
                            f"{interval}, is required, or every conductor would be considered dead")


def _dead_letters(values: _Values) -> Iterator[OptionProblem]:
    hours, days = values["events", "keep_hours"], values["events", "dead_letter_days"]
    if hours and days and hours > 24 * days:
        yield OptionProblem("events", "keep_hours", f"at most {24 * days} is allowed, the 24 hours of each of the "
                            f"{days} [events]dead_letter_days, or dead letters would be deleted at once")


def _not_installed(values: _Values) -> Iterator[OptionProblem]:
    """Yield options that name plug-ins twice, or plug-ins that are not installed."""
    yield from _unknown("DEFAULT", "enabled_hardware_types", entry_points.HARDWARE_TYPES,
                        values["DEFAULT", "enabled_hardware_types"])
    for kind in INTERFACES:
        option, default = f"enabled_{kind}_interfaces", f"default_{kind}_interface"
        enabled = values["DEFAULT", option]
        yield from _unknown("DEFAULT", option, f"{entry_points.INTERFACES}.{kind}", enabled)
        if enabled is not None and values["DEFAULT", default] not in (None, *enabled):
            yield OptionProblem("DEFAULT", default, f"one of [DEFAULT]{option} is required: {enumeration(enabled)}")
    yield from _unknown("pxe_filter", "supported_inspect_interfaces", f"{entry_points.INTERFACES}.inspect",
                        values["pxe_filter", "supported_inspect_interfaces"])
    if values["inspector", "hooks"] is not None:
        names = hook_names(values["inspector", "hooks"])
        yield from _unknown("inspector", "hooks", entry_points.HOOKS, [HOOK_ALIASES.get(name, name) for name in names])


def _unknown(group: str, name: str, entry_point_group: str, names: list[str] | None) -> Iterator[OptionProblem]:
    names = names or []
    if repeated := sorted({item for item in names if names.count(item) > 1}):
        yield OptionProblem(group, name, f"each name may occur once only: {enumeration(repeated)}")
    if missing := entry_points.not_installed(entry_point_group, names):
        yield OptionProblem(group, name, f"not installed: {enumeration(missing)}; installed are "
                            + enumeration(entry_points.installed(entry_point_group), limit=50), missing)


def _line(conf: cfg.ConfigOpts, problem: OptionProblem) -> str:
    """Return the problem in one line, with the place of the value and the value as it is written there."""
    group, name = problem.group, problem.name
    option, raw, place = _given(conf, group, name)
    texts = [str(item) for item in raw] if isinstance(raw, list) else [] if raw is None else [str(raw)]
    value = f" = {printable(secrets.mask_text(', '.join(texts)), _MAX_VALUE)}" if texts else " is not set"
    words = problem.words or texts
    advice = "".join(f" {text}" for text in ironic.advice(group, name, words))
    if any("\n" in text for text in texts):
        advice += " The value has several lines: an indented line continues the line before."
    return f"{place}: [{group}]{name}{' = (not shown)' if option.secret else value}: {problem.reason}.{advice}"


def placed(conf: cfg.ConfigOpts, text: str) -> str:
    """Return a text about an option that begins with ``[group]name``, after the place of the option's value.

    The place of a value that is not set is where it could be: the files that were read.
    """
    named = re.match(r"\[([\w:-]+)\](\w+)", text)
    if named is None:
        return text
    group, name = named.groups()
    try:
        place = _given(conf, group, name)[2]
        if "override" in conf._get_opt_info(name, None if group == "DEFAULT" else group):
            place = "command line"
    except cfg.Error:  # an option of another package's hook
        return text
    if place == _DEFAULT:
        place = sources.read_files(conf)
    return f"{place}: {text}"


def _given(conf: cfg.ConfigOpts, group: str, name: str) -> tuple[cfg.Opt, Any, str]:
    """Return an option, its value before it is converted, and where that is: in a file or a variable."""
    # oslo.config has no other way to the text of a value that is invalid.
    group_name = None if group == "DEFAULT" else group
    option: cfg.Opt = conf._get_opt_info(name, group_name)["opt"]
    raw, place = option.default, None
    if conf._namespace is not None:
        with contextlib.suppress(KeyError):
            raw, place = option._get_from_namespace(conf._namespace, group_name)
    if place is None or place.location is not cfg.Locations.command_line:
        variable, variable_place = conf._env_driver.get(group_name, name, option)
        if variable_place is not None:
            raw, place = variable, variable_place
    if place is None:
        return option, raw, _DEFAULT
    if place.location is cfg.Locations.user:
        before = [(old.group or group, old.name or option.dest) for old in option.deprecated_opts]
        return option, raw, sources.file_of(conf, [(group, option.dest), *before]) or printable(place.detail)
    return option, raw, printable(place.detail) or "command line"


def allowed(option: cfg.Opt) -> str:
    """Return the requirement for an option's value; empty for types whose errors say it."""
    return _allowed(option.type)


def _allowed(kind: object) -> str:
    # Classes that are derived from these have errors of their own.
    if type(kind) in (types.Integer, types.Float, types.Port):
        return _number(kind)
    if type(kind) is types.Boolean:
        return "true or false is required"
    if type(kind) is types.String and kind.choices:
        return f"one of these is required: {', '.join(map(str, kind.choices))}"
    if type(kind) is types.String and kind.max_length:
        return f"at most {kind.max_length} characters are allowed"
    if type(kind) is types.HostAddress:
        return "a host name or an IP address is required"
    if type(kind) is types.URI:
        begin = " or ".join(f"{scheme}://" for scheme in kind.schemes or ())
        return "a URL is required" + (f" that begins with {begin}" if begin else "")
    if type(kind) is types.List and (item := _allowed(kind.item_type)):
        return f"entries, separated by commas, are required: each {item.replace(' is required', '')}"
    if type(kind) is types.Dict:
        item = _allowed(kind.value_type).replace(" is required", "").replace("one of these: ", "one of ")
        return "KEY:VALUE entries, separated by commas, are required" + (f", where VALUE is {item}" if item else "")
    return ""


def _number(kind: Any) -> str:
    least, most = kind.min, kind.max
    if type(kind) is types.Port:
        least, most = least or 0, most or types.Port.PORT_MAX
    noun = "a number" if type(kind) is types.Float else "a whole number"
    if least is not None and most is not None:
        return f"{noun} from {least} to {most} is required"
    bound = f" of at least {least}" if least is not None else f" of at most {most}" if most is not None else ""
    return f"{noun}{bound} is required"
