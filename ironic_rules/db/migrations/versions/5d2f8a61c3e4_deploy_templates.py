"""Deploy templates and their steps.

Revision ID: 5d2f8a61c3e4
Revises: c94e07b1d2a8
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

from ironic_rules.db.types import Json, UTCDateTime

revision = "5d2f8a61c3e4"
down_revision = "c94e07b1d2a8"

TABLE_ARGS: dict[str, Any] = {"mysql_engine": "InnoDB", "mysql_charset": "utf8mb4", "mysql_collate": "utf8mb4_bin"}


def upgrade() -> None:
    op.create_table(
        "deploy_templates",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("extra", Json, nullable=False),
        sa.Column("created_at", UTCDateTime, nullable=False),
        sa.Column("updated_at", UTCDateTime),
        sa.PrimaryKeyConstraint("id", name="deploy_templates_pkey"),
        sa.UniqueConstraint("uuid", name="uniq_deploy_templates0uuid"),
        sa.UniqueConstraint("name", name="uniq_deploy_templates0name"),
        **TABLE_ARGS,
    )
    op.create_table(
        "deploy_template_steps",
        sa.Column("deploy_template_id", sa.Integer, nullable=False),
        sa.Column("position", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("interface", sa.String(255), nullable=False),
        sa.Column("step", sa.String(255), nullable=False),
        sa.Column("args", Json, nullable=False),
        sa.Column("priority", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("deploy_template_id", "position", name="deploy_template_steps_pkey"),
        sa.ForeignKeyConstraint(["deploy_template_id"], ["deploy_templates.id"],
                                name="deploy_template_steps_deploy_template_id_fkey", ondelete="CASCADE"),
        **TABLE_ARGS,
    )
    op.create_index("deploy_template_steps_interface_idx", "deploy_template_steps", ["interface"])
    op.create_index("deploy_template_steps_step_idx", "deploy_template_steps", ["step"])
