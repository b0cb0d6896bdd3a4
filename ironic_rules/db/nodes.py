"""Nodes: the record, and the lock on it.

``revision`` counts the changes of the record (not of the lock), ``updated_at`` is the time of the last one.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple

import sqlalchemy as sa

from ironic_rules.db import clock, facts, identity, inspection_rules, legacy_rules, node_queries, outbox, pxe_filter
from ironic_rules.db.errors import duplicates
from ironic_rules.db.paging import Page, marker_row, paginate
from ironic_rules.db.prepared import Prepared, PreparedChange
from ironic_rules.db.projection import Row, columns_of, rows_of
from ironic_rules.db.tables import allocations, fact_states, legacy_values, node_traits, nodes, portgroups, ports
from ironic_rules.exceptions import (
    DuplicateNodeName,
    LockLost,
    NodeLocked,
    NodeNotFound,
    instance_associated,
    node_already_exists,
    node_changed,
)
from ironic_rules.models import states
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.nodes import CAUSE, FOUND_BY_RAMDISK, Node, NodeFound, natural_name
from ironic_rules.models.task import RuleRevisions

_ALL = sa.select(nodes)
# Built once, as in the other modules: building a statement takes longer than running it.
_BY_ID = Prepared(_ALL.where(nodes.c.id == sa.bindparam("node_id")))
_BY_IDENT = {name: Prepared(_ALL.where(nodes.c[name] == sa.bindparam("ident"))) for name in ("uuid", "name")}


def _has(column: sa.Column[Any]) -> sa.Label[bool]:
    """Return the column that says whether the node of a row has rows in another table."""
    return sa.select(column).where(column == nodes.c.id).exists().label(f"has_{column.table.name}")


# Most nodes have neither traits nor port groups: to look is cheaper here than by a statement for each of them.
_PARTS = (_has(node_traits.c.node_id), _has(portgroups.c.node_id))
_WITH_PARTS = {name: Prepared(statement.query.add_columns(*_PARTS)) for name, statement in _BY_IDENT.items()}
_BY_ID_WITH_PARTS = Prepared(_BY_ID.query.add_columns(*_PARTS))
_WITH_REVISIONS = Prepared(_BY_ID_WITH_PARTS.query.add_columns(
    inspection_rules.REVISION.scalar_subquery().label("rules_revision"),
    legacy_rules.REVISION.scalar_subquery().label("legacy_revision"), _has(legacy_values.c.node_id),
    facts.REVISION.scalar_subquery().label("facts_revision"),
    sa.select(fact_states.c.digest).where(fact_states.c.node_id == nodes.c.id).scalar_subquery().label("facts_digest")))
_ID = sa.select(nodes.c.id).where(nodes.c.uuid == sa.bindparam("uuid"))
_FOUND = sa.select(*columns_of(nodes, FOUND_BY_RAMDISK))
_FOUND_BY_UUID = Prepared(_FOUND.where(nodes.c.uuid == sa.bindparam("uuid")))
_FOUND_BY_ID = Prepared(_FOUND.where(nodes.c.id.in_(sa.bindparam("node_ids", expanding=True))))
_STATES = sa.select(nodes.c.id, nodes.c.provision_state).where(
    nodes.c.id.in_(sa.bindparam("node_ids", expanding=True)))
# The values to set are passed on execution, as parameters with the names of the columns.
_OWNED = sa.update(nodes).where(
    nodes.c.id == sa.bindparam("node_id"), nodes.c.reservation == sa.bindparam("host_is"),
    nodes.c.reservation_token == sa.bindparam("token_is"))
_WRITE_OWNED = PreparedChange(_OWNED)
_CHANGE_OWNED = PreparedChange(_OWNED.values(revision=nodes.c.revision + 1))
_INSERT = PreparedChange(sa.insert(nodes))
_RESERVE = sa.update(nodes).where(nodes.c.id == sa.bindparam("node_id"), nodes.c.reservation.is_(None))
_RESERVE_UNCHANGED = PreparedChange(_RESERVE.where(nodes.c.revision == sa.bindparam("revision_is")))
_RESERVE_IN_STATE = PreparedChange(sa.update(nodes).where(
    nodes.c.id == sa.bindparam("node_id"), nodes.c.reservation.is_(None),
    nodes.c.provision_state == sa.bindparam("state_is")).values(revision=nodes.c.revision + 1))
_TOKEN = sa.select(nodes.c.agent_token_hash).where(nodes.c.id == sa.bindparam("node_id"))
_OWNED_TOKEN = _TOKEN.where(
    nodes.c.reservation == sa.bindparam("host_is"), nodes.c.reservation_token == sa.bindparam("token_is"))
_CLAIM_TOKEN = sa.update(nodes).where(nodes.c.id == sa.bindparam("node_id"), nodes.c.agent_token_hash.is_(None))
_CLAIM_ANY_TOKEN = PreparedChange(_CLAIM_TOKEN)
_CLAIM_TOKEN_IN = _CLAIM_TOKEN.where(nodes.c.provision_state.in_(sa.bindparam("states", expanding=True)))
_UNLOCKED = {"reservation": None, "reservation_token": None, "reservation_purpose": None, "reservation_resumptions": 0,
             "reserved_at": None}


class Lock(NamedTuple):
    """A node's lock, as one acquisition has it. Every write under the lock names all of it.

    So nothing that had the lock before can write: not an earlier process with the same host name, and not an earlier
    thread of the same process.
    """

    node_id: int
    #: the conductor that holds it
    host: str
    #: the run of that conductor, and the number of the acquisition; None: taken by a version that has no tokens
    token: str | None


class Held(NamedTuple):
    """A lock that is held, and the UUID of its node."""

    lock: Lock
    node_uuid: str


def get(conn: sa.Connection, ident: str, *, for_update: bool = False) -> Node:
    """Return the node with the UUID or name ``ident``.

    :param for_update: lock the row until the transaction ends
    :raises NodeNotFound: 404
    """
    column, value = identity.searched(ident)
    row = None if value is None else _BY_IDENT[column].one_or_none(conn, {"ident": value}, for_update=for_update)
    if row is None:
        raise NodeNotFound(node=ident)
    return row


def get_by_id(conn: sa.Connection, node_id: int, *, for_update: bool = False) -> Node:
    """Return the node with that database id.

    :param for_update: lock the row until the transaction ends
    :raises NodeNotFound: 404
    """
    row = _BY_ID.one_or_none(conn, {"node_id": node_id}, for_update=for_update)
    if row is None:
        raise NodeNotFound(node=node_id)
    return row


def ids(conn: sa.Connection, uuids: Collection[str]) -> dict[str, int]:
    """Return the database ids of the nodes with these canonical UUIDs; those that do not exist are missing."""
    query = sa.select(nodes.c.uuid, nodes.c.id).where(nodes.c.uuid.in_(uuids))
    return {row.uuid: row.id for row in conn.execute(query).all()}


def with_uuids(conn: sa.Connection, uuids: Collection[str]) -> list[Node]:
    """Return those of the nodes with these canonical UUIDs that exist."""
    return list(conn.execute(_ALL.where(nodes.c.uuid.in_(uuids))).all())


def get_with_parts(conn: sa.Connection, ident: str | int) -> Node:
    """Return the node with that UUID, name or database id; ``has_part`` says what it has in other tables.

    :raises NodeNotFound: 404
    """
    if isinstance(ident, int):
        row = _BY_ID_WITH_PARTS.one_or_none(conn, {"node_id": ident})
    else:
        column, value = identity.searched(ident)
        row = None if value is None else _WITH_PARTS[column].one_or_none(conn, {"ident": value})
    if row is None:
        raise NodeNotFound(node=ident)
    return row


def has_part(row: Node, table: sa.Table) -> bool:
    """Return whether the node may have rows in ``table``: traits or port groups. True if it was not read with it."""
    return bool(getattr(row, f"has_{table.name}", True))


def get_with_revisions(conn: sa.Connection, node_id: int) -> tuple[Node, RuleRevisions]:
    """Return the node with that database id, and the revisions of the sets of rules.

    :raises NodeNotFound: 404
    """
    row = _WITH_REVISIONS.one_or_none(conn, {"node_id": node_id})
    if row is None:
        raise NodeNotFound(node=node_id)
    return row, RuleRevisions(row.rules_revision, row.legacy_revision, bool(row.has_legacy_values), row.facts_revision,
                              row.facts_digest)


def get_id(conn: sa.Connection, uuid: str) -> int:
    """Return the database id of the node with that UUID.

    :raises NodeNotFound: 404
    """
    node_id: int | None = conn.scalar(_ID, {"uuid": uuid.lower()})
    if node_id is None:
        raise NodeNotFound(node=uuid)
    return node_id


def parent_of(conn: sa.Connection, uuid: str) -> str | None:
    """Return the UUID of the parent of the node with that UUID; None: it has none, or does not exist."""
    parent: str | None = conn.scalar(sa.select(nodes.c.parent_node).where(nodes.c.uuid == uuid))
    return parent


def child_of(conn: sa.Connection, uuid: str) -> str | None:
    """Return the UUID of another node whose parent has that UUID; None: there is none."""
    child: str | None = conn.scalar(
        sa.select(nodes.c.uuid).where(nodes.c.parent_node == uuid, nodes.c.uuid != uuid).limit(1))
    return child


def list_nodes(conn: sa.Connection, filters: Mapping[str, object], page: Page, columns: Iterable[str] | None = None, *,
               raw_json: bool = False) -> list[Row]:
    """Return at most ``page.limit`` nodes that pass all ``filters`` (see ``node_queries.conditions``).

    :param columns: names of the columns of the rows; None: all columns
    :param raw_json: leave JSON columns as text
    :raises MarkerNotFound: 404;  Invalid: 400, the sort key is invalid
    """
    query = sa.select(*columns_of(nodes, columns, raw_json=raw_json)).where(*node_queries.conditions(filters))
    return rows_of(conn, paginate(query, nodes, page, _marker(conn, filters, page)))


def _marker(conn: sa.Connection, filters: Mapping[str, object], page: Page) -> Row | None:
    return marker_row(conn, nodes, page, among=node_queries.of_caller(filters, nodes))


def uuids(filters: Mapping[str, object]) -> sa.Select[tuple[str]]:
    """Return the query of the UUIDs of the nodes that pass all ``filters``, in the order of their creation."""
    return sa.select(nodes.c.uuid).where(*node_queries.conditions(filters)).order_by(nodes.c.id)


def with_other_deploy_interfaces(conn: sa.Connection, driver: str, offered: Collection[str]) -> list[str]:
    """Return the UUIDs of the driver's nodes whose deploy interface is not one of ``offered``, the oldest first."""
    query = sa.select(nodes.c.uuid).where(nodes.c.driver == driver, nodes.c.deploy_interface.not_in(sorted(offered)))
    return list(conn.scalars(query.order_by(nodes.c.id)))


