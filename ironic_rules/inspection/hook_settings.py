"""Settings of the inspection, as values: hooks and the pipeline do not read the configuration themselves."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from oslo_config import cfg

from ironic_rules.conf.inspector import CPU_CAPABILITIES, IGNORED_MACS
from ironic_rules.models.documents import JSONObject


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
    ignored_macs: tuple[str, ...] = tuple(IGNORED_MACS)


#: The groups of the options that are not in ``[inspector]``.
_OTHER_GROUPS = {"supported_interfaces": "inspection_rules", "infiniband_addresses": "DEFAULT"}


def from_conf(conf: cfg.ConfigOpts) -> HookSettings:
    """Return the settings in ``conf``.

    :raises cfg.Error: an option of ``[inspector]`` has an invalid value, even if it is only read later
    """
    dict(conf.inspector)
    return HookSettings(**{option.name: _value(conf, option.name) for option in fields(HookSettings)})


def readable(conf: cfg.ConfigOpts) -> HookSettings:
    """Return the settings in ``conf``, with the default of each that cannot be read."""
    values: JSONObject = {}
    for option in fields(HookSettings):
        with contextlib.suppress(cfg.Error, ValueError):
            values[option.name] = _value(conf, option.name)
    return HookSettings(**values)


def _value(conf: cfg.ConfigOpts, name: str) -> Any:
    group = _OTHER_GROUPS.get(name, "inspector")
    value = (conf if group == "DEFAULT" else conf[group])[name]
    return tuple(value) if isinstance(value, list) else value
