"""The settings of the filter."""

from __future__ import annotations

import os
from dataclasses import dataclass

from oslo_config import cfg

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


def from_conf(conf: cfg.ConfigOpts) -> FilterSettings:
    """Return the settings from the configuration.

    :raises ConfigurationError: no folder is set, one is set twice, or there is not one PID file for each
    """
    options = conf.pxe_filter
    folders, pid_files = tuple(options.dhcp_hostsdir), tuple(options.dnsmasq_pid_file)
    if not folders:
        raise ConfigurationError("[pxe_filter]dhcp_hostsdir is not set.")
    if len(set(map(os.path.realpath, folders))) < len(folders):
        raise ConfigurationError("[pxe_filter]dhcp_hostsdir names a folder twice.")
    if pid_files and len(pid_files) != len(folders):
        raise ConfigurationError("[pxe_filter]dnsmasq_pid_file must name one file for each folder of dhcp_hostsdir.")
    return FilterSettings(
        folders=folders, pid_files=pid_files, files=options.hosts_files,
        interfaces=frozenset(options.supported_inspect_interfaces), deny_unknown=options.deny_unknown_macs,
        discovery=conf.auto_discovery.enabled, sync_period=options.sync_period,
        full_sync_period=options.full_sync_period, reload_after=options.reload_after)
