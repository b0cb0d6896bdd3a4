"""Rules of ironic-inspector, which the service converts to inspection rules."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from osc_lib import exceptions

from ironic_rules.client.rule_file import GivenRules
from ironic_rules.client.rule_requests import Requests


def convert(requests: Requests, given: GivenRules, indexes: Iterable[int]) -> dict[int, tuple[None, str]]:
    """Replace rules by the inspection rules that they are converted to; what differs is written to the standard error.

    :param indexes: of the rules that are converted
    :returns: the result of those that cannot be, by index, as the command shows it
    """
    failed: dict[int, tuple[None, str]] = {}
    for index in indexes:
        try:
            reply = requests.convert(given.rules[index])
        except exceptions.CommandError as error:
            failed[index] = None, f"failed: {error}"
            continue
        if reply.get("rule") is None:
            problems = "; ".join(_texts(reply.get("problems") or ()))
            failed[index] = None, f"failed: {reply.get('verdict')}: {problems}"
            continue
        given.rules[index] = reply["rule"]
        for note in reply.get("notes") or ():
            print(f"note: {given.places[index].of(note['pointer'])}: {note['text']}", file=sys.stderr)
    return failed


def _texts(problems: Sequence[Mapping[str, Any]]) -> Iterable[str]:
    for problem in problems:
        yield f"{problem['pointer']}: {problem['text']}" if problem["pointer"] else str(problem["text"])
