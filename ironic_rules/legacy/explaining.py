"""Legacy rules in explained runs: what their conditions have read and compared, and the parameters of their actions.

As for inspection rules: what a rule was compiled from is parsed once more, as far as needed to show it.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson
from jsonpath_ng.jsonpath import Fields, Parent

from ironic_rules.legacy import paths
from ironic_rules.legacy.actions import LegacyAction
from ironic_rules.legacy.compiler import CompiledLegacyRule
from ironic_rules.legacy.conditions import NETWORK, OPERATORS, Test, test_of
from ironic_rules.legacy.paths import FieldPath
from ironic_rules.legacy.values import compile_message, compile_value, message_parts
from ironic_rules.models import secrets
from ironic_rules.models.concealment import Concealment, Place
from ironic_rules.rules import reads, template
from ironic_rules.rules.compiler import CompiledCondition
from ironic_rules.rules.errors import CannotEvaluate
from ironic_rules.rules.explaining import MAX_ITEMS, Argument, Explainer, marked, masked_by_path
from ironic_rules.rules.limits import DEFAULT
from ironic_rules.rules.mask import View
from ironic_rules.rules.traces import ArgumentTrace, ConditionTrace, ItemTrace
from ironic_rules.rules.values import Const, as_getter

#: Of each operator, why it is true and why it is false.
_WORDS = {
    "eq": ("equal", "not equal"), "ne": ("not equal", "equal"), "lt": ("less", "not less"),
    "ge": ("not less", "less"), "gt": ("greater", "not greater"), "le": ("not greater", "greater"),
    "net": ("in network", "not in network"), "in-net": ("in network", "not in network"),
    "matches": ("match", "no match"), "contains": ("match", "no match"), "is-empty": ("empty", "not empty"),
}
#: Of a plug-in.
_OTHER = ("true", "not true")
_NUMBERS = frozenset({"integer", "number"})


@dataclass(frozen=True, slots=True)
class _Written:
    """A condition as in its rule.

    :ivar field: the argument that it reads
    :ivar params: its other parameters
    :ivar test: of one value; None: that of a plug-in, which is not called again
    :ivar is_secret: whether what it reads is secret by its key
    """

    op: str
    field: Argument
    path: FieldPath
    params: tuple[Argument, ...]
    multiple: str
    inverted: bool
    test: Test | None
    is_secret: bool


@functools.lru_cache(maxsize=4096)
def _condition(text: bytes) -> _Written:
    field, op, params, multiple, invert = orjson.loads(text)
    path = paths.parse(field, DEFAULT.loop_items)
    plain = () if path.plain is None else (path.plain,)
    names = (str(name) for part in paths.split(field)[1] if isinstance(part, Fields) for name in part.fields)
    return _Written(
        op, Argument("field", field, path.get, plain, path.plain), path,
        tuple(Argument(name, value, None, (), None) for name, value in params.items()), multiple, invert,
        test_of(op, params.get("value"), DEFAULT).call if op in OPERATORS else None,
        any(map(secrets.is_secret_key, names)))


@functools.lru_cache(maxsize=4096)
def _action(text: bytes, formatted: frozenset[str], is_fail: bool) -> tuple[Argument, ...]:
    return tuple(_argument(name, value, name in formatted, is_fail and name == "message")
                 for name, value in orjson.loads(text).items())


def _argument(name: str, written: Any, is_formatted: bool, is_message: bool) -> Argument:
    problems: list[str] = []

    def complain(where: str, text: str) -> None:
        problems.append(text)

    if is_message:
        compiled = compile_message(written, "", complain, DEFAULT)
    else:
        compiled = compile_value(written, "", complain, DEFAULT, formatted=is_formatted)
    if isinstance(compiled, Const) or problems:
        return Argument(name, written, None, (), None)
    fields = tuple(_templates(message_parts(written)) if is_message else _fields(written))
    alone = fields[0] if isinstance(written, str) and len(fields) == 1 and fields[0].text == written else None
    return Argument(name, written, as_getter(compiled), fields, alone)


def _templates(parts: Sequence[str | template.Field]) -> Iterator[template.Field]:
    yield from (part for part in parts if isinstance(part, template.Field))


def _fields(written: Any) -> Iterator[template.Field]:
    if isinstance(written, str):
        yield from _templates(template.parse(written))
    elif isinstance(written, dict):
        for name, item in written.items():
            yield from _fields(name)
            yield from _fields(item)
    elif isinstance(written, list):
        for item in written:
            yield from _fields(item)


def condition(explainer: Explainer, condition: CompiledCondition, view: View, outcome: bool | None, note: str | None,
              *, short_circuited: bool) -> ConditionTrace:
    """Return the trace of a condition that was evaluated.

    :param note: why it could not be
    """
    explainer.tick()
    if note is not None and explainer.is_secretive:
        note = secrets.MASK
    written = _condition(condition.check.written)
    trace = ConditionTrace(condition.where, condition.op, outcome, note, short_circuited)
    if written.path.plain is None:
        return _of_many(explainer, trace, written, view)
    shown = explainer.shown((written.field, *written.params), view)
    why, detail = _why(written, outcome, shown)
    return replace(trace, arguments=shown, why=why, detail=detail)


def _of_many(explainer: Explainer, trace: ConditionTrace, written: _Written, view: View) -> ConditionTrace:
    try:
        found = written.path.find(view)
    except CannotEvaluate:
        return replace(trace, why="cannot be evaluated", multiple=written.multiple)
    if not found:
        return replace(trace, why="missing", detail=written.field.written, multiple=written.multiple, count=0)
    items = tuple(_item(explainer, written, view, value) for value in found[:MAX_ITEMS])
    return replace(trace, multiple=written.multiple, count=len(found),
                   items=marked(items, written.multiple, len(found)))


def _item(explainer: Explainer, written: _Written, view: View, value: Any) -> ItemTrace:
    explainer.tick()
    outcome: bool | None = None
    if written.test is not None:
        with contextlib.suppress(CannotEvaluate):
            outcome = written.test(value) is not written.inverted
    is_secret = written.is_secret or explainer.is_secretive
    shown = (*explainer.found("field", value, is_secret=is_secret), *explainer.shown(written.params, view))
    return ItemTrace(outcome, shown, *_why(written, outcome, shown))


def _why(written: _Written, outcome: bool | None, given: Sequence[ArgumentTrace]) -> tuple[str, str | None]:
    """Return the reason for an outcome: a word, and what there is to say about it."""
    if given and given[0].missing is not None:
        return "missing", given[0].missing
    if outcome is None:
        is_address = written.op not in NETWORK or not given
        return ("cannot be evaluated", None) if is_address else ("not an address", given[0].type)
    is_true = outcome is not written.inverted
    if not is_true and written.op == "eq" and len(given) > 1:
        types = [argument.type for argument in given]
        # Whatever is compared with a number is converted.
        if types[1] not in _NUMBERS and types[0] != types[1]:
            return "type", " and ".join(types)
    return _WORDS.get(written.op, _OTHER)[not is_true], None


def is_secretive(rule: CompiledLegacyRule, view: View, conceal: Concealment) -> bool:
    """Return whether a rule reads what must not be shown; arguments as those of ``rules.reads.is_secretive``."""
    return any(reads.is_secret(path, view, conceal) for path in _reads(rule))


def _reads(rule: CompiledLegacyRule) -> Iterator[Place]:
    """Yield the paths that a rule reads; of one that finds several values, the part before these."""
    for condition in rule.conditions:
        yield _path(condition.check.written)
    for action in rule.actions:
        for argument in _action(action.written, action.formatted, action.op == "fail"):
            yield from ((field.root, *field.steps) for field in argument.fields)


@functools.lru_cache(maxsize=4096)
def _path(text: bytes) -> Place:
    root, parts = paths.split(orjson.loads(text)[0])
    if any(isinstance(part, Parent) for part in parts):
        return (root,)
    steps = itertools.takewhile(lambda step: step is not None, map(paths.step, parts))
    return (root, *filter(None, steps))


def run_of(explainer: Explainer, action: LegacyAction, view: View) -> tuple[ArgumentTrace, ...]:
    """Return the parameters of an action as they are now."""
    explainer.tick()
    return masked_by_path(explainer.shown(_action(action.written, action.formatted, action.op == "fail"), view))
