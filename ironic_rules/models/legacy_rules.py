"""Legacy rules, those of ironic-inspector (document 002): their fields. The package ``legacy`` implements them."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ironic_rules.models import pointer, secrets
from ironic_rules.models.fields import Fields, field, record
from ironic_rules.models.json_values import JSONObject

#: What happens to values of rules that do not match: ``[legacy_rules]cleanup``.
CLEANUPS = ("own", "any", "off")
#: The kinds of owned values, see :class:`OwnedValue`.
PATH, CAPABILITY, ITEM, TRAIT, PORT = KINDS = ("path", "capability", "item", "trait", "port")
#: ``made`` of the first capability that was written to capabilities whose pairs do not say how they were written: null,
#: or a text with blanks, with a name without a value, or with a name twice.
AS_WRITTEN = -1


@record
class LegacyRule:
    """A rule as it is stored.

    ``uuid`` is empty for a rule that is not stored yet. ``position`` is the order of creation, in which rules run;
    ``revision`` is that of the set of legacy rules at the last change of this rule. Conditions have ``invert`` and
    ``multiple``; all else in conditions and actions is as the user has written it.
    """

    position: int = field(shown=False, default=0)
    revision: int = field(shown=False, default=0)

    uuid: str = field(create=True, summary=True, default="")
    created_at: datetime.datetime | None = field(default=None)
    updated_at: datetime.datetime | None = field(default=None)
    description: str | None = field(patch=True, summary=True, default=None)
    scope: str | None = field(patch=True, summary=True, default=None)
    conditions: list[JSONObject] = field(patch=True, default_factory=list)
    actions: list[JSONObject] = field(patch=True, required=True, default_factory=list)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> LegacyRule:
        """Return the rule with these fields; null stands for the default, where a field cannot be null."""
        return cls(**{name: value for name, value in values.items()
                      if value is not None or name not in LEGACY_RULE or LEGACY_RULE[name].nullable})

    def said(self) -> JSONObject:
        """Return what a user has specified of the rule."""
        return {name: getattr(self, name) for name in WRITABLE if name != "uuid" or self.uuid}


LEGACY_RULE = Fields.of(LegacyRule, made={"links": 1})
#: Fields that a user may set.
WRITABLE = LEGACY_RULE.where(lambda entry: entry.create)


@dataclass(frozen=True, slots=True)
class OwnedValue:
    """What one action of a legacy rule has written to a node, and what was there before.

    Those of a node are in the order of writing: they are taken back in the reverse order.

    :ivar rule_uuid: the rule; ``action``: the index of its action
    :ivar kind: ``path``: the value at a path; ``capability``; ``item``: of a list; ``trait``; ``port``: the value at a
        path of a port
    :ivar place: the JSON pointer below the node; of an item that of the list and the item's index, or ``-`` for an
        appended one; the name of a capability or trait; the UUID of a port and the path below it
    :ivar is_set: whether ``written`` was written; otherwise the action removed what was there
    :ivar had_before: whether there was a value, for an item: a list, at the place
    :ivar before: that value; for an item the number of items of the list that were equal to it; for a capability with
        ``AS_WRITTEN`` all capabilities
    :ivar made: how many objects along the path did not exist before; of a capability 1 if there were none at all,
        and of a removed one its place among the others, or ``AS_WRITTEN``
    """

    rule_uuid: str
    action: int
    kind: str
    place: str
    is_set: bool = True
    written: Any = None
    had_before: bool = False
    before: Any = None
    made: int = 0


#: The parameters of an action with what it writes at its path.
_WRITTEN = ("value", "cleanup")


def masked(actions: Sequence[JSONObject]) -> list[JSONObject]:
    """Return actions with ``******`` for what they write under a secret key, and for secrets within other values."""
    return [{name: secrets.MASK if name in _WRITTEN and value is not None and _writes_secret(action)
             else secrets.mask({name: value})[name] for name, value in action.items()} for action in actions]


def masks_in(actions: Sequence[JSONObject]) -> Iterator[str]:
    """Yield the JSON pointers of what :func:`masked` has hidden in actions that a client sends back."""
    for number, action in enumerate(actions):
        if not isinstance(action, dict):
            continue
        place = ("actions", str(number))
        for name in _WRITTEN:
            if action.get(name) == secrets.MASK and _writes_secret(action):
                yield pointer.format((*place, name))
        yield from map(pointer.format, secrets.masks_in(action, place))


def _writes_secret(action: JSONObject) -> bool:
    path = action.get("path", action.get("key"))
    return isinstance(path, str) and any(map(secrets.is_secret_key, re.split(r"[/.]", path)))
