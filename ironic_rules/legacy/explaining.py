"""Legacy rules in explained runs: what their conditions have read and compared, and the parameters of their actions.

As for inspection rules: what a rule was compiled from is parsed once more, as far as needed to show it.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import orjson
from jsonpath_ng.jsonpath import Fields, Parent

from ironic_rules.legacy import paths
from ironic_rules.legacy.actions import LegacyAction
from ironic_rules.legacy.compiler import CompiledLegacyRule
from ironic_rules.legacy.conditions import NETWORK, OPERATORS, Test, test_of
from ironic_rules.legacy.values import IN_MESSAGE, scope_of
from ironic_rules.models import secrets
from ironic_rules.models.secrets import Concealment, Place
from ironic_rules.rules import reads
from ironic_rules.rules.compiled import Condition
from ironic_rules.rules.errors import CannotEvaluate
from ironic_rules.rules.explaining import (
    Argument,
    ArgumentTrace,
    Explainer,
    ItemTrace,
    WrittenCondition,
    written_argument,
)
from ironic_rules.rules.getters import View
from ironic_rules.rules.limits import DEFAULT

_NUMBERS = frozenset({"integer", "number"})


@dataclass(frozen=True, slots=True)
class _WrittenCondition(WrittenCondition):
    """A condition as in its rule; its first argument is the field that it reads.

    :ivar test: of one value; None: that of a plug-in, which is not called again
    :ivar is_secret: whether what it reads is secret by its key
    """

    test: Test | None = None
    is_secret: bool = False

    def why_unknown(self, given: Sequence[ArgumentTrace]) -> tuple[str, str | None]:
        """Return why it could not be evaluated."""
        is_address = self.name not in NETWORK or not given
        return ("cannot be evaluated", None) if is_address else ("not an address", given[0].type)

    def why_untrue(self, given: Sequence[ArgumentTrace]) -> tuple[str, str | None] | None:
        """Return why it is not true; None if the operator says it."""
        if self.name == "eq" and len(given) > 1:
            types = [argument.type for argument in given]
            # Whatever is compared with a number is converted.
            if types[1] not in _NUMBERS and types[0] != types[1]:
                return "type", " and ".join(types)
        return None

    def why_no_items(self, *, is_empty: bool) -> tuple[str, str | None]:
        """Return why the path finds no values."""
        return ("missing", self.arguments[0].written) if is_empty else ("cannot be evaluated", None)

    def item(self, explainer: Explainer, view: View, item: object) -> ItemTrace:
        """Return the trace of one of the values that the path finds."""
        outcome: bool | None = None
        if self.test is not None:
            with contextlib.suppress(CannotEvaluate):
                outcome = self.test(item) is not self.inverted
        field, *params = self.arguments
        shown = (*explainer.found(field.name, item, is_secret=self.is_secret or explainer.is_secretive),
                 *explainer.shown(params, view))
        return ItemTrace(outcome, shown, *self.why(outcome, shown))


def read_condition(condition: Condition) -> WrittenCondition:
    """Return a condition as it is written."""
    return _condition(condition.written)


@functools.lru_cache(maxsize=4096)
def _condition(text: bytes) -> WrittenCondition:
    field, op, params, multiple, invert = orjson.loads(text)
    path = paths.parse(field, DEFAULT.loop_items)
    plain = () if path.plain is None else (path.plain,)
    names = (str(name) for part in paths.split(field)[1] if isinstance(part, Fields) for name in part.fields)
    arguments = (Argument("field", field, path.get, plain, path.plain),
                 *(Argument(name, value, None, (), None) for name, value in params.items()))
    is_ours = op in OPERATORS
    return _WrittenCondition(
        # A plug-in may have the name of an operator of inspection rules.
        op if is_ours else "", invert, arguments, multiple, path.find if path.plain is None else None,
        test=test_of(op, params.get("value"), DEFAULT).call if is_ours else None,
        is_secret=any(map(secrets.is_secret_key, names)))


@functools.lru_cache(maxsize=4096)
def _action(text: bytes, formatted: frozenset[str], is_fail: bool) -> tuple[Argument, ...]:
    scope = scope_of(DEFAULT)
    return tuple(written_argument(
        replace(scope, problems=[], fields=[], begin=IN_MESSAGE if is_fail and name == "message" else ""),
        name, value, formatted=name in formatted) for name, value in orjson.loads(text).items())


def is_secretive(rule: CompiledLegacyRule, view: View, conceal: Concealment) -> bool:
    """Return whether a rule reads what must not be shown; arguments as those of ``rules.reads.is_secretive``."""
    return any(reads.is_secret(path, view, conceal) for path in _reads(rule))


def _reads(rule: CompiledLegacyRule) -> Iterator[Place]:
    """Yield the paths that a rule reads; of one that finds several values, the part before these."""
    for condition in rule.conditions:
        yield _path(condition.written)
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
    return explainer.run_with(_action(action.written, action.formatted, action.op == "fail"), view)
