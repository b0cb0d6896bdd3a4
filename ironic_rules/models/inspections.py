"""The history of a node's inspections: what is kept of each."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

from ironic_rules.metrics.stages import Stages
from ironic_rules.models.json_values import JSONObject

#: Where the data of an inspection came from.
RAMDISK, OUT_OF_BAND, REAPPLY = "ramdisk", "out-of-band", "reapply"
#: How it ended.
FINISHED, FAILED, ABORTED, TIMED_OUT = "finished", "failed", "aborted", "timed out"


@dataclasses.dataclass(slots=True)
class Inspection:
    """What the conductor knows of an inspection that ends.

    :ivar seconds: how long its stages took: ``wait``, ``lookup``, ``queue``, ``receive``, ``hooks``, ``rules``,
        ``finish``, ``commit``
    :ivar rules: the rules that matched, in order, as a JSON list: ``rule``, ``sensitive``, and ``changes`` as those of
        a trace, unless it is sensitive
    :ivar messages: what hooks and rules have logged: ``level``, ``text``
    :ivar failure: ``rule`` and ``pointer``, or ``hook``; and the ``reason``
    :ivar inventory: the id of its data
    :ivar started_at: None: as the node says
    :ivar save: notes the time since the save of the results began
    :ivar changed_by: the UUIDs of the rules that have changed the node or one of its ports; it is not kept here
    """

    kind: str = RAMDISK
    seconds: dict[str, float] = dataclasses.field(default_factory=dict)
    rules: bytes = b"[]"
    messages: list[JSONObject] = dataclasses.field(default_factory=list)
    failure: JSONObject | None = None
    inventory: int | None = None
    started_at: datetime.datetime | None = None
    changed_by: Collection[str] = frozenset()
    save: Stages | None = None


class InspectionEntry(Protocol):
    """A row of the history of inspections."""

    id: int
    uuid: str
    node_id: int
    created_at: datetime.datetime
    started_at: datetime.datetime | None
    kind: str
    outcome: str
    user: str | None
    source: str | None
    conductor: str | None
    request_id: str | None
    inventory_id: int | None
    details: JSONObject


def rules(details: Mapping[str, Any]) -> list[JSONObject]:
    """Return the rules that matched, in order, as ``Inspection.rules``.

    :param details: of an entry. An earlier version wrote short entries of rules that had set new keys: ``together``, a
        list of objects: ``at``, the place of the first one of its rules among all; ``rules``; and ``values``
    """
    found: list[JSONObject] = list(details.get("rules") or ())
    for short in details.get("together") or ():
        found[short["at"]:short["at"]] = _in_full(short["rules"], short["values"])
    return found


def _in_full(rules: Sequence[Sequence[Any]], values: Sequence[Any]) -> list[JSONObject]:
    """Return the full entries of rules that have set new keys of the node.

    :param rules: for each its UUID, followed by pairs: a path, and the place of its value among ``values``
    """
    return [{"rule": uuid, "sensitive": False, "changes": {"node": [
        {"op": "add", "path": path, "value": values[place]}
        for path, place in zip(writes[::2], writes[1::2], strict=True)]}} for uuid, *writes in rules]
