"""What the parts of one conductor share, put together by ``ironic_rules.service``."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from oslo_config import cfg

from ironic_rules.conductor.workers import Workers
from ironic_rules.db.session import Database
from ironic_rules.hardware.registry import Hardware
from ironic_rules.inspection.pipeline import Pipeline
from ironic_rules.inspection.rule_cache import RuleCache


@dataclass(frozen=True)
class Engine:
    """One conductor's parts. ``host`` is the name on its locks; ``group`` the conductor group that it serves."""

    host: str
    group: str
    conf: cfg.ConfigOpts
    db: Database
    hardware: Hardware
    pipeline: Pipeline
    rules: RuleCache
    workers: Workers


def now() -> datetime.datetime:
    """Return the current time, aware, in UTC."""
    return datetime.datetime.now(datetime.UTC)
