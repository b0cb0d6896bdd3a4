"""Assumptions of the repositories about the tables."""

from __future__ import annotations

import sqlalchemy as sa

from ironic_rules.db import paging
from ironic_rules.db.projection import columns_of
from ironic_rules.db.tables import metadata, nodes
from ironic_rules.models.nodes import NODE

TABLES = metadata.sorted_tables
#: The list of changed ports also contains deleted nodes.
NOT_OF_A_NODE = "pxe_filter_changes"


def test_unique_constraints_tell_oslo_db_their_columns() -> None:
    found = [(str(constraint.name), "0".join([f"uniq_{table.name}", *(column.name for column in constraint.columns)]))
             for table in TABLES for constraint in table.constraints if isinstance(constraint, sa.UniqueConstraint)]

    assert found
    assert [f"{name} is not {expected}" for name, expected in found if name != expected] == []


def test_text_compares_by_bytes_on_mariadb() -> None:
    found = [(table.name, table.kwargs["mysql_collate"], table.kwargs["mysql_engine"]) for table in TABLES]

    assert found
    assert [options for options in found if options[1:] != ("utf8mb4_nopad_bin", "InnoDB")] == []


def test_what_hangs_on_a_node_goes_with_it() -> None:
    keys = [(table.name, [(key.target_fullname, key.ondelete) for key in table.c.node_id.foreign_keys])
            for table in TABLES if "node_id" in table.c and table.name != NOT_OF_A_NODE]

    assert keys
    assert [f"{name}: {found}" for name, found in keys if found != [("nodes.id", "CASCADE")]] == []


def test_raw_columns_are_those_of_the_json_fields() -> None:
    raw = {column.name for column in columns_of(nodes, raw_json=True) if not isinstance(column, sa.Column)}
    assert raw == NODE.json
    assert columns_of(nodes) == (nodes,)


def test_sort_keys_are_neither_json_nor_secret() -> None:
    assert paging.sort_keys(nodes) == set(nodes.c.keys()) - NODE.json - {"agent_token_hash"}
