"""Changes by rules: states before and after, the difference of both, and as much of it as may be shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ironic_rules.models import documents
from ironic_rules.models.documents import JSONObject, clone
from ironic_rules.models.secrets import Concealment
from ironic_rules.models.task import Task
from ironic_rules.rules.base import EVERYTHING
from ironic_rules.rules.compiled import CompiledRule
from ironic_rules.rules.explaining import State


def copied_data(rule: CompiledRule, plugin_data: Mapping[str, object]) -> JSONObject:
    """Return a copy to restore if a rule fails. Our own actions copy on write; others may change data at any depth."""
    return dict(plugin_data) if rule.touches != EVERYTHING else clone(plugin_data)


def touched_state(plugin_data: Mapping[str, object], task: Task | None, rule: CompiledRule) -> State:
    """Return what a rule may change, as it is now. Drafts copy what is changed later, as do our own actions."""
    touches = rule.touches
    state: JSONObject = {}
    if "plugin_data" in touches:
        state["plugin_data"] = copied_data(rule, plugin_data)
    if task is not None:
        if "node" in touches:
            state["node"] = task.node.read()
        if "ports" in touches:
            state["ports"] = {str(port.address): port.read() for port in task.ports}
    return state


def whole_state(plugin_data: Mapping[str, object], task: Task | None) -> State:
    """Return a copy of all that rules may change, also in place."""
    state: JSONObject = {"plugin_data": clone(plugin_data)}
    if task is not None:
        state["node"] = clone(task.node.read())
        state["ports"] = {str(port.address): clone(port.read()) for port in task.ports}
    return state


def difference_of_states(before: State, after: State) -> JSONObject:
    """Return the patches (RFC 6902) that make one state of another, as in ``Trace.changes``, with all secrets.

    :param before: ``node``, ``plugin_data``, ``ports`` by address, or some of them
    """
    difference: JSONObject = {}
    for root, value in after.items():
        if root == "ports":
            patches = {address: difference_of_port(before[root].get(address), value.get(address))
                       for address in dict.fromkeys((*before[root], *value))}
            patch: Any = {address: patch for address, patch in patches.items() if patch}
        elif root == "node":
            patch = difference_of_node(before[root], value)
        else:
            patch = documents.difference(before[root], value)
        if patch:
            difference[root] = patch
    return difference


def difference_of_node(before: JSONObject, after: JSONObject) -> list[JSONObject]:
    """Return the patch of a node; each trait that came or went is one operation of it."""
    old, new = before.get("traits", []), after.get("traits", [])
    if old == new:
        return documents.difference(before, after)
    rest = {**after, "traits": old} if "traits" in before else {name: after[name] for name in after if name != "traits"}
    return [*documents.difference(before, rest), *documents.difference_of_sets(old, new, ("traits",))]


def difference_of_port(before: JSONObject | None, after: JSONObject | None) -> list[JSONObject]:
    """Return the patch of a port; None: it does not exist."""
    if before is None:
        return [{"op": "add", "path": "", "value": after}]
    return [{"op": "remove", "path": ""}] if after is None else documents.difference(before, after)


def _patches(changes: Mapping[str, Any]) -> Iterable[tuple[tuple[str, ...], list[JSONObject]]]:
    """Yield the place of each document that was changed, and its patch."""
    for root, patch in changes.items():
        if root == "ports":
            yield from ((("ports", address), of_port) for address, of_port in patch.items())
        else:
            yield (root,), patch


def seal_changes(conceal: Concealment, changes: Mapping[str, object]) -> None:
    """Note that nothing of what was changed may be shown."""
    for place, patch in _patches(changes):
        for operation in patch:
            conceal.seal((*place, *documents.parse_pointer(operation["path"])), operation.get("value"))


def hide_changes(changes: Mapping[str, Any], conceal: Concealment) -> JSONObject:
    """Return changes as they may be shown."""
    if conceal.is_harmless(patch for _, patch in _patches(changes)):
        return dict(changes)
    return {
        root: {address: conceal.hide_patch(of_port, ("ports", address)) for address, of_port in patch.items()}
        if root == "ports" else conceal.hide_patch(patch, (root,))
        for root, patch in changes.items()}
