"""The effects of messages to the filter, over the transport within one process."""

from __future__ import annotations

import contextlib
import logging
import secrets
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import oslo_messaging as messaging
import pytest

from ironic_rules import context
from ironic_rules.models import states
from ironic_rules.pxe_filter import service as filter_service
from ironic_rules.pxe_filter import settings
from ironic_rules.pxe_filter.service import FilterService
from ironic_rules.pxe_filter.sync import Keeper
from ironic_rules.rpc import pxe_filter as rpc
from ironic_rules.rpc import transport as rpc_transport
from tests.functional.brokers import temporary_vhost
from tests.functional.processes import in_time, wait_for
from tests.functional.pxe_filter.site import Site

ADMIN = context.admin()


class Filter:
    """A running filter, and a sender of messages."""

    def __init__(self, site: Site, name: str = "filter", **options: Any) -> None:
        conf = site.conf(name=name, **{"sync_period": 3600, **options})
        self.transport = rpc_transport.get_transport(conf)
        self.keeper = Keeper(settings.from_conf(conf), site.db)
        self.service = FilterService(conf, self.keeper, self.transport)
        self.client = rpc.PXEFilterAPI(self.transport)

    def tell(self, **addresses: Any) -> None:
        """Send a message and wait until the filter has processed it and read the database."""
        before = self.keeper.statistics.syncs["incremental"] + self.keeper.statistics.syncs["full"]
        self.client.update_pxe_filters(ADMIN, **addresses)
        wait_for("the look", lambda: sum(self.keeper.statistics.syncs.values()) > before, interval_s=0.002)
        time.sleep(0.02)


@pytest.fixture
def at_work(site: Site) -> Iterator[Any]:
    made: list[Filter] = []
    site.transport = f"ironic-rules-memory:///{secrets.token_hex(4)}"

    def start(at: Site = site, **options: Any) -> Filter:
        filter_ = Filter(at, **options)
        filter_.service.start()
        made.append(filter_)
        wait_for("the server", lambda: sum(filter_.keeper.statistics.syncs.values()) >= 2, interval_s=0.002)
        return filter_

    yield start
    for filter_ in made:
        filter_.service.stop()
        filter_.service.wait(60)
        filter_.keeper.close()
        filter_.transport.cleanup()


def test_allow_and_deny_change_what_they_name_and_nothing_else(site, at_work):
    macs = [site.machine()[1] for _ in range(3)]
    filter_ = at_work()

    filter_.tell(allow=[macs[0]], deny=[macs[2]])
    site.reaches({macs[0]: True, macs[1]: False, macs[2]: False, "*": True})

    filter_.tell(deny=[macs[0]])
    site.reaches({macs[0]: False, macs[1]: False, macs[2]: False, "*": False})


def test_an_address_that_no_port_has_can_be_let_in_too(site, at_work):
    filter_ = at_work()

    filter_.tell(allow=["52:54:00:AA:00:01"])

    site.reaches({"52:54:00:aa:00:01": True, "*": True})


def test_the_next_periodic_sync_has_the_last_word(site, at_work):
    _, mac = site.machine()
    filter_ = at_work()
    filter_.tell(allow=[mac])
    site.reaches({mac: True, "*": True})

    filter_.keeper.sync(periodic=True)
    site.reaches({mac: False, "*": False})


def test_every_message_makes_the_filter_look_at_the_database(site, at_work):
    node, mac = site.machine()
    filter_ = at_work()
    site.move(node, states.INSPECTWAIT)

    filter_.tell()

    site.reaches({mac: True, "*": True})


def test_many_messages_about_known_ports_cause_few_readings(site, at_work):
    macs = [site.machine()[1] for _ in range(50)]
    filter_ = at_work()
    statistics = filter_.keeper.statistics
    before, began = statistics.syncs["incremental"], time.monotonic()

    for mac in macs:
        filter_.client.update_pxe_filters(ADMIN, allow=[mac])
    site.reaches({**dict.fromkeys(macs, True), "*": True})
    wait_for("a reading", lambda: statistics.syncs["incremental"] > before, interval_s=0.002)

    # Each is 50 ms after the first message that it is for, so this many have begun at most.
    assert statistics.syncs["incremental"] - before <= 1 + (time.monotonic() - began) / 0.05


