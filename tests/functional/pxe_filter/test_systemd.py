"""The documented installation under a real systemd as process 1: installed, started, used, disturbed and stopped.

The machine is one of namespaces (``tests/functional/pid_one.py``), with MariaDB and RabbitMQ of this one. The unit of
dnsmasq gets a network namespace of its own by a drop-in, as no other DHCP server may answer there. Everything else is
typed as the pages have it.
"""

from __future__ import annotations

import base64
import contextlib
import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from ironic_rules import samples
from tests.functional.brokers import temporary_vhost
from tests.functional.databases import temporary_database
from tests.functional.pid_one import Machine, machine
from tests.functional.processes import free_port, wait_for
from tests.functional.pxe_filter.network import Network, network
from tests.functional.relay import Relay

pytestmark = [pytest.mark.servers, pytest.mark.long]

PAGES = Path(__file__).parents[3] / "doc" / "source"
UNITS = ("ironic-rules-api", "ironic-rules-conductor", "ironic-pxe-filter", "ironic-inspection-dnsmasq")
MAC, BUSY, UNKNOWN = "52:54:00:aa:00:01", "52:54:00:aa:00:02", "52:54:00:aa:00:03"
#: Commands that the machine does not need: it has the package already.
NOT_TYPED = re.compile(r"python3 -m venv|\S+/pip install")


def typed(page: str, begin: str, end: str) -> list[str]:
    """Return the commands after the ``#`` prompts of a part of a page, between two headings."""
    text = (PAGES / page).read_text()
    part = text[text.index(f"\n{begin}\n"):text.index(f"\n{end}\n")]
    found = re.findall(r"^   # ((?:.*\\\n)*.*)$", part, re.MULTILINE)
    commands = [command for command in found if not NOT_TYPED.match(command)]
    assert commands, f"{page}: {begin}"
    return commands


class Api:
    """Requests of the administrator whom the pages create."""

    def __init__(self, url: str) -> None:
        self.url = url

    def __call__(self, method: str, path: str, body: Any = None) -> Any:
        request = urllib.request.Request(
            self.url + path, method=method, data=None if body is None else json.dumps(body).encode(), headers={
                "Content-Type": "application/json", "X-OpenStack-Ironic-API-Version": "1.96",
                "Authorization": "Basic " + base64.b64encode(b"admin:SECRET").decode()})
        with urllib.request.urlopen(request, timeout=60) as reply:
            text = reply.read()
        return json.loads(text) if text else None

    def serves(self) -> bool:
        with contextlib.suppress(OSError, urllib.error.HTTPError):
            self("GET", "/healthcheck")
            return True
        return False

    def state(self, node: str) -> str:
        return str(self("GET", f"/v1/nodes/{node}")["provision_state"])

    def enrol(self, mac: str) -> str:
        node = str(self("POST", "/v1/nodes", {"driver": "fake-hardware"})["uuid"])
        self("POST", "/v1/ports", {"node_uuid": node, "address": mac})
        self("PUT", f"/v1/nodes/{node}/states/provision", {"target": "manage"})
        wait_for("the node to be manageable", lambda: self.state(node) == "manageable")
        return node


