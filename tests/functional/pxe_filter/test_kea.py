"""Kea follows what the filter writes into its host database: real servers, real requests."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from ironic_rules.exceptions import ConfigurationError
from ironic_rules.models import states
from ironic_rules.pxe_filter import plan, report, settings, targets
from ironic_rules.pxe_filter.sync import Keeper
from ironic_rules.pxe_filter.targets.base import Batch
from tests.functional import databases
from tests.functional.processes import wait_for
from tests.functional.pxe_filter import kea as keas
from tests.functional.pxe_filter.network import Network, network
from tests.functional.pxe_filter.site import Site

pytestmark = pytest.mark.servers

_SAMPLES = Path(__file__).parents[3] / "etc" / "ironic-rules" / "kea"
RELAY4 = {"v": 4, "relay": "198.51.100.2", "server": "198.51.100.1"}
RELAY6 = {"v": 6, "relay": "2001:db8::2", "server": "2001:db8::1"}


@pytest.fixture
def net(tmp_path: Path) -> Iterator[Network]:
    keas.require()
    with network(tmp_path) as made:
        yield made


@pytest.fixture(scope="module")
def hosts_postgresql() -> Iterator[str]:
    with keas.host_database() as url:
        yield url


@pytest.fixture
def hosts(hosts_postgresql: str) -> Iterator[str]:
    """The URL of an empty host database."""
    yield hosts_postgresql
    with databases.engine(hosts_postgresql) as engine, engine.begin() as conn:
        conn.execute(sa.text("DELETE FROM hosts"))


def reservations(url: str) -> int:
    with databases.engine(url) as engine, engine.connect() as conn:
        return int(conn.scalar(sa.text("SELECT count(*) FROM hosts")) or 0)


def keeper_of(site: Site, url: str, **options: Any) -> Keeper:
    return site.synced(target="kea", kea_connection=url, **options)


def four(*macs: str) -> list[dict[str, Any]]:
    return [{"v": 4, "mac": mac, "wait": 1.5} for mac in macs]


def follows(site: Site, net: Network, url: str) -> None:
    """Walk through the closed policy with a DHCPv4 server."""
    (node, mac), (_, other), stranger = site.machine(states.INSPECTWAIT), site.machine(), site.mac()
    keeper = keeper_of(site, url, deny_unknown_macs=True)
    net.kea(4, url, "closed")
    assert net.wire.ask(*four(mac, other, stranger)) == [True, False, False]
    assert reservations(url) == 1

    keeper.tell([other], [mac])
    keeper.write()
    assert net.wire.ask(*four(mac, other, stranger)) == [False, True, False]

    site.move(node, states.MANAGEABLE)
    keeper.sync(periodic=True)
    assert net.wire.ask(*four(mac, other)) == [False, False]
    keeper.areas[0].observe()
    assert keeper.statistics.in_force


def test_the_closed_policy_with_postgresql(site: Site, net: Network, hosts: str) -> None:
    follows(site, net, hosts)


def test_the_open_policy(site: Site, net: Network, hosts: str) -> None:
    (node, mac), (_, other), stranger = site.machine(), site.machine(), site.mac()
    kea = net.kea(4, hosts, "open")
    assert net.wire.ask(*four(stranger)) == [True]
    keeper = keeper_of(site, hosts, kea_control_sockets=kea.control)
    assert net.wire.ask(*four(mac, other, stranger)) == [False, False, False]

    site.move(node, states.INSPECTWAIT)
    keeper.sync(periodic=False)
    assert net.wire.ask(*four(mac, other, stranger)) == [True, False, True]
    assert reservations(hosts) == 1

    site.move(node, states.ACTIVE)
    keeper.sync(periodic=False)
    assert net.wire.ask(*four(mac, other, stranger)) == [False, False, False]

    kea.stop()
    keeper.areas[0].observe()
    assert not keeper.statistics.in_force
    kea.start()
    keeper.areas[0].observe()
    assert keeper.statistics.in_force
    assert net.wire.ask(*four(mac, other, stranger)) == [False, False, False]


@pytest.mark.parametrize("policy", ["open", "closed"])
def test_dhcpv6_by_address_and_by_duid_directly_and_relayed(site: Site, net: Network, hosts: str, policy: str) -> None:
    mac, served, denied = net.mac, site.mac(), site.mac()
    node = site.node(states.ACTIVE, mac)
    site.node(states.INSPECTWAIT, served)
    site.node(states.ACTIVE, denied)
    kea = net.kea(6, hosts, policy)
    keeper = keeper_of(site, hosts, deny_unknown_macs=policy == "closed", kea_control_sockets=kea.control,
                       kea_identifiers="hw-address,duid")
    other_duid = "0004" + "ab" * 15  # of a machine's UUID (RFC 6355): only the address tells who it is
    by_duid = [{"v": 6, "mac": one, "duid": "00030001" + one.replace(":", ""), "wait": 1.5} for one in (served, denied)]
    by_address = [{**RELAY6, "mac": one, "duid": other_duid + one[-2:], "wait": 1.5} for one in (served, denied)]
    # With a time in it (DUID-LLT), it is not the one of the reservation, but Kea takes the address from it.
    direct = {"v": 6, "mac": mac, "duid": "000100011234abcd" + mac.replace(":", ""), "wait": 1.5}

    assert net.wire.ask(*by_address) == [True, False]
    assert net.wire.ask(by_duid[1]) == [False]
    assert net.wire.ask(direct) == [False]

    site.move(node, states.INSPECTWAIT)
    keeper.sync(periodic=False)
    assert net.wire.ask(direct) == [True]
    assert net.wire.ask(by_duid[0]) == [True]
    assert reservations(hosts) == (4 if policy == "closed" else 2)


@pytest.mark.parametrize("policy", ["open", "closed"])
def test_clients_are_told_by_their_identifiers(site: Site, net: Network, hosts: str, policy: str) -> None:
    """InfiniBand has no address in DHCPv4; a DUID of a machine's UUID has none, and Kea finds none for it either."""
    machines = [site.machine(state) for state in (states.INSPECTWAIT, states.ACTIVE) * 2]
    guids = [f"ff:00:00:00:00:00:02:00:00:02:c9:00:00:02:c9:03:00:19:10:5{number}" for number in range(2)]
    duids = ["0004" + "ab" * 16, "0004" + "cd" * 16]
    for (node, _), name, identifier in zip(machines, ("client-id", "client-id", "duid", "duid"), guids + duids,
                                           strict=True):
        site.identify(node, name, identifier)
    sockets = f"{net.kea(4, hosts, policy).control},{net.kea(6, hosts, policy).control}"
    keeper = keeper_of(site, hosts, deny_unknown_macs=policy == "closed", kea_control_sockets=sockets,
                       kea_identifiers="hw-address,duid,client-id")
    four = [{"v": 4, "mac": machines[0][1], "hardware": 32, "client_id": guid.replace(":", ""), "wait": 1.5}
            for guid in guids]
    six = [{"v": 6, "mac": net.mac, "duid": duid, "wait": 1.5} for duid in duids]

    assert net.wire.ask(*four, *six, *({**RELAY4, **client} for client in four)) == [True, False] * 3
    written = keeper.statistics.written
    keeper.sync(periodic=True)
    assert (keeper.statistics.written, keeper.statistics.healed) == (written, 0)


