"""``POST /v1/operations``: an action on many nodes, what is said before, and the result on each node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from ironic_rules.conductor import operations, provisioning
from ironic_rules.db import node_queries, nodes, outbox
from ironic_rules.db import operations as operations_db
from ironic_rules.db.tables import events
from ironic_rules.db.tables import nodes as nodes_table
from tests.functional import whole as wholes
from tests.functional.installations import only_in_one_process
from tests.functional.processes import wait_for
from tests.functional.test_bulk_dry_run import REPORT, stored
from tests.functional.whole import OneProcess

pytestmark = only_in_one_process("nodes are stored in states of the test's choice")
INSTANCE = "00000000-0000-4000-8000-0000000000aa"


@pytest.fixture
def service(tmp_path: Any) -> Iterator[OneProcess]:
    with wholes.running(tmp_path) as found:
        yield found


def fleet(service: OneProcess) -> dict[str, str]:
    """Store nodes that differ in what decides; return their UUIDs by name."""
    wanted: dict[str, dict[str, Any]] = {
        "plain-1": {}, "plain-2": {}, "new": {"provision_state": "enroll"}, "kept": {"protected": True},
        "used": {"provision_state": "active", "instance_uuid": INSTANCE}, "mended": {"maintenance": True},
        "parent": {}, "old": {"retired": True}}
    found = {name: stored(service, number, REPORT, name=name, **fields)
             for number, (name, fields) in enumerate(wanted.items())}
    silent = service.app.post_json("/v1/nodes", {"name": "silent", "driver": "fake-hardware"}).json["uuid"]
    service.app.post_json("/v1/nodes", {"name": "child", "driver": "fake-hardware", "parent_node": found["parent"]})
    return {**found, "silent": silent}


def act(service: OneProcess, action: str, **more: Any) -> Any:
    return service.app.post_json("/v1/operations", {"action": action, **more})


def ended(service: OneProcess, uuid: str) -> dict[str, Any]:
    """Work until an operation has ended; return it."""
    def shown() -> Any:
        operations.work(service.conductor)
        found = service.app.get(f"/v1/operations/{uuid}").json
        return found if found["status"] != "running" else None

    return dict(wait_for("the end of the operation", shown))


def reasons(reply: Any) -> dict[str, list[str]]:
    return {one["reason"]: [node["name"] for node in one["nodes"]] for one in reply["impossible"]}


@pytest.mark.parametrize("is_dry", [True, False])
def test_a_node_that_is_deleted_while_nodes_are_judged_is_left_out(
        service: OneProcess, monkeypatch: pytest.MonkeyPatch, is_dry: bool) -> None:
    known = fleet(service)
    grouped = node_queries.alike

    def deleting(conn: sa.Connection, found: sa.Subquery) -> list[node_queries.Alike]:
        """Return the groups, then delete a node of the first one as another transaction would."""
        groups = grouped(conn, found)
        if "plain-1" in known:
            assert nodes.get(conn, known.pop("plain-1")).id == groups[0].example
            conn.execute(sa.delete(nodes_table).where(nodes_table.c.id == groups[0].example))
        return groups

    monkeypatch.setattr(node_queries, "alike", deleting)
    reply = act(service, "set-maintenance", nodes={}, dry_run=is_dry)
    assert reply.status_int == (200 if is_dry else 202), reply.text
    if is_dry:
        assert reply.json["possible"] == len(known) - 1  # one is in maintenance
    else:
        assert ended(service, reply.json["uuid"])["progress"]["changed"] == len(known) - 1


def test_a_preview_says_how_many_and_why_some_cannot_in_the_words_of_a_single_request(service: OneProcess) -> None:
    known = fleet(service)
    for action, method, path, body in (
            ("inspect", "PUT", "states/provision", {"target": "inspect"}),
            ("provide", "PUT", "states/provision", {"target": "provide"}),
            ("manage", "PUT", "states/provision", {"target": "manage"}),
            ("delete", "DELETE", "", None),
            ("reapply", "POST", "inventory/reapply", {})):
        said = act(service, action, nodes={}, dry_run=True)
        assert said.status_int == 200
        impossible = reasons(said.json)
        names = [name for found in impossible.values() for name in found]
        assert said.json["total"] == len(known) == said.json["possible"] + len(names)
        # A request for one node is rejected with the reason that the preview shows for it.
        for reason, found in impossible.items():
            for name in found:
                url = f"/v1/nodes/{name}/{path}".rstrip("/")
                reply = (service.app.delete(url) if method == "DELETE" else service.app.put_json(url, body)
                         if method == "PUT" else service.app.post_json(url, body))
                assert reply.status_int >= 400, (action, name)
                tail = reason.partition("node")[2]
                assert tail.strip(' ".')[-20:] in reply.text.replace("\\\\\\\"", '"').replace("\\\"", '"') or (
                    "instance" in reason), (reason, reply.text)
        assert not any(uuid in str(impossible) for uuid in (*known.values(), INSTANCE))
    assert [one["kind"] for one in service.app.get("/v1/operations").json["operations"]] == []
    assert set(reasons(act(service, "delete", nodes={}, dry_run=True).json)) == {
        "A node is protected and does not allow deletion.", "A node is associated with an instance.",
        "A node cannot be deleted while it is the parent_node of others; put it in maintenance to force this."}


def test_an_operation_does_what_a_request_for_each_node_would_do(service: OneProcess) -> None:
    known = fleet(service)
    begun = act(service, "set-maintenance", nodes={"provision_state": "manageable"}, reason="new switch")
    assert begun.status_int == 202
    assert begun.headers["Location"].endswith(begun.json["uuid"])
    assert reasons(begun.json) == {"A node is in maintenance already.": ["mended"]}
    assert ended(service, begun.json["uuid"])["progress"] == {
        "total": 5, "done": 5, "changed": 5, "failed": 0, "left": 0}
    shown = service.app.get("/v1/nodes/plain-1").json
    assert (shown["maintenance"], shown["maintenance_reason"]) == (True, "new switch")
    cleared = act(service, "clear-maintenance", uuids=[known["plain-1"], known["plain-2"]]).json
    assert ended(service, cleared["uuid"])["progress"]["changed"] == 2

    inspected = act(service, "inspect", uuids=[known["plain-1"], known["plain-2"], known["used"]])
    assert list(reasons(inspected.json).values()) == [["used"]]
    assert ended(service, inspected.json["uuid"])["progress"] == {
        "total": 2, "done": 2, "changed": 2, "failed": 0, "left": 0}
    for name in ("plain-1", "plain-2"):
        wait_for(name, lambda name=name: service.app.get(f"/v1/nodes/{name}").json["provision_state"] == "inspect wait")

    removed = act(service, "delete", nodes={"provision_state": "enroll"}).json
    ended(service, removed["uuid"])
    assert service.app.get("/v1/nodes/new").status_int == 404
    nothing = act(service, "provide", uuids=[known["used"]])
    assert nothing.status_int == 409
    assert 'while it is in state "active"' in nothing.json["error_message"].replace("\\", "")


def test_a_locked_node_is_tried_again_and_a_failure_names_its_node(service: OneProcess,
                                                                   monkeypatch: pytest.MonkeyPatch) -> None:
    known = fleet(service)
    monkeypatch.setattr(operations_db, "PAUSE_S", 0)
    locks = []

    def lock(conn: sa.Connection) -> None:
        locks.append(service.conductor.new_lock(nodes.get_id(conn, known["plain-1"])))
        nodes.take(conn, locks[0], "test")

    service.db.write(lock)
    begun = act(service, "delete", uuids=[known["plain-1"], known["plain-2"]]).json
    operations.work(service.conductor)
    found = ended(service, begun["uuid"])
    assert [error["node"] for error in found["errors"]] == [known["plain-1"]]
    assert "is locked by host" in found["errors"][0]["error"]
    assert service.app.get("/v1/nodes/plain-1").status_int == 200
    service.db.write(lambda conn: nodes.release(conn, locks[0]))


def test_a_conductor_that_dies_after_the_action_leaves_nothing_to_do_twice(service: OneProcess,
                                                                           monkeypatch: pytest.MonkeyPatch) -> None:
    known = fleet(service)
    begun = act(service, "inspect", uuids=[known["plain-1"]]).json
    started = []
    change = provisioning.change_provision_state

    def dies(*arguments: Any) -> None:
        change(*arguments)
        started.append(arguments)
        raise sa.exc.OperationalError("", {}, Exception("gone"))

    with monkeypatch.context() as patched:
        patched.setattr(provisioning, "change_provision_state", dies)
        patched.setattr("ironic_rules.conductor.node_actions.DATABASE_AWAY", (sa.exc.OperationalError,))
        with pytest.raises(sa.exc.OperationalError):
            operations.work(service.conductor)
    monkeypatch.setattr(operations_db, "LEASE_S", -1)
    found = ended(service, begun["uuid"])
    assert (found["progress"]["changed"], found["progress"]["failed"], len(started)) == (1, 0, 1)


def test_mistakes_are_named(service: OneProcess) -> None:
    for body, status, text in (
            ({"action": "explode", "nodes": {}}, 400, "/action"),
            ({"action": "inspect"}, 400, "either nodes, or uuids"),
            ({"action": "inspect", "nodes": {}, "uuids": [INSTANCE]}, 400, "either nodes, or uuids"),
            ({"action": "inspect", "uuids": [INSTANCE]}, 400, "/uuids/0"),
            ({"action": "inspect", "uuids": []}, 400, "/uuids"),
            ({"action": "inspect", "nodes": {"colour": "red"}}, 400, "colour"),
            ({"action": "inspect", "nodes": {"where": "vendor is"}}, 400, "where"),
            ({"action": "inspect", "nodes": {}, "reason": "x"}, 400, "/reason"),
            ({"action": "inspect", "nodes": {}}, 409, "on none of these nodes")):
        reply = service.app.post_json("/v1/operations", body)
        assert (reply.status_int, text in reply.text) == (status, True), (body, reply.text)


def test_each_change_has_the_events_of_a_request_for_one_node(service: OneProcess) -> None:
    found = fleet(service)
    outbox.want(service.db.engine, outbox.Wanted("info", False, "conductor-1"))
    for action in ("set-maintenance", "clear-maintenance", "delete"):
        ended(service, act(service, action, uuids=[found["silent"]]).json["uuid"])
    with service.db.reader() as conn:
        told = conn.execute(sa.select(events.c.type, events.c.subject).order_by(events.c.id)).all()
    assert [row.type for row in told if not row.type.endswith("start")] == [
        "baremetal.node.maintenance_set.end", "baremetal.node.maintenance_set.end", "baremetal.node.delete.end"]
    assert {row.subject for row in told} == {f"nodes/{found['silent']}"}