def test_a_message_about_a_port_that_is_not_known_is_compared_with_the_database_at_once(site, at_work, monkeypatch):
    """For a new port the API sends: denied. That its node is on inspection is read from the database."""
    monkeypatch.setattr(filter_service, "_READ_AFTER_S", 3600)
    node, mac = site.machine(states.INSPECTWAIT)
    filter_ = at_work(sync_period=3600)
    added = site.mac()
    site.add_port(node, added)

    filter_.client.update_pxe_filters(ADMIN, deny=[added])

    site.reaches({mac: True, added: True, "*": True})


def test_a_node_without_ports_opens_the_door_for_strangers(site, at_work):
    node = site.node(states.MANAGEABLE)
    filter_ = at_work()
    site.move(node, states.INSPECTING)
    filter_.tell(allow=[])
    site.reaches({"*": True})

    site.move(node, states.INSPECTFAIL)
    filter_.tell(deny=[])
    site.reaches({"*": False})


def test_a_late_message_does_not_outlive_a_change_in_the_database(site, at_work):
    node, mac = site.machine(states.INSPECTWAIT)
    filter_ = at_work()
    filter_.tell(deny=[mac])  # of the inspection before
    site.move(node, states.ACTIVE)
    filter_.tell()
    site.move(node, states.INSPECTWAIT)
    filter_.tell()

    wait_for("the verdict", lambda: site.verdicts()[mac])


def test_a_deleted_port_goes_with_the_unknown_addresses(site, at_work):
    _, mac = site.machine(states.ACTIVE)
    site.machine(states.INSPECTWAIT)
    filter_ = at_work()
    site.drop_port(mac)

    filter_.tell(deny=[mac])

    wait_for("the verdict", lambda: site.verdicts()[mac])
    assert filter_.keeper.statistics.gone == 1


@pytest.mark.parametrize("bad", [
    ["../x"], ["52:54:00:00:00:01\n"], ["*:*:*:*:*:*"], [None], [{"a": 1}], ["ff:ff:ff:ff:ff:ff"], "52:54:00:00:00:01",
    7, {"52:54:00:00:00:01": True}, [["52:54:00:00:00:01"]], [""], ["x" * 100_000]])
def test_bad_addresses_are_not_heeded_and_logged(site, at_work, caplog, bad):
    _, mac = site.machine()
    filter_ = at_work()
    sender = messaging.get_rpc_client(
        filter_.transport, messaging.Target(topic="ironic.pxe_filter", version="1.0", fanout=True))

    sender.cast({}, "update_pxe_filters", allow=bad, deny=None)
    wait_for("the bad message", lambda: filter_.keeper.statistics.messages)
    filter_.tell(allow=[mac])

    site.reaches({mac: True, "*": True})
    assert "is ignored" in caplog.text
    assert all(record.getMessage().isprintable() for record in caplog.records)


def test_files_that_wait_are_written_while_the_database_is_away(site, at_work):
    _, mac = site.machine()
    filter_ = at_work(sync_period=1, hosts_files=0)
    database = Path(site.db.engine.url.database)
    site.db.dispose()
    database.rename(database.with_suffix(".away"))
    (site.folder / mac).unlink()
    (site.folder / mac).mkdir()
    filter_.client.update_pxe_filters(ADMIN, allow=[mac])
    wait_for("the attempt", lambda: filter_.keeper.statistics.unwritten == 2, interval_s=0.002)

    (site.folder / mac).rmdir()

    wait_for("the files", lambda: site.verdicts() == {mac: True, "*": True})
    wait_for("the failure", lambda: filter_.keeper.statistics.syncs["failed"] >= 1)
    wait_for("all files", lambda: filter_.keeper.statistics.unwritten == 0)


def test_a_database_that_was_away_when_a_message_came_is_asked_again_soon(site, at_work):
    node, mac = site.machine()
    filter_ = at_work(sync_period=3600)
    database = Path(site.db.engine.url.database)
    site.db.dispose()
    database.rename(database.with_suffix(".away"))
    filter_.client.update_pxe_filters(ADMIN)
    wait_for("the attempt", lambda: filter_.keeper.statistics.syncs["failed"], interval_s=0.002)

    site.db.dispose()
    database.with_suffix(".away").rename(database)
    site.move(node, states.INSPECTWAIT)

    wait_for("another one", lambda: site.verdicts() == {mac: True, "*": True})


def test_every_filter_gets_every_message(site, at_work, tmp_path):
    _, mac = site.machine()
    (tmp_path / "second").mkdir()
    second = Site(tmp_path / "second", site.db, site.url, site.transport, 1)
    first = at_work()
    at_work(second, name="another-host")

    first.client.update_pxe_filters(ADMIN, allow=[mac])

    wait_for("both", lambda: site.verdicts().get(mac) and second.verdicts().get(mac), interval_s=0.005)


