"""A real dnsmasq reads what the filter writes, and real DHCP clients use it. dnsmasq is never restarted."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from ironic_rules.models import states
from ironic_rules.pxe_filter.sync import Keeper
from tests.functional.processes import wait_for
from tests.functional.pxe_filter.network import Dnsmasq, Network, network
from tests.functional.pxe_filter.site import Site
from tests.functional.pxe_filter.test_process import fill, small_disk


@pytest.fixture
def net(tmp_path: Path) -> Iterator[Network]:
    with network(tmp_path) as made:
        yield made


def read(dnsmasq: Dnsmasq, times: int) -> None:
    """Wait until dnsmasq has read that many files since it started."""
    wait_for(f"{times} files to be read", lambda: dnsmasq.text().count("read ") >= times)


def synced(keeper: Keeper, dnsmasq: Dnsmasq) -> None:
    """Synchronize, and wait until dnsmasq has read what was written."""
    before, written = dnsmasq.text().count("read "), keeper.statistics.written
    keeper.sync(periodic=True)
    read(dnsmasq, before + keeper.statistics.written - written)


@pytest.mark.slow
@pytest.mark.parametrize("files", [0, 4])
def test_clients_are_served_as_the_database_says(site: Site, net: Network, files: int) -> None:
    node, mac = site.machine()
    keeper = site.synced(hosts_files=files)
    dnsmasq = net.dnsmasq(site.folder)
    stranger = site.mac()

    assert not net.ask(mac)
    assert not net.ask(stranger)

    site.move(node, states.INSPECTWAIT)
    synced(keeper, dnsmasq)
    assert net.gets(mac)
    assert net.gets(stranger)

    site.move(node, states.MANAGEABLE)
    synced(keeper, dnsmasq)
    assert not net.ask(mac)
    assert not net.ask(stranger)


def test_a_known_machine_stays_out_while_strangers_are_let_in(site: Site, net: Network) -> None:
    site.machine(states.INSPECTWAIT)
    _, busy = site.machine(states.ACTIVE)
    site.synced()
    net.dnsmasq(site.folder)

    assert not net.ask(busy)
    assert net.gets(site.mac())


def test_a_machine_that_is_enrolled_on_a_full_disk_stays_out(site: Site, net: Network) -> None:
    with small_disk(site.folder):
        _, mac = site.machine(states.INSPECTWAIT)
        keeper = site.synced()
        dnsmasq = net.dnsmasq(site.folder)
        enrolled = site.mac()
        assert net.gets(enrolled)  # it is unknown
        ballast = fill(site.folder)

        site.node(states.ACTIVE, enrolled)
        before = dnsmasq.text().count("read ")
        keeper.sync(periodic=True)
        read(dnsmasq, before + 1)
        assert not net.ask(enrolled)
        assert net.gets(mac)

        ballast.unlink()
        synced(keeper, dnsmasq)
        assert not net.ask(enrolled)
        assert net.gets(site.mac())


def test_strangers_stay_out_when_the_operator_says_so(site: Site, net: Network) -> None:
    _, mac = site.machine(states.INSPECTWAIT)
    site.synced(deny_unknown_macs=True)
    net.dnsmasq(site.folder)

    assert net.gets(mac)
    assert not net.ask(site.mac())


def test_a_message_takes_effect_at_once(site: Site, net: Network) -> None:
    _, mac = site.machine()
    keeper = site.synced(deny_unknown_macs=True)
    dnsmasq = net.dnsmasq(site.folder)
    assert not net.ask(mac)

    before = dnsmasq.text().count("read ")
    keeper.tell([mac], [])
    keeper.write()
    read(dnsmasq, before + 1)
    assert net.gets(mac)

    keeper.tell([], [mac])
    keeper.write()
    read(dnsmasq, before + 2)
    assert not net.ask(mac)


def test_a_machine_whose_port_was_deleted_is_a_stranger(site: Site, net: Network) -> None:
    node, mac = site.machine(states.INSPECTWAIT)
    keeper = site.synced()
    dnsmasq = net.dnsmasq(site.folder)
    assert net.gets(mac)

    site.drop_node(node)
    synced(keeper, dnsmasq)
    assert not net.ask(mac)

    site.machine(states.INSPECTWAIT)
    synced(keeper, dnsmasq)
    assert net.gets(mac)


def test_a_line_that_disappears_stays_in_force_until_a_reload(site: Site, net: Network, tmp_path: Path) -> None:
    """The reason why removed addresses are still written for a time: this is dnsmasq's behaviour."""
    _node, mac = site.machine(states.INSPECTWAIT)
    site.machine(states.INSPECTWAIT)
    site.close(site.synced(hosts_files=1))
    dnsmasq = net.dnsmasq(site.folder)
    new = site.folder / ".new"
    new.write_text("")
    new.rename(site.folder / "macs-0000")
    read(dnsmasq, 1)
    (site.folder / "unknown_hosts_filter").write_text("*:*:*:*:*:*,ignore\n")
    read(dnsmasq, 2)
    assert net.gets(mac)

    os.kill(dnsmasq.pid, signal.SIGHUP)
    wait_for("the reload", lambda: dnsmasq.text().count("read ") >= 4)
    assert not net.ask(mac)


