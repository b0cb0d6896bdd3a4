"""Nodes of redfish and ipmi no longer have the deploy interface fake, which pretended to deploy them.

Revision ID: c7d4e19b52a6
Revises: a7d20e9f5c84
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "c7d4e19b52a6"
down_revision = "a7d20e9f5c84"

_DRIVERS = ("redfish", "ipmi")
#: The steps of these nodes are those of their interface until the deployment ends.
_DEPLOYING = ("deploying", "wait call-back", "deploy hold")


def upgrade() -> None:
    nodes = sa.table("nodes", sa.column("driver"), sa.column("deploy_interface"), sa.column("provision_state"))
    op.execute(sa.update(nodes).values(deploy_interface="direct").where(
        nodes.c.driver.in_(_DRIVERS), nodes.c.deploy_interface == "fake",
        nodes.c.provision_state.not_in(_DEPLOYING)))
