"""The plug-in interface of actions."""

from __future__ import annotations

import abc
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

#: What an action may change unless it says otherwise; templates read it anew afterwards.
EVERYTHING = frozenset({"node", "ports", "port_groups", "plugin_data"})
MAX_MESSAGE = 4096


class ActiveRule:
    """The rule that is running, as actions see it.

    ``plugin_data`` is the plugin data of this inspection, to be changed in place: an early action has no other way
    to them.
    """

    __slots__ = ("description", "messages", "phase", "plugin_data", "priority", "scope", "sensitive", "uuid")

    def __init__(self, *, uuid: str, description: str | None, priority: int, phase: str, scope: str | None,
                 sensitive: bool, plugin_data: dict[str, Any], messages: list[tuple[str, str]]) -> None:
        self.uuid = uuid
        self.description = description
        self.priority = priority
        self.phase = phase
        self.scope = scope
        self.sensitive = sensitive
        self.plugin_data = plugin_data
        self.messages = messages

    def log(self, level: str, text: str) -> None:
        """Leave a message for the caller to log; a sensitive rule says only that there was one."""
        shown = "message withheld, the rule is sensitive" if self.sensitive else printable(text)
        self.messages.append((level, f"Inspection rule {self.uuid}: {shown}"))


class InspectionRuleActionBase(metaclass=abc.ABCMeta):
    """Abstract base class for rule action plugins.

    The arguments that a rule may give are those of ``__call__`` behind ``task`` and ``rule``. Raise
    ``rules.ActionError`` to fail the rule, and with it the inspection.
    """

    formatted_params: Sequence[str] = ()
    """Parameters in which templates are filled in; others are taken as they stand in the rule."""

    supports_early: bool = False
    """Whether the action works in the early phase, where there is no node."""

    touches: ClassVar[frozenset[str]] = EVERYTHING
    """Which of node, ports, port_groups and plugin_data the action changes."""

    def call_early(self, rule: ActiveRule, *args: Any, **kwargs: Any) -> None:
        """Run the action in the early phase, with the arguments of ``__call__``."""
        raise NotImplementedError

    @abc.abstractmethod
    def __call__(self, task: Any, rule: ActiveRule, *args: Any, **kwargs: Any) -> None:
        """Run the action on a successful match. ``task`` has the drafts; nothing needs to be saved."""

    def problems(self, literals: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
        """Say what is wrong with literal arguments that fit only together: (argument, reason) pairs, without values."""
        return ()


def printable(text: str) -> str:
    """Return ``text`` fit for a log line and ``last_error``: control characters escaped, at most 4096 characters."""
    if not text.isprintable():
        text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
    return text if len(text) <= MAX_MESSAGE else text[:MAX_MESSAGE - 1] + "…"
