"""``fake`` storage: always valid."""

from __future__ import annotations

from ironic_rules.hardware.base import StorageInterface


class FakeStorage(StorageInterface):
    """Volumes that need no attachment."""