def test_the_filter_has_dnsmasq_forget_what_is_gone(site: Site, net: Network) -> None:
    node, mac = site.machine(states.ACTIVE)
    site.machine(states.INSPECTWAIT)
    site.close(site.synced())
    dnsmasq = net.dnsmasq(site.folder)
    site.drop_node(node)

    keeper = site.synced(dnsmasq_pid_file=dnsmasq.pid_file)

    assert keeper.statistics.reloads == 1
    assert keeper.statistics.gone == 0
    assert mac not in site.verdicts()
    wait_for("the reload", lambda: "SIGHUP" in dnsmasq.text() or dnsmasq.text().count("read ") >= 2)
    assert net.gets(mac)  # unknown machines are allowed now, and this machine is one


def test_what_is_gone_is_forgotten_when_dnsmasq_starts_after_the_filter(site: Site, net: Network, tmp_path: Path,
                                                                        caplog: pytest.LogCaptureFixture) -> None:
    """As with the units for systemd."""
    node, mac = site.machine(states.ACTIVE)
    site.machine(states.INSPECTWAIT)
    site.close(site.synced())
    site.drop_node(node)
    keeper = site.synced(dnsmasq_pid_file=tmp_path / "dnsmasq-0" / "dnsmasq.pid")
    assert keeper.statistics.gone == 1
    assert "No dnsmasq runs" not in caplog.text
    dnsmasq = net.dnsmasq(site.folder)
    assert str(dnsmasq.pid_file) == str(tmp_path / "dnsmasq-0" / "dnsmasq.pid")

    keeper.sync(periodic=True)
    assert (keeper.statistics.reloads, keeper.statistics.gone) == (1, 0)
    keeper.sync(periodic=True)
    assert keeper.statistics.reloads == 1
    assert net.gets(mac)


def test_lines_that_dnsmasq_has_read_again_and_again_are_forgotten(site: Site, net: Network) -> None:
    machines = [site.machine() for _ in range(300)]
    keeper = site.synced(hosts_files=1, reload_after=1000)
    dnsmasq = net.dnsmasq(site.folder)
    site.close(keeper)
    keeper = site.synced(hosts_files=1, reload_after=1000, dnsmasq_pid_file=dnsmasq.pid_file)
    for round_ in range(8):
        site.move(machines[0][0], states.INSPECTWAIT if round_ % 2 == 0 else states.MANAGEABLE)
        keeper.sync(periodic=True)

    assert keeper.statistics.reloads >= 1
    assert not net.ask(machines[0][1])
    assert not net.ask(machines[1][1])


@pytest.mark.slow
def test_a_folder_of_the_other_layout_is_taken_over_under_a_running_dnsmasq(site: Site, net: Network) -> None:
    node, mac = site.machine(states.INSPECTWAIT)
    gone_node, gone = site.machine()
    site.close(site.synced(hosts_files=0))
    dnsmasq = net.dnsmasq(site.folder)
    assert net.gets(mac)
    assert not net.ask(gone)

    site.move(node, states.ACTIVE)
    site.drop_node(gone_node)
    site.machine(states.INSPECTWAIT)
    keeper = site.keeper(hosts_files=4)
    synced(keeper, dnsmasq)

    assert not net.ask(mac)
    assert net.gets(gone)


