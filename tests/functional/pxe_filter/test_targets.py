"""One filter with several targets: each has its own server, policy and scope; the database is read once for all."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from ironic_rules import context
from ironic_rules.db import nodes, ports
from ironic_rules.exceptions import ConfigurationError
from ironic_rules.models import states
from ironic_rules.pxe_filter import report, settings, statistics
from ironic_rules.pxe_filter.plan import Layout
from ironic_rules.pxe_filter.service import FilterService
from ironic_rules.pxe_filter.sync import Keeper
from ironic_rules.pxe_filter.targets import kea
from ironic_rules.pxe_filter.targets.base import Batch
from tests.functional import databases
from tests.functional.processes import wait_for
from tests.functional.pxe_filter import kea as keas
from tests.functional.pxe_filter import site as sites
from tests.functional.pxe_filter.network import verdicts
from tests.functional.pxe_filter.site import Site
from tests.functional.relay import Relay

pytestmark = pytest.mark.usefixtures("no_dnsmasq")

GUID = "ff:00:00:00:00:00:02:00:00:02:c9:00:00:02:c9:03:00:19:10:51"


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Site]:
    with sites.site(tmp_path, folders=2) as made:
        yield made


def options(site: Site, *, first: str = "", second: str = "", **of_all: Any) -> dict[str, Any]:
    """Return the options of two targets, leaf1 and leaf2, with a folder each."""
    groups = "".join(f"[pxe_filter:leaf{number}]\ndhcp_hostsdir = {folder}\n{own}\n" for number, (folder, own) in
                     enumerate(zip(site.folders, (first, second), strict=True), 1))
    return {"dhcp_hostsdir": "", "targets": "leaf1, leaf2", "sections": groups, **of_all}


def on_network(site: Site, node: int, network: str | None) -> str:
    mac = site.mac()
    port = site.add_port(node, mac)
    site.db.write(lambda conn: ports.update(conn, port, {"physical_network": network}))
    return mac


def statements(site: Site, keeper: Keeper, *, periodic: bool) -> list[str]:
    """Synchronize; return the statements that read ports."""
    seen: list[str] = []

    def note(_conn: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if "FROM ports" in statement:
            seen.append(statement)

    sa.event.listen(site.db.engine, "before_cursor_execute", note)
    keeper.sync(periodic=periodic)
    sa.event.remove(site.db.engine, "before_cursor_execute", note)
    return seen


def test_each_target_has_its_own_scope_and_policy_and_the_database_is_read_once(two: Site) -> None:
    node, busy = two.node(states.INSPECTWAIT), two.node(states.ACTIVE)
    here, there = on_network(two, node, "leaf1"), on_network(two, node, "leaf2")
    other, nowhere = on_network(two, busy, "leaf2"), on_network(two, node, None)
    keeper = two.keeper(**options(two, first="physical_networks = leaf1\ndeny_unknown_macs = true",
                                  second="physical_networks = leaf2"))

    # One page of ports and the page after the last, and those with identifiers.
    assert len(statements(two, keeper, periodic=True)) == 3
    assert [verdicts(folder) for folder in two.folders] == [
        {here: True, "*": False}, {there: True, other: False, "*": True}]

    two.move(node, states.MANAGEABLE)
    assert len(statements(two, keeper, periodic=False)) == 1
    assert [verdicts(folder) for folder in two.folders] == [
        {here: False, "*": False}, {there: False, other: False, "*": False}]

    keeper.tell([here, other, nowhere], [])
    keeper.write()
    assert [verdicts(folder) for folder in two.folders] == [
        {here: True, "*": False}, {there: False, other: True, "*": True}]


def test_a_port_that_moves_leaves_one_target_and_joins_the_other(two: Site) -> None:
    node = two.node(states.INSPECTWAIT)
    mac = on_network(two, node, "leaf1")
    keeper = two.synced(**options(two, first="physical_networks = leaf1", second="physical_networks = leaf2",
                                  deny_unknown_macs=True))
    assert [verdicts(folder) for folder in two.folders] == [{mac: True, "*": False}, {"*": False}]

    two.db.write(lambda conn: ports.update(conn, ports.get(conn, mac).id, {"physical_network": "leaf2"}))
    keeper.sync(periodic=False)
    assert [verdicts(folder) for folder in two.folders] == [{mac: False, "*": False}, {mac: True, "*": False}]


def test_conductor_groups_and_what_is_common(two: Site) -> None:
    nodes_ = [two.machine(states.INSPECTWAIT) for _ in range(2)]
    for (node, _), group in zip(nodes_, ("rack1", "rack2"), strict=True):
        two.db.write(lambda conn, node=node, group=group: nodes.update(  # type: ignore[misc]
            conn, node, {"conductor_group": group}))
    common = options(two, first="conductor_groups = Rack1", second="hosts_files = 0", deny_unknown_macs=True,
                     hosts_files=8)

    keeper = two.synced(**common)
    keeper.sync(periodic=True)

    assert [verdicts(folder) for folder in two.folders] == [
        {nodes_[0][1]: True, "*": False}, {nodes_[0][1]: True, nodes_[1][1]: True, "*": False}]
    assert keeper.statistics.inspecting == 3
    assert {path.name for path in two.folders[1].glob("[!.]*")} == {"unknown_hosts_filter", *(mac for _, mac in nodes_)}


def test_status_and_metrics_name_the_target(two: Site) -> None:
    node = two.node(states.INSPECTWAIT)
    mac = on_network(two, node, "leaf2")
    conf = two.conf(**options(two, first="physical_networks = leaf1", second="physical_networks = leaf2"))
    made = settings.from_conf(conf)

    lines = list(report.status(made, two.db))
    assert [line.partition("\t")[0] for line in lines] == [
        "[leaf1]", "*:*:*:*:*:*", str(two.folders[0]), "[leaf2]", "*:*:*:*:*:*", mac, str(two.folders[1])]

    keeper = Keeper(made, two.db)
    keeper.open()
    try:
        keeper.sync(periodic=True)
        samples = {(sample.name, sample.labels.get("target")): sample.value
                   for family in statistics._Collector(keeper.statistics).collect() for sample in family.samples}
    finally:
        keeper.close()
    assert samples["ironic_pxe_filter_addresses", "leaf1"] == 0
    assert samples["ironic_pxe_filter_addresses", "leaf2"] == 1
    assert samples["ironic_pxe_filter_messages_total", None] == 0


@pytest.mark.parametrize(("given", "reason"), [
    ({"targets": "leaf1, Leaf1"}, "targets has a name twice"),
    ({"targets": "leaf/1"}, "targets = leaf/1: "),
    ({"targets": "leaf1, leaf2, leaf3"}, r"\[pxe_filter:leaf3\]dhcp_hostsdir is not set"),
    ({"dhcp_hostsdir": "/srv/all", "targets": "a, b"},
     r"\[pxe_filter:b\]dhcp_hostsdir has /srv/all, which \[pxe_filter:a\] uses"),
    ({"target": "kea", "kea_connection": "postgresql+psycopg://u@h/kea", "kea_control_sockets": "/run/kea",
      "targets": "a, b"}, r"\[pxe_filter:b\]kea_connection names a database .* which \[pxe_filter:a\] uses"),
    ({"target": "kea", "kea_connection": "postgresql+psycopg://u@h/kea", "deny_unknown_macs": True, "targets": "a, b",
      "kea_former_names": "old, B"}, r"\[pxe_filter:a\]kea_former_names has B, the name of \[pxe_filter:b\]"),
    ({"target": "kea", "kea_connection": "postgresql+psycopg://u@h/kea", "deny_unknown_macs": True, "targets": "a, b",
      "kea_former_names": "all"}, r"\[pxe_filter:a\]kea_former_names has all, and so does \[pxe_filter:b\], perhaps"),
    ({"target": "kea", "kea_connection": "postgresql+psycopg://u@h/kea", "deny_unknown_macs": True, "targets": "",
      "kea_former_names": "all"}, r"\[pxe_filter\]kea_former_names has all, the name of \[pxe_filter\]")])
def test_targets_that_do_not_fit_are_refused(two: Site, given: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        settings.from_conf(two.conf(**options(two) | given))


@pytest.mark.parametrize("files", [0, 8])
def test_a_client_identifier_is_told_beside_the_address(two: Site, files: int,
                                                        caplog: pytest.LogCaptureFixture) -> None:
    node, mac = two.machine()
    bad, worse = (two.machine() for _ in range(2))
    two.db.write(lambda conn: ports.update(conn, ports.get(conn, mac).id, {"extra": {"client-id": GUID.upper()}}))
    for machine, text in ((bad, "rack-7"), (worse, f"01:{mac}")):
        two.db.write(lambda conn, mac=machine[1], text=text: ports.update(  # type: ignore[misc]
            conn, ports.get(conn, mac).id, {"extra": {"client-id": text}}))
    keeper = two.synced(hosts_files=files)
    folder, known = two.folder, {bad[1]: False, worse[1]: False}
    assert verdicts(folder) == {mac: False, f"id:{GUID}": False, "*": False, **known}
    assert caplog.text.count("which is not one in hexadecimal, or is made of a MAC address") == 2

    two.move(node, states.INSPECTWAIT)
    keeper.sync(periodic=False)
    assert verdicts(folder) == {mac: True, f"id:{GUID}": True, "*": True, **known}
    before = keeper.statistics.written
    keeper._read_all_at = None
    keeper.sync(periodic=True)
    assert keeper.statistics.written == before

    two.db.write(lambda conn: ports.update(conn, ports.get(conn, mac).id, {"extra": {"duid": "0004" + "ab" * 16}}))
    keeper.sync(periodic=False)
    duid = "id:00:04" + ":ab" * 16
    assert verdicts(folder)[duid]
    two.close(keeper)

    keeper = two.synced(hosts_files=8 - files)
    assert verdicts(folder) == {mac: True, duid: True, f"id:{GUID}": True, "*": True, **known}


def test_of_several_nodes_with_one_client_identifier_the_first_decides(two: Site,
                                                                       caplog: pytest.LogCaptureFixture) -> None:
    first, second, third = (two.machine()[0] for _ in range(3))
    for node in (second, third):
        two.identify(node, "client-id", GUID)
    keeper = two.synced(hosts_files=8)
    said = "is that of ports of several nodes; node {} ('active') decides alone"

    def is_allowed() -> bool | None:
        """Return what an incremental reading says, and a complete one, which must be the same."""
        keeper.sync(periodic=False)
        found = verdicts(two.folder).get(f"id:{GUID}")
        keeper._read_all_at = None
        keeper.sync(periodic=True)
        assert verdicts(two.folder).get(f"id:{GUID}") == found
        return found

    assert said.format(two.uuid(second)) in caplog.text
    # The node with the lower id decides, in every order of beginnings and ends.
    two.move(third, states.INSPECTWAIT)
    assert is_allowed() is False
    two.move(second, states.INSPECTWAIT)
    assert is_allowed() is True
    two.move(third, states.ACTIVE)
    assert is_allowed() is True
    two.identify(first, "duid", GUID)
    assert is_allowed() is False
    assert said.format(two.uuid(first)) in caplog.text
    two.drop_node(first)
    assert is_allowed() is True
    two.identify(second, "client-id", GUID.replace("00", "01"))
    assert is_allowed() is False
    two.move(third, states.INSPECTWAIT)
    assert is_allowed() is True
    assert caplog.text.count("is that of ports of several nodes") == 3


def number_of_hosts(url: str) -> int | None:
    """Return how many reservations a database of Kea has."""
    with databases.engine(url) as engine, engine.connect() as conn:
        return conn.scalar(sa.text("SELECT count(*) FROM hosts"))


@pytest.mark.servers
@pytest.mark.long
def test_a_host_database_that_hangs_keeps_only_its_target_waiting(
        two: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(kea, "_LIMIT_S", 2)
    monkeypatch.setattr(kea, "_REST_S", 0.5)
    _, mac = two.machine(states.INSPECTWAIT)
    with keas.host_database() as url:
        parsed = sa.make_url(url)
        relay = Relay(parsed.host or "127.0.0.1", parsed.port or 5432)
        through = parsed.set(host="127.0.0.1", port=relay.port).render_as_string(hide_password=False)
        first = f"target = kea\nkea_connection = {through}"
        conf = two.conf(**options(two, first=first, deny_unknown_macs=True, sync_period=3600))
        keeper = Keeper(settings.from_conf(conf), two.db)
        service = FilterService(conf, keeper, None)
        service.start()
        try:
            relay.is_silent = True
            for _ in range(3):  # the first is written before the silence is noticed
                _, other = two.machine(states.INSPECTWAIT)
                service.manager.update_pxe_filters(context.admin(), allow=[other])
                wait_for("the file", lambda other=other: verdicts(two.folders[1]).get(other))  # type: ignore[misc]
            # Not while the statement waits that has been sent last.
            wait_for("something that is left", lambda: keeper.areas[0].is_behind)
            wait_for("the report", lambda: "Cannot write into the host database of Kea" in caplog.text)

            relay.is_silent = False
            wait_for("the reservations", lambda: number_of_hosts(url) == 4)
        finally:
            service.stop()
            service.wait(60)
            keeper.close()
            relay.cut()
    assert mac in verdicts(two.folders[1])


def test_a_silent_control_socket_is_asked_less_and_less(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kea, "_TIMEOUT_S", 0.05)
    monkeypatch.setattr(kea, "_SLOW_S", 0.01)
    path = str(tmp_path / "control")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen(16)
        server.setblocking(False)
        target = kea.KeaTarget(kea.Hosts("postgresql+psycopg://u@192.0.2.1/kea", ["hw-address"], "all"), [path],
                               Layout(1), allowed_only=False)
        answers = [target.apply(Batch({}, True)) for _ in range(3)]

        assert all(answer.unknown_failed for answer in answers)
        server.accept()[0].close()
        with pytest.raises(BlockingIOError):  # it was asked once
            server.accept()
        assert "timed out" in str(answers[0].problem)
        assert "does not reply" in str(answers[1].problem)
        target.close()
