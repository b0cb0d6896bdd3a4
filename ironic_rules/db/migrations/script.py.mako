"""${message}

Revision ID: ${up_revision}
Revises: ${down_revision | comma,n}
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
${imports if imports else ""}
revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
#: "expand" if the release before can use the database afterwards, "contract" if it cannot.
phase = ""


def upgrade() -> None:
    ${upgrades if upgrades else "pass"}
