"""All problems of a rule at once."""

from __future__ import annotations

from typing import Any

from ironic_rules.exceptions import Problem
from ironic_rules.rules import compiler
from ironic_rules.rules.limits import DEFAULT, Limits


def validate(rule: Any, *, built_in: bool = False, limits: Limits = DEFAULT) -> list[Problem]:
    """Return every problem of a rule as a user writes it; an empty list means that it compiles.

    :param rule: anything; see ``wire.from_wire`` for spellings that clients use
    :param built_in: whether the rule comes from the operator's file: any integer is then a valid priority
    :returns: problems in the order of the rule, each with a JSON pointer; no text quotes a value
    """
    return compiler.build(rule, built_in=built_in, limits=limits)[0]