def with_driver_info(conn: sa.Connection, key: str) -> list[tuple[str, Any]]:
    """Return UUID and value of the nodes whose ``driver_info`` has the key, the oldest node first."""
    has_key = sa.type_coerce(nodes.c.driver_info, sa.Text).contains(f'"{key}":', autoescape=True)
    rows = conn.execute(sa.select(nodes.c.uuid, nodes.c.driver_info).where(has_key).order_by(nodes.c.id))
    return [(row.uuid, row.driver_info[key]) for row in rows if key in row.driver_info]


def is_any_in_progress(conn: sa.Connection) -> bool:
    """Return whether a node is locked, waits for its machine, or is in a state that ends by itself."""
    passing = nodes.c.provision_state.in_(sorted(states.WAITING | states.TRANSIENT))
    query = sa.select(nodes.c.id).where(sa.or_(passing, nodes.c.reservation.is_not(None))).limit(1)
    return conn.execute(query).first() is not None


def shards(conn: sa.Connection) -> list[tuple[str | None, int]]:
    """Return the shards with the numbers of their nodes, the largest first; None stands for no shard."""
    query = sa.select(nodes.c.shard, sa.func.count()).group_by(nodes.c.shard)
    shards = [(name, count) for name, count in conn.execute(query).all()]
    return sorted(shards, key=lambda shard: (-shard[1], shard[0] or ""))


