"""Machines whose interfaces share MAC addresses, in the whole service: bonds and VLANs beside their network cards."""

from __future__ import annotations

import itertools
import secrets

import pytest

from tests.functional.whole import running

CONFIG = ("[auto_discovery]\nenabled = true\ndriver = fake-hardware\nmax_nodes_per_minute = 1000\n"
          "[inspector]\nadd_ports = active\nhooks = $default_hooks,parse-lldp,local-link-connection,physical-network\n"
          "physical_network_cidr_map = 192.0.2.0/24:provider,198.51.100.0/24:storage\n")
#: Interfaces of one address; only the card has a link, only the bond and its VLAN have IP addresses.
SHARING = [
    {"name": "eno1", "vendor": "0x15b3", "product": "0x1017", "ipv4_address": None, "ipv6_address": None,
     "has_carrier": True, "lldp": [[1, "04d89ef3001102"], [2, "07313037"], [5, "6c6561662d61332d31"]]},
    {"name": "bond0", "vendor": None, "product": None, "ipv4_address": "192.0.2.9", "ipv6_address": None,
     "has_carrier": True, "lldp": []},
    {"name": "bond0.100", "vendor": None, "product": None, "ipv4_address": "198.51.100.9", "ipv6_address": None,
     "has_carrier": True, "lldp": None},
]
LINK = {"switch_id": "d8:9e:f3:00:11:02", "port_id": "107", "switch_info": "leaf-a3-1"}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    with running(tmp_path_factory.mktemp("shared"), CONFIG) as made:
        yield made


def machine(interfaces):
    """Return the address of a new machine and its data; the second card has an address of its own."""
    tail = f"{secrets.randbelow(256):02x}:{secrets.randbelow(256):02x}:{secrets.randbelow(256):02x}"
    mac, other = f"52:54:00:{tail}", f"52:54:01:{tail}"
    second = {"name": "eno2", "mac_address": other, "vendor": "0x15b3", "ipv4_address": None, "ipv6_address": None}
    return mac, {"inventory": {
        "interfaces": [*({**interface, "mac_address": mac} for interface in interfaces), second],
        "cpu": {"architecture": "x86_64", "count": 64}, "boot": {"pxe_interface": f"01-{mac.replace(':', '-')}"}}}


def post(whole, body):
    return whole.app.post_json("/v1/continue_inspection", body, headers={"X-OpenStack-Ironic-API-Version": "1.1"})


def ports(whole, uuid):
    return whole.app.get(f"/v1/ports/detail?node={uuid}").json["ports"]


@pytest.mark.parametrize("order", list(itertools.permutations(SHARING)))
def test_the_order_of_a_report_does_not_matter_to_a_discovered_machine(whole, order):
    mac, body = machine(order)

    uuid = post(whole, body).json["uuid"]
    assert whole.at_rest(uuid).last_error is None

    (port,) = ports(whole, uuid)
    assert (port["address"], port["pxe_enabled"]) == (mac, True)
    assert (port["local_link_connection"], port["physical_network"]) == (LINK, "provider")
    interfaces = whole.app.get(f"/v1/nodes/{uuid}/inventory").json["plugin_data"]["valid_interfaces"]
    assert {name: interface["is_added"] for name, interface in interfaces.items()} == {
        "bond0": True, "bond0.100": True, "eno1": True, "eno2": False}
    whole.provision(uuid, "manage")
    whole.provision(uuid, "inspect")
    assert post(whole, body).json == {"uuid": uuid}
    assert whole.at_rest(uuid).provision_state == "manageable"


def test_rules_see_every_interface_of_an_address(whole):
    whole.app.post_json("/v1/inspection_rules", {
        "conditions": [{"op": "eq", "args": ["{item[value][ipv4_address]}", "192.0.2.9"],
                        "loop": "{plugin_data[valid_interfaces]}", "multiple": "any"}],
        "actions": [{"op": "extend-attribute", "args": ["/extra/names", "{item[key]}"],
                     "loop": "{plugin_data[all_interfaces]}"}]})

    node = whole.inspect(whole.enroll("manageable"), machine(SHARING)[1])

    assert node["extra"] == {"names": ["bond0", "bond0.100", "eno1", "eno2"]}
    whole.app.delete("/v1/inspection_rules")


def test_a_discovered_machine_that_got_no_port_is_found_again_by_its_addresses(whole):
    _, body = machine(SHARING[:1])
    uuid = post(whole, body).json["uuid"]
    whole.at_rest(uuid)
    whole.provision(uuid, "manage")
    refused = post(whole, {**body, "number": 2})  # an equal one would be a repetition

    whole.provision(uuid, "inspect")
    found = post(whole, {**body, "number": 3})
    again = whole.at_rest(uuid)

    assert (refused.status_int, found.json, ports(whole, uuid)) == (404, {"uuid": uuid}, [])
    assert (again.provision_state, again.last_error) == ("manageable", None)
