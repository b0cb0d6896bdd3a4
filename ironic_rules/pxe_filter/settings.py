"""The settings of the filter."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from oslo_config import cfg

from ironic_rules.conf import validation
from ironic_rules.conf.pxe_filter import GROUP, group_of, register_own
from ironic_rules.db.pxe_filter import Scope
from ironic_rules.exceptions import ConfigurationError

#: The name in Kea of a target without one.
UNNAMED = "all"


@dataclass(frozen=True, slots=True)
class TargetSettings:
    """Options of ``[pxe_filter]`` or one ``[pxe_filter:NAME]``: a DHCP server, its policy and its scope."""

    #: empty: the only target, of ``[pxe_filter]``
    name: str
    files: int
    deny_unknown: bool
    discovery: bool
    reload_after: int
    #: name of the target in the entry point group, and all options of the group, which targets read
    target: str
    options: Any
    #: adds options to that group, whose values ``options`` has then; raises ConfigurationError for wrong ones
    register: Callable[[Sequence[cfg.Opt]], None]
    scope: Scope
    #: names in Kea of the other targets that write into the same host database
    kea_neighbours: frozenset[str] = frozenset()

    @property
    def kea_name(self) -> str:
        """The owner of the reservations of this target."""
        return self.name or UNNAMED


@dataclass(frozen=True, slots=True)
class FilterSettings:
    """Options of the process; times in seconds."""

    targets: tuple[TargetSettings, ...]
    interfaces: frozenset[str]
    full_sync_period: float
    #: whether nodes are served that boot a ramdisk in another procedure than inspection
    all_ramdisks: bool = False


def from_conf(conf: cfg.ConfigOpts) -> FilterSettings:
    """Return the settings from the configuration.

    :raises ConfigurationError: an option that a target needs is not set, or does not fit the others
    """
    names = conf.pxe_filter.targets
    if len({name.lower() for name in names}) < len(names):
        raise ConfigurationError("[pxe_filter]targets has a name twice.")
    target_settings = tuple(_of_target(conf, name, group_of(name)) for name in names or [""])
    _check_together(target_settings)
    return FilterSettings(tuple(_beside(settings, target_settings) for settings in target_settings),
                          frozenset(conf.pxe_filter.supported_inspect_interfaces), conf.pxe_filter.full_sync_period,
                          conf.pxe_filter.allow_all_ramdisks)


def _of_target(conf: cfg.ConfigOpts, name: str, group: str) -> TargetSettings:
    options, discovery = conf[group], conf.auto_discovery.enabled
    if options.target == "hostsdir":
        _check_folders(group, options.dhcp_hostsdir, options.dnsmasq_pid_file)
    elif options.target == "kea":
        _check_kea(group, options, discovery=discovery)
    return TargetSettings(
        name=name, files=options.hosts_files, deny_unknown=options.deny_unknown_macs, discovery=discovery,
        reload_after=options.reload_after, target=options.target, options=options,
        register=functools.partial(_register, conf, name),
        scope=Scope(frozenset(options.conductor_groups), frozenset(options.physical_networks)))


def _register(conf: cfg.ConfigOpts, name: str, opts: Sequence[cfg.Opt]) -> None:
    try:
        register_own(conf, name, opts)
    except cfg.Error as exc:
        raise ConfigurationError(f"[{group_of(name)}]: options of the target cannot be registered: {exc}") from exc
    validation.check(conf, groups=[group_of(name)])


def _check_together(target_settings: Sequence[TargetSettings]) -> None:
    """Refuse targets that contradict each other: each would undo what the other has said."""
    places: dict[str, str] = {}
    for settings in target_settings:
        group = group_of(settings.name)
        for place, text in _places(settings).items():
            if place in places:
                raise ConfigurationError(f"[{group}]{text}, which [{places[place]}] uses as well.")
            places[place] = group


def _beside(settings: TargetSettings, target_settings: Sequence[TargetSettings]) -> TargetSettings:
    """Return the settings of a target with what it has to know of the others.

    :raises ConfigurationError: the reservations of one of them would be replaced, by both in turns; or two of them
        replace the same ones, and each would remove what is for the machines of the other
    """
    if settings.target != "kea":
        return settings
    same = [other for other in target_settings if other.target == "kea" and _database(other) == _database(settings)]
    for name in settings.options.kea_former_names:
        for other in same:
            if name.lower() == other.kea_name.lower():
                raise ConfigurationError(f"[{group_of(settings.name)}]kea_former_names has {name}, the name of "
                                         f"[{group_of(other.name)}].")
    mine = {name.lower() for name in settings.options.kea_former_names}
    for other in same:
        if other is not settings and (both := mine.intersection(map(str.lower, other.options.kea_former_names))):
            raise ConfigurationError(f"[{group_of(settings.name)}]kea_former_names has {min(both)}, and so does "
                                     f"[{group_of(other.name)}], perhaps from [{GROUP.name}]: one of them replaces "
                                     "what had that name.")
    neighbours = frozenset(other.kea_name for other in same if other is not settings)
    return dataclasses.replace(settings, kea_neighbours=neighbours)


def _database(settings: TargetSettings) -> str:
    url = sa.make_url(settings.options.kea_connection or "")
    return f"{url.get_backend_name()} {url.host} {url.port} {url.database}"


def _places(settings: TargetSettings) -> dict[str, str]:
    """Return the places that only one target can use, each with its option."""
    if settings.target == "hostsdir":
        return {os.path.realpath(folder): f"dhcp_hostsdir has {folder}" for folder in settings.options.dhcp_hostsdir}
    if settings.target == "kea" and not settings.deny_unknown:
        # Reservations that allow add up, but there is one answer to whether unknown addresses are served.
        return {_database(settings): "kea_connection names a database that is for the open policy of one target",
                **{path: f"kea_control_sockets has {path}" for path in settings.options.kea_control_sockets}}
    return {}


def _check_folders(group: str, folders: Sequence[str], pid_files: Sequence[str]) -> None:
    if not folders:
        raise ConfigurationError(f"[{group}]dhcp_hostsdir is not set.")
    if len(set(map(os.path.realpath, folders))) < len(folders):
        raise ConfigurationError(f"[{group}]dhcp_hostsdir names a folder twice.")
    if pid_files and len(pid_files) != len(folders):
        raise ConfigurationError(f"[{group}]dnsmasq_pid_file must name one file for each folder of dhcp_hostsdir.")


def _check_kea(group: str, options: Any, *, discovery: bool) -> None:
    if not options.kea_connection:
        raise ConfigurationError(f"[{group}]target is kea, but [{group}]kea_connection is not set.")
    try:
        backend = sa.make_url(options.kea_connection).get_backend_name()
    except sa.exc.ArgumentError as exc:
        raise ConfigurationError(f"[{group}]kea_connection is not the URL of a database.") from exc
    if backend not in ("mysql", "postgresql"):
        raise ConfigurationError(f"[{group}]kea_connection: Kea has no host database of the kind '{backend}'.")
    if not (options.deny_unknown_macs or discovery or options.kea_control_sockets):
        raise ConfigurationError(
            f"[{group}]target is kea, so [{group}]kea_control_sockets is required: unknown addresses can only be "
            f"denied by telling the servers. It is not with [{group}]deny_unknown_macs or [auto_discovery]enabled.")
