"""Settings of the inspection, as values: hooks and the pipeline do not read the configuration themselves."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from oslo_config import cfg

from ironic_rules.conf.inspector import CPU_CAPABILITIES


@dataclass(frozen=True, slots=True)
class HookSettings:
    """Options of ``[inspector]``, ``[inspection_rules]`` and ``[DEFAULT]`` under their own names."""

    add_ports: str = "all"
    keep_ports: str = "all"
    update_pxe_enabled: bool = True
    disk_partitioning_spacing: int = 1
    cpu_capabilities: Mapping[str, str] = field(default_factory=lambda: dict(CPU_CAPABILITIES))
    pci_device_alias: tuple[str, ...] = ()
    physical_network_cidr_map: tuple[str, ...] = ()
    known_accelerators: str | None = None
    supported_interfaces: str = "^(agent|inspector)$"
    infiniband_addresses: bool = False


def readable(conf: cfg.ConfigOpts) -> HookSettings:
    """Return the settings in ``conf``, with the default of each that cannot be read."""
    found: dict[str, Any] = {}
    for option in fields(HookSettings):
        group = {"supported_interfaces": conf.inspection_rules, "infiniband_addresses": conf}.get(
            option.name, conf.inspector)
        with contextlib.suppress(cfg.Error, ValueError):
            value = group[option.name]
            found[option.name] = tuple(value) if isinstance(value, list) else value
    return HookSettings(**found)


def from_conf(conf: cfg.ConfigOpts) -> HookSettings:
    """Return the settings in ``conf``.

    :raises cfg.Error: an option of ``[inspector]`` has an invalid value, even if it is only read later
    """
    dict(conf.inspector)
    return HookSettings(
        add_ports=conf.inspector.add_ports, keep_ports=conf.inspector.keep_ports,
        update_pxe_enabled=conf.inspector.update_pxe_enabled,
        disk_partitioning_spacing=conf.inspector.disk_partitioning_spacing,
        cpu_capabilities=dict(conf.inspector.cpu_capabilities),
        pci_device_alias=tuple(conf.inspector.pci_device_alias),
        physical_network_cidr_map=tuple(conf.inspector.physical_network_cidr_map),
        known_accelerators=conf.inspector.known_accelerators,
        supported_interfaces=conf.inspection_rules.supported_interfaces,
        infiniband_addresses=conf.infiniband_addresses)
