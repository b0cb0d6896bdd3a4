"""Writing extra specs of flavors: what is refused, stored, logged and warned about."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Any

import pecan

from ironic_rules.api import flavor_warnings
from ironic_rules.db import flavors
from ironic_rules.exceptions import Invalid, Problem
from ironic_rules.extra_specs import check
from ironic_rules.extra_specs.problems import UNKNOWN
from ironic_rules.models.flavors import Flavor, wrong_key, wrong_value
from ironic_rules.text import pointer_token, printable

LOG = logging.getLogger(__name__)
_SHOWN = 64


def write(flavor: str, specs: Mapping[str, Any], mode: str, pointer: str, *, or_name: bool) -> list[Problem]:
    """Store extra specs of a flavor beside those that it has; return the warnings about them.

    :param mode: one of ``check.MODES``
    :param pointer: JSON pointer to ``specs`` in the body
    :param or_name: ``flavor`` may be a name, too
    :raises FlavorNotFound: 404
    :raises Invalid: 400, with every problem; nothing is stored
    """
    conf = pecan.request.conf
    most = conf.api.max_flavor_extra_specs
    _refuse_problems(specs, mode, pointer, most)

    def store(conn: Any) -> tuple[Flavor, dict[str, str]]:
        found = flavors.lock(conn, flavor, or_name=or_name)
        return found, flavors.write_specs(conn, found, specs, most)

    written, together = pecan.request.db.write(store)
    told = check.warnings(specs, mode, pointer=pointer)
    if mode == check.PERMISSIVE:
        for warning in told:
            if warning.kind == UNKNOWN:
                LOG.warning("Flavor %s has got the extra spec %s, which is not known (request %s).",
                            written.flavorid, printable(warning.key, _SHOWN), pecan.request.context.request_id)
    found = [Problem(warning.pointer, warning.text) for warning in told]
    if mode == check.STRICT:
        with pecan.request.db.reader() as conn:
            found += flavor_warnings.of(conn, written, together)
    return found


def remove(flavor: str, key: str, *, or_name: bool) -> None:
    """Remove an extra spec.

    :raises FlavorNotFound, ExtraSpecNotFound: 404
    """
    pecan.request.db.write(lambda conn: flavors.remove_spec(conn, flavors.lock(conn, flavor, or_name=or_name), key))


def check_only(body: Mapping[str, Any], key: str) -> None:
    """Check that the body of a request has the key of its URL, and no other.

    :raises Invalid: 400
    """
    if key not in body:
        raise Invalid(problems=[Problem("", "must have the key that is in the URL")])
    if len(body) > 1:
        raise Invalid(problems=[Problem(f"/{pointer_token(other)}", "is not the key that is in the URL")
                                for other in list(body)[:2] if other != key])


def _refuse_problems(specs: Mapping[str, Any], mode: str, pointer: str, most: int) -> None:
    """Check what can be checked without the flavor.

    :raises Invalid: 400
    """
    if len(specs) > most:
        # No flavor may have them, so they are not looked at.
        raise Invalid(problems=[Problem(pointer, f"has {len(specs)} extra specs; at most {most} are allowed "
                                                 "([api]max_flavor_extra_specs)")])
    found = [Problem(problem.pointer, problem.text) for problem in check.check(specs, mode, pointer=pointer)]
    named = {problem.where for problem in found}
    found += [problem for problem in _malformed(specs, pointer) if problem.where not in named]
    if found:
        raise Invalid(problems=found)


def _malformed(specs: Mapping[str, Any], pointer: str) -> Iterator[Problem]:
    """Yield what no mode lets pass: keys and values that cannot be stored, or that Nova's clients cannot address."""
    for key, value in specs.items():
        text = wrong_key(key) or wrong_value(value)
        if text is not None:
            yield Problem(f"{pointer}/{pointer_token(key)}", text)
