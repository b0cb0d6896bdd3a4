"""Actions with messages: write to the log, or fail the inspection."""

from __future__ import annotations

from ironic_rules.models.task import Task
from ironic_rules.rules.actions.registry import ACTIONS
from ironic_rules.rules.base import ActiveRule, InspectionRuleActionBase
from ironic_rules.rules.errors import ActionError
from ironic_rules.rules.kinds import Level, Text
from ironic_rules.text import MAX_MESSAGE, printable


@ACTIONS.add("fail")
class Fail(InspectionRuleActionBase):
    """Fail the inspection with a message.

    :param msg: the reason, shown in ``last_error``

    .. rule:: {op: fail, args: {msg: "{inventory[hostname]} is not ours"}}
    """

    formatted_params = ["msg"]
    supports_early = True
    touches = frozenset()

    def __call__(self, task: Task | None, rule: ActiveRule, msg: Text) -> None:
        raise ActionError(printable(msg, MAX_MESSAGE))

    def call_early(self, rule: ActiveRule, msg: str) -> None:  # type: ignore[override]
        self(None, rule, msg)


@ACTIONS.add("log")
class Log(InspectionRuleActionBase):
    """Write a message to the service's log.

    :param msg: the message; control characters are escaped
    :param level: critical, error, warning, info or debug

    .. rule:: {op: log, args: {msg: "found {inventory[cpu][count]} CPUs", level: warning}}
    """

    formatted_params = ["msg", "level"]
    supports_early = True
    touches = frozenset()

    def __call__(self, task: Task | None, rule: ActiveRule, msg: Text, level: Level = "info") -> None:
        rule.log(level, msg)

    def call_early(self, rule: ActiveRule, msg: str, level: str = "info") -> None:  # type: ignore[override]
        self(None, rule, msg, level)
