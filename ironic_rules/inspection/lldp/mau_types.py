"""Names of media (operational MAU types), by their numbers in the registry IANA-MAU-MIB, with Ironic's names."""

from __future__ import annotations

NAMES = (
    "Unknown", "AUI", "10BASE-5", "FOIRL", "10BASE-2", "10BASE-T duplex mode unknown", "10BASE-FP", "10BASE-FB",
    "10BASE-FL duplex mode unknown", "10BROAD36", "10BASE-T half duplex", "10BASE-T full duplex",
    "10BASE-FL half duplex", "10BASE-FL full duplex", "100 BASE-T4", "100BASE-TX half duplex",
    "100BASE-TX full duplex", "100BASE-FX half duplex", "100BASE-FX full duplex", "100BASE-T2 half duplex",
    "100BASE-T2 full duplex", "1000BASE-X half duplex", "1000BASE-X full duplex", "1000BASE-LX half duplex",
    "1000BASE-LX full duplex", "1000BASE-SX half duplex", "1000BASE-SX full duplex", "1000BASE-CX half duplex",
    "1000BASE-CX full duplex", "1000BASE-T half duplex", "1000BASE-T full duplex", "10GBASE-X", "10GBASE-LX4",
    "10GBASE-R", "10GBASE-ER", "10GBASE-LR", "10GBASE-SR", "10GBASE-W", "10GBASE-EW", "10GBASE-LW", "10GBASE-SW",
    "10GBASE-CX4", "2BASE-TL", "10PASS-TS", "100BASE-BX10D", "100BASE-BX10U", "100BASE-LX10", "1000BASE-BX10D",
    "1000BASE-BX10U", "1000BASE-LX10", "1000BASE-PX10D", "1000BASE-PX10U", "1000BASE-PX20D", "1000BASE-PX20U",
    "10GBASE-T", "10GBASE-LRM", "1000BASE-KX", "10GBASE-KX4", "10GBASE-KR", "10/1GBASE-PRX-D1", "10/1GBASE-PRX-D2",
    "10/1GBASE-PRX-D3", "10/1GBASE-PRX-U1", "10/1GBASE-PRX-U2", "10/1GBASE-PRX-U3", "10GBASE-PR-D1",
    "10GBASE-PR-D2", "10GBASE-PR-D3", "10GBASE-PR-U1", "10GBASE-PR-U3", "40GBASE-KR4", "40GBASE-CR4", "40GBASE-SR4",
    "40GBASE-FR", "40GBASE-LR4", "100GBASE-CR10", "100GBASE-SR10", "100GBASE-LR4", "100GBASE-ER4",
)


def mau_type(number: int) -> str:
    """Return the name of a medium; ``MAU type 144`` for one that is not in the table."""
    return NAMES[number] if number < len(NAMES) else f"MAU type {number}"
