"""What the parts of one conductor share, put together by ``ironic_rules.service``."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field

from oslo_config import cfg

from ironic_rules.conductor.workers import Workers
from ironic_rules.db import clock
from ironic_rules.db.session import Database
from ironic_rules.hardware.enabled import EnabledHardware
from ironic_rules.inspection.pipeline import Pipeline
from ironic_rules.inspection.rule_cache import RuleCache
from ironic_rules.rpc.pxe_filter import PXEFilterAPI


@dataclass(frozen=True)
class Engine:
    """One conductor's parts. ``host`` is the name on its locks; ``group`` the conductor group that it serves."""

    host: str
    group: str
    conf: cfg.ConfigOpts
    db: Database
    hardware: EnabledHardware
    pipeline: Pipeline
    rules: RuleCache
    workers: Workers
    pxe_filter: PXEFilterAPI = field(default_factory=PXEFilterAPI)


def now() -> datetime.datetime:
    """Return the current time, aware, in UTC; see :mod:`ironic_rules.db.clock`."""
    return clock.now()
