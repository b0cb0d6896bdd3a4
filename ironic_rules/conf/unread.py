"""Groups and options of the configuration that nothing reads: mistyped, of an older version, or of Ironic.

oslo-config-validator does not tell them: its only public function is the command, which reads one file of all that
count and no variables, takes the groups of targets for unknown ones and all of [keystone_authtoken] for known, and
names neither the file nor the option that may be meant.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from importlib import metadata
from typing import Any

from oslo_config import cfg

from ironic_rules.conf import ironic, opts, pxe_filter, sources
from ironic_rules.models import secrets
from ironic_rules.text import misspelt, printable

#: The entry points by which packages list their options, and those of libraries all of whose options processes read.
_ENTRY_POINTS = "oslo.config.opts"
_LIBRARIES = frozenset({"keystonemiddleware.auth_token", "oslo.log", "oslo.policy"})
#: Libraries of OpenStack, which are installed because the service, or something else, requires them:
#: processes read some of two of them (``opts.list_library_opts``), and none of oslo.middleware and others.
_NOT_READ = ("oslo.", "keystonemiddleware.")
#: A section that oslo.config takes for another one than [DEFAULT], though it ignores the case of all others.
_NOT_DEFAULT = "default"
#: Options of this group depend on the plug-in that one of them names.
_KEYSTONE = "keystone_authtoken"
#: Groups to which other packages than those libraries add nothing.
_OWN_GROUPS = frozenset({group for group, _ in opts.list_opts()} - {"inspector", pxe_filter.GROUP.name})
#: Group -> names of the service's own options.
_OWN_NAMES = {group: {option.dest for option in options} for group, options in opts.list_opts()}
#: Maximum number of characters of a value that a message quotes.
_MAX_VALUE = 200


def lines(conf: cfg.ConfigOpts) -> list[str]:
    """Return one line for each group and option that no process of the service reads, with its file or variable.

    Options that other packages, such as those of hooks, list by the entry point ``oslo.config.opts`` count as read.

    :param conf: with the service's own options registered, after the files have been read
    """
    values = sources.given(conf)
    unread, known = {section: list(options) for section, options in values.items()}, _Known(conf)
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
    files = sources.sections_of(conf)
    return [line for section, names in unread.items()
            for line in _told(section, {name: values[section][name].place for name in names}, known.by_group,
                              files.get(section))]


def repeated(conf: cfg.ConfigOpts) -> list[str]:
    """Return one line for each option that a file has several times, and of which only the last value counts."""
    several = {("DEFAULT" if group is None else group.name, info["opt"].dest)
               for info, group in conf._all_opt_infos() if info["opt"].multi}
    return [f"{places[0]}: [{printable(section, 64)}]{printable(name, 64)} is set {len(places)} times; the last value "
            "counts." for (section, name), places in sources.repeated(conf).items() if (section, name) not in several]


def unprotected(conf: cfg.ConfigOpts, groups: Collection[str] = ()) -> list[str]:
    """Return one line for each option of Ironic that requests a protection and that no process reads, with its place.

    A process that started without the protection would not be what the operator expects.

    :param groups: only of these; empty: of all
    """
    lines = []
    for section, options in sources.given(conf).items():
        group = section if section == "DEFAULT" else section.lower()
        for name, setting in options.items():
            protection = ironic.PROTECTIONS.get((group, name.replace("-", "_")))
            if protection is not None and protection.is_requested(setting.value) and (not groups or group in groups):
                value = printable(secrets.mask_text(setting.value), _MAX_VALUE)
                lines.append(f"{setting.place}: [{group}]{name} = {value}: no process reads this option. "
                             f"{protection.instead} Then remove this option.")
    return lines


class _Known:
    """The names of options, with those of before and with hyphens as underscores, by group in lower case."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self.by_group: dict[str, set[str]] = {}
        #: options that other packages list
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
        if section == _NOT_DEFAULT:
            return False
        group = section.lower()
        # Options of a package for [pxe_filter] are those of each target, too, if there is a target of that name.
        base = pxe_filter.GROUP.name if group in self.by_group and group.startswith(f"{pxe_filter.GROUP.name}:") else ""
        dest = name.replace("-", "_")
        return dest in self.by_group.get(group, ()) or dest in self._listed.get(base, ()) or (
            group == _KEYSTONE and name in _keystone_options(self._conf))


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
    for kind in {kind for name in ("auth_type", "auth_plugin") for kind in sources.values_of(conf, _KEYSTONE, name)}:
        with contextlib.suppress(Exception):  # of any plug-in; the process that needs it reports it
            options += loading.get_auth_plugin_conf_options(kind)
    names = {option.dest for option in options} | {
        old.name.replace("-", "_") for option in options for old in option.deprecated_opts if old.name}
    return frozenset(names)


def _told(section: str, places: Mapping[str, str], options_by_group: Mapping[str, set[str]],
          file: str | None) -> Iterator[str]:
    """Yield the lines of a section.

    :param places: of the names that nothing reads
    :param file: that of the section; None: only variables have the group
    """
    group = f"[{printable(section, 64)}]"
    of_group = options_by_group.get(section.lower()) if section != _NOT_DEFAULT else None
    base = section.partition(":")[0].lower()
    if of_group is None:
        place = file or next(iter(places.values()))
        if base == pxe_filter.GROUP.name:
            yield f"{place}: {group}: no process reads this group; [{base}]targets does not have its name."
            return
        renamed = {name: ironic.RENAMED[section.lower(), name] for name in places
                   if (section.lower(), name) in ironic.RENAMED}
        yield f"{place}: {group}: no process reads this group{_question(_similar_group(section, options_by_group))}"
        yield from (f"{places[name]}: {group}{name}: here this is {other}." for name, other in renamed.items())
        return
    for name, place in places.items():
        yield f"{place}: {group}{printable(name, 64)}: no process reads this option{_hint(section, name, of_group)}"


def _similar_group(section: str, options_by_group: Mapping[str, set[str]]) -> str | None:
    if section == _NOT_DEFAULT:
        return "[DEFAULT]"
    # The groups of libraries resemble each other, and what one means is nothing for another.
    if section.lower().startswith("oslo_") or section.lower() in ironic.GROUPS:
        return None
    similar = misspelt(section, options_by_group)
    return f"[{'DEFAULT' if similar == 'default' else similar}]" if similar else None


def _hint(section: str, name: str, of_group: Collection[str]) -> str:
    """Return the end of a line: which other option may be meant, if it can be no other one."""
    group, dest = section if section == "DEFAULT" else section.lower(), name.replace("-", "_")
    if other := ironic.RENAMED.get((group, dest)):
        return f"; here it is {other}."
    if ironic.is_known(group, dest):
        return "."
    if similar := misspelt(name, of_group):
        return _question(f"[{printable(section, 64)}]{similar}")
    elsewhere = [own for own, names in _OWN_NAMES.items() if dest in names]
    return _question(f"[{elsewhere[0]}]{dest}" if len(elsewhere) == 1 else None)


def _question(similar: str | None) -> str:
    return f". Is {similar} meant?" if similar else "."
