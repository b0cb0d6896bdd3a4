"""``fake`` vendor: always valid."""

from __future__ import annotations

from ironic_rules.hardware.base import VendorInterface


class FakeVendor(VendorInterface):
    """A vendor without passthru methods."""
