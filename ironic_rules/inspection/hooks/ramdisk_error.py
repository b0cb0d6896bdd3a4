"""``ramdisk-error``: fail the inspection if the ramdisk reports an error."""

from __future__ import annotations

from ironic_rules.exceptions import HookFailed
from ironic_rules.inspection.hooks.base import InspectionHook
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.task import Task
from ironic_rules.text import printable


class RamdiskErrorHook(InspectionHook):
    """Fails the inspection with the text in ``plugin_data.error``, unless that is empty."""

    def preprocess(self, task: Task, inventory: JSONObject, plugin_data: JSONObject) -> None:
        error = plugin_data.get("error")
        if error and str(error).strip():
            raise HookFailed(hook="ramdisk-error", reason=f"the ramdisk reported: {printable(error)}")

    def __call__(self, task: Task, inventory: JSONObject, plugin_data: JSONObject) -> None:
        pass
