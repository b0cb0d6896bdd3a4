"""The whole service with more hardware types than the fake and the faulty one."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path

from ironic_rules.hardware.base import HardwareType, Interface
from tests.functional import installations
from tests.functional.faulty import FaultyHardware
from tests.functional.whole import Whole


class ExampleHardware(FaultyHardware):
    """A machine that exists in the database only; its interfaces have other names than those of fake hardware."""


#: The hardware types that the examples name.
OF_EXAMPLES: dict[str, type[HardwareType]] = dict.fromkeys(("ipmi", "idrac", "redfish"), ExampleHardware)


def running(folder: Path, text: str = "", types: Mapping[str, type[HardwareType]] = OF_EXAMPLES,
            inspect_interfaces: Mapping[str, type[Interface]] | None = None,
            ) -> contextlib.AbstractContextManager[Whole]:
    """Run the service with more hardware types and inspect interfaces; see ``installations.running``."""
    return installations.running(folder, text, types=types, inspect_interfaces=inspect_interfaces)
