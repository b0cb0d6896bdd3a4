"""Who is responsible when the result of an inspection is refused after hooks and rules have run: a rule and its action.

Drafts know who wrote each field last (``models.draft``); the authors are rules, what they do are actions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

import orjson

from ironic_rules.exceptions import (
    DuplicateNodeName,
    DuplicatePortName,
    LegacyRuleFailed,
    MACAlreadyExists,
    RuleFailed,
)
from ironic_rules.legacy import CompiledLegacyRule
from ironic_rules.models.draft import NodeDraft, PortDraft
from ironic_rules.models.task import Task
from ironic_rules.text import MAX_MESSAGE, RULE_WITHHELD, WITHHELD, printable

#: A field, and why its value is refused.
Refusal: TypeAlias = tuple[NodeDraft | PortDraft, str, str]


def rule_failure(error: Exception, refusals: Iterable[Refusal], *, sealed: bool) -> RuleFailed | None:
    """Return the failure of the rule that wrote the first refused field that any rule wrote; None if none did.

    :param error: what was raised
    :param sealed: the drafts contain what a sensitive rule wrote, so that the reason must not be quoted
    """
    for draft, name, reason in refusals:
        rule, action = draft.author_of(name)
        if rule is None or action is None:
            continue
        if rule.sensitive:
            reason = RULE_WITHHELD
        elif sealed:
            reason = f"/{name}: {type(error).__name__}; {WITHHELD}"
        else:
            reason = printable(f"/{name}: {reason}", MAX_MESSAGE)
        failed = LegacyRuleFailed if isinstance(rule, CompiledLegacyRule) else RuleFailed
        return failed(rule=rule.uuid, where=action.where, reason=reason)
    return None


def refused_by_save(error: Exception, task: Task) -> Iterator[Refusal]:
    """Yield the fields because of which the database did not accept the drafts, the most likely first."""
    if isinstance(error, DuplicateNodeName):
        yield task.node, "name", str(error)
    for port in task.ports:
        for taken, name, key in ((MACAlreadyExists, "address", "mac"), (DuplicatePortName, "name", "name")):
            if isinstance(error, taken) and getattr(port, name) == error.facts[key]:
                yield port, name, str(error)
    yield from unstorable(task)


def unstorable(task: Task) -> Iterator[Refusal]:
    """Yield the changed fields whose values no database accepts: actions of other packages can write anything."""
    drafts: tuple[NodeDraft | PortDraft, ...] = (task.node, *task.ports)
    for draft in drafts:
        for name, value in draft.changes().items():
            if name in draft.writable and (reason := draft.value_problem(name, value)):
                yield draft, name, reason
                continue
            try:
                orjson.dumps(value)
            except orjson.JSONEncodeError as exc:
                yield draft, name, str(exc)