@pytest.mark.slow
def test_a_hundred_thousand_addresses(site: Site, net: Network) -> None:
    """All of them through inotify, and none is lost."""
    addresses = [f"52:54:{number >> 16:02x}:{number >> 8 & 255:02x}:{number & 255:02x}:07" for number in range(100_000)]
    keeper = site.synced()
    dnsmasq = net.dnsmasq(site.folder)
    keeper.tell(addresses[:50_000], addresses[50_000:])
    keeper.write()
    read(dnsmasq, 1024)

    assert net.gets(addresses[7])
    assert net.gets(addresses[49_999])
    assert not net.ask(addresses[50_000])
    assert not net.ask(addresses[99_999])


def test_dhcpv6_directly_and_relayed(site: Site, net: Network) -> None:
    """dnsmasq takes the address from the neighbour, or from the relay (RFC 6939); the DUID does not matter."""
    node, mac = site.node(states.ACTIVE, net.mac), net.mac
    (_, served), (_, denied) = site.machine(states.INSPECTWAIT), site.machine()
    keeper = site.synced(deny_unknown_macs=True)
    dnsmasq = net.dnsmasq(site.folder)
    relay = {"v": 6, "relay": "2001:db8::2", "server": "2001:db8::1", "wait": 1.5, "duid": "0004" + "ab" * 16}
    direct = {"v": 6, "mac": mac, "duid": "0004" + "cd" * 16, "wait": 1.5}

    assert net.wire.ask({**relay, "mac": served}, {**relay, "mac": denied}, direct) == [True, False, False]

    site.move(node, states.INSPECTWAIT)
    synced(keeper, dnsmasq)
    assert net.wire.ask(direct) == [True]


def test_a_dhcpv4_relay_asks_for_its_clients(site: Site, net: Network) -> None:
    (_, served), (_, denied) = site.machine(states.INSPECTWAIT), site.machine()
    site.synced(deny_unknown_macs=True)
    net.dnsmasq(site.folder)
    relay = {"v": 4, "relay": "198.51.100.2", "server": "198.51.100.1", "wait": 1.5}

    assert net.wire.ask({**relay, "mac": served}, {**relay, "mac": denied}) == [True, False]


def test_clients_are_told_by_their_identifiers(site: Site, net: Network) -> None:
    """InfiniBand has no address in DHCPv4, only a client identifier; a DUID takes effect without the neighbour."""
    (node, mac), (other, _), (v6, address) = site.machine(), site.machine(), site.machine()
    guids = [f"ff:00:00:00:00:00:02:00:00:02:c9:00:00:02:c9:03:00:19:10:5{number}" for number in range(3)]
    duid = "0004" + "ab" * 16
    site.identify(node, "client-id", guids[0])
    site.identify(other, "client-id", guids[1])
    site.identify(v6, "duid", duid)
    keeper = site.synced()
    dnsmasq = net.dnsmasq(site.folder, "--dhcp-ignore=tag:!known")
    clients = [{"v": 4, "mac": mac, "hardware": 32, "client_id": guid.replace(":", ""), "wait": 1.5} for guid in guids]
    relay = {"v": 4, "relay": "198.51.100.2", "server": "198.51.100.1"}
    by_duid = {"v": 6, "mac": site.mac(), "duid": duid, "relay": "2001:db8::2", "server": "2001:db8::1", "wait": 1.5}

    assert net.wire.ask(*clients, by_duid) == [False] * 4

    site.move(node, states.INSPECTWAIT)
    site.move(v6, states.INSPECTWAIT)
    synced(keeper, dnsmasq)
    # The line about unknown addresses does not fit clients without an address.
    assert net.wire.ask(*clients) == [True, False, False]
    assert net.wire.ask(*({**client, **relay} for client in clients)) == [True, False, False]
    assert net.wire.ask(by_duid) == [True]

    site.move(node, states.MANAGEABLE)
    synced(keeper, dnsmasq)
    assert not net.wire.ask(clients[0])[0]
    assert address in site.verdicts()
