"""The interface of inspection hooks, for those of this package and of other packages.

A hook from another package is a subclass of :class:`InspectionHook` that can be created without arguments, has an entry
point in ``ironic_rules.inspection.hooks``, and is named in ``[inspector]hooks``.
"""

from __future__ import annotations

import abc
from typing import ClassVar

from ironic_rules.inspection.hook_settings import HookSettings
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.kept import ExtensionPoint
from ironic_rules.models.task import Task


class InspectionHook(ExtensionPoint, metaclass=abc.ABCMeta):
    """Processes a ramdisk's data. Runs under the node's lock, in state INSPECTING.

    One object serves all nodes and threads. It may change ``plugin_data`` and the drafts ``task.node`` and
    ``task.ports`` (``task.add_port``, ``task.remove_port``), which are saved together when all hooks and rules are
    done; ``task.node.save()`` is allowed and does nothing. A hook that changes ``inventory`` fails, and so does one
    that writes a field which hooks may not write (``models.nodes``), leaves a value that is not JSON, or takes longer
    than ``[inspector]hook_timeout``. To send a message to the operator it appends ``(level, text)`` to
    ``task.messages``; to fail the inspection it raises ``HookFailed``.
    """

    #: Names of hooks that must be enabled before this one; checked when the service starts.
    dependencies: ClassVar[list[str]] = []
    #: The service's settings, after ``configure`` was called.
    settings: HookSettings = HookSettings()

    def configure(self, settings: HookSettings) -> None:
        """Set the service's settings; called once, before any other method."""
        self.settings = settings

    def preprocess(
            self, task: Task, inventory: JSONObject, plugin_data: JSONObject) -> None:
        """Run before the main processing of any hook. Should not change the node or its ports.

        :raises HookFailed: the inspection must not continue
        """

    @abc.abstractmethod
    def __call__(self, task: Task, inventory: JSONObject, plugin_data: JSONObject) -> None:
        """Process the data.

        :param inventory: as the ramdisk sent it; odd values of known fields are null
        :param plugin_data: everything else that it sent, and what hooks and rules have added
        :raises HookFailed: the inspection must not continue
        """


def warn(task: Task, text: str) -> None:
    """Report to the operator a problem that does not fail the inspection."""
    task.messages.append(("warning", text))
