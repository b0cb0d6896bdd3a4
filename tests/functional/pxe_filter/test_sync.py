"""The files are synchronized with the database."""

from __future__ import annotations

import errno
import logging
import os
from pathlib import Path

import pytest
import sqlalchemy as sa

from ironic_rules.db import pxe_filter
from ironic_rules.db.tables import ports
from ironic_rules.models import states
from ironic_rules.pxe_filter.hostsdir import Hostsdir
from tests.functional import databases
from tests.functional.pxe_filter import site as sites
from tests.functional.pxe_filter.network import lines

pytestmark = pytest.mark.usefixtures("no_dnsmasq")


def lines_of_files(site: sites.Site) -> dict[str, str]:
    return {path.name: path.read_text() for path in site.folder.iterdir() if path.is_file() and path.name[0] != "."}


def test_the_files_pass_through_the_states_of_the_reference_filter(site):
    keeper = site.synced(hosts_files=0)
    assert lines(site.folder) == {"unknown_hosts_filter": "*:*:*:*:*:*,ignore\n"}

    node = site.node(states.ENROLL, "52:54:00:aa:bb:01")
    keeper.sync(periodic=True)
    denied = {"52:54:00:aa:bb:01": "52:54:00:aa:bb:01,ignore\n", "unknown_hosts_filter": "*:*:*:*:*:*,ignore\n"}
    assert lines(site.folder) == denied

    site.move(node, states.INSPECTWAIT)
    keeper.sync(periodic=True)
    assert lines(site.folder) == {"52:54:00:aa:bb:01": "52:54:00:aa:bb:01\n", "unknown_hosts_filter": "*:*:*:*:*:*\n"}

    site.move(node, states.INSPECTFAIL)
    keeper.sync(periodic=True)
    assert lines(site.folder) == denied

    site.drop_node(node)
    keeper.sync(periodic=True)
    assert lines(site.folder) == denied


@pytest.mark.parametrize("state", sorted(states.ALL))
def test_only_nodes_on_inspection_are_let_in(site, state):
    _, mac = site.machine(state)

    site.synced()

    on_inspection = state in (states.INSPECTWAIT, states.INSPECTING)
    assert site.verdicts() == {mac: on_inspection, "*": on_inspection}


@pytest.mark.parametrize("state", sorted(states.ALL))
def test_nodes_in_every_procedure_with_a_ramdisk_are_served_if_that_is_configured(site, state):
    # Its inspect interface is of no importance for the other procedures.
    _, mac = site.machine()
    _, own = site.machine(state)
    other = "52:54:00:00:0f:01"
    site.node(state, other, interface="redfish")

    site.synced(allow_all_ramdisks=True)

    inspects, boots = state in pxe_filter.STATES, state in pxe_filter.RAMDISK_STATES
    # Only during inspections, unknown machines are expected.
    assert site.verdicts() == {mac: False, own: inspects or boots, other: boots, "*": inspects}


def test_every_state_in_which_a_node_waits_for_a_ramdisk_is_one_of_those() -> None:
    assert {*pxe_filter.STATES, *pxe_filter.RAMDISK_STATES} >= states.WAITING | states.HOLDING


def test_a_procedure_that_follows_an_inspection_immediately(site):
    """The denial of an inspection's end does not deny a node that is being cleaned when the filter reads."""
    node, mac = site.machine(states.INSPECTWAIT)
    keeper = site.synced(allow_all_ramdisks=True)
    keeper.tell([], [mac])
    keeper.write()
    assert site.verdicts()[mac] is False

    site.move(node, states.CLEANING)
    keeper.sync(periodic=False)

    assert site.verdicts() == {mac: True, "*": False}
    assert keeper.serves(mac)
    site.move(node, states.AVAILABLE)
    keeper.sync(periodic=False)
    assert site.verdicts() == {mac: False, "*": False}
    assert not keeper.serves(mac)


def test_a_node_with_another_inspect_interface_is_never_let_in(site):
    site.node(states.INSPECTWAIT, "52:54:00:00:00:01", interface="redfish")

    site.synced()

    assert site.verdicts() == {"52:54:00:00:00:01": False, "*": False}


def test_the_supported_interfaces_are_an_option(site):
    site.node(states.INSPECTING, "52:54:00:00:00:01", interface="redfish")

    site.synced(supported_inspect_interfaces="agent,redfish")

    assert site.verdicts() == {"52:54:00:00:00:01": True, "*": True}


@pytest.mark.parametrize("kind", [
    "sqlite", pytest.param("mysql", marks=pytest.mark.servers), pytest.param("postgresql", marks=pytest.mark.servers)])