class Site:
    """The machine, its servers behind relays, and the network of the DHCP server."""

    def __init__(self, made: Machine, net: Network, relays: tuple[Relay, Relay], urls: tuple[str, str]) -> None:
        self.machine, self.net, self.relays = made, net, relays
        self._urls = urls
        self._port = free_port()
        self.api = Api(f"http://127.0.0.1:{self._port}")

    def configuration(self) -> str:
        """Return the configuration of the pages with the servers of this machine."""
        text = (PAGES / "install" / "ironic-rules.conf").read_text()
        transport, database = self._urls
        for pattern, line in ((r"^transport_url = .*$", f"transport_url = {transport}"),
                              (r"^connection = .*$", f"connection = {database}\nmax_retries = 1\nretry_interval = 1"),
                              (r"^port = .*$", f"port = {self._port}"), (r"^public_endpoint = .*$", "")):
            text, changed = re.subn(pattern, line.replace("\\", r"\\"), text, flags=re.MULTILINE)
            assert changed == 1, pattern
        filter_section = re.search(r"\n   (\[pxe_filter\]\n(?:   .+\n)+)", (PAGES / "admin/pxe-filter.rst").read_text())
        assert filter_section
        return text + "\n" + filter_section[1].replace("   ", "")

    def write(self, path: str, text: str) -> None:
        file = self.machine.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def install(self) -> None:
        """Follow the pages up to the started units."""
        self.machine.install()
        page = "install/separate-processes.rst"
        self.machine.shell("\n".join(typed(page, "2. The software", "3. The configuration")))
        self.write("/etc/ironic-rules/ironic-rules.conf", self.configuration())
        self.machine.shell("\n".join(typed(page, "3. The configuration", "4. Start")))
        self.machine.shell("\n".join(typed(page, "4. Start", ".. _units:")))
        namespace, interface = self.net.server_side
        # A machine with an inspection network would have this interface.
        self.write("/etc/systemd/system/ironic-inspection-dnsmasq.service.d/network.conf",
                   f"[Service]\nNetworkNamespacePath=/run/netns/{namespace}\n")
        dnsmasq = self.machine.root / "etc/ironic-inspection-dnsmasq.conf"
        text = dnsmasq.read_text().replace("interface=eth1", f"interface={interface}\nno-ping")
        dnsmasq.write_text(text.replace("192.0.2.100,192.0.2.200", "198.51.100.50,198.51.100.200"))
        self.machine.shell("systemctl daemon-reload")
        commands = typed("admin/pxe-filter.rst", "Setting it up", "Content of the files")
        self.machine.shell("\n".join(commands))

    def pid(self, unit: str) -> int:
        return int(self.machine.property(unit, "MainPID"))

    def active(self, *units: str) -> bool:
        return all(self.machine.property(unit, "ActiveState") == "active" for unit in units or UNITS)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with contextlib.ExitStack() as stack:
        url = sa.make_url(stack.enter_context(temporary_database("mysql")))
        vhost = stack.enter_context(temporary_vhost())
        host, port, _ = re.fullmatch(r"rabbit://(?:.*@)?([^:/]+):(\d+)/(.*)",
                                     vhost).groups()  # type: ignore[union-attr]
        relays = Relay(url.host or "127.0.0.1", url.port or 3306), Relay(host, int(port))
        for relay in relays:
            stack.callback(relay.cut)
        net = stack.enter_context(network(tmp_path))
        made = stack.enter_context(machine(tmp_path))
        yield Site(made, net, relays, (
            vhost.replace(f"{host}:{port}", f"127.0.0.1:{relays[1].port}"),
            url.set(host="127.0.0.1", port=relays[0].port).render_as_string(hide_password=False)))


def test_the_documented_installation(site: Site) -> None:
    assert set(site.machine.namespaces().values()) == {True}
    site.install()
    assert site.active()
    assert [unit for unit in UNITS if site.machine.property(unit, "NRestarts") != "0"] == []

    # A node is inspected.
    wait_for("the API to find its conductor", site.api.serves)
    busy, node = site.api.enrol(BUSY), site.api.enrol(MAC)
    assert not site.net.ask(MAC)
    site.api("PUT", f"/v1/nodes/{node}/states/provision", {"target": "inspect"})
    wait_for("the node to wait", lambda: site.api.state(node) == "inspect wait")
    wait_for("dnsmasq to serve it", lambda: site.net.ask(MAC))
    assert site.net.ask(UNKNOWN)
    assert not site.net.ask(BUSY)
    inventory = samples.inventory("hpe-dl380-gen11")
    inventory["inventory"]["interfaces"][0]["mac_address"] = MAC
    site.api("POST", "/v1/continue_inspection", inventory)
    wait_for("the inspection", lambda: site.api.state(node) == "manageable")
    wait_for("dnsmasq to serve it no longer", lambda: not site.net.ask(MAC))
    assert site.api.state(busy) == "manageable"
    assert site.machine.run("ls", "/var/lib/ironic-inspection-dnsmasq").stdout == "leases\n"

    # Each may restart, or die, without the others.
    for unit, how in (("ironic-pxe-filter", "restart"), ("ironic-rules-conductor", "restart"),
                      ("ironic-rules-api", "restart"), ("ironic-pxe-filter", "kill -s KILL"),
                      ("ironic-inspection-dnsmasq", "kill -s KILL")):
        before = {one: site.pid(one) for one in UNITS}
        site.machine.shell(f"systemctl {how} {unit}")
        wait_for(f"{unit} after {how}", lambda: site.active() and site.pid(unit) not in (0, before[unit]))  # noqa: B023
        assert {one: site.pid(one) for one in UNITS if one != unit} == {
            one: pid for one, pid in before.items() if one != unit}, (unit, how)

    # The filter signals dnsmasq without a privilege: the address of a deleted port leaves the files.
    site.api("DELETE", f"/v1/nodes/{node}")
    site.machine.shell("systemctl restart ironic-pxe-filter")
    log = site.machine.root / "var/log/ironic-pxe-filter/ironic-pxe-filter.log"
    assert "dnsmasq was signalled to reload; 2 addresses without a port are removed" in log.read_text()

    site.machine.shell(f"systemctl stop {' '.join(UNITS)}")
    for unit in UNITS:
        assert site.machine.property(unit, "ActiveState") == "inactive"
        assert site.machine.property(unit, "Result") == "success", site.machine.journal(unit)


