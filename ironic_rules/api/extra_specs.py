"""Writing extra specs of flavors: what is refused, stored, logged and warned about."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Any

from ironic_rules.api import flavor_warnings
from ironic_rules.api.request import Request
from ironic_rules.db import flavors
from ironic_rules.exceptions import Invalid, Problem
from ironic_rules.extra_specs import check
from ironic_rules.extra_specs import problems as problems_
from ironic_rules.models.flavors import Flavor, wrong_key, wrong_value
from ironic_rules.text import pointer_token, printable

LOG = logging.getLogger(__name__)
_SHOWN = 64


def write(request: Request, flavor: str, specs: Mapping[str, Any], mode: str, pointer: str, *,
          or_name: bool) -> list[Problem]:
    """Store extra specs of a flavor beside those that it has; return the warnings about them.

    :param mode: one of ``check.MODES``
    :param pointer: JSON pointer to ``specs`` in the body
    :param or_name: ``flavor`` may be a name, too
    :raises FlavorNotFound: 404
    :raises Invalid: 400, with every problem; nothing is stored
    """
    conf = request.conf
    most = conf.api.max_flavor_extra_specs
    refuse_too_many(specs, most, pointer)
    refused = problems(specs, mode, pointer)
    if refused:
        raise Invalid(problems=[Problem(problem.pointer, problem.text) for problem in refused])

    def store(conn: Any) -> tuple[Flavor, dict[str, str]]:
        found = flavors.lock(conn, flavor, or_name=or_name)
        return found, flavors.write_specs(conn, found, specs, most)

    written, together = request.db.write(store)
    told = check.warnings(specs, mode, pointer=pointer)
    if mode == check.PERMISSIVE:
        for warning in told:
            if warning.kind == problems_.UNKNOWN:
                LOG.warning("Flavor %s has got the extra spec %s, which is not known (request %s).",
                            written.flavorid, printable(warning.key, _SHOWN), request.context.request_id)
    found = [Problem(warning.pointer, warning.text) for warning in told]
    if mode == check.STRICT:
        with request.db.reader() as conn:
            found += flavor_warnings.of(conn, written, together)
    return found


def remove(request: Request, flavor: str, key: str, *, or_name: bool) -> None:
    """Remove an extra spec.

    :raises FlavorNotFound, ExtraSpecNotFound: 404
    """
    request.db.write(lambda conn: flavors.remove_spec(conn, flavors.lock(conn, flavor, or_name=or_name), key))


def check_only(body: Mapping[str, Any], key: str) -> None:
    """Check that the body of a request has the key of its URL, and no other.

    :raises Invalid: 400
    """
    if key not in body:
        raise Invalid(problems=[Problem("", "must have the key that is in the URL")])
    if len(body) > 1:
        raise Invalid(problems=[Problem(f"/{pointer_token(other)}", "is not the key that is in the URL")
                                for other in list(body)[:2] if other != key])


def refuse_too_many(specs: Mapping[str, Any], most: int, pointer: str) -> None:
    """Check that a flavor may have as many extra specs as these, before they are looked at.

    :raises Invalid: 400
    """
    if len(specs) > most:
        raise Invalid(problems=[Problem(pointer, f"has {len(specs)} extra specs; at most {most} are allowed "
                                                 "([api]max_flavor_extra_specs)")])


def problems(specs: Mapping[str, Any], mode: str, pointer: str) -> list[problems_.SpecProblem]:
    """Return all problems of extra specs that do not depend on a flavor, one for each of them at most."""
    found = check.check(specs, mode, pointer=pointer)
    named = {problem.pointer for problem in found}
    return found + [problem for problem in _malformed(specs, pointer) if problem.pointer not in named]


def _malformed(specs: Mapping[str, Any], pointer: str) -> Iterator[problems_.SpecProblem]:
    """Yield what no mode lets pass: keys and values that cannot be stored, or that Nova's clients cannot address."""
    for key, value in specs.items():
        text = wrong_key(key) or wrong_value(value)
        if text is not None:
            yield problems_.problem_of(key, pointer, problems_.PATTERN, text)