@pytest.mark.parametrize("files", [
    0, pytest.param(4, marks=pytest.mark.slow), pytest.param(1024, marks=pytest.mark.long)])
def test_every_change_is_followed_without_reading_all_ports(tmp_path, kind, files):
    with sites.site(tmp_path, kind) as site:
        (node, mac), (other, other_mac) = site.machine(states.INSPECTWAIT), site.machine()
        keeper = site.synced(hosts_files=files)
        assert site.verdicts() == {mac: True, other_mac: False, "*": True}

        added = site.mac()
        port = site.add_port(node, added)
        keeper.sync(periodic=False)
        assert site.verdicts() == {mac: True, added: True, other_mac: False, "*": True}

        site.db.write(lambda conn: sites.ports.update(conn, port, {"node_id": other}))
        keeper.sync(periodic=False)
        assert site.verdicts() == {mac: True, added: False, other_mac: False, "*": True}

        changed = site.mac()
        site.db.write(lambda conn: sites.ports.update(conn, port, {"address": changed}))
        site.move(other, states.INSPECTING)
        keeper.sync(periodic=False)
        assert site.verdicts() == {mac: True, added: True, changed: True, other_mac: True, "*": True}

        site.move(node, states.MANAGEABLE)
        site.drop_node(other)
        keeper.sync(periodic=False)
        assert site.verdicts() == {mac: False, added: False, changed: False, other_mac: False, "*": False}
        assert keeper.statistics.syncs == {"full": 1, "incremental": 4, "failed": 0}
        assert keeper.statistics.gone == 3


def test_an_address_that_comes_back_is_known_again(site):
    _node, mac = site.machine(states.INSPECTWAIT)
    keeper = site.synced()
    site.drop_port(mac)
    keeper.sync(periodic=False)
    site.add_port(site.node(states.ACTIVE), mac)
    keeper.sync(periodic=False)

    assert site.verdicts() == {mac: False, "*": True}
    assert keeper.statistics.gone == 0


def test_only_what_changed_is_written(site):
    machines = [site.machine() for _ in range(400)]
    keeper = site.synced()
    before = {path.name: path.stat().st_ino for path in site.folder.iterdir()}
    written = keeper.statistics.written

    keeper.sync(periodic=True)
    assert keeper.statistics.written == written

    site.move(machines[0][0], states.INSPECTWAIT)
    keeper.sync(periodic=True)

    after = {path.name: path.stat().st_ino for path in site.folder.iterdir()}
    changed = {name for name in after if before.get(name) != after[name]}
    assert len(changed) == 2
    assert "unknown_hosts_filter" in changed
    assert keeper.statistics.written == written + 2


def test_a_full_sync_finds_what_was_changed_past_the_service(site):
    _, mac = site.machine(states.INSPECTWAIT)
    keeper = site.synced(full_sync_period=1)
    with site.db.writer() as conn:
        conn.execute(sa.update(ports).values(address="52:54:00:00:99:99"))
    keeper._read_all_at -= 1

    keeper.sync(periodic=True)

    assert site.verdicts() == {mac: True, "52:54:00:00:99:99": True, "*": True}
    assert keeper.statistics.syncs["full"] == 2


def test_several_folders_say_the_same(tmp_path):
    with sites.site(tmp_path, folders=3) as site:
        site.machine(states.INSPECTWAIT), site.machine()
        site.synced()

        assert lines(site.folders[0]) == lines(site.folders[1]) == lines(site.folders[2])
        assert len(lines(site.folder)) >= 2


def test_files_are_readable_for_dnsmasq_whatever_the_umask_is(site):
    site.machine()
    mask = os.umask(0o077)
    try:
        site.synced()
    finally:
        os.umask(mask)

    assert {path.stat().st_mode & 0o777 for path in site.folder.iterdir() if path.name[0] != "."} == {0o644}


def test_the_log_says_which_node_changed_what(site, caplog):
    node, mac = site.machine()
    keeper = site.synced()
    site.move(node, states.INSPECTWAIT)
    with caplog.at_level(logging.INFO):
        keeper.sync(periodic=False)
        site.drop_node(node)
        uuid_known = caplog.text
        keeper.sync(periodic=False)

    assert f"('inspect wait'): {mac} is allowed" in uuid_known
    assert "Unknown addresses are allowed from now on" in uuid_known
    assert f"no port (any more): {mac} is denied" in caplog.text


HOSTILE = ["../x", "52:54:00:00:00:0g", "52:54:00:00:00:01"[:-1] + "\n", "*:*:*:*:*:*", "*", "", "ff:ff:ff:ff:ff:ff",
           "00:00:00:00:00:00", "01:00:5e:00:00:01", "a\x1b[31mb", "a,b", "52:54:00:00:00:01"[:16]]


