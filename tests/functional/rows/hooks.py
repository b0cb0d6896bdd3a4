"""The whole service with hooks of a test, and inspections that are paused while hooks run."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

from ironic_rules.inspection.hooks.base import InspectionHook
from tests.functional.whole import Whole

Work = Callable[[Any, dict[str, Any], dict[str, Any]], object]


class Calling(InspectionHook):
    """Calls ``work(task, inventory, plugin_data)``, and before it ``preprocess`` if there is one."""

    def __init__(self, work: Work, preprocess: Work | None = None) -> None:
        self._work = work
        self._preprocess = preprocess

    def preprocess(self, task: Any, inventory: dict[str, Any], plugin_data: dict[str, Any]) -> None:
        if self._preprocess:
            self._preprocess(task, inventory, plugin_data)

    def __call__(self, task: Any, inventory: dict[str, Any], plugin_data: dict[str, Any]) -> None:
        self._work(task, inventory, plugin_data)


@contextlib.contextmanager
def added(whole: Whole, *hooks: InspectionHook) -> Iterator[None]:
    """Run ``hooks`` after those that are configured."""
    pipeline = whole.conductor.pipeline
    configured = pipeline._hooks
    pipeline._hooks = (*configured, *((f"added-{number}", hook) for number, hook in enumerate(hooks)))
    try:
        yield
    finally:
        pipeline._hooks = configured


@contextlib.contextmanager
def held(whole: Whole, send: Callable[[], Any]) -> Iterator[Any]:
    """Send data with ``send``, pause the processing in a hook, yield the result of ``send``; continue at the end."""
    reached, go_on = threading.Event(), threading.Event()

    def hold(task: Any, inventory: dict[str, Any], plugin_data: dict[str, Any]) -> None:
        reached.set()
        assert go_on.wait(60)

    with added(whole, Calling(hold)):
        try:
            sent = send()
            assert reached.wait(30)
            yield sent
        finally:
            go_on.set()