def test_a_relay_asks_for_its_clients(site: Site, net: Network, hosts: str) -> None:
    (_, mac), (_, other) = site.machine(states.INSPECTWAIT), site.machine()
    keeper_of(site, hosts, deny_unknown_macs=True)
    net.kea(4, hosts, "closed")

    assert net.wire.ask(*({**RELAY4, "mac": one, "wait": 1.5} for one in (mac, other))) == [True, False]


def test_reservations_of_the_operator_stay_and_what_others_remove_comes_back(site: Site, hosts: str,
                                                                             caplog: pytest.LogCaptureFixture) -> None:
    (_, mac), (_, other) = site.machine(states.INSPECTWAIT), site.machine(states.INSPECTWAIT)
    with databases.engine(hosts) as engine:
        with engine.begin() as conn:
            conn.execute(sa.text("INSERT INTO hosts (dhcp_identifier, dhcp_identifier_type, dhcp4_subnet_id, hostname) "
                                 "VALUES (:mac, 0, 0, 'printer')"), {"mac": bytes.fromhex(other.replace(":", ""))})
        keeper = keeper_of(site, hosts, deny_unknown_macs=True)
        assert reservations(hosts) == 2
        assert f"Kea has other reservations for {other}" in caplog.text
        with engine.begin() as conn:
            conn.execute(sa.text("DELETE FROM hosts WHERE hostname IS NULL"))
        keeper.sync(periodic=True)
        assert reservations(hosts) == 2
        assert "was changed by another process" in caplog.text

        site.drop_port(mac)
        keeper.sync(periodic=False)
        with engine.begin() as conn:
            assert conn.execute(sa.text("SELECT hostname FROM hosts")).all() == [("printer",)]
            conn.execute(sa.text("DELETE FROM hosts"))
        keeper.sync(periodic=True)
        with engine.connect() as conn:
            assert conn.execute(sa.text("SELECT hostname FROM hosts")).all() == [(None,)]


