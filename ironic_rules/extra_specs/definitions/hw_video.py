"""Video memory: ``hw_video:NAME``."""

from __future__ import annotations

from ironic_rules.extra_specs.definitions.hw import LIBVIRT
from ironic_rules.extra_specs.validators import ExtraSpecValidator

EXTRA_SPECS = [
    ExtraSpecValidator("hw_video:ram_max_mb", "The most video memory that an image can request.",
                       {"type": int, "min": 0, "description": "Memory in MiB."}, drivers=LIBVIRT,
                       see_also="hw_video_ram"),
]
