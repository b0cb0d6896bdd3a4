"""Filters with a scope: each has its own nodes, and its own policy."""

from __future__ import annotations

import pytest

from ironic_rules.db import nodes
from ironic_rules.models import states
from tests.functional.pxe_filter import site as sites
from tests.functional.pxe_filter.site import Site

pytestmark = pytest.mark.usefixtures("no_dnsmasq")


def of_group(site: Site, state: str, mac: str, group: str) -> int:
    node = site.node(state, mac)
    site.db.write(lambda conn: nodes.update(conn, node, {"conductor_group": group}))
    return node


def test_a_filter_has_the_nodes_of_its_conductor_groups_only(site: Site) -> None:
    mine, denied, other, stranger = (site.mac() for _ in range(4))
    of_group(site, states.INSPECTWAIT, mine, "rack1")
    node = of_group(site, states.ACTIVE, denied, "rack1")
    of_group(site, states.INSPECTWAIT, other, "rack2")

    keeper = site.synced(conductor_groups="Rack1")
    assert site.verdicts() == {mine: True, denied: False, "*": True}

    keeper.tell([denied, other, stranger], [])
    keeper.write()
    assert site.verdicts() == {mine: True, denied: True, "*": True}

    site.move(node, states.INSPECTWAIT)
    added = site.mac()
    site.add_port(node, added)
    keeper.sync(periodic=False)
    assert site.verdicts() == {mine: True, denied: True, added: True, "*": True}


def test_nodes_of_other_groups_do_not_let_strangers_in(site: Site) -> None:
    of_group(site, states.INSPECTWAIT, site.mac(), "rack2")

    site.synced(conductor_groups="rack1")

    assert site.verdicts() == {"*": False}


def test_a_filter_has_the_ports_of_its_physical_networks_only(site: Site) -> None:
    node, mac = site.machine(states.INSPECTWAIT)
    other = site.mac()
    port = site.add_port(node, other)
    keeper = site.synced(physical_networks="leaf1", deny_unknown_macs=True)
    assert site.verdicts() == {"*": False}

    site.db.write(lambda conn: sites.ports.update(conn, port, {"physical_network": "leaf1"}))
    keeper.sync(periodic=False)
    assert site.verdicts() == {other: True, "*": False}

    site.db.write(lambda conn: sites.ports.update(conn, port, {"physical_network": "leaf2"}))
    keeper.sync(periodic=False)
    assert site.verdicts() == {other: False, "*": False}
    assert mac not in site.verdicts()