def state_counts(conn: sa.Connection) -> list[tuple[str, int]]:
    """Return the provision states of nodes without a parent with the numbers of these nodes, the largest first."""
    counted = sa.select(nodes.c.provision_state, sa.func.count()).group_by(nodes.c.provision_state)
    # All are counted in an index, without a look at any row. Those with a parent are few; SQLite does not use the index
    # for IS NOT NULL, but for what is greater than an empty text.
    of_state: dict[str, int] = {row[0]: row[1] for row in conn.execute(counted).all()}
    for name in conn.scalars(sa.select(nodes.c.provision_state).where(nodes.c.parent_node > "")):
        of_state[name] -= 1
    return sorted(((name, count) for name, count in of_state.items() if count), key=lambda pair: (-pair[1], pair[0]))


def in_state(conn: sa.Connection, node_ids: Collection[int], state: str) -> set[int]:
    """Return those of ``node_ids`` whose nodes are in provision state ``state``.

    The state is compared here, not in the query: databases would start with all nodes in that state.
    """
    rows = conn.execute(_STATES, {"node_ids": sorted(node_ids)}) if node_ids else ()
    return {row.id for row in rows if row.provision_state == state}


def candidates(conn: sa.Connection, state: str, *, uuid: str | None = None,
               node_ids: Collection[int] = ()) -> list[NodeFound]:
    """Return the nodes in provision state ``state`` that have the canonical UUID or one of the ids.

    As in :func:`in_state`, the state is compared here.
    """
    query, parameters = (_FOUND_BY_ID, {"node_ids": sorted(node_ids)}) if uuid is None else (
        _FOUND_BY_UUID, {"uuid": uuid})
    return [row for row in query.all(conn, parameters) if row.provision_state == state]