@pytest.mark.parametrize("files", [0, 16])
@pytest.mark.parametrize("address", HOSTILE)
def test_hostile_addresses_are_refused_and_logged(site, caplog, files, address):
    node, mac = site.machine(states.INSPECTWAIT)
    bad = site.add_port(node, "52:54:00:99:99:99")
    with site.db.writer() as conn:
        conn.execute(sa.update(ports).where(ports.c.id == bad).values(address=address))

    keeper = site.synced(hosts_files=files)
    keeper.sync(periodic=True)

    assert site.verdicts() == {mac: True, "*": True}
    assert {path.name for path in site.path.iterdir()} == {"hosts-0", "filter.conf"}
    refusals = [record.getMessage() for record in caplog.records if "not a unicast MAC address" in record.getMessage()]
    assert len(refusals) == 1
    assert refusals[0].isprintable()
    assert keeper.statistics.refused == 1


def test_hostile_addresses_that_come_later_are_refused_too(site, caplog):
    node, mac = site.machine(states.INSPECTWAIT)
    keeper = site.synced()
    site.add_port(node, "52:54:00:99:99:99")
    with site.db.writer() as conn:
        conn.execute(sa.update(ports).where(ports.c.address != mac).values(address="../../etc/x"))

    keeper.sync(periodic=False)

    assert site.verdicts() == {mac: True, "*": True}
    assert "'../../etc/x', which is not a unicast MAC address" in caplog.text


def test_upper_case_and_hyphens_become_the_one_form(site):
    _node, _mac = site.machine(states.INSPECTWAIT)
    with site.db.writer() as conn:
        conn.execute(sa.update(ports).values(address="52-54-00-AA-BB-CC"))

    site.synced()

    assert site.verdicts() == {"52:54:00:aa:bb:cc": True, "*": True}


@pytest.mark.parametrize(("policy", "expected"), [
    ({}, [False, True, False]),
    ({"deny_unknown_macs": True}, [False, False, False]),
    ({"sections": "[auto_discovery]\nenabled = true\n"}, [True, True, True]),
    ({"sections": "[auto_discovery]\nenabled = true\n", "deny_unknown_macs": True}, [False, False, False]),
])
def test_unknown_addresses_as_the_policy_says(site, policy, expected):
    node = site.node(states.ACTIVE)
    keeper = site.synced(**policy)
    seen = [site.verdicts()["*"]]
    for state in (states.INSPECTWAIT, states.INSPECTFAIL):
        site.move(node, state)
        keeper.sync(periodic=False)
        seen.append(site.verdicts()["*"])

    assert seen == expected


def test_an_address_without_a_port_goes_with_the_unknown_ones(site):
    _node, mac = site.machine()
    other = site.node(states.ACTIVE)
    keeper = site.synced()
    site.drop_port(mac)
    site.move(other, states.INSPECTWAIT)
    keeper.sync(periodic=False)
    assert site.verdicts() == {mac: True, "*": True}

    site.move(other, states.ACTIVE)
    keeper.sync(periodic=False)
    assert site.verdicts() == {mac: False, "*": False}


@pytest.mark.parametrize(("before", "after"), [(0, 64), (64, 0), (64, 8), (8, 64)])
def test_a_folder_of_another_layout_is_taken_over(site, before, after):
    _node, mac = site.machine(states.INSPECTWAIT)
    gone_node, gone = site.machine()
    macs = [site.machine()[1] for _ in range(20)]
    site.close(site.synced(hosts_files=before))
    site.drop_node(gone_node)

    site.synced(hosts_files=after)

    assert site.verdicts() == {mac: True, gone: True, "*": True} | dict.fromkeys(macs, False)
    assert sum(text.count("\n") for text in lines(site.folder).values()) == 23
    names = lines(site.folder).keys() - {"unknown_hosts_filter"}
    assert all((len(name) == 17) if after == 0 else (name < f"macs-{after:04x}") for name in names)


def test_files_of_others_stay_and_are_named(site, caplog):
    (site.folder / "printers").write_text("52:54:00:77:77:77,198.51.100.9\n")
    (site.folder / "52:54:00:00:77:01\n").write_text("52:54:00:00:77:01\n\n")

    site.synced()

    assert lines(site.folder)["printers"] == "52:54:00:77:77:77,198.51.100.9\n"
    assert "52:54:00:00:77:01\n" not in lines(site.folder)
    assert site.verdicts()["52:54:00:00:77:01"] is False
    assert "files of other programs, which dnsmasq also reads: printers" in caplog.text


