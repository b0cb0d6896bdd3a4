"""The lines for dnsmasq, the number of writes, and the knowledge of its reads: with a real dnsmasq."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ironic_rules.models import states
from ironic_rules.pxe_filter.hostsdir import Hostsdir
from ironic_rules.pxe_filter.sync import Keeper
from ironic_rules.pxe_filter.targets import hostsdir
from ironic_rules.pxe_filter.targets.hostsdir import HostsdirTarget
from tests.functional.processes import wait_for
from tests.functional.pxe_filter.network import Network, lines, network, verdicts
from tests.functional.pxe_filter.site import Site


@pytest.fixture
def net(tmp_path: Path) -> Iterator[Network]:
    with network(tmp_path) as made:
        yield made


def in_force(keeper: Keeper) -> bool:
    keeper.areas[0].observe()
    return keeper.statistics.in_force


def settled(keeper: Keeper) -> None:
    wait_for("dnsmasq to read everything", lambda: in_force(keeper))


def test_many_messages_write_a_file_once(site: Site) -> None:
    macs = [site.machine()[1] for _ in range(200)]
    keeper = site.synced(hosts_files=4)
    before = keeper.statistics.written
    for mac in macs:
        keeper.tell([mac], [])
    keeper.write()

    assert keeper.statistics.written - before == 5
    assert keeper.statistics.messages == 200
    assert site.verdicts() == dict.fromkeys(macs, True) | {"*": True}


def test_the_closed_policy_writes_only_who_is_let_in_and_who_was(site: Site, net: Network, tmp_path: Path) -> None:
    (busy, mac), (_, other), (_, never) = site.machine(states.INSPECTWAIT), site.machine(), site.machine()
    keeper = site.synced(deny_unknown_macs=True, dnsmasq_pid_file=tmp_path / "dnsmasq-0" / "dnsmasq.pid")
    assert site.verdicts() == {mac: True, "*": False}
    net.dnsmasq(site.folder)
    settled(keeper)
    assert net.gets(mac)

    keeper.tell([other], [mac])
    keeper.write()
    settled(keeper)
    assert site.verdicts() == {mac: False, other: True, "*": False}
    assert [net.ask(one, tries=1) for one in (mac, other, never)] == [False, True, False]

    site.move(busy, states.ACTIVE)
    site.drop_port(mac)
    keeper.sync(periodic=False)
    assert site.verdicts()[mac] is False


def test_the_lines_of_a_filter_before_are_denied_until_dnsmasq_has_forgotten_them(site: Site, net: Network) -> None:
    node, mac = site.machine(states.INSPECTWAIT)
    others = [site.machine()[1] for _ in range(3)]
    site.close(site.synced())
    assert site.verdicts() == {mac: True, "*": True} | dict.fromkeys(others, False)
    dnsmasq = net.dnsmasq(site.folder)
    site.move(node, states.ACTIVE)

    keeper = site.synced(deny_unknown_macs=True)
    assert site.verdicts() == {mac: False, "*": False} | dict.fromkeys(others, False)
    site.close(keeper)

    keeper = site.synced(deny_unknown_macs=True, dnsmasq_pid_file=dnsmasq.pid_file)
    assert keeper.statistics.reloads == 1
    assert verdicts(site.folder) == {"*": False}
    settled(keeper)
    assert not net.ask(mac, tries=1)


def test_lines_that_are_not_needed_are_forgotten_without_a_periodic_sync(site: Site, net: Network,
                                                                         tmp_path: Path) -> None:
    macs = [site.machine()[1] for _ in range(300)]
    keeper = site.synced(hosts_files=1, dnsmasq_pid_file=tmp_path / "dnsmasq-0" / "dnsmasq.pid")
    dnsmasq = net.dnsmasq(site.folder)
    settled(keeper)
    target = keeper.areas[0].targets[0]
    assert (target.needed, target.surplus, keeper.statistics.reloads) == (301, 0, 0)
    for number in range(3):
        keeper.tell([macs[number]], [])
        keeper.write()
        settled(keeper)
    assert target.surplus == 3 * 300 + 1
    assert keeper.statistics.reloads == 0

    keeper.tell([macs[3]], [])
    keeper.write()
    settled(keeper)
    assert keeper.statistics.reloads == 1
    settled(keeper)
    assert (target.needed, target.surplus) == (301, 0)

    dnsmasq.stop()
    wait_for("its end to be seen", lambda: not in_force(keeper))
    assert keeper.statistics.unread == len(lines(site.folder))
    assert Hostsdir(str(site.folder)).peek_state() == (
        "not in effect: no dnsmasq runs with the process id in its PID file")
    dnsmasq.start()
    settled(keeper)
    assert (target.needed, target.surplus) == (301, 0)
    assert Hostsdir(str(site.folder)).peek_state() == ""
    assert net.gets(macs[3])


def test_the_number_of_lines_is_right_after_a_restart_of_either(site: Site, net: Network, tmp_path: Path) -> None:
    machines = [site.machine() for _ in range(20)]
    options = {"hosts_files": 4, "dnsmasq_pid_file": tmp_path / "dnsmasq-0" / "dnsmasq.pid"}

    def is_right(keeper: Keeper, count: int) -> None:
        settled(keeper)
        [target] = keeper.areas[0].targets
        assert isinstance(target, HostsdirTarget)
        in_files = sum(text.count("\n") for text in lines(site.folder).values())
        assert (in_files, target._folder.lines, target.needed, target.surplus) == (count, count, count, 0)

    keeper = site.synced(**options)
    dnsmasq = net.dnsmasq(site.folder)
    is_right(keeper, 21)
    keeper.tell([machines[0][1]], [])
    keeper.write()
    settled(keeper)
    assert keeper.areas[0].targets[0].surplus > 0
    site.close(keeper)

    # What dnsmasq has read of the filter before is unknown, so it reloads.
    site.drop_port(machines[1][1])
    site.machine(states.INSPECTWAIT)
    keeper = site.synced(**options)
    is_right(keeper, 21)

    dnsmasq.stop()
    wait_for("its end to be seen", lambda: not in_force(keeper))
    _, mac = site.machine(states.INSPECTWAIT)
    keeper.sync(periodic=False)
    dnsmasq.start()
    is_right(keeper, 22)
    assert net.gets(mac)


def test_a_file_that_is_never_read_is_waited_for_once(
        site: Site, net: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keeper = site.synced(dnsmasq_pid_file=tmp_path / "dnsmasq-0" / "dnsmasq.pid")
    net.dnsmasq(site.folder)
    settled(keeper)
    [target] = keeper.areas[0].targets
    assert isinstance(target, HostsdirTarget)
    waits: list[float] = []
    monkeypatch.setattr(target._watch, "wait", waits.append)
    target._watch.unread.add("macs-lost")

    target.settle(0.01)
    assert waits
    waits.clear()
    target._is_heard = True  # as after the next file that is read
    target.settle(0.01)
    assert waits == []


def test_a_file_whose_reading_was_not_seen_is_written_again(
        site: Site, net: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hostsdir, "_OVERDUE_S", 0.0)
    _, mac = site.machine()
    keeper = site.synced(dnsmasq_pid_file=tmp_path / "dnsmasq-0" / "dnsmasq.pid")
    net.dnsmasq(site.folder)
    settled(keeper)
    [target] = keeper.areas[0].targets
    assert isinstance(target, HostsdirTarget)
    name = next(iter(lines(site.folder).keys() - {"unknown_hosts_filter"}))
    inode = (site.folder / name).stat().st_ino

    keeper.areas[0].observe()  # this test has read the files, too
    target._patience_s = 0.0
    target._watch.unread.add(name)
    assert not in_force(keeper)
    settled(keeper)

    assert (site.folder / name).stat().st_ino != inode
    assert site.verdicts() == {mac: False, "*": False}


@pytest.mark.slow
def test_many_groups_change_in_one_file_and_dnsmasq_follows(site: Site, net: Network, tmp_path: Path) -> None:
    """The open policy, with a restart of dnsmasq and one of the filter in between."""
    macs = [f"52:54:00:01:{number:02x}:00" for number in range(60)]
    nodes = [site.node(states.ACTIVE, mac) for mac in macs]
    options = {"hosts_files": 32, "dnsmasq_pid_file": tmp_path / "dnsmasq-0" / "dnsmasq.pid"}
    keeper = site.synced(**options)
    dnsmasq = net.dnsmasq(site.folder)
    settled(keeper)

    def overrides() -> list[str]:
        return [name for name in lines(site.folder) if name.startswith("changes-")]

    def served() -> list[bool]:
        # DHCPv6 by the link-layer address that a relay adds (RFC 6939).
        relay = {"relay": "2001:db8::2", "server": "2001:db8::1"}
        return net.wire.ask(*(request for mac in macs[:10] for request in (
            {"v": 4, "mac": mac, "wait": 2}, {"v": 6, "mac": mac, "wait": 2, **relay})))

    written = keeper.statistics.written
    keeper.tell(macs[:40], [])
    keeper.write()
    settled(keeper)
    assert keeper.statistics.written == written + 2  # and the one about unknown addresses
    assert len(overrides()) == 1
    assert served() == [True] * 20

    keeper.tell([], macs[:5])
    keeper.write()
    settled(keeper)
    assert served() == [False] * 10 + [True] * 10

    # Whatever order it reads them in, and although the files of the groups say otherwise.
    dnsmasq.stop()
    dnsmasq.start()
    settled(keeper)
    assert served() == [False] * 10 + [True] * 10
    assert len(overrides()) >= 2

    # The database denies all of them again, and a full pass brings the files of the groups up to date.
    keeper.sync(periodic=True)
    settled(keeper)
    assert served() == [False] * 20
    assert site.verdicts() == dict.fromkeys(macs, False) | {"*": False}
    site.close(keeper)

    # What dnsmasq has read of a filter before is unknown, so it reloads, and needs no such files then.
    assert overrides()
    for node in nodes[:2]:
        site.move(node, states.INSPECTWAIT)
    keeper = site.synced(**options)
    settled(keeper)
    assert keeper.statistics.reloads == 1
    assert overrides() == []
    assert served() == [True] * 4 + [False] * 16