def create(conn: sa.Connection, values: Mapping[str, Any]) -> Node:
    """Store a new node and return it; ``uuid``, ``created_at`` and ``provision_state`` (enroll) have defaults.

    :raises node_already_exists, DuplicateNodeName, instance_associated: 409
    """
    row = {"provision_state": states.ENROLL, "created_at": clock.now(), **values}
    row["uuid"] = identity.assigned(row)
    row["natural_name"] = natural_name(row.get("name"))
    with _taken(row, row["uuid"]):
        node_id = _INSERT.inserted(conn, row)
    created = get_by_id(conn, node_id)
    outbox.note(conn, "node", "create", created)
    return created


def update(conn: sa.Connection, node_id: int, values: Mapping[str, object], *, unlocked: bool = True,
           revision: int | None = None) -> Node:
    """Write ``values`` and return the updated node.

    :param unlocked: only if the node is not locked; the holder of the lock passes False
    :param revision: only if the node still has this revision
    :raises NodeNotFound: 404
    :raises NodeLocked, node_changed, DuplicateNodeName, instance_associated: 409
    """
    statement = sa.update(nodes).where(nodes.c.id == node_id).values(
        {**_stamped(values), "revision": nodes.c.revision + 1})
    if unlocked:
        statement = statement.where(nodes.c.reservation.is_(None))
    if revision is not None:
        statement = statement.where(nodes.c.revision == revision)
    while not _write(conn, lambda: conn.execute(statement).rowcount, node_id, values):
        now = _hold(conn, node_id)
        if unlocked and now.reservation is not None:
            raise NodeLocked(node=now.uuid, host=now.reservation)
        if revision is not None and now.revision != revision:
            raise node_changed(node=now.uuid)
        # The conflict ended before _hold(), which locks the row; now there can be no other one.
    return get_by_id(conn, node_id)