def test_a_message_that_comes_while_the_database_is_read_is_newer(site):
    """The database is read before the commit that the message is about, and the result is used after it."""
    _node, mac = site.machine(states.ACTIVE)
    keeper = site.synced()
    original = keeper._reader._list.changed

    def changed(conn: Any) -> Any:
        found = original(conn)
        keeper.tell([mac], [])
        keeper.write()
        return found

    keeper._reader._list.changed = changed
    keeper.sync(periodic=True)
    site.reaches({mac: True, "*": True})

    keeper._reader._list.changed = original
    keeper.sync(periodic=True)
    site.reaches({mac: False, "*": False})


def test_a_message_that_comes_while_its_change_is_read_does_not_outlive_the_next_look(site):
    """For a new port the API sends: denied. That its node is on inspection is read from the database."""
    node, mac = site.machine(states.INSPECTWAIT)
    keeper = site.synced()
    added = site.mac()
    site.add_port(node, added)
    original = keeper._reader._list.changed

    def changed(conn: Any) -> Any:
        found = original(conn)
        keeper.tell([], [added])
        keeper.write()
        return found

    keeper._reader._list.changed = changed
    keeper.sync(periodic=False)
    site.reaches({mac: True, added: False, "*": True})

    keeper._reader._list.changed = original
    keeper.sync(periodic=False)
    site.reaches({mac: True, added: True, "*": True})


def test_the_log_says_when_a_message_opens_and_closes_the_door(site, at_work, caplog):
    node, mac = site.machine()
    filter_ = at_work()
    with caplog.at_level(logging.INFO):
        site.move(node, states.INSPECTWAIT)
        filter_.tell(allow=[mac])
        assert "Unknown addresses are allowed from now on" in caplog.text
        site.move(node, states.ACTIVE)
        filter_.tell(deny=[mac])
        assert "Unknown addresses are denied from now on" in caplog.text


def test_a_message_before_the_first_sync_does_not_make_files_of_what_is_not_known(site):
    _, mac = site.machine(states.INSPECTWAIT)
    _, other = site.machine(states.INSPECTWAIT)
    site.close(site.synced(hosts_files=1))
    keeper = site.keeper(hosts_files=1)

    keeper.tell([], [mac])
    keeper.write()
    site.reaches({mac: True, other: True, "*": True})

    keeper.sync(periodic=True)
    site.reaches({mac: True, other: True, "*": True})


class TestTheQuestion:
    """Conductors ask whether a filter serves a machine before they start it."""

    def test_it_is_asked_until_the_addresses_are_served(self, site, at_work):
        node, mac = site.machine()
        _, other = site.machine()
        filter_ = at_work()
        assert filter_.client.await_served(ADMIN, [other, mac], 0) == sorted([mac, other])

        site.move(node, states.INSPECTWAIT)
        filter_.client.update_pxe_filters(ADMIN, allow=[mac])
        assert filter_.client.await_served(ADMIN, [mac], 60) == []
        assert site.verdicts()[mac] is True
        assert filter_.client.await_served(ADMIN, [mac, other, "nothing"], 0) == sorted(["nothing", other])
        assert filter_.client.await_served(ADMIN, [], 60) is None

    def test_filters_of_earlier_versions_do_not_answer(self, site, at_work):
        class Earlier:
            target = messaging.Target(version="1.0")

        site.transport = f"ironic-rules-memory:///{secrets.token_hex(4)}"
        transport = rpc_transport.get_transport(site.conf())
        server = messaging.get_rpc_server(
            transport, messaging.Target(topic=rpc.TOPIC, server="earlier", version="1.0"), [Earlier()])
        server.start()
        try:
            assert rpc.PXEFilterAPI(transport).await_served(ADMIN, [site.mac()], 60) is None
        finally:
            server.stop()
            server.wait()
            transport.cleanup()

    @pytest.mark.servers
    def test_without_a_filter_nobody_waits(self, site):
        with temporary_vhost() as url:
            site.transport = url
            transport = rpc_transport.get_transport(site.conf())
            client = rpc.PXEFilterAPI(transport)
            with in_time():
                assert [client.await_served(ADMIN, [site.mac()], 3600) for _ in range(100)] == [None] * 100
            transport.cleanup()

    def test_one_beside_the_service_answers_its_user_over_a_socket(self, site, tmp_path):
        node, mac = site.machine(states.INSPECTWAIT)
        keeper = site.synced()
        path = tmp_path / rpc.SOCKET
        path.write_text("left behind")
        client = rpc.PXEFilterAPI(beside=path)
        assert client.await_served(ADMIN, [mac], 3600) is None

        answers = rpc.Answers(path, lambda asked: [address for address in asked if keeper.serves(address)])
        for nonsense in (b"", b"\xff\0 \n", b"a " * 100_000, b"." * 2_000_000):
            with socket.socket(socket.AF_UNIX) as connection, contextlib.suppress(OSError):
                connection.connect(str(path))
                connection.sendall(nonsense)
        try:
            assert path.stat().st_mode & 0o777 == 0o600
            assert client.await_served(ADMIN, [mac], 60) == []
            site.move(node, states.ACTIVE)
            keeper.sync(periodic=True)
            assert client.await_served(ADMIN, [mac], 0) == [mac]
        finally:
            answers.close()
        assert client.await_served(ADMIN, [mac], 3600) is None


