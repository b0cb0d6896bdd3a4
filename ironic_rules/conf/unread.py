"""Groups and options in the configuration files that nothing reads: mistyped, of an older version, or of Ironic."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from importlib import metadata
from typing import Any

from oslo_config import cfg

from ironic_rules.conf import opts, pxe_filter
from ironic_rules.text import nearest, printable

#: The entry points by which packages list their options, and those of libraries all of whose options processes read.
_ENTRY_POINTS = "oslo.config.opts"
_LIBRARIES = frozenset({"keystonemiddleware.auth_token", "oslo.log", "oslo.policy"})
#: Those of other libraries of OpenStack, which are installed because the service, or something else, requires them:
#: processes read some of two of them (``opts.list_library_opts``), and none of oslo.middleware and others.
_NOT_READ = ("oslo.", "keystonemiddleware.")
#: Options of this group depend on the plug-in that one of them names.
_KEYSTONE = "keystone_authtoken"
#: Groups to which other packages than those libraries add nothing.
_OWN_GROUPS = frozenset({group for group, _ in opts.list_opts()} - {"inspector", pxe_filter.GROUP.name})


def lines(conf: cfg.ConfigOpts) -> list[str]:
    """Return one line for each group and option that no process of the service reads, with its file.

    What other installed packages, such as those of hooks, list by the entry point ``oslo.config.opts`` counts as read.

    :param conf: with the service's own options registered, after the files have been read
    """
    unread, known = _given(conf), _Known(conf)
    # Only for what is not known yet: loading the options of a library takes longer than to read all of the service's.
    for load in (None, _library_options, _other_options):
        if load is _other_options and set(unread) <= _OWN_GROUPS:
            break
        if load is not None:
            known.add(load())
        unread = {section: rest for section, names in unread.items()
                  if (rest := [name for name in names if not known.has(section, name)])}
        if not unread:
            break
    return [line for section, names in unread.items() for line in _told(conf, section, names, known.by_group)]


class _Known:
    """The names of options, with those of before and with hyphens as underscores, by group in lower case."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self.by_group: dict[str, set[str]] = {}
        #: what other packages than the service list
        self._listed: dict[str, set[str]] = {}
        self._conf = conf
        for info, group in conf._all_opt_infos():
            self._add("DEFAULT" if group is None else group.name, info["opt"])

    def add(self, options: Iterable[tuple[Any, Iterable[cfg.Opt]]]) -> None:
        for group, listed in options:
            for option in listed:
                named = str(getattr(group, "name", group) or "DEFAULT")
                if option.dest not in self.by_group.get(named.lower(), ()):
                    self._listed.setdefault(named.lower(), set()).add(option.dest)
                self._add(named, option)

    def _add(self, group: str, option: cfg.Opt) -> None:
        self.by_group.setdefault(group.lower(), set()).add(option.dest)
        for old in option.deprecated_opts:
            names = self.by_group.setdefault((old.group or group).lower(), set())
            names.add((old.name or option.dest).replace("-", "_"))

    def has(self, section: str, name: str) -> bool:
        group = section.lower()
        # What a package lists for [pxe_filter] is an option of each target, too, if there is a target of that name.
        base = pxe_filter.GROUP.name if group in self.by_group and group.startswith(f"{pxe_filter.GROUP.name}:") else ""
        dest = name.replace("-", "_")
        return dest in self.by_group.get(group, ()) or dest in self._listed.get(base, ()) or (
            group == _KEYSTONE and name in _keystone_options(self._conf))


def _given(conf: cfg.ConfigOpts) -> dict[str, list[str]]:
    """Return the names in the files by section, in their order."""
    found: dict[str, dict[str, None]] = {}
    # oslo.config has no other way to what it has read; the last file is its first.
    for sections in reversed(parsed(conf)):
        for section, options in sections.items():
            found.setdefault(section, {}).update(dict.fromkeys(options))
    return {section: list(names) for section, names in found.items()}


def parsed(conf: cfg.ConfigOpts) -> list[dict[str, dict[str, Any]]]:
    """Return what the files have: for each file, section -> option -> the texts of its values."""
    return [] if conf._namespace is None else conf._namespace._parsed


def _library_options() -> Iterator[tuple[Any, Iterable[cfg.Opt]]]:
    yield from opts.list_library_opts()
    yield from _listed(point for point in metadata.entry_points(group=_ENTRY_POINTS) if point.name in _LIBRARIES)


def _other_options() -> Iterator[tuple[Any, Iterable[cfg.Opt]]]:
    return _listed(point for point in metadata.entry_points(group=_ENTRY_POINTS)
                   if not point.name.startswith(_NOT_READ))


def _listed(points: Iterable[metadata.EntryPoint]) -> Iterator[tuple[Any, Iterable[cfg.Opt]]]:
    for point in points:
        with contextlib.suppress(Exception):  # code of any package: what it does not list is not known
            yield from point.load()()


def _keystone_options(conf: cfg.ConfigOpts) -> frozenset[str]:
    """Return the options of the plug-in that ``auth_type`` names; keystonemiddleware registers them when it is used."""
    try:
        from keystoneauth1 import loading
    except ImportError:
        return frozenset()
    options: list[Any] = list(loading.get_auth_common_conf_options())
    groups = [sections.get(_KEYSTONE, {}) for sections in parsed(conf)]
    for kind in {kind for group in groups for name in ("auth_type", "auth_plugin") for kind in group.get(name, ())}:
        with contextlib.suppress(Exception):  # of any plug-in; the process that needs it reports it
            options += loading.get_auth_plugin_conf_options(kind)
    names = {option.dest for option in options} | {
        old.name.replace("-", "_") for option in options for old in option.deprecated_opts if old.name}
    return frozenset(names)


def _told(conf: cfg.ConfigOpts, section: str, names: list[str], known: Mapping[str, set[str]]) -> Iterator[str]:
    files = {} if conf._namespace is None else conf._namespace._sections_to_file
    file = printable(files.get(section, "command line"))
    group = f"[{printable(section, 64)}]"
    of_group = known.get(section.lower())
    base = section.partition(":")[0].lower()
    if of_group is None and base == pxe_filter.GROUP.name:
        yield f"{file}: {group}: no process reads this group; [{base}]targets does not have its name."
        return
    if of_group is None:
        # The groups of libraries resemble each other, and what one means is nothing for another.
        similar = None if section.startswith("oslo_") else nearest(section, known)
        yield f"{file}: {group}: no process reads this group{_question(f'[{similar}]' if similar else None)}"
        return
    for name in names:
        similar = nearest(name, of_group)
        yield (f"{file}: {group}{printable(name, 64)}: no process reads this option"
               f"{_question(f'{group}{similar}' if similar else None)}")


def _question(similar: str | None) -> str:
    return f". Is {similar} meant?" if similar else "."
