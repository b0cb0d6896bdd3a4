"""``no-vendor``."""

from __future__ import annotations

from ironic_rules.hardware.base import Absent, VendorInterface


class NoVendor(Absent, VendorInterface):
    """There is nothing vendor-specific."""
