"""Random numbers for the guest: ``hw_rng:NAME``."""

from __future__ import annotations

from ironic_rules.extra_specs.definitions.hw import LIBVIRT
from ironic_rules.extra_specs.validators import ExtraSpecValidator

EXTRA_SPECS = [
    ExtraSpecValidator("hw_rng:allowed",
                       "Whether the guest can have a device for random numbers of the host. With ``false``, it has "
                       "none whatever its image says.", {"type": bool, "description": "Whether it can."},
                       drivers=LIBVIRT, see_also="hw_rng_model"),
    ExtraSpecValidator("hw_rng:rate_bytes", "How much of the host's entropy the guest can read in a period.",
                       {"type": int, "min": 0, "description": "Bytes of a period."}, drivers=LIBVIRT,
                       requires=["hw_rng:allowed", "hw_rng:rate_period"]),
    ExtraSpecValidator("hw_rng:rate_period", "The period in which the guest can read so many bytes of entropy.",
                       {"type": int, "min": 0, "description": "Milliseconds."}, drivers=LIBVIRT,
                       requires=["hw_rng:rate_bytes"]),
]
