"""Sources of the configuration's values: the file, or the variable of the environment, that has a value."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from oslo_config import cfg

from ironic_rules.models import secrets
from ironic_rules.text import printable

#: Variables that oslo.config reads: OS_GROUP__OPTION.
_VARIABLE = re.compile(r"OS_([^_].*?)__(\w+)")

_Sections = dict[str, dict[str, list[str]]]


class GivenValue(NamedTuple):
    """A value as it is written, and its place: a file or a variable."""

    value: str
    place: str


def given(conf: cfg.ConfigOpts) -> dict[str, dict[str, GivenValue]]:
    """Return all values that count, by section and name: those of files in their order, then those of variables.

    Includes options that are not registered. If an option occurs more than once, its last value counts.
    """
    by_section: dict[str, dict[str, GivenValue]] = {}
    for place, sections in reversed(_read(conf)):
        for section, options in sections.items():
            by_section.setdefault(section, {}).update(
                {name: GivenValue(values[-1] if values else "", place) for name, values in options.items()})
    written = {_folded(section): section for section in by_section}
    for variable, value in os.environ.items():
        if named := _VARIABLE.fullmatch(variable):
            group = named[1] if named[1] == "DEFAULT" else named[1].lower()
            by_section.setdefault(written.get(group, group), {})[named[2].lower()] = GivenValue(value, variable)
    return by_section


def sections_of(conf: cfg.ConfigOpts) -> dict[str, str]:
    """Return the file of each section, also of one without options: the last one that has the section."""
    return {section: place for place, sections in reversed(_read(conf)) for section in sections}


def values_of(conf: cfg.ConfigOpts, section: str, name: str) -> list[str]:
    """Return every value that files have for an option, whichever counts."""
    return [value for _, sections in _read(conf) for value in sections.get(section, {}).get(name, ())]


def repeated(conf: cfg.ConfigOpts) -> dict[tuple[str, str], list[str]]:
    """Return the files that have an option more than once, by section and name, with one entry for each time."""
    places = {}
    for place, sections in reversed(_read(conf)):
        for section, options in sections.items():
            places.update({(section, name): [place] * len(values)
                           for name, values in options.items() if len(values) > 1})
    return places


def file_of(conf: cfg.ConfigOpts, names: Collection[tuple[str, str]]) -> str | None:
    """Return the file with the value that counts of an option.

    oslo.config itself names the last file that has the section.

    :param names: section and name of the option, and those that it had before
    """
    return next((place for place, sections in _read(conf) for section, options in sections.items()
                 for name in options if (_folded(section), name) in names), None)


def read_files(conf: cfg.ConfigOpts) -> str:
    """Return the names of the files that were read, as text."""
    return ", ".join(map(printable, _files(conf))) or "no configuration file"


def secrets_of(conf: cfg.ConfigOpts) -> Iterator[str]:
    """Yield the secrets of the configuration: options that are declared to be, and passwords of URLs in all others.

    In the files, those that a library registers later are known by their names.
    """
    for options in given(conf).values():
        yield from (written.value.replace("$$", "$") for name, written in options.items()
                    if secrets.is_secret_key(name) and "://" not in written.value)
    for info, group in conf._all_opt_infos():
        option = info["opt"]
        with contextlib.suppress(cfg.Error, ValueError):  # of a library, and never read
            value = (conf if group is None else conf[group.name])[option.dest]
            for text in value if isinstance(value, list) else [value]:
                if isinstance(text, str):
                    yield from [text] if option.secret and "://" not in text else secrets.passwords_of_urls(text)


def _folded(section: str) -> str:
    # As oslo.config does: DEFAULT is the only name whose case counts.
    return section if section == "DEFAULT" else section.lower()


def _read(conf: cfg.ConfigOpts) -> list[tuple[str, _Sections]]:
    """Return each file with what oslo.config has read of it; the last file, whose values count, first."""
    # oslo.config has no other way to what it has read, and keeps the files' names without their values.
    parsed: list[_Sections] = [] if conf._namespace is None else conf._namespace._parsed
    files = _files(conf)
    if len(files) == len(parsed) == 1:
        return [(printable(files[0]), parsed[0])]
    contents = [(file, _parsed(file)) for file in files] if parsed else []
    return [(next((printable(file) for file, content in contents if content == sections), "a configuration file"),
             sections) for sections in parsed]


def _files(conf: cfg.ConfigOpts) -> list[str]:
    """Return the files of the configuration."""
    folders = [] if conf._namespace is None else conf._namespace._config_dirs or conf.default_config_dirs or []
    return [*map(str, conf.config_file or ()),
            *(str(path) for folder in folders for path in sorted(Path(folder).glob("*.conf")))]


def _parsed(file: str) -> Any:
    sections: _Sections = {}
    try:
        cfg.ConfigParser(file, sections).parse()
    except (OSError, ValueError):
        return None
    return sections
