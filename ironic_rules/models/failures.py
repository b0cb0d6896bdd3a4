"""Why nodes failed: errors that differ only in what is a machine's own have one reason."""

from __future__ import annotations

import hashlib
import re
from typing import NamedTuple

from ironic_rules.models import states

#: The states of nodes that have failed.
STATES = frozenset({states.ERROR, states.DEPLOYFAIL, states.CLEANFAIL, states.INSPECTFAIL, states.ADOPTFAIL,
                    states.RESCUEFAIL, states.UNRESCUEFAIL, states.SERVICEFAIL})
#: What stands for a machine's own UUIDs, addresses and numbers.
OWN = "…"
#: Maximum numbers of characters of a reason, and of what stands for a machine's own in it.
LENGTH = 300
_MOST_OWN = 16
_OWN = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?:[0-9a-f]{2}:){5}[0-9a-f]{2}|\b\d+(?:\.\d+)*\b",
                  re.ASCII | re.IGNORECASE)


class Failure(NamedTuple):
    """Nodes that failed in the same state for the same reason.

    :ivar reason: "" if no error is stored
    """

    provision_state: str
    reason: str
    number: int

    @property
    def ident(self) -> str:
        """What identifies the group: 16 hexadecimal digits."""
        return hashlib.sha256(f"{self.provision_state}\n{self.reason}".encode()).hexdigest()[:16]


def reason(error: str) -> str:
    """Return the reason of an error, or of its beginning, of at most ``LENGTH`` characters.

    ``OWN`` stands for a machine's own UUIDs, addresses and numbers, and for what follows the beginning.
    """
    if len(error) >= LENGTH:
        # Perhaps the last word is a part of a UUID.
        error = f"{error[:LENGTH].rpartition(' ')[0]} {OWN}"
    parts = _OWN.sub(OWN, error).split(OWN)
    return OWN.join(parts) if len(parts) <= _MOST_OWN else f"{OWN.join(parts[:_MOST_OWN])}{OWN}"
