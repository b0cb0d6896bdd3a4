"""What the repositories take for granted about the tables."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from ironic_rules.db import paging
from ironic_rules.db.projection import columns_of
from ironic_rules.db.tables import metadata, nodes
from ironic_rules.models.nodes import NODE

TABLES = metadata.sorted_tables


@pytest.mark.parametrize("table", TABLES, ids=str)
def test_unique_constraints_tell_oslo_db_their_column(table: sa.Table) -> None:
    for constraint in table.constraints:
        if isinstance(constraint, sa.UniqueConstraint):
            column, = constraint.columns
            assert constraint.name == f"uniq_{table.name}0{column.name}"


@pytest.mark.parametrize("table", TABLES, ids=str)
def test_text_compares_by_bytes_on_mariadb(table: sa.Table) -> None:
    assert (table.kwargs["mysql_collate"], table.kwargs["mysql_engine"]) == ("utf8mb4_bin", "InnoDB")


#: The list of changed ports tells of nodes that are gone, too.
NOT_OF_A_NODE = "pxe_filter_changes"


@pytest.mark.parametrize(
    "table", [table for table in TABLES if "node_id" in table.c and table.name != NOT_OF_A_NODE], ids=str)
def test_what_hangs_on_a_node_goes_with_it(table: sa.Table) -> None:
    key, = table.c.node_id.foreign_keys
    assert (key.target_fullname, key.ondelete) == ("nodes.id", "CASCADE")


def test_raw_columns_are_those_of_the_json_fields() -> None:
    raw = {column.name for column in columns_of(nodes, raw_json=True) if not isinstance(column, sa.Column)}
    assert raw == NODE.json
    assert columns_of(nodes) == (nodes,)


def test_sort_keys_are_neither_json_nor_secret() -> None:
    assert paging.sort_keys(nodes) == set(nodes.c.keys()) - NODE.json - {"agent_token_hash"}