def test_database_and_broker_are_unavailable_when_the_machine_starts(site: Site) -> None:
    site.install()
    site.machine.shell(f"systemctl stop {' '.join(UNITS)}")
    for relay in site.relays:
        relay.cut()
    site.machine.shell(f"systemctl start --no-block {' '.join(UNITS)}")
    for unit in ("ironic-rules-api", "ironic-rules-conductor"):
        wait_for(f"another attempt of {unit}", lambda: int(site.machine.property(unit, "NRestarts")) >= 1)  # noqa: B023
    assert site.machine.property("ironic-pxe-filter", "ActiveState") == "activating"
    assert site.pid("ironic-inspection-dnsmasq") == 0

    site.relays[0].mend()
    wait_for("what needs no broker", lambda: site.active("ironic-rules-api", "ironic-pxe-filter",
                                                         "ironic-inspection-dnsmasq"))
    site.relays[1].mend()
    wait_for("the conductor", site.active)
    wait_for("the API to find its conductor", site.api.serves)


def test_the_smallest_set_up(tmp_path: Path) -> None:
    """One process with SQLite and its own filter, and dnsmasq, with the user and the units of the page."""
    port = free_port()
    page = (PAGES / "admin/pxe-filter.rst").read_text()
    config = re.search(r"\n   (\[pxe_filter\]\n   in_process = true\n(?:   .+\n)+)", page)
    assert config
    with network(tmp_path) as net, machine(tmp_path) as made:
        made.install()
        made.shell("/opt/ironic-rules/bin/ironic-rules-units; systemd-sysusers; mkdir -p /etc/ironic-rules")
        (made.root / "etc/ironic-rules/ironic-rules.conf").write_text(
            f"[api]\nport = {port}\n" + config[1].replace("   ", ""))
        namespace, interface = net.server_side
        drop_in = made.root / "etc/systemd/system/ironic-rules-dnsmasq.service.d/network.conf"
        drop_in.parent.mkdir(parents=True)
        drop_in.write_text(f"[Service]\nNetworkNamespacePath=/run/netns/{namespace}\n")
        dnsmasq = made.root / "etc/ironic-rules-dnsmasq.conf"
        text = dnsmasq.read_text().replace("interface=eth1", f"interface={interface}\nno-ping")
        dnsmasq.write_text(text.replace("192.0.2.100,192.0.2.200", "198.51.100.50,198.51.100.200"))
        made.shell("systemctl daemon-reload")
        made.shell("\n".join(typed("admin/pxe-filter.rst", "With systemd, in one process", ".. _filter-asked:")))
        units = ("ironic-rules", "ironic-rules-dnsmasq")
        assert [made.property(unit, "ActiveState") for unit in units] == ["active"] * 2
        assert made.property("ironic-pxe-filter", "ActiveState") == "inactive"
        assert (made.root / "var/lib/ironic-rules/ironic-rules.sqlite").exists()

        api = Api(f"http://127.0.0.1:{port}")
        node = api.enrol(MAC)
        assert not net.ask(MAC)
        api("PUT", f"/v1/nodes/{node}/states/provision", {"target": "inspect"})
        wait_for("the node to wait", lambda: api.state(node) == "inspect wait")
        # The machine is started when dnsmasq, which has the same user, has read the files.
        assert net.ask(MAC)
        log = (made.root / "var/lib/ironic-rules/ironic-rules.log").read_text()
        assert "does not serve" not in log

        # dnsmasq sees nothing of the service but the files.
        pid = made.property("ironic-rules-dnsmasq", "MainPID")
        seen = made.run("nsenter", "-m", "-t", pid, "ls", "/var/lib/ironic-rules", "/etc/ironic-rules").stdout
        assert "dhcp-hosts" in seen and "sqlite" not in seen and ".conf" not in seen
        api("PUT", f"/v1/nodes/{node}/states/provision", {"target": "abort"})
        wait_for("the abort", lambda: api.state(node) == "inspect failed")
        api("DELETE", f"/v1/nodes/{node}")
        made.shell("systemctl restart ironic-rules")
        wait_for("the service", api.serves)
        assert "dnsmasq was signalled to reload" in (made.root / "var/lib/ironic-rules/ironic-rules.log").read_text()
        made.shell(f"systemctl stop {' '.join(units)}")
        for unit in units:
            assert made.property(unit, "Result") == "success", made.journal(unit)