def test_one_file_that_can_not_be_written_keeps_no_other_back(site, caplog):
    busy, others = site.machine(), [site.machine() for _ in range(3)]
    keeper = site.synced(hosts_files=0)
    path = site.folder / busy[1]
    path.unlink()
    path.mkdir()
    for node, _ in (busy, *others):
        site.move(node, states.INSPECTWAIT)
    keeper.sync(periodic=False)

    # If unknown addresses were allowed, that one would be too, whatever its node's state.
    assert lines_of_files(site) == {
        **{mac: f"{mac}\n" for _, mac in others}, "unknown_hosts_filter": "*:*:*:*:*:*,ignore\n"}
    assert keeper.is_behind
    assert keeper.statistics.unwritten == 2
    assert "Is a directory" in caplog.text

    (site.folder / busy[1]).rmdir()
    keeper.write()
    assert site.verdicts() == dict.fromkeys((mac for _, mac in (busy, *others)), True) | {"*": True}
    assert keeper.statistics.unwritten == 0


def test_what_can_not_be_removed_keeps_nobody_out(site):
    node, mac = site.machine()
    keeper = site.synced()
    (site.folder / "52:54:00:00:00:99").mkdir()
    site.move(node, states.INSPECTWAIT)

    keeper.sync(periodic=True)

    assert (site.folder / "52:54:00:00:00:99").is_dir()
    (site.folder / "52:54:00:00:00:99").rmdir()
    verdicts = site.verdicts()
    assert (verdicts[mac], verdicts["*"]) == (True, True)


def test_the_door_is_closed_even_if_another_file_can_not_be_written(site):
    node, mac = site.machine(states.INSPECTWAIT)
    keeper = site.synced(hosts_files=0)
    (site.folder / mac).unlink()
    (site.folder / mac).mkdir()
    site.move(node, states.ACTIVE)
    keeper.sync(periodic=False)

    assert lines_of_files(site) == {"unknown_hosts_filter": "*:*:*:*:*:*,ignore\n"}


def test_two_filters_do_not_write_one_folder(site):
    site.synced()

    with pytest.raises(sites.settings.ConfigurationError, match="Another ironic-pxe-filter uses"):
        site.keeper()


def test_filters_on_two_hosts_follow_one_database(tmp_path: Path):
    with databases.migrated_database("sqlite") as url:
        db = databases.open_database(url)
        both = [sites.Site(tmp_path / name, db, url, "ironic-rules-memory://", 1)
                for name in ("a", "b") if (tmp_path / name).mkdir() is None]
        node, mac = both[0].machine()
        keepers = [site.synced() for site in both]
        both[0].move(node, states.INSPECTWAIT)
        for keeper in keepers:
            keeper.sync(periodic=False)

        assert both[0].verdicts() == both[1].verdicts() == {mac: True, "*": True}
        for site in both:
            site.close_all()
        db.dispose()


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS])
def test_whatever_refuses_a_denial_closes_the_door(site, monkeypatch, caplog, error):
    _, mac = site.machine(states.INSPECTWAIT)
    keeper = site.synced()
    with monkeypatch.context() as patch:
        patch.setattr(Hostsdir, "_create", refusing(error))
        _, enrolled = site.machine()
        keeper.sync(periodic=True)

        assert site.verdicts() == {mac: True, "*": False}
        assert (keeper.statistics.closed, keeper.is_behind) == (1, True)
        assert "Unknown addresses are denied by" in caplog.text

        # It remains closed for as long as the denial cannot be written.
        site.machine(states.INSPECTWAIT)
        keeper.sync(periodic=True)
        assert site.verdicts()["*"] is False

    keeper.write()
    assert site.verdicts()[enrolled] is False
    assert site.verdicts()["*"] is True
    assert (keeper.statistics.closed, keeper.is_behind) == (0, False)


def test_a_closed_door_remains_when_all_inspections_end(site, monkeypatch):
    node, mac = site.machine(states.INSPECTWAIT)
    keeper = site.synced()
    with monkeypatch.context() as patch:
        patch.setattr(Hostsdir, "_create", refusing(errno.ENOSPC))
        _, enrolled = site.machine()
        keeper.sync(periodic=True)
        site.move(node, states.ACTIVE)
        keeper.sync(periodic=True)
    keeper.write()

    assert site.verdicts() == {mac: False, enrolled: False, "*": False}
    assert (keeper.statistics.closed, keeper.is_behind) == (0, False)


def refusing(error):
    def create(folder):
        raise OSError(error, os.strerror(error))

    return create
