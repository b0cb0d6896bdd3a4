"""The whole service with more hardware types than the fake and the faulty one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from ironic_rules.hardware.base import HardwareType, Interface
from ironic_rules.hardware.enabled import EnabledHardware
from tests.functional import whole
from tests.functional.faulty import FaultyHardware
from tests.functional.whole import Whole


class ExampleHardware(FaultyHardware):
    """A machine that exists in the database only; its interfaces have other names than those of fake hardware."""


#: The hardware types that the examples of document 000 name.
OF_EXAMPLES: dict[str, type[HardwareType]] = {"ipmi": ExampleHardware, "idrac": ExampleHardware}


@contextlib.contextmanager
def running(folder: Path, text: str = "", types: Mapping[str, type[HardwareType]] = OF_EXAMPLES,
            inspect_interfaces: Mapping[str, type[Interface]] | None = None) -> Iterator[Whole]:
    """Run the service with more hardware types and inspect interfaces; see ``whole.running``."""
    def hardware(conf: Any) -> EnabledHardware:
        interfaces = {kind: {**whole._load_interfaces(conf, kind)} for kind in whole.KINDS}
        for kind, cls in whole.FAULTY.items():
            interfaces[kind]["faulty"] = cls
        interfaces["inspect"].update(inspect_interfaces or {})
        return EnabledHardware(conf, {"fake-hardware": whole.FakeHardware, "faulty-hardware": FaultyHardware, **types},
                        interfaces)

    with pytest.MonkeyPatch.context() as change:
        change.setattr(whole, "hardware", hardware)
        with whole.running(folder, text) as service:
            yield service
