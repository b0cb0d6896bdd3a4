"""What configuration says to the inspection, as values: hooks and the pipeline read no configuration themselves."""

from __future__ import annotations

from dataclasses import dataclass

from oslo_config import cfg


@dataclass(frozen=True, slots=True)
class Settings:
    """Options of ``[inspector]`` and ``[inspection_rules]`` under their own names."""

    add_ports: str = "all"
    keep_ports: str = "all"
    update_pxe_enabled: bool = True
    supported_interfaces: str = "^(agent|inspector)$"


def from_conf(conf: cfg.ConfigOpts) -> Settings:
    """Return the settings that ``conf`` has."""
    return Settings(
        add_ports=conf.inspector.add_ports, keep_ports=conf.inspector.keep_ports,
        update_pxe_enabled=conf.inspector.update_pxe_enabled,
        supported_interfaces=conf.inspection_rules.supported_interfaces)
