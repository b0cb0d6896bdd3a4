"""Properties of images: ``hw_*``, ``img_*``, ``os_*`` and traits; the older names of some of them are deprecated."""

from __future__ import annotations

from ironic_rules.extra_specs.definitions.images import guest, hardware, image, older, traits

PROPERTIES = [*hardware.PROPERTIES, *image.PROPERTIES, *guest.PROPERTIES, *traits.PROPERTIES, *older.PROPERTIES]
