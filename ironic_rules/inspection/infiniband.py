"""InfiniBand addresses: agents report them among the MAC addresses, but no port can have one."""

from __future__ import annotations

import re

_FORM = re.compile(r"[0-9A-Fa-f]{2}(?:[:-][0-9A-Fa-f]{2}){19}")


def is_infiniband(address: object) -> bool:
    """Say whether ``address`` is the text of 20 octets, separated by colons or hyphens."""
    return isinstance(address, str) and _FORM.fullmatch(address) is not None