def destroy(conn: sa.Connection, node_id: int) -> None:
    """Delete the node and everything that belongs to it, in any state.

    :raises NodeNotFound: 404
    """
    # InnoDB's cascade may reach a port group before its ports, whose reference would prevent deleting it.
    conn.execute(sa.delete(ports).where(ports.c.node_id == node_id))
    groups = sa.select(portgroups.c.id).where(portgroups.c.node_id == node_id)
    conn.execute(sa.update(ports).where(ports.c.portgroup_id.in_(groups)).values(portgroup_id=None))
    if conn.execute(sa.delete(nodes).where(nodes.c.id == node_id)).rowcount == 0:
        raise NodeNotFound(node=node_id)
    pxe_filter.note(conn, node_id)


def reserve(conn: sa.Connection, lock: Lock, purpose: str, node: Node | None = None) -> Node:
    """Take the node's lock, which is a new one, and return the node. Not re-entrant.

    :param node: the node as it was read before; returned, without the lock, if it has not changed since
    :raises NodeNotFound: 404
    :raises NodeLocked: 409, with the host that holds the lock
    """
    if node is not None:
        parameters = {**_locked(lock, purpose), "node_id": lock.node_id, "revision_is": node.revision}
        if _RESERVE_UNCHANGED.matched(conn, parameters) == 1:
            return node
    take(conn, lock, purpose)
    return get_by_id(conn, lock.node_id)


def take(conn: sa.Connection, lock: Lock, purpose: str) -> None:
    """Take the node's lock as :func:`reserve` does."""
    while conn.execute(_RESERVE, {**_locked(lock, purpose), "node_id": lock.node_id}).rowcount == 0:
        now = _hold(conn, lock.node_id)
        if now.reservation is not None:
            raise NodeLocked(node=now.uuid, host=now.reservation)


def reserve_in_state(conn: sa.Connection, lock: Lock, purpose: str, state: str, values: Mapping[str, object]) -> None:
    """Take the lock of a node that is in provision state ``state``, and write ``values``, atomically.

    :raises NodeNotFound: 404, no such node, or it is in another state
    :raises NodeLocked: 409, with the host that holds the lock
    """
    parameters = {**_stamped(values), **_locked(lock, purpose), "node_id": lock.node_id, "state_is": state}
    while _RESERVE_IN_STATE.matched(conn, parameters) == 0:
        now = _hold(conn, lock.node_id)
        if now.reservation is not None:
            raise NodeLocked(node=now.uuid, host=now.reservation)
        if now.provision_state != state:
            raise NodeNotFound(node=now.uuid)


def release(conn: sa.Connection, lock: Lock, values: Mapping[str, object] | None = None) -> None:
    """Write ``values`` and release the lock, atomically.

    :raises NodeNotFound: 404
    :raises LockLost: 409, it is no longer held; nothing is written
    :raises DuplicateNodeName, instance_associated: 409
    """
    _write_as_owner(conn, lock, values or {}, _UNLOCKED)


def update_locked(conn: sa.Connection, lock: Lock, values: Mapping[str, object]) -> None:
    """Write ``values`` and keep the lock.

    :raises NodeNotFound: 404
    :raises LockLost: 409, it is no longer held; nothing is written
    :raises DuplicateNodeName, instance_associated: 409
    """
    _write_as_owner(conn, lock, values, {})


def is_lockable(conn: sa.Connection, node_id: int) -> bool:
    """Lock the row until the transaction ends; return False, at once, if another transaction has locked it.

    That may be the transaction of a process which the database server cannot reach any more.
    """
    query = sa.select(nodes.c.id).where(nodes.c.id == node_id).with_for_update(skip_locked=True)
    return conn.scalar(query) is not None


def take_over(conn: sa.Connection, old: Lock, new: Lock) -> bool:
    """Replace a lock whose holder is dead; return False if that one is not (or no longer) held."""
    statement = sa.update(nodes).where(nodes.c.id == old.node_id, nodes.c.reservation == old.host,
                                       nodes.c.reservation_token.is_not_distinct_from(old.token))
    statement = statement.values(reservation=new.host, reservation_token=new.token, reserved_at=clock.now())
    return conn.execute(statement).rowcount == 1


