"""Discovery when no conductor accepts the data: no unacknowledged data remain."""

from __future__ import annotations

import pytest

from ironic_rules.db import discovery, nodes
from ironic_rules.db.paging import Page
from ironic_rules.exceptions import NodeLocked, NoFreeWorker, NotFound, RPCTimeout, Unavailable, no_valid_host
from tests.functional.api.test_continue_inspection import BASE, URL, inventory

MAC = "52:54:00:00:00:01"


@pytest.fixture(autouse=True)
def enabled(conf):
    conf.set_override("enabled", True, group="auto_discovery")
    conf.set_override("driver", "fake-hardware", group="auto_discovery")


def stored(db):
    with db.reader() as conn:
        return nodes.list_nodes(conn, {}, Page(limit=10))


@pytest.mark.parametrize("error", [
    NoFreeWorker(node="x"), no_valid_host(), RPCTimeout(), Unavailable(), ValueError("x")])
def test_a_node_goes_again_when_no_conductor_accepted_its_data(app, db, rpc, error):
    rpc.fail_with("continue_inspection", error)

    app.post_json(URL, inventory(MAC), headers=BASE, status=getattr(error, "code", 500))
    assert stored(db) == []

    uuid = app.post_json(URL, inventory(MAC), headers=BASE, status=200).json["uuid"]
    assert [node.uuid for node in stored(db)] == [uuid]


@pytest.mark.parametrize("error", [NoFreeWorker(node="x"), RPCTimeout()])
def test_a_node_that_a_conductor_took_stays_whatever_became_of_the_answer(app, db, rpc, error, monkeypatch):
    def accepts_and_fails(context, node_id, *arguments, **named):
        db.write(lambda conn: discovery.accept(conn, node_id))
        raise error

    monkeypatch.setattr(rpc, "continue_inspection", accepts_and_fails)

    app.post_json(URL, inventory(MAC), headers=BASE, status=503)

    assert len(stored(db)) == 1


def test_a_machine_that_repeats_its_callback_gets_the_node_that_nobody_accepted(app, db, rpc):
    """The API process has died between the creation and the call."""
    first = app.post_json(URL, inventory(MAC), headers=BASE).json["uuid"]

    again = app.post_json(URL, inventory(MAC, "52:54:00:00:00:02"), headers=BASE).json["uuid"]

    node, = stored(db)
    assert [call[1] for call in rpc.calls] == [node.id, node.id]
    assert (again, len(stored(db))) == (first, 1)


@pytest.mark.parametrize("error", [NodeLocked(node="x", host="y"), NotFound("gone")])
def test_who_comes_second_gets_the_uniform_answer_and_harms_nothing(app, db, rpc, error):
    first = app.post_json(URL, inventory(MAC), headers=BASE).json["uuid"]
    rpc.fail_with("continue_inspection", error)

    fault = app.post_json(URL, inventory(MAC), headers=BASE, status=404).fault

    assert fault["faultstring"] == "The requested node could not be found."
    assert [node.uuid for node in stored(db)] == [first]
