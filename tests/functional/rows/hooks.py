"""Hooks of tests, and inspections that are paused while hooks run.

They may run in another process (see :mod:`tests.functional.told`), which imports this module and no other test: what
they did and found is in files.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ironic_rules.exceptions import HookFailed
from ironic_rules.inspection.hooks.base import InspectionHook
from ironic_rules.inspection.hooks.physical_network import PhysicalNetworkHook
from tests.functional.processes import wait_for

if TYPE_CHECKING:
    from tests.functional.whole import Whole

Work = Callable[[Any, dict[str, Any], dict[str, Any]], object]


class Calling(InspectionHook):
    """Calls ``work(task, inventory, plugin_data)``, a function of a module."""

    def __init__(self, work: Work) -> None:
        self._work = work

    def __call__(self, task: Any, inventory: dict[str, Any], plugin_data: dict[str, Any]) -> None:
        self._work(task, inventory, plugin_data)


class Noting(InspectionHook):
    """Adds a line to a file when it preprocesses, and another one when it is called."""

    def __init__(self, file: Path, name: str = "hook") -> None:
        self._file = file
        self._name = name

    def _note(self, what: str) -> None:
        with self._file.open("a") as file:
            file.write(f"{self._name} {what}\n")

    def preprocess(self, task: Any, inventory: dict[str, Any], plugin_data: dict[str, Any]) -> None:
        self._note("preprocess")

    def __call__(self, task: Any, inventory: dict[str, Any], plugin_data: dict[str, Any]) -> None:
        self._note("call")


class Holding(InspectionHook):
    """Pauses as long as there is ``folder``, and says with a file ``reached`` in it that it does.

    :param in_preprocess: pause there, not when it is called
    """

    def __init__(self, folder: Path, in_preprocess: bool = False) -> None:
        self._folder = folder
        self._in_preprocess = in_preprocess

    def _hold(self) -> None:
        (self._folder / "reached").touch()
        wait_for("the test to continue", lambda: not self._folder.exists(), interval_s=0.005)

    def preprocess(self, task: Any, inventory: dict[str, Any], plugin_data: dict[str, Any]) -> None:
        if self._in_preprocess:
            self._hold()

    def __call__(self, task: Any, inventory: dict[str, Any], plugin_data: dict[str, Any]) -> None:
        if not self._in_preprocess:
            self._hold()


def change_inventory(task: Any, inventory: dict[str, Any], plugin_data: dict[str, Any]) -> None:
    inventory["cpu"]["flags"] = []


def change_all(task: Any, inventory: dict[str, Any], plugin_data: dict[str, Any]) -> None:
    plugin_data["hook"] = ["was here"]
    task.node.extra["hook"] = 1
    task.node.save()
    port, = task.ports
    port.extra["hook"] = 2
    port.save()


def fail(task: Any, inventory: dict[str, Any], plugin_data: dict[str, Any]) -> None:
    raise HookFailed(hook="later", reason="no")


class BySpeed(PhysicalNetworkHook):
    """A hook of another author."""

    def get_physical_network(self, interface: dict[str, Any]) -> str | None:
        return "fast" if interface["speed_mbps"] >= 10000 else None


def added(whole: Whole, *hooks: InspectionHook) -> contextlib.AbstractContextManager[None]:
    """Run ``hooks`` after those that are configured."""
    return whole.with_hooks(*hooks)


@contextlib.contextmanager
def held(whole: Whole, send: Callable[[], Any], in_preprocess: bool = False) -> Iterator[Any]:
    """Send data with ``send``, pause the processing in a hook, yield the result of ``send``; continue at the end."""
    with tempfile.TemporaryDirectory() as name, added(whole, Holding(Path(name), in_preprocess)):
        sent = send()
        wait_for("the hook", (Path(name) / "reached").exists, interval_s=0.005)
        yield sent
