"""A running filter whose database or broker becomes unavailable, starts late, or becomes available again."""

from __future__ import annotations

import re

import pytest
import sqlalchemy as sa

from ironic_rules import context
from ironic_rules.models import states
from ironic_rules.rpc import pxe_filter as rpc
from ironic_rules.rpc import transport as rpc_transport
from tests.functional.brokers import temporary_vhost
from tests.functional.processes import Process, free_port, wait_for
from tests.functional.pxe_filter import site as sites
from tests.functional.pxe_filter.test_process import running, shows
from tests.functional.relay import Relay

pytestmark = pytest.mark.slow


@pytest.mark.servers
@pytest.mark.parametrize("kind", ["mysql", "postgresql"])
def test_the_database_goes_away_and_comes_back(tmp_path, kind):
    with sites.site(tmp_path, kind) as site:
        url = sa.make_url(site.url)
        relay = Relay(url.host or "127.0.0.1", url.port or {"mysql": 3306, "postgresql": 5432}[kind])
        site.url = url.set(host="127.0.0.1", port=relay.port).render_as_string(hide_password=False)
        node, mac = site.machine()
        with running(site) as process:
            relay.cut()
            site.move(node, states.INSPECTWAIT)
            process.printed("The database cannot be read; the files are unchanged")
            assert site.verdicts() == {mac: False, "*": False}

            relay.mend()
            shows(site, {mac: True, "*": True})
            process.printed("The database can be read again")
            assert process.text().count("cannot be read") == 1
        relay.cut()


@pytest.mark.servers
@pytest.mark.parametrize("kind", [pytest.param("mysql", marks=pytest.mark.long), "postgresql"])
def test_the_database_becomes_silent(tmp_path, kind):
    with sites.site(tmp_path, kind) as site:
        url = sa.make_url(site.url)
        relay = Relay(url.host or "127.0.0.1", url.port or {"mysql": 3306, "postgresql": 5432}[kind])
        site.url = url.set(host="127.0.0.1", port=relay.port).render_as_string(hide_password=False)
        node, mac = site.machine()
        with running(site, sections="[database]\nstatement_timeout = 1\nconnect_timeout = 2\n") as process:
            relay.is_silent = True
            site.move(node, states.INSPECTWAIT)
            process.printed("The database cannot be read; the files are unchanged", 12)
            relay.is_silent = False
            shows(site, {mac: True, "*": True})
        relay.cut()


@pytest.mark.servers
@pytest.mark.parametrize("kind", ["mysql", "postgresql"])
def test_a_filter_waits_for_a_database_that_comes_later(tmp_path, kind):
    with sites.site(tmp_path, kind) as site:
        url = sa.make_url(site.url)
        relay = Relay(url.host or "127.0.0.1", url.port or {"mysql": 3306, "postgresql": 5432}[kind])
        relay.cut()
        site.url = url.set(host="127.0.0.1", port=relay.port).render_as_string(hide_password=False)
        _, mac = site.machine()
        file = site.config_file("late", "[database]\nmax_retries = 1\nretry_interval = 1\n")
        process = Process("ironic_rules.cmd.pxe_filter", ["--config-file", str(file)], site.path, "late")
        try:
            process.printed("The database cannot be reached; the filter waits for it")
            relay.mend()
            process.printed("is running")
            assert site.verdicts() == {mac: False, "*": False}
        finally:
            process.close()
        relay.cut()


def test_a_filter_that_waits_for_its_database_ends_when_told_to(tmp_path):
    with sites.site(tmp_path) as site:
        site.url = f"mysql+pymysql://ironic@127.0.0.1:{free_port()}/none"
        file = site.config_file("late", "[database]\nmax_retries = 1\nretry_interval = 1\n")
        process = Process("ironic_rules.cmd.pxe_filter", ["--config-file", str(file)], site.path, "late")
        try:
            process.printed("The database cannot be reached; the filter waits for it")
            process.terminate()
            assert process.status == 0
        finally:
            process.close()


def test_without_a_broker_the_files_follow_the_database(tmp_path):
    with sites.site(tmp_path, transport=f"rabbit://guest:guest@127.0.0.1:{free_port()}/") as site:
        node, mac = site.machine()
        with running(site) as process:
            site.move(node, states.INSPECTWAIT)
            shows(site, {mac: True, "*": True})
            process.terminate()


@pytest.mark.servers
def test_the_broker_goes_away_and_comes_back(tmp_path):
    with temporary_vhost() as vhost:
        host, port, _path = re.fullmatch(r"rabbit://(?:.*@)?([^:/]+):(\d+)/(.*)", vhost).groups()
        relay = Relay(host, int(port))
        with sites.site(tmp_path, transport=vhost.replace(f"{host}:{port}", f"127.0.0.1:{relay.port}")) as site:
            (node, mac), (_, other) = site.machine(), site.machine()
            with running(site) as process:
                process.printed("Listening for messages to ironic.pxe_filter")
                relay.cut()
                site.move(node, states.INSPECTWAIT)
                shows(site, {mac: True, other: False, "*": True})
                relay.mend()
                site.transport = vhost
                client = rpc.PXEFilterAPI(rpc_transport.get_transport(site.conf(name="sender")))

                def served() -> bool:
                    client.update_pxe_filters(context.admin(), allow=[other])
                    return site.verdicts()[other]

                wait_for("messages to arrive again", served, 60, 0.2)
        relay.cut()
