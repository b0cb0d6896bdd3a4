"""Parsing arguments and configuration files with oslo.config, with errors that name the argument or the file."""

from __future__ import annotations

import contextlib
import io
import re
import sys
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from oslo_config import cfg

from ironic_rules.exceptions import ConfigurationError
from ironic_rules.text import printable

#: oslo.config's reason why a line cannot be parsed -> what to do.
_HINTS = {
    "Unexpected continuation line": ", since only the lines after an option may be indented: remove the indentation",
    "Section must be started before assignment": ": write [DEFAULT] or another section before the first option",
    "No ':' or '=' found in assignment": ": write OPTION = VALUE, or # before a comment",
    "Invalid section (must end with ])": ": write [SECTION] alone in its line",
}


class WrongArguments(Exception):
    """The arguments cannot be used, or a file has a wrong value of an option that is an argument, too."""

    def end(self) -> SystemExit:
        """Print the text; return what ends the process. oslo.config's status would be 1 for a wrong value."""
        sys.stderr.write(str(self))
        return SystemExit(2)


def parse(conf: cfg.ConfigOpts, argv: Sequence[str], **how: Any) -> None:
    """Call ``conf``.

    :param how: its other parameters
    :raises WrongArguments: nothing has been printed yet: the caller may find that a file is at fault
    :raises SystemExit: 0, after ``--help`` and ``--version``
    :raises ConfigurationError: a file cannot be read
    """
    _without_shell_completion(conf)
    errors = io.StringIO()
    try:
        with contextlib.redirect_stderr(errors), readable_files():
            conf(list(argv), **how)
    except SystemExit as exc:
        if exc.code:
            raise WrongArguments(_as_typed(conf, errors.getvalue())) from exc
        raise
    sys.stderr.write(errors.getvalue())


def _without_shell_completion(conf: cfg.ConfigOpts) -> None:
    """Refuse ``--shell_completion``, which oslo.config adds to every command: its wheel lacks the templates for it."""
    conf.unregister_opt(cfg.StrOpt("shell_completion"))
    conf.supported_shell_completion = []


def _as_typed(conf: cfg.ConfigOpts, text: str) -> str:
    """Return oslo.config's error with the argument's name in place of the one under which its value is kept."""
    names = {option.dest: option.name.replace("_", "-") for option, _ in conf._all_cli_opts()}
    return re.sub(r"\bargument --(\w+):", lambda match: f"argument --{names.get(match[1], match[1])}:", text)


@contextlib.contextmanager
def readable_files() -> Iterator[None]:
    """Have files that cannot be read named by the error.

    :raises ConfigurationError: one is missing, a folder, or not text
    """
    try:
        yield
    except cfg.ConfigFilesNotFoundError as exc:
        raise ConfigurationError("\n".join(
            f"{printable(file)}: there is no such configuration file." for file in exc.config_files)) from exc
    except cfg.ConfigFilesPermissionDeniedError as exc:
        raise ConfigurationError("\n".join(
            f"{printable(file)}: this user may not read the configuration file." for file in exc.config_files)
        ) from exc
    except cfg.ConfigDirNotFoundError as exc:
        raise ConfigurationError(f"{printable(exc.config_dir)}: there is no such folder of configuration files."
                                 ) from exc
    except cfg.ConfigFileParseError as exc:
        raise ConfigurationError(_not_parsed(exc)) from exc
    except OSError as exc:
        if exc.filename is None:
            raise
        raise ConfigurationError(f"{printable(exc.filename)}: {exc.strerror}") from exc
    except UnicodeDecodeError as exc:
        raise ConfigurationError(_not_text(exc)) from exc


def _not_parsed(error: cfg.ConfigFileParseError) -> str:
    """Return which line of a file is wrong, and what may be meant."""
    cause = error.__context__
    if not isinstance(cause, cfg.ParseError):
        return printable(error)
    place, line = f"{printable(error.config_file)}, line {cause.lineno}", str(cause.line or "")
    if line.startswith("\ufeff"):
        return f"{place}: the file begins with a byte order mark: save it as UTF-8 without one."
    hint = _HINTS.get(cause.msg, "")
    return f"{place}: {cause.msg}{f': {printable(line, 200)!r}' if line else ''}{hint}."


def _not_text(error: UnicodeDecodeError) -> str:
    """Return which file has which byte: the error has neither the name nor the position in the whole file."""
    reading = (frame.f_locals.get("self") for frame, _ in traceback.walk_tb(error.__traceback__))
    file = next((parser.filename for parser in reading if isinstance(parser, cfg.ConfigParser)), None)
    encoding = error.encoding.upper()
    if file is None:
        return f"A configuration file is not {encoding}: {error}"
    try:
        Path(file).read_bytes().decode(error.encoding)
    except UnicodeDecodeError as exc:
        line = exc.object.count(b"\n", 0, exc.start) + 1
        return f"{printable(file)}: not {encoding} at byte {exc.start}, in line {line}"
    except OSError:  # since it was read
        pass
    return f"{printable(file)}: not {encoding}"
