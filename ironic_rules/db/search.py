"""One text, looked for in everything by which people know a machine: each kind of place by its own index.

Only the name of a node is looked for in its middle. For that, the database looks at all names: an index of parts of
words would be larger than the table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import sqlalchemy as sa

from ironic_rules.db.identity import contains
from ironic_rules.db.questions import Condition, begins
from ironic_rules.db.tables import (
    fact_texts,
    inspection_rules,
    node_bmc_addresses,
    node_machine_ids,
    node_traits,
    nodes,
    ports,
)
from ironic_rules.models.questions import StoredFact

_HEXADECIMAL = re.compile(r"[0-9a-f]+")
_UUID_BEGIN = re.compile(r"[0-9a-f]{4,8}(?:-[0-9a-f-]{0,27})?")
_MAC = re.compile(r"[0-9a-f]{2}(?:[:.-]?[0-9a-f]{2}){1,5}[:.-]?")
_TRAIT = re.compile(r"[A-Z0-9_]+")
#: The prefix of traits that operators make.
_CUSTOM = "CUSTOM_"
_OF_HARDWARE = ("bmc", "serial")


class FoundNode(NamedTuple):
    """A node, and what of it has the text: ``name``, ``uuid``, ``instance``, ``mac``, ``bmc`` or ``serial``."""

    id: int
    uuid: str
    name: str | None
    matched: str
    value: str


class FoundValue(NamedTuple):
    """The value of a fact, or a trait, that begins with the text."""

    name: str
    value: str


def find_nodes(conn: sa.Connection, text: str, conditions: Iterable[Condition], of_hardware: Iterable[Condition],
               limit: int) -> list[FoundNode]:
    """Return nodes, each once, the surest first: those whose address or identifier it is, before parts of names.

    :param conditions: for the nodes that the caller may see
    :param of_hardware: for those of which the caller may see addresses of BMCs, and serial numbers
    :param limit: maximum number of nodes
    """
    nodes_found: dict[int, FoundNode] = {}
    allowed = list(conditions)
    hardware = [*allowed, *of_hardware]
    for matched, query, value in _places(text):
        rows = conn.execute(query.add_columns(nodes.c.id, nodes.c.uuid, nodes.c.name, value.label("value")).where(
            *(hardware if matched in _OF_HARDWARE else allowed)).limit(limit - len(nodes_found)))
        for row in rows:
            nodes_found.setdefault(row.id, FoundNode(row.id, row.uuid, row.name, matched, row.value))
        if len(nodes_found) >= limit:
            return list(nodes_found.values())
    # Only ids: then the names are read from their index, which is smaller than the table.
    forms = [contains(nodes.c.name, form) for form in dict.fromkeys((text, text.lower()))]
    ids = list(conn.scalars(sa.select(nodes.c.id).where(sa.or_(*forms), *allowed).limit(limit - len(nodes_found))))
    named = sa.select(nodes.c.id, nodes.c.uuid, nodes.c.name).where(nodes.c.id.in_(ids)).order_by(nodes.c.id)
    for row in conn.execute(named) if ids else ():
        nodes_found.setdefault(row.id, FoundNode(row.id, row.uuid, row.name, "name", row.name))
    return list(nodes_found.values())


def _places(text: str) -> Iterator[tuple[str, sa.Select[Any], sa.Column[Any]]]:
    lower = text.lower()
    nothing: sa.Select[Any] = sa.select()
    if (mac := mac_begin(lower)) is not None:
        yield "mac", nothing.select_from(nodes.join(ports, ports.c.node_id == nodes.c.id)).where(
            begins(ports.c.address, mac)), ports.c.address
    if _UUID_BEGIN.fullmatch(lower):
        yield "uuid", nothing.where(begins(nodes.c.uuid, lower)), nodes.c.uuid
        yield "instance", nothing.where(begins(nodes.c.instance_uuid, lower)), nodes.c.instance_uuid
    if "." in text or ":" in text:
        yield "bmc", nothing.select_from(nodes.join(
            node_bmc_addresses, node_bmc_addresses.c.node_id == nodes.c.id)).where(
            begins(node_bmc_addresses.c.address, lower)), node_bmc_addresses.c.address
    for form in dict.fromkeys((text, lower, text.upper())):
        yield "serial", nothing.select_from(nodes.join(
            node_machine_ids, node_machine_ids.c.node_id == nodes.c.id)).where(
            begins(node_machine_ids.c.value, form)), node_machine_ids.c.value


def mac_begin(text: str) -> str | None:
    """Return the begin of a MAC address, in lower case with colons, that a text is in any notation; None: it is none.

    Digits without separators are one only if they are a whole address, as short ones are a part of a name.
    """
    if _MAC.fullmatch(text) is None or (_HEXADECIMAL.fullmatch(text) and len(text) != 12):
        return None
    digits = re.sub(r"[:.-]", "", text)
    return ":".join(digits[at:at + 2] for at in range(0, len(digits), 2))


def find_values(conn: sa.Connection, text: str, facts: Mapping[str, StoredFact], conditions: list[Condition],
                limit: int) -> list[FoundValue]:
    """Return values of facts that begin with the text, as it is, in lower case or in capital letters; each once.

    :param conditions: for rows of ``fact_texts``;  limit: maximum number of values
    """
    names = {fact.id: name for name, fact in facts.items() if fact.is_text}
    forms = dict.fromkeys((text, text.lower(), text.upper(), text.capitalize(), mac_begin(text.lower()) or text))
    values: set[FoundValue] = set()
    for form in forms:
        # From each value to the next one: a query for different values would read the rows of all nodes with the same.
        last: dict[int, str | None] = dict.fromkeys(names)
        while last and len(values) < limit:
            before = list(last.items())
            last = {row.fact_id: row.value for at in range(0, len(before), _AT_ONCE)
                    for row in conn.execute(_next_values(before[at:at + _AT_ONCE], form, conditions))}
            values |= {FoundValue(names[fact_id], value) for fact_id, value in last.items() if value is not None}
    return sorted(values)[:limit]


#: Facts in one statement; SQLite has 500 parts at most.
_AT_ONCE = 100


def _next_values(last: Iterable[tuple[int, str | None]], form: str,
                 conditions: list[Condition]) -> sa.CompoundSelect[Any]:
    """Return the query of the first value of each fact that begins with a text, and is after the last one.

    :param last: by the ids of facts
    """
    own, value = fact_texts.c.fact_id, fact_texts.c.value
    return sa.union_all(*(
        sa.select(sa.select(own, value).where(
            own == fact_id, begins(value, form), *([] if before is None else [value > before]), *conditions,
        ).order_by(value).limit(1).subquery())
        for fact_id, before in last))


def find_traits(conn: sa.Connection, text: str, conditions: Iterable[Condition], limit: int) -> list[str]:
    """Return traits that begin with the text, with or without ``CUSTOM_``.

    :param conditions: for rows of ``node_traits``
    """
    upper = text.upper().replace("-", "_")
    if _TRAIT.fullmatch(upper) is None:
        return []
    query = sa.select(node_traits.c.trait).where(
        sa.or_(begins(node_traits.c.trait, upper), begins(node_traits.c.trait, _CUSTOM + upper)), *conditions)
    return sorted(conn.scalars(query.distinct().limit(limit)))


def find_rules(conn: sa.Connection, text: str, limit: int) -> list[Any]:
    """Return ``uuid``, ``name`` and ``description`` of rules with the text in the name, or at the begin of the UUID."""
    places = [contains(inspection_rules.c.name, form) for form in dict.fromkeys((text, text.lower()))]
    if _UUID_BEGIN.fullmatch(text.lower()):
        places.append(begins(inspection_rules.c.uuid, text.lower()))
    query = sa.select(inspection_rules.c.uuid, inspection_rules.c.name, inspection_rules.c.description)
    return list(conn.execute(query.where(sa.or_(*places)).order_by(inspection_rules.c.position).limit(limit)).all())
