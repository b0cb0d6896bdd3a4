"""Targets: where the filter writes, so that a DHCP server serves the addresses that are allowed, and no others."""

from __future__ import annotations

from ironic_rules import entry_points
from ironic_rules.conf.pxe_filter import group_of
from ironic_rules.exceptions import ConfigurationError
from ironic_rules.pxe_filter.plan import Layout
from ironic_rules.pxe_filter.settings import TargetSettings
from ironic_rules.pxe_filter.targets.base import GROUP, Target


def make(settings: TargetSettings, layout: Layout) -> list[Target]:
    """Return the targets of the settings, not opened.

    :raises ConfigurationError: nothing installed provides the target, it does not work, or its options are not usable
    """
    option = f"[{group_of(settings.name)}]target"
    kinds = entry_points.load(GROUP, [settings.target], Target, option)  # type: ignore[type-abstract]
    kind = kinds[settings.target]
    try:
        settings.register(kind.opts)
        return list(kind.make(settings, layout))
    except ConfigurationError:
        raise
    except Exception as exc:  # code of any package
        raise ConfigurationError(f"{option}: '{settings.target}' cannot be used: {exc!r}") from exc
