"""The PXE filter (M-70 to M-76)."""

from __future__ import annotations

import inspect
import secrets
from collections.abc import Iterator
from pathlib import Path

import oslo_messaging as messaging
import pytest

from ironic_rules import context
from ironic_rules.models import states
from ironic_rules.pxe_filter.service import FilterService, PXEFilterManager
from ironic_rules.rpc import pxe_filter as rpc
from ironic_rules.rpc import transport as rpc_transport
from tests.functional import brokers
from tests.functional.processes import wait_for
from tests.functional.pxe_filter import site as sites
from tests.functional.pxe_filter.network import network
from tests.functional.pxe_filter.site import Site
from tests.functional.pxe_filter.test_process import running, shows
from tests.functional.rows.conftest import inspected


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with sites.site(tmp_path) as made:
        yield made


def test_m_70_the_command_beside_a_dnsmasq_reads_the_database(site, tmp_path):
    node, mac = site.machine()
    with network(tmp_path) as net, running(site):
        dnsmasq = net.dnsmasq(site.folder)
        assert not net.ask(mac)
        read = dnsmasq.text().count("read ")
        site.move(node, states.INSPECTWAIT)
        wait_for("dnsmasq to read", lambda: dnsmasq.text().count("read ") >= read + 2)
        assert net.gets(mac)


def test_m_71_inspection_needs_no_filter(whole):
    with pytest.MonkeyPatch.context() as patch:
        # With or without notifications: nothing listens to them, and nothing waits for an answer.
        client = rpc.PXEFilterAPI(rpc_transport.get_transport(whole.conf))
        patch.setattr(whole.conductor.pxe_filter, "update_pxe_filters", client.update_pxe_filters)
        assert inspected(whole)["provision_state"] == "manageable"


@pytest.mark.servers
def test_m_72_every_filter_hears_a_broadcast_on_the_topic(tmp_path):
    """The events that conductors broadcast are in ``tests/functional/pxe_filter/test_cluster.py``."""
    with brokers.temporary_vhost() as url, sites.site(tmp_path, transport=url) as site:
        (tmp_path / "other").mkdir()
        other = Site(tmp_path / "other", site.db, site.url, url, 1)
        _, mac = site.machine()
        with running(site, sync_period=3600) as one, running(other, "other", sync_period=3600) as two:
            for process in (one, two):
                process.printed("Listening for messages to ironic.pxe_filter")
            sender = messaging.get_rpc_client(
                rpc_transport.get_transport(site.conf(name="conductor")),
                messaging.Target(topic="ironic.pxe_filter", version="1.0", fanout=True))
            sender.cast({}, "update_pxe_filters", allow=[mac])
            shows(site, {mac: True, "*": True})
            shows(other, {mac: True, "*": True})


def test_m_73_the_call_changes_the_named_addresses_and_no_others(site):
    parameters = inspect.signature(PXEFilterManager.update_pxe_filters).parameters
    assert [(name, one.default) for name, one in parameters.items()][1:] == [
        ("context", inspect.Parameter.empty), ("allow", None), ("deny", None)]
    _, allowed = site.machine(states.INSPECTWAIT)
    (_, first), (_, second), (_, third) = site.machine(), site.machine(), site.machine()
    keeper = site.synced()
    manager = PXEFilterManager(keeper, lambda _: keeper.write())  # as the filter does, which collects messages

    manager.update_pxe_filters(context.admin(), allow=[first, second.upper()])
    assert site.verdicts() == {allowed: True, first: True, second: True, third: False, "*": True}
    manager.update_pxe_filters(context.admin(), deny=[first])
    assert site.verdicts() == {allowed: True, first: False, second: True, third: False, "*": True}
    manager.update_pxe_filters(context.admin())
    assert site.verdicts() == {allowed: True, first: False, second: True, third: False, "*": True}


def test_m_74_without_messages_the_filter_works_by_its_periodic_sync(site):
    node, mac = site.machine()
    site.transport = f"ironic-rules-memory:///{secrets.token_hex(4)}"
    with running(site) as process:
        site.move(node, states.INSPECTWAIT)
        shows(site, {mac: True, "*": True})
        assert "Listening for messages" not in process.text()


def test_m_75_the_periodic_sync_heals_what_no_message_told(site):
    assert site.conf().pxe_filter.sync_period == 45
    node, mac = site.machine()
    site.transport = f"ironic-rules-memory:///{secrets.token_hex(4)}"
    conf = site.conf(sync_period=1)
    service = FilterService(conf, sites.Keeper(sites.settings.from_conf(conf), site.db),
                            rpc_transport.get_transport(conf))
    service.start()
    try:
        site.move(node, states.INSPECTWAIT)
        shows(site, {mac: True, "*": True})
    finally:
        service.stop()
        service.wait(60)


@pytest.mark.parametrize(("policy", "without", "with_one"), [
    ({}, False, True), ({"deny_unknown_macs": True}, False, False),
    ({"sections": "[auto_discovery]\nenabled = true\n"}, True, True),
    ({"sections": "[auto_discovery]\nenabled = true\n", "deny_unknown_macs": True}, False, False)])
def test_m_76_unknown_addresses_are_allowed_during_inspections_and_with_discovery(site, policy, without, with_one):
    keeper = site.synced(**policy)
    assert site.verdicts() == {"*": without}

    node = site.node(states.INSPECTING)
    keeper.sync(periodic=True)
    assert site.verdicts() == {"*": with_one}

    site.move(node, states.ENROLL)
    keeper.sync(periodic=True)
    assert site.verdicts() == {"*": without}