class TestTheSender:
    """PXEFilterAPI never waits for the broker."""

    def test_nobody_is_told_without_a_transport(self):
        rpc.PXEFilterAPI().update_pxe_filters(ADMIN, allow=["52:54:00:00:00:01"])

    def test_a_broker_that_is_away_costs_no_time_and_is_logged_once(self, site, caplog):
        site.transport = "rabbit://guest:guest@127.0.0.1:1/"
        client = rpc.PXEFilterAPI(rpc_transport.get_transport(site.conf()))
        with in_time():
            for _ in range(3000):
                client.update_pxe_filters(ADMIN, allow=["52:54:00:00:00:01"])

        def complaints():
            return [record for record in caplog.records if "Messages to the PXE filters are not sent" in
                    record.getMessage()]

        wait_for("a complaint in the log", complaints)
        assert len(complaints()) == 1

    @pytest.mark.parametrize(("url", "notify", "sends"), [
        ("ironic-rules-memory://", None, False), ("kombu+memory://", None, False), ("rabbit://h", None, True),
        ("ironic-rules-memory://", "true", True), ("rabbit://h", "false", False)])
    def test_by_default_nothing_is_sent_where_nobody_can_hear_it(self, site, url, notify, sends):
        site.transport = url
        conf = site.conf(**({} if notify is None else {"notify": notify}))

        client = rpc.make_client(rpc_transport.get_transport(conf), conf)

        assert (client._client is not None) is sends


def test_a_message_about_a_deletion_that_was_read_already_does_not_outlive_the_next_look(site):
    """The API sends: denied. But an address without a port is as any unknown one, which the next reading confirms."""
    _, kept = site.machine(states.INSPECTWAIT)
    node, mac = site.machine()
    keeper = site.synced()
    site.drop_node(node)
    original = keeper._reader._list.changed

    def changed(conn: Any) -> Any:
        found = original(conn)
        keeper.tell([], [mac])
        keeper.write()
        return found

    keeper._reader._list.changed = changed
    keeper.sync(periodic=False)
    assert site.verdicts() == {kept: True, mac: False, "*": True}

    keeper._reader._list.changed = original
    keeper.sync(periodic=False)
    assert site.verdicts() == {kept: True, mac: True, "*": True}


def test_questions_are_answered_after_one_that_never_ends_and_a_failure_to_accept(tmp_path, monkeypatch):
    monkeypatch.setattr(rpc, "_ANSWER_S", 0.2)
    accept, failures = socket.socket.accept, [OSError(24, "Too many open files")]

    def fails_once(listening):
        if failures:
            raise failures.pop()
        return accept(listening)

    monkeypatch.setattr(socket.socket, "accept", fails_once)
    path = tmp_path / rpc.SOCKET
    answers = rpc.Answers(path, lambda asked: asked)
    ends = time.monotonic() + 30
    try:
        with socket.socket(socket.AF_UNIX) as endless, contextlib.suppress(BrokenPipeError):
            endless.connect(str(path))
            while time.monotonic() < ends:
                endless.sendall(b"a ")
                time.sleep(0.02)
        assert time.monotonic() < ends
        monkeypatch.setattr(rpc, "_ANSWER_S", 30.0)
        assert rpc.PXEFilterAPI(beside=path).await_served(ADMIN, ["a"], 0) == []
    finally:
        answers.close()
