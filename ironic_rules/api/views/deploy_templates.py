"""Deploy templates -> JSON. Secrets in the arguments of steps, recognised by their keys, are masked as ``******``."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import orjson

from ironic_rules.api import links
from ironic_rules.db.projection import Row
from ironic_rules.models import secrets
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.steps import DEPLOY_TEMPLATE, DeployTemplate
from ironic_rules.steps.warnings import StepWarning

_STORED = DEPLOY_TEMPLATE.where(lambda entry: entry.shown and entry.column)
#: Results for arguments of up to this many characters are cached, because lists are requested often.
_SHORT = 512


def columns(fields: Collection[str]) -> tuple[str, ...]:
    """Return the columns that ``templates`` needs for ``fields``."""
    return ("id", *(name for name in _STORED if name == "uuid" or name in fields))


def templates(base: str, rows: Sequence[Row], steps: Mapping[int, Sequence[tuple[str, str, str, int]]] | None,
              fields: Collection[str], collection: str) -> list[JSONObject]:
    """Return templates in the order of ``rows``.

    :param rows: with exactly ``columns(fields)``, JSON columns as text
    :param steps: by the id of the template; None to show no steps. A template without steps was deleted after ``rows``
        were read: it is omitted.
    :param collection: the last part of the collection's URL
    """
    names = columns(fields)[1:]
    shows_uuid, shows_extra = "uuid" in fields, "extra" in fields
    fragments = links.Fragments(base, collection)
    replies = []
    for row in rows:
        template_id, *values = row
        own_steps = None if steps is None else steps[template_id]
        if own_steps is not None and not own_steps:
            continue
        reply: JSONObject = dict(zip(names, values, strict=True))
        if shows_extra:
            reply["extra"] = orjson.Fragment(reply["extra"])
        reply["links"] = fragments.of(reply["uuid"] if shows_uuid else reply.pop("uuid"))
        if own_steps is not None:
            reply["steps"] = [
                {"interface": interface, "step": step, "args": arguments(args), "priority": priority}
                for interface, step, args, priority in own_steps]
        replies.append(reply)
    return replies


def arguments(text: str) -> Any:
    """Return the arguments of a step, stored as ``text``, as a value for orjson with every secret hidden.

    Most arguments have none and are copied unchanged, which is ten times faster than checking every value.
    """
    found_open = _is_open(text) if len(text) <= _SHORT else secrets.json_has_none(text)
    return orjson.Fragment(text) if found_open else secrets.mask(orjson.loads(text))


_is_open = functools.lru_cache(maxsize=8192)(secrets.json_has_none)


def template(base: str, found: DeployTemplate, collection: str,
             fields: Collection[str] = DEPLOY_TEMPLATE.shown) -> JSONObject:
    """Return one template."""
    shown: JSONObject = {name: getattr(found, name) for name in DEPLOY_TEMPLATE.columns if name in fields}
    if "steps" in shown:
        shown["steps"] = [{**step.to_wire(), "args": secrets.mask(step.args)} for step in found.steps]
    shown["links"] = links.resource(base, collection, found.uuid)
    return shown


def warned(base: str, found: DeployTemplate, collection: str, about: Sequence[StepWarning]) -> JSONObject:
    """Return a template with the warnings about it; without any it has no such field."""
    return template(base, found, collection) | ({"warnings": [warning.to_wire() for warning in about]} if about else {})
