"""The settings of the filter."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from oslo_config import cfg

from ironic_rules.db.pxe_filter import Scope
from ironic_rules.exceptions import ConfigurationError


@dataclass(frozen=True, slots=True)
class FilterSettings:
    """Options of ``[pxe_filter]``; times in seconds."""

    folders: tuple[str, ...]
    pid_files: tuple[str, ...]
    files: int
    interfaces: frozenset[str]
    deny_unknown: bool
    discovery: bool
    sync_period: float
    full_sync_period: float
    reload_after: int
    #: name of the target in the entry point group, and all options, for targets of third parties
    target: str
    options: Any
    scope: Scope
    kea_connection: str | None
    kea_sockets: tuple[str, ...]
    kea_identifiers: tuple[str, ...]


def from_conf(conf: cfg.ConfigOpts) -> FilterSettings:
    """Return the settings from the configuration.

    :raises ConfigurationError: an option that the target needs is not set, or does not fit the others
    """
    options = conf.pxe_filter
    folders, pid_files = tuple(options.dhcp_hostsdir), tuple(options.dnsmasq_pid_file)
    if options.target == "hostsdir":
        _check_folders(folders, pid_files)
    elif options.target == "kea":
        _check_kea(options, discovery=conf.auto_discovery.enabled)
    return FilterSettings(
        folders=folders, pid_files=pid_files, files=options.hosts_files,
        interfaces=frozenset(options.supported_inspect_interfaces), deny_unknown=options.deny_unknown_macs,
        discovery=conf.auto_discovery.enabled, sync_period=options.sync_period,
        full_sync_period=options.full_sync_period, reload_after=options.reload_after, target=options.target,
        options=options,
        scope=Scope(frozenset(group.lower() for group in options.conductor_groups),
                    frozenset(options.physical_networks)),
        kea_connection=options.kea_connection, kea_sockets=tuple(options.kea_control_sockets),
        kea_identifiers=tuple(options.kea_identifiers))


def _check_folders(folders: tuple[str, ...], pid_files: tuple[str, ...]) -> None:
    if not folders:
        raise ConfigurationError("[pxe_filter]dhcp_hostsdir is not set.")
    if len(set(map(os.path.realpath, folders))) < len(folders):
        raise ConfigurationError("[pxe_filter]dhcp_hostsdir names a folder twice.")
    if pid_files and len(pid_files) != len(folders):
        raise ConfigurationError("[pxe_filter]dnsmasq_pid_file must name one file for each folder of dhcp_hostsdir.")


def _check_kea(options: Any, *, discovery: bool) -> None:
    if not options.kea_connection:
        raise ConfigurationError("[pxe_filter]target is kea, but [pxe_filter]kea_connection is not set.")
    try:
        backend = sa.make_url(options.kea_connection).get_backend_name()
    except sa.exc.ArgumentError as exc:
        raise ConfigurationError("[pxe_filter]kea_connection is not the URL of a database.") from exc
    if backend not in ("mysql", "postgresql"):
        raise ConfigurationError(f"[pxe_filter]kea_connection: Kea has no host database of the kind '{backend}'.")
    if not (options.deny_unknown_macs or discovery or options.kea_control_sockets):
        raise ConfigurationError(
            "[pxe_filter]target is kea, so [pxe_filter]kea_control_sockets is required: unknown addresses can only be "
            "denied by telling the servers. It is not with [pxe_filter]deny_unknown_macs or [auto_discovery]enabled.")
