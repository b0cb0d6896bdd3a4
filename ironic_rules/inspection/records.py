"""The record of an inspection: the rules that matched, what each changed, without secrets, and the reason of a failure.

Drafts know the rule and action that wrote each field last (``models.draft``). So a result that is refused after hooks
and rules have run is attributed to them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import orjson

from ironic_rules.exceptions import (
    DuplicateNodeName,
    DuplicatePortName,
    HookFailed,
    MACAlreadyExists,
    RuleFailed,
    identified,
    legacy_rule_failed,
)
from ironic_rules.legacy import CompiledLegacyRule
from ironic_rules.models import documents, inspections, secrets
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.draft import NodeDraft, PortDraft
from ironic_rules.models.inspections import Inspection
from ironic_rules.models.nodes import MAX_REASON, Cause, failure_reason
from ironic_rules.models.secrets import Concealment
from ironic_rules.models.task import Task
from ironic_rules.rules import Trace
from ironic_rules.rules.changes import hide_changes
from ironic_rules.text import MAX_MESSAGE, RULE_WITHHELD, WITHHELD, in_parentheses, printable

#: Maximum numbers of rules and of messages of an entry, and bytes, as JSON, of all that rules changed in it.
_MAX_RULES = 1000
_MAX_MESSAGES = 50
_MAX_CHANGES = 64 * 1024


def describe(inspection: Inspection, task: Task, matched: Sequence[Trace], messages: Sequence[tuple[str, str]],
             error: Exception | None = None) -> None:
    """Fill in what hooks and rules have done.

    :param task: its drafts after the run
    :param matched: the traces of the rules that matched
    :param messages: ``(level, text)``
    """
    conceal = task.conceal
    changes = _changes(task) if matched else []
    # Changes of a failed inspection are told, but not saved.
    inspection.changed_by = _authors(changes) if error is None else frozenset()
    shown = matched[:_MAX_RULES]
    inspection.rules = _rules(shown, _written(changes, conceal))
    if len(inspection.rules) > _MAX_CHANGES:
        inspection.rules = orjson.dumps(
            [{"rule": trace.uuid, "sensitive": trace.sensitive, "changes": None} for trace in shown])
    inspection.messages = [{"level": level, "text": secrets.mask_text(printable(text, MAX_MESSAGE))}
                           for level, text in messages[:_MAX_MESSAGES]]
    if error is not None:
        inspection.failure = failure(error)


def failure(error: Exception) -> JSONObject:
    """Return why an inspection failed. The errors of rules contain nothing that the rules must not tell."""
    if isinstance(error, RuleFailed):
        description: JSONObject = {"rule": error.facts["rule"], "pointer": error.facts["where"],
                                   "reason": identified(error, str(error.facts["reason"]))}
    elif isinstance(error, HookFailed):
        description = {"hook": error.facts.get("hook"), "reason": identified(error)}
    else:
        description = {"reason": identified(error)}
    return {name: secrets.message(str(value)) for name, value in description.items() if value is not None}


def cause(error: Exception) -> Cause | None:
    """Return what a failed inspection is grouped by; None if neither a rule nor a hook failed it."""
    if isinstance(error, RuleFailed):
        template = error.facts.get("template")
        by = error.facts["rule"]
    elif isinstance(error, HookFailed) and error.facts.get("hook"):
        template, by = None, error.facts["hook"]
    else:
        return None
    text = failure_reason(str(error.facts.get("reason", error))) if template is None else template
    return Cause(isinstance(error, RuleFailed), printable(by, 255),
                 secrets.mask_text(printable(text, MAX_REASON))[:MAX_REASON])


def changed_by(task: Task) -> Collection[str]:
    """Return the UUIDs of the rules that have changed the node or one of its ports."""
    return _authors(_changes(task))


#: Changes with their author, a rule or None, and the place of what was changed.
_Changes = list[tuple[Any, tuple[str, ...], list[JSONObject]]]


def _changes(task: Task) -> _Changes:
    """Return what rules have changed, with all secrets."""
    changes: _Changes = [(author, ("node",), patch) for author, patch in inspections.changes_of_draft(task.node)]
    changes += [(author, ("ports", str(port.address)), patch)
                for port in task.ports for author, patch in inspections.changes_of_draft(port)]
    return changes


def _authors(changes: _Changes) -> Collection[str]:
    return {author.uuid for author, _, _ in changes if author is not None}


def _rules(traces: Sequence[Trace], written: Mapping[str, JSONObject]) -> bytes:
    """Return the entries of rules as JSON."""
    return orjson.dumps([{"rule": trace.uuid, "sensitive": trace.sensitive,
                          "changes": None if trace.sensitive else written.get(trace.uuid, {})} for trace in traces])


def _written(changes: _Changes, conceal: Concealment) -> dict[str, JSONObject]:
    """Return what each rule has changed, by its UUID, as changes of a trace, without secrets."""
    for author, place, patch in changes:
        if author is not None and (author.sensitive or author.uuid in conceal.secretive):
            for operation in patch:
                conceal.seal((*place, *documents.parse_pointer(operation["path"])), operation.get("value"))
    by_rule: dict[str, JSONObject] = {}
    for author, place, patch in changes:
        if author is None or author.sensitive:
            continue
        of_rule = by_rule.setdefault(author.uuid, {})
        if len(place) == 1:
            of_rule.setdefault("node", []).extend(patch)
        else:
            of_rule.setdefault("ports", {}).setdefault(place[1], []).extend(patch)
    return {uuid: hide_changes(of_rule, conceal) for uuid, of_rule in by_rule.items()}


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
        if isinstance(rule, CompiledLegacyRule):
            return legacy_rule_failed(rule=rule.uuid, called=in_parentheses(rule.description), where=action.where,
                                      reason=reason)
        return RuleFailed(rule=rule.uuid, called=rule.called, where=action.where, reason=reason)
    return None


def refused_by_save(error: Exception, task: Task) -> Iterator[Refusal]:
    """Yield the fields because of which the database did not accept the drafts, the most likely first."""
    if isinstance(error, DuplicateNodeName):
        yield task.node, "name", str(error)
    for port in task.ports:
        if isinstance(error, MACAlreadyExists) and port.address == error.facts["mac"]:
            yield port, "address", str(error)
        if isinstance(error, DuplicatePortName) and port.name == error.facts["name"]:
            yield port, "name", str(error)
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
