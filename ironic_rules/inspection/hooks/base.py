"""The interface of inspection hooks, for ours and for those of other packages.

A hook from another package is a subclass of :class:`InspectionHook` that can be made without arguments, an entry point
in ``ironic_rules.inspection.hooks``, and named in ``[inspector]hooks``.
"""

from __future__ import annotations

import abc
from typing import Any, ClassVar

from ironic_rules.inspection.hook_settings import HookSettings
from ironic_rules.models.task import Task


class InspectionHook(metaclass=abc.ABCMeta):
    """Processes what a ramdisk found. Runs under the node's lock, in state INSPECTING.

    One object serves all nodes and threads. It may change ``plugin_data`` and the drafts ``task.node`` and
    ``task.ports`` (``task.add_port``, ``task.remove_port``), which are saved together when all hooks and rules are
    done; ``task.node.save()`` is allowed and does nothing. A hook that changes ``inventory`` fails. To say something to
    the operator it appends ``(level, text)`` to ``task.messages``; to fail the inspection it raises ``HookFailed``.
    """

    #: Names of hooks that must be enabled before this one; checked when the service starts.
    dependencies: ClassVar[list[str]] = []
    #: The service's settings, once ``configure`` was called.
    settings: HookSettings = HookSettings()

    def configure(self, settings: HookSettings) -> None:
        """Take the service's settings; called once, before anything else."""
        self.settings = settings

    def preprocess(  # noqa: B027  (a hook may do without it)
            self, task: Task, inventory: dict[str, Any], plugin_data: dict[str, Any]) -> None:
        """Run before the main processing of any hook. Should not change the node or its ports.

        :raises HookFailed: the inspection must not go on
        """

    @abc.abstractmethod
    def __call__(self, task: Task, inventory: dict[str, Any], plugin_data: dict[str, Any]) -> None:
        """Process the data.

        :param inventory: as the ramdisk sent it
        :param plugin_data: everything else that it sent, and what hooks and rules have put there
        :raises HookFailed: the inspection must not go on
        """


def warn(task: Task, text: str) -> None:
    """Tell the operator about something that does not end the inspection."""
    task.messages.append(("warning", text))