def test_another_policy_takes_over_what_the_last_one_has_written(site: Site, hosts: str) -> None:
    site.machine(states.INSPECTWAIT), site.machine(), site.machine()
    site.close(keeper_of(site, hosts, sections="[auto_discovery]\nenabled = true\n"))
    with databases.engine(hosts) as engine, engine.connect() as conn:
        assert conn.execute(sa.text("SELECT dhcp4_client_classes FROM hosts")).all() == [("DROP",), ("DROP",)]

    keeper_of(site, hosts, deny_unknown_macs=True)

    with databases.engine(hosts) as engine, engine.connect() as conn:
        assert conn.execute(sa.text("SELECT dhcp4_client_classes, dhcp6_client_classes FROM hosts")).all() == [
            (None, None)]


def rows(url: str) -> set[tuple[str, str, str | None]]:
    """Return the address, the name of the filter and the class of each reservation."""
    with databases.engine(url) as engine, engine.connect() as conn:
        found = conn.execute(sa.text("SELECT dhcp_identifier, user_context, dhcp4_client_classes FROM hosts")).all()
    return {(bytes(mac).hex(":"), json.loads(context)["ironic-pxe-filter"], classes) for mac, context, classes in found}


@pytest.mark.parametrize("drop", ["DROP", None], ids=["open", "closed"])
def test_reservations_under_a_former_name_are_reported_and_on_request_replaced(
        site: Site, hosts: str, caplog: pytest.LogCaptureFixture, drop: str | None) -> None:
    before, after = (states.ACTIVE, states.INSPECTWAIT) if drop else (states.INSPECTWAIT, states.ACTIVE)
    (node, mac), (_, other) = site.machine(before), site.machine(before)
    common = {"target": "kea", "kea_connection": hosts, "deny_unknown_macs": not drop}
    discovery = "[auto_discovery]\nenabled = true\n" if drop else ""
    named = {**common, "targets": "leaf1", "sections": f"{discovery}[pxe_filter:leaf1]\n"}
    site.close(site.synced(**common, sections=discovery))
    site.move(node, after)
    assert rows(hosts) == {(mac, "all", drop), (other, "all", drop)}

    site.close(site.synced(**named))
    assert rows(hosts) == {(mac, "all", drop), (other, "all", drop)}
    assert "reservations of filters with other names: 'all' (2)" in caplog.text
    assert "'all' is a filter without [pxe_filter]targets: unless one still runs" in caplog.text
    *_, line = report.status(settings.from_conf(site.conf(**named)), site.db)
    assert line.endswith("; filters with other names have reservations: 'all' (2)")

    named["kea_former_names"] = "all"
    # A message comes before everything is written: what it is not about remains denied, or allowed.
    [target] = targets.make(settings.from_conf(site.conf(**named)).targets[0], plan.Layout(1))
    target.open()
    target.apply(Batch({}, None, [(mac, bool(drop))]))
    target.close()
    assert rows(hosts) == {(other, "leaf1", drop)}

    site.close(site.synced(**common, sections=discovery))
    site.node(before, site.mac())
    keeper = site.synced(**named)
    assert rows(hosts) == {(one, "leaf1", drop) for one in (other, "52:54:00:00:00:03")}
    assert (keeper.statistics.healed, keeper.is_behind) == (0, False)


def test_a_former_name_that_still_writes_is_replaced_again(site: Site, hosts: str) -> None:
    common = {"target": "kea", "kea_connection": hosts, "deny_unknown_macs": True}
    named = site.synced(**common, targets="leaf1", kea_former_names="all", sections="[pxe_filter:leaf1]\n")
    _, mac = site.machine(states.INSPECTWAIT)
    site.synced(**common)
    assert rows(hosts) == {(mac, "all", None)}

    named.sync(periodic=True)
    assert rows(hosts) == {(mac, "leaf1", None)}


