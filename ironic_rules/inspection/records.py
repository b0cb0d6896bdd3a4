"""What is kept of an inspection: which rules matched and what each changed, without secrets, and why it failed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import orjson

from ironic_rules.exceptions import HookFailed, RuleFailed
from ironic_rules.models import authorship, pointer, secrets
from ironic_rules.models.concealment import Concealment
from ironic_rules.models.inspections import Inspection
from ironic_rules.models.joint_writes import Description
from ironic_rules.models.json_values import JSONObject
from ironic_rules.models.task import Task
from ironic_rules.rules import Trace
from ironic_rules.rules.changes import hide_changes
from ironic_rules.text import MAX_MESSAGE, printable

#: Maximum numbers of rules and of messages of an entry, and bytes, as JSON, of all that rules changed in it.
_MAX_RULES = 1000
_MAX_MESSAGES = 50
_MAX_CHANGES = 64 * 1024


def describe(found: Inspection, task: Task, matched: Sequence[Trace], messages: Sequence[tuple[str, str]],
             error: Exception | None = None) -> None:
    """Fill in what hooks and rules have done.

    :param task: its drafts after the run
    :param matched: the traces of the rules that matched
    :param messages: ``(level, text)``
    """
    conceal = task.conceal
    # What failed is not saved.
    changes = _Changes(task) if matched and error is None else None
    found.changed_by = frozenset() if changes is None else changes.authors()
    shown = matched[:_MAX_RULES]
    found.rules, found.together, size = _rules(shown, changes, conceal)
    if size > _MAX_CHANGES:
        found.together = b"[]"
        found.rules = orjson.dumps(
            [{"rule": trace.uuid, "sensitive": trace.sensitive, "changes": None} for trace in shown])
    found.messages = [{"level": level, "text": secrets.mask_text(printable(text, MAX_MESSAGE))}
                      for level, text in messages[:_MAX_MESSAGES]]
    if error is not None:
        found.failure = failure(error)


def failure(error: Exception) -> JSONObject:
    """Return why an inspection failed. The errors of rules contain nothing that the rules must not tell."""
    if isinstance(error, RuleFailed):
        told: JSONObject = {"rule": error.facts["rule"], "pointer": error.facts["where"],
                            "reason": str(error.facts["reason"])}
    elif isinstance(error, HookFailed):
        told = {"hook": error.facts.get("hook"), "reason": str(error)}
    else:
        told = {"reason": str(error)}
    return {name: secrets.mask_text(printable(value, MAX_MESSAGE)) for name, value in told.items() if value is not None}


def changed_by(task: Task) -> Collection[str]:
    """Return the UUIDs of the rules that have changed the node or one of its ports."""
    return _Changes(task).authors()


#: Changes with their author, a rule or None, and the place of what was changed.
_Raw = list[tuple[Any, tuple[str, ...], list[JSONObject]]]


class _Changes:
    """What rules have changed, with all secrets.

    :ivar joint: what most of them do: keys of the node that they have set together
    :ivar raw: everything else
    """

    def __init__(self, task: Task) -> None:
        self._task = task
        self.joint = task.node.joint()
        self.raw = _raw(task, joint=False)

    def authors(self) -> Collection[str]:
        """Return the UUIDs of the rules that have changed something."""
        found = {author.uuid for author, _, _ in self.raw if author is not None}
        if not found and len(self.joint) == 1:
            return self.joint[0].changed_by()
        return found.union(*(written.changed_by() for written in self.joint))

    def separate(self) -> None:
        """Have all changes in ``raw``."""
        if self.joint:
            self.joint, self.raw = [], _raw(self._task)


def _raw(task: Task, *, joint: bool = True) -> _Raw:
    """Return the changes.

    :param joint: whether joint writes are among them
    """
    raw: _Raw = [(author, ("node",), patch) for author, patch in authorship.changes(task.node, joint=joint)]
    raw += [(author, ("ports", str(port.address)), patch)
            for port in task.ports for author, patch in authorship.changes(port)]
    return raw


def _rules(traces: Sequence[Trace], changes: _Changes | None, conceal: Concealment) -> tuple[bytes, bytes, int]:
    """Return the entries of rules as JSON, those that are short apart, and the bytes of all if none was short."""
    joint = {} if changes is None else _joint(traces, changes, conceal)
    written = {} if changes is None else _written(changes.raw, conceal, are_harmless=bool(joint))
    long: list[bytes] = []
    short: list[bytes] = []
    place = size = 0
    while place < len(traces):
        trace = traces[place]
        if trace.uuid in joint:
            count, described = joint[trace.uuid]
            if described.is_short:
                short.append(b'{"at":%d,%b}' % (place, described.text))
            else:
                long.append(described.text)
            size += described.size
        else:
            count = 1
            long.append(orjson.dumps({"rule": trace.uuid, "sensitive": trace.sensitive,
                                      "changes": None if trace.sensitive else written.get(trace.uuid, {})}))
            size += len(long[-1])
        place += count
        size += 1  # the comma, or a bracket
    return b"[%b]" % b",".join(long), b"[%b]" % b",".join(short), size + 1


def _joint(traces: Sequence[Trace], changes: _Changes, conceal: Concealment) -> dict[str, tuple[int, Description]]:
    """Return the entries of rules that wrote together, by the UUID of the first: their number, and their description.

    If anything may have to be hidden, or cannot be described so, the changes are separate from then on.
    """
    described = {}
    if changes.joint and len(traces) < _MAX_RULES and _are_harmless(changes, conceal):
        for written in changes.joint:
            found = written.description()
            if found is None:
                break
            described[written.joint.authors[0][0].uuid] = len(written.joint.authors), found
        else:
            return described
    changes.separate()
    return {}


def _are_harmless(changes: _Changes, conceal: Concealment) -> bool:
    patches = [patch for author, _, patch in changes.raw if author is not None]
    return not conceal.secretive and not any(
        author is not None and author.sensitive for author, _, _ in changes.raw) and (
        conceal.is_harmless(patches, changes.joint))


def _written(raw: _Raw, conceal: Concealment, *, are_harmless: bool) -> dict[str, JSONObject]:
    """Return what each rule has changed, by its UUID, as changes of a trace.

    :param are_harmless: whether it is known that nothing has to be hidden
    """
    for author, place, patch in raw:
        if author is not None and (author.sensitive or author.uuid in conceal.secretive):
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
    if are_harmless:
        return found
    return {uuid: hide_changes(changes, conceal) for uuid, changes in found.items()}
