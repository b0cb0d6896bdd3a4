"""Chassis: groups of nodes that stand in one enclosure, with a description."""

from __future__ import annotations

import datetime
from typing import Protocol

from ironic_rules.models.fields import Fields, Text, field, form
from ironic_rules.models.json_values import JSONObject


@form
class Chassis(Protocol):
    """An enclosure that nodes name by ``chassis_uuid``."""

    id: int = field(shown=False)

    uuid: str = field(create=True, text=Text.UUID, summary=True)
    created_at: datetime.datetime = field()
    updated_at: datetime.datetime | None = field()
    description: str | None = field(patch=True, text=Text.LINES, summary=True)
    extra: JSONObject = field(patch=True)


CHASSIS = Fields.of(Chassis, made={"links": 1, "nodes": 1})