def get_locked(conn: sa.Connection, lock: Lock) -> tuple[Node, RuleRevisions]:
    """Return the node, of which ``lock`` is held, and the revisions of the sets of rules.

    :raises NodeNotFound: 404;  LockLost: 409
    """
    row, revisions = get_with_revisions(conn, lock.node_id)
    if (row.reservation, row.reservation_token) != (lock.host, lock.token):
        raise LockLost(node=row.uuid, host=lock.host)
    return row, revisions


def count_resumption(conn: sa.Connection, lock: Lock, most: int) -> int | None:
    """Count a resumption of the work that the lock was taken for; return how many there were with this one.

    :returns: None: it was resumed ``most`` times already, and is not counted
    :raises NodeNotFound: 404
    :raises LockLost: 409
    """
    resumptions = nodes.c.reservation_resumptions
    statement = _OWNED.where(resumptions < most).values(reservation_resumptions=resumptions + 1)
    if conn.execute(statement, _is_held(lock)).rowcount == 1:
        return int(conn.execute(sa.select(resumptions).where(nodes.c.id == lock.node_id)).scalar_one())
    _hold(conn, lock.node_id)
    get_locked(conn, lock)
    return None


def locks(conn: sa.Connection, conductor_group: str) -> list[Held]:
    """Return the locks of the nodes of a conductor group."""
    query = sa.select(nodes.c.id, nodes.c.reservation, nodes.c.reservation_token, nodes.c.uuid)
    query = query.where(node_queries.is_reserved(), nodes.c.conductor_group == conductor_group)
    # Sorted here: a database that sorts may read all nodes in the order of their ids, to find the few that are locked.
    return sorted((Held(Lock(*lock), uuid) for *lock, uuid in conn.execute(query).all()),
                  key=lambda held: held.lock.node_id)


def claim_agent_token(conn: sa.Connection, node_id: int, token_hash: str,
                      while_in: Collection[str] | None = None) -> bool:
    """Store the hash of the ramdisk's token; return False if the node already has one: only the first caller succeeds.

    :param while_in: only while the node is in one of these provision states
    """
    parameters = {"node_id": node_id, "agent_token_hash": token_hash}
    if while_in is None:
        return _CLAIM_ANY_TOKEN.matched(conn, parameters) == 1
    return conn.execute(_CLAIM_TOKEN_IN, {**parameters, "states": sorted(while_in)}).rowcount == 1


def provision_states(conn: sa.Connection, node_id: int) -> Row:
    """Return ``uuid``, ``provision_state`` and ``target_provision_state``: readable even if another value is not.

    :raises NodeNotFound: 404
    """
    query = sa.select(nodes.c.uuid, nodes.c.provision_state, nodes.c.target_provision_state)
    row = conn.execute(query.where(nodes.c.id == node_id)).one_or_none()
    if row is None:
        raise NodeNotFound(node=node_id)
    return row


def has_agent_token(conn: sa.Connection, node_id: int) -> bool:
    """Return whether a ramdisk of the node has a token.

    :raises NodeNotFound: 404
    """
    row = conn.execute(_TOKEN, {"node_id": node_id}).one_or_none()
    if row is None:
        raise NodeNotFound(node=node_id)
    return row.agent_token_hash is not None


def has_agent_token_locked(conn: sa.Connection, lock: Lock) -> bool:
    """Return whether a ramdisk of the node has a token, as the holder of the lock.

    :raises NodeNotFound: 404;  LockLost: 409
    """
    row = conn.execute(_OWNED_TOKEN, _is_held(lock)).one_or_none()
    if row is None:
        return get_locked(conn, lock)[0].agent_token_hash is not None
    return row.agent_token_hash is not None


class Overdue(NamedTuple):
    """A node that waits for too long, and since when."""

    id: int
    uuid: str
    provision_state: str
    deploy_step: JSONObject
    driver_internal_info: JSONObject
    clean_step: JSONObject
    service_step: JSONObject
    since: datetime.datetime


