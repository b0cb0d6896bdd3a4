"""What is kept of an inspection: which rules matched and what each changed, without secrets, and why it failed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from ironic_rules.exceptions import HookFailed, RuleFailed
from ironic_rules.models import authorship, pointer
from ironic_rules.models.concealment import Concealment
from ironic_rules.models.inspections import Inspection
from ironic_rules.models.inventories import InspectionData
from ironic_rules.models.json_values import JSONObject
from ironic_rules.models.task import Task
from ironic_rules.rules import Trace, engine
from ironic_rules.text import MAX_MESSAGE, printable

#: Maximum numbers of rules and of messages of an entry, and bytes, as JSON, of all that rules changed in it.
_MAX_RULES = 1000
_MAX_MESSAGES = 50
_MAX_CHANGES = 64 * 1024
#: What a rule may have replaced, and with it a secret that it has read before.
_MAY_HAVE_SECRETS = ("driver_info", "instance_info", "properties", "extra")


def describe(found: Inspection, task: Task, data: InspectionData | None, traces: Iterable[Trace],
             messages: Sequence[tuple[str, str]], error: Exception | None = None) -> None:
    """Fill in what hooks and rules have done.

    :param task: its drafts after the run
    :param traces: of the rules; those that did not match are left out
    :param messages: ``(level, text)``
    """
    matched = [trace for trace in traces if trace.matched]
    conceal = concealment(task, data) if matched or error is not None or messages else Concealment()
    # What failed is not saved.
    raw = _raw(task) if matched and error is None else []
    found.changed_by = _authors(raw)
    written = _written(raw, conceal)
    found.rules = [_rule(trace, written) for trace in matched[:_MAX_RULES]]
    if len(orjson.dumps(found.rules)) > _MAX_CHANGES:
        found.rules = [{"rule": rule["rule"], "sensitive": rule["sensitive"], "changes": None} for rule in found.rules]
    found.messages = [{"level": level, "text": conceal.hide(printable(text, MAX_MESSAGE))}
                      for level, text in messages[:_MAX_MESSAGES]]
    if error is not None:
        found.failure = failure(error, conceal)


def concealment(task: Task, data: InspectionData | None) -> Concealment:
    """Return what knows the secrets of the node, before and after the run, and of the data."""
    found = Concealment()
    for name in _MAY_HAVE_SECRETS:
        if (old := task.node.original(name)) is not task.node.current(name):
            found.learn(old)
    found.learn(task.node.all_current())
    if data is not None:
        found.learn_all((data.inventory, data.plugin_data))
    return found


def failure(error: Exception, conceal: Concealment | None = None) -> JSONObject:
    """Return why an inspection failed."""
    conceal = conceal or Concealment()
    if isinstance(error, RuleFailed):
        told: JSONObject = {"rule": error.facts["rule"], "pointer": error.facts["where"],
                            "reason": str(error.facts["reason"])}
    elif isinstance(error, HookFailed):
        told = {"hook": error.facts.get("hook"), "reason": str(error)}
    else:
        told = {"reason": str(error)}
    return {name: conceal.hide(printable(value, MAX_MESSAGE)) for name, value in told.items() if value is not None}


def changed_by(task: Task) -> set[str]:
    """Return the UUIDs of the rules that have changed the node or one of its ports."""
    return _authors(_raw(task))


#: Changes with their author, a rule or None, and the place of what was changed.
_Raw = list[tuple[Any, tuple[str, ...], list[JSONObject]]]


def _raw(task: Task) -> _Raw:
    raw: _Raw = [(author, ("node",), patch) for author, patch in authorship.changes(task.node)]
    raw += [(author, ("ports", str(port.address)), patch)
            for port in task.ports for author, patch in authorship.changes(port)]
    return raw


def _authors(raw: _Raw) -> set[str]:
    return {author.uuid for author, _, _ in raw if author is not None}


def _written(raw: _Raw, conceal: Concealment) -> dict[str, JSONObject]:
    """Return what each rule has changed, by its UUID, as changes of a trace."""
    for author, place, patch in raw:
        if author is not None and author.sensitive:
            for operation in patch:
                conceal.seal((*place, *pointer.parse(operation["path"])), operation.get("value"))
    found: dict[str, JSONObject] = {}
    for author, place, patch in raw:
        if author is None or author.sensitive:
            continue
        changes = found.setdefault(author.uuid, {})
        if len(place) == 1:
            changes.setdefault("node", []).extend(patch)
        else:
            changes.setdefault("ports", {}).setdefault(place[1], []).extend(patch)
    if conceal.is_harmless(patch for author, _, patch in raw if author is not None):
        return found
    # All of them first: what one rule shows to be secret, an earlier one may have written elsewhere.
    for changes in found.values():
        engine.learn(changes, conceal)
    return {uuid: engine.shown(changes, conceal) for uuid, changes in found.items()}


def _rule(trace: Trace, written: Mapping[str, JSONObject]) -> JSONObject:
    changes = None if trace.sensitive else written.get(trace.uuid, {})
    return {"rule": trace.uuid, "sensitive": trace.sensitive, "changes": changes}
