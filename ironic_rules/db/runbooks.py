"""Runbooks."""

from __future__ import annotations

import sqlalchemy as sa

from ironic_rules.db.collection import Collection
from ironic_rules.db.tables import runbooks
from ironic_rules.exceptions import DuplicateRunbookName, RunbookAlreadyExists, RunbookNotFound

#: ``project``: those that it may see.
_FILTERS = {"project": lambda project: sa.or_(runbooks.c.owner == project, runbooks.c.public.is_(True))}
RUNBOOKS = Collection(runbooks, filters=_FILTERS, missing=lambda ident: RunbookNotFound(runbook=ident), taken={
    "uuid": lambda values: RunbookAlreadyExists(uuid=values.get("uuid")),
    "name": lambda values: DuplicateRunbookName(name=values.get("name"))})