def overdue(conn: sa.Connection, conductor_group: str, state: str, before: datetime.datetime, limit: int,
            after: Overdue | None = None) -> list[Overdue]:
    """Return the nodes of a group that have been in provision state ``state`` since before ``before``, longest first.

    Not those that are locked or in maintenance.

    :param limit: maximum number of nodes
    :param after: the last node of the previous page
    """
    since = sa.func.coalesce(nodes.c.provision_updated_at, nodes.c.created_at, type_=nodes.c.created_at.type)
    query = sa.select(nodes.c.id, nodes.c.uuid, nodes.c.provision_state, nodes.c.deploy_step,
                      nodes.c.driver_internal_info, nodes.c.clean_step, nodes.c.service_step, since).where(
        nodes.c.provision_state == state, nodes.c.conductor_group == conductor_group, since < before,
        nodes.c.reservation.is_(None), nodes.c.maintenance.is_(False))
    if after is not None:
        query = query.where(sa.or_(since > after.since, sa.and_(since == after.since, nodes.c.id > after.id)))
    return [Overdue(*row) for row in conn.execute(query.order_by(since, nodes.c.id).limit(limit)).all()]


def _locked(lock: Lock, purpose: str) -> JSONObject:
    """Return the columns of a lock that is taken for ``purpose``."""
    return {"reservation": lock.host, "reservation_token": lock.token, "reservation_purpose": purpose,
            "reservation_resumptions": 0, "reserved_at": clock.now()}


def _is_held(lock: Lock) -> JSONObject:
    """Return the parameters of ``_OWNED``."""
    return {"node_id": lock.node_id, "host_is": lock.host, "token_is": lock.token}


def _write_as_owner(conn: sa.Connection, lock: Lock, values: Mapping[str, object], after: Mapping[str, object]) -> None:
    changes = _stamped(values) if values else {}
    parameters = {**changes, **after, **_is_held(lock)}
    statement = _CHANGE_OWNED if values else _WRITE_OWNED
    if not _write(conn, lambda: statement.matched(conn, parameters), lock.node_id, values):
        raise LockLost(node=_hold(conn, lock.node_id).uuid, host=lock.host)


def _stamped(values: Mapping[str, object]) -> JSONObject:
    now = clock.now()
    stamps: JSONObject = {"provision_updated_at": now} if "provision_state" in values else {}
    if _frees(values):
        stamps["allocation_uuid"] = None
    if "last_error" in values:
        stamps |= dict.fromkeys(CAUSE)
    if "name" in values:
        name = values["name"]
        stamps["natural_name"] = natural_name(name) if isinstance(name, str) else None
    return {**stamps, **values, "updated_at": now}


def _hold(conn: sa.Connection, node_id: int) -> Row:
    """Return the current identity and lock of the node, and lock the row until the transaction ends."""
    query = sa.select(nodes.c.uuid, nodes.c.reservation, nodes.c.revision, nodes.c.provision_state)
    query = query.where(nodes.c.id == node_id)
    row = conn.execute(query.with_for_update()).one_or_none()
    if row is None:
        raise NodeNotFound(node=node_id)
    return row


def _write(conn: sa.Connection, update: Callable[[], int], node_id: int, values: Mapping[str, object]) -> bool:
    uuid = None
    if values.get("instance_uuid") is not None:
        # For the error message. Before the write: after a failed one, PostgreSQL refuses further queries.
        uuid = conn.execute(sa.select(nodes.c.uuid).where(nodes.c.id == node_id)).scalar()
    with _taken(values, uuid):
        written = update() == 1
    if written and _frees(values):
        conn.execute(sa.delete(allocations).where(allocations.c.node_id == node_id))
    return written


def _frees(values: Mapping[str, object]) -> bool:
    """Return whether a node has no instance afterwards: then it has no allocation either."""
    return "instance_uuid" in values and values["instance_uuid"] is None


def _taken(values: Mapping[str, object], uuid: str | None) -> Any:
    return duplicates(
        uuid=lambda value: node_already_exists(uuid=values.get("uuid")),
        name=lambda value: DuplicateNodeName(name=values.get("name")),
        instance_uuid=lambda value: instance_associated(instance=values.get("instance_uuid"), node=uuid))
