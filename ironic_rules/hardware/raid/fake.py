"""``fake`` RAID: always valid."""

from __future__ import annotations

from ironic_rules.hardware.base import RAIDInterface


class FakeRAID(RAIDInterface):
    """A controller without disks."""
