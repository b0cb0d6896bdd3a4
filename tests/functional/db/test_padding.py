"""Texts that differ only in a blank at the end are different texts, on every database."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from ironic_rules.db import conductors, deploy_templates, inspection_rules, node_sets, nodes, portgroups, ports, types
from ironic_rules.db.paging import Page
from ironic_rules.db.session import Database
from ironic_rules.exceptions import NodeNotFound
from ironic_rules.models.steps import Step

PADDED, PLAIN = "Lab ", "Lab"
EVERYTHING = Page(limit=10)
MakeNode = Callable[..., Any]


def test_names_may_differ_in_a_blank_only(db: Database, make_node: MakeNode) -> None:
    step = Step("bios", "factory_reset", {}, 10)
    made = {text: make_node(name=text) for text in (PADDED, PLAIN)}
    for text, node in made.items():
        db.write(lambda conn, text=text: deploy_templates.create(conn, {"name": text}, [step]))
        db.write(lambda conn, text=text, node=node: portgroups.create(
            conn, {"name": text, "node_id": node.id, "mode": "active-backup"}))

    with db.reader() as conn:
        assert {text: nodes.get(conn, text).uuid for text in made} == {text: node.uuid for text, node in made.items()}
        assert [template.name for template in deploy_templates.for_traits(conn, [PLAIN])] == [PLAIN]
        assert portgroups.get(conn, PADDED).node_id == made[PADDED].id


@pytest.mark.parametrize("name", ["owner", "shard", "resource_class", "conductor_group", "description_contains"])
def test_filters_of_nodes_do_not_ignore_a_blank(db: Database, make_node: MakeNode, name: str) -> None:
    column = name.removesuffix("_contains")
    padded = make_node(**{column: PADDED})
    make_node(**{column: PLAIN})
    value = [PADDED] if name == "shard" else PADDED

    with db.reader() as conn:
        assert [node.uuid for node in nodes.list_nodes(conn, {name: value}, EVERYTHING)] == [padded.uuid]


def test_a_rule_of_a_scope_is_not_one_of_the_scope_with_a_blank(db: Database) -> None:
    for text in (PADDED, PLAIN):
        db.write(lambda conn, text=text: inspection_rules.create(
            conn, {"name": text, "bundle": text, "scope": text, "actions": []}))

    with db.reader() as conn:
        for name in ("name", "bundle", "scope"):
            found = inspection_rules.list_rules(conn, {name: PLAIN}, EVERYTHING)
            assert [rule.scope for rule in found] == [PLAIN], name


def test_a_conductor_and_its_locks_are_its_own(db: Database, make_node: MakeNode) -> None:
    node = make_node()
    for text in (PADDED, PLAIN):
        db.write(lambda conn, text=text: conductors.register(conn, text, text, {}, "instance"))
    held, foreign = (nodes.Lock(node.id, text, "token") for text in (PADDED, PLAIN))
    db.write(lambda conn: nodes.reserve(conn, held, "test"))

    with db.reader() as conn:
        assert {conductor.hostname for conductor in conductors.list_conductors(conn)} == {PADDED, PLAIN}
        assert nodes.locks(conn, PLAIN) == []
    assert db.write(lambda conn: nodes.take_over(conn, foreign, nodes.Lock(node.id, "another", "token"))) is False


def test_traits_and_ports_keep_the_blank(db: Database, make_node: MakeNode) -> None:
    node = make_node()
    db.write(lambda conn: node_sets.set_traits(conn, node.id, [PADDED, PLAIN]))
    with db.reader() as conn:
        assert sorted(node_sets.list_traits(conn, [node.id])[node.id]) == [PLAIN, PADDED]
        assert ports.for_node(conn, node.id) == []
        with pytest.raises(NodeNotFound):
            nodes.get(conn, f"{node.uuid} ")


def test_every_column_of_text_has_the_collation(db: Database) -> None:
    if db.dialect != "mysql":
        pytest.skip("of MariaDB only")
    query = sa.text("SELECT table_name, column_name, collation_name FROM information_schema.columns "
                    "WHERE table_schema = database() AND collation_name IS NOT NULL "
                    "AND table_name != 'alembic_version'")
    with db.reader() as conn:
        expected = types.collation_of_server(conn)
        found = conn.execute(query).all()

    assert len(found) > 100
    assert [tuple(row) for row in found if row[2] != expected] == []
