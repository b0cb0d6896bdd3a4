"""Runbooks."""

from __future__ import annotations

from ironic_rules.db.collection import Collection
from ironic_rules.db.tables import runbooks
from ironic_rules.exceptions import DuplicateRunbookName, RunbookAlreadyExists, RunbookNotFound

RUNBOOKS = Collection(runbooks, missing=lambda ident: RunbookNotFound(runbook=ident), taken={
    "uuid": lambda values: RunbookAlreadyExists(uuid=values.get("uuid")),
    "name": lambda values: DuplicateRunbookName(name=values.get("name"))})
