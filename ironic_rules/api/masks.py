"""Refusal of ``******`` in place of a secret: a client that sends a reply back would overwrite what the reply hides."""

from __future__ import annotations

from collections.abc import Mapping

from ironic_rules.exceptions import Invalid, Problem
from ironic_rules.models import secrets
from ironic_rules.models.documents import JSON
from ironic_rules.text import printable

HIDDEN = "is a secret that a reply has hidden; send the secret itself"


def refuse(new: Mapping[str, JSON], old: Mapping[str, JSON] | None = None) -> None:
    """Check what a request would store.

    :param new: field -> value
    :param old: the same fields as they are stored: what earlier versions have stored is not this request's fault
    :raises Invalid: 400, with the JSON pointer of every mask
    """
    found = secrets.new_masks(new, old)
    if found:
        raise Invalid(problems=[Problem(printable(where, 256), HIDDEN) for where in found])
