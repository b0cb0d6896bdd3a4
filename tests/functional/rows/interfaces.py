"""Inspect interfaces of other authors, and hardware that has them. Conductors of tests load them as plug-ins."""

from __future__ import annotations

import math
from typing import Any

import httpx

from ironic_rules.hardware.base import InspectInterface
from ironic_rules.models import states
from ironic_rules.models.inventories import InspectionData
from tests.functional.faulty import FaultyHardware


class Silent(InspectInterface):
    """Waits for something, but not for a ramdisk's data."""

    def inspect_hardware(self, task: Any) -> None:
        return None

    def abort(self, task: Any) -> None:
        pass


class Own(Silent):
    """Processes the data in its own way."""

    def continue_inspection(self, task: Any, inventory: dict[str, Any],
                            plugin_data: dict[str, Any] | None = None) -> InspectionData:
        task.node.extra["own"] = [sorted(inventory), plugin_data]
        return InspectionData(inventory, {"own": True})


class Proxy(Silent):
    """Passes a ramdisk's data to an Inspector, whose address is in ``driver_info``."""

    def continue_inspection(self, task: Any, inventory: dict[str, Any],
                            plugin_data: dict[str, Any] | None = None) -> InspectionData:
        answer = httpx.post(f"{task.node.driver_info['inspector']}/v1/continue", trust_env=False,
                            json={"inventory": inventory, **(plugin_data or {})}).raise_for_status()
        return InspectionData(inventory, {**(plugin_data or {}), **answer.json()["processed"]})


class SlowProxy(Proxy):
    """As ``Proxy``, with an Inspector that takes its time, and sends the result to the same callback."""

    def continue_inspection(self, task: Any, inventory: dict[str, Any],
                            plugin_data: dict[str, Any] | None = None) -> InspectionData | str:
        sent = task.received_before()
        if sent is None:
            super().continue_inspection(task, inventory, plugin_data)
            return states.INSPECTWAIT
        return InspectionData(sent.inventory, {**sent.plugin_data, **(plugin_data or {})})


class InTwoParts(Silent):
    """An asynchronous driver: it processes a first report by itself, and waits for a second one."""

    def continue_inspection(self, task: Any, inventory: dict[str, Any],
                            plugin_data: dict[str, Any] | None = None) -> InspectionData | str:
        first = task.received_before()
        if first is None:
            task.node.extra["first"] = sorted(inventory)
            return states.INSPECTWAIT
        return InspectionData({**first.inventory, **inventory}, {**first.plugin_data, **(plugin_data or {})})


class ByItself(Silent):
    """Needs no hooks and rules."""

    def continue_inspection(self, task: Any, inventory: dict[str, Any],
                            plugin_data: dict[str, Any] | None = None) -> str:
        task.node.extra["by itself"] = True
        return states.MANAGEABLE


class Odd(Silent):
    """Returns what the plug-in data say."""

    def continue_inspection(self, task: Any, inventory: dict[str, Any],
                            plugin_data: dict[str, Any] | None = None) -> Any:
        odd = (plugin_data or {})["odd"]
        return InspectionData(inventory, {"x": [math.nan]}) if odd == "nan" else odd


class PatientHardware(FaultyHardware):
    supported_inspect_interfaces = ("two", "itself", "odd")


class SilentHardware(FaultyHardware):
    supported_inspect_interfaces = ("silent", "own")


class ProxiedHardware(FaultyHardware):
    supported_inspect_interfaces = ("inspector", "agent")