def test_targets_that_share_a_database_know_the_names_of_each_other(
        site: Site, hosts: str, caplog: pytest.LogCaptureFixture) -> None:
    site.machine(states.INSPECTWAIT)
    options = {"target": "kea", "kea_connection": hosts, "deny_unknown_macs": True, "targets": "leaf1, leaf2",
               "sections": "[pxe_filter:leaf1]\n[pxe_filter:leaf2]\nphysical_networks = x\n"}
    site.close(site.synced(**options))
    site.synced(**options)

    assert rows(hosts)
    assert "other names" not in caplog.text


def test_a_host_database_that_is_away_is_waited_for(site: Site, hosts: str, caplog: pytest.LogCaptureFixture) -> None:
    site.machine(states.INSPECTWAIT)
    with databases.engine(hosts) as engine:
        with engine.begin() as conn:
            conn.execute(sa.text("ALTER TABLE hosts RENAME TO gone"))
        keeper = keeper_of(site, hosts, deny_unknown_macs=True)
        assert keeper.is_behind
        assert "Cannot write into the host database of Kea" in caplog.text
        with engine.begin() as conn:
            conn.execute(sa.text("ALTER TABLE gone RENAME TO hosts"))
    keeper.write()
    wait_for("the reservation", lambda: reservations(hosts) == 1 and not keeper.is_behind)


def test_a_denial_that_cannot_be_written_closes_the_door(site: Site, net: Network, hosts: str,
                                                         caplog: pytest.LogCaptureFixture) -> None:
    _, mac = site.machine(states.INSPECTWAIT)
    kea = net.kea(4, hosts, "open")
    keeper = keeper_of(site, hosts, kea_control_sockets=kea.control)
    enrolled = site.mac()
    assert net.wire.ask(*four(mac, enrolled)) == [True, True]
    with databases.engine(hosts) as engine:
        with engine.begin() as conn:
            conn.execute(sa.text("CREATE FUNCTION refuse() RETURNS trigger AS $$ BEGIN RAISE EXCEPTION "
                                 "'could not extend file' USING ERRCODE = '53100'; END $$ LANGUAGE plpgsql"))
            conn.execute(sa.text("CREATE TRIGGER full_disk BEFORE INSERT ON hosts EXECUTE FUNCTION refuse()"))
        site.node(states.ACTIVE, enrolled)
        keeper.sync(periodic=True)

        # Kea has no reservation that allows a client: it serves no one.
        assert net.wire.ask(*four(mac, enrolled)) == [False, False]
        assert keeper.statistics.closed == 1
        keeper.write()
        assert caplog.text.count("until it can be written") == 1
        with engine.begin() as conn:
            conn.execute(sa.text("DROP FUNCTION refuse CASCADE"))
    keeper.write()
    assert net.wire.ask(*four(mac, enrolled)) == [True, False]
    assert (keeper.statistics.closed, keeper.is_behind) == (0, False)


def test_without_control_sockets_the_door_cannot_be_closed(site: Site, hosts: str) -> None:
    settled = settings.from_conf(site.conf(target="kea", kea_connection=hosts, deny_unknown_macs=True))
    [target] = targets.make(dataclasses.replace(settled.targets[0], deny_unknown=False), plan.Layout(8))

    outcome = target.apply(Batch({}, False))

    assert outcome.unknown_failed and "kea_control_sockets" in str(outcome.problem)
    target.close()


@pytest.mark.parametrize(("options", "reason"), [
    ({"kea_connection": ""}, "kea_connection is not set"),
    ({"kea_connection": "sqlite:///x"}, "no host database of the kind 'sqlite'"),
    ({"kea_connection": "x"}, "not the URL of a database"),
    ({"kea_connection": "postgresql+psycopg://u@h/kea"}, "kea_control_sockets is required"),
    ({"target": "nosuch"}, "names 'nosuch', which nothing installed offers")])
def test_options_that_do_not_fit_are_refused(site: Site, options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        site.keeper(**{"target": "kea", **options})


@pytest.mark.parametrize("name", ["kea-dhcp4-open", "kea-dhcp4-closed", "kea-dhcp6-open", "kea-dhcp6-closed"])
def test_kea_accepts_the_sample_configurations(tmp_path: Path, name: str) -> None:
    keas.require()
    sample = (_SAMPLES / f"{name}.conf").read_text()
    assert ("member('UNKNOWN')" in sample) is name.endswith("closed")
    file = tmp_path / "kea.conf"
    # Kea checks that the interface exists, and has the address.
    file.write_text(sample.replace("enp1s0/2001:db8::1", "lo/::1").replace("enp1s0", "lo"))

    keas.check(name[:9], file)
