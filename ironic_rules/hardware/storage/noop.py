"""``noop`` storage: local disks only."""

from __future__ import annotations

from ironic_rules.hardware.base import StorageInterface


class NoopStorage(StorageInterface):
    """Attaches no volumes."""
