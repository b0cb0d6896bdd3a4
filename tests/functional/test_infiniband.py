"""InfiniBand addresses of ports, which ``[DEFAULT]infiniband_addresses`` admits."""

from __future__ import annotations

import pytest

from tests.functional.whole import fault, running

GUID = "7c:fe:90:03:00:29:26:52"
#: After another boot the octets before the GUID may be others.
ADDRESSES = (f"a0:00:02:20:fe:80:00:00:00:00:00:00:{GUID}", f"80:00:02:08:FE:80:00:00:00:00:00:00:{GUID.upper()}")
#: The agent's hardware manager for such cards reports this address.
MAC = "7c:fe:90:29:26:52"
CLIENT_ID = f"ff:00:00:00:00:00:02:00:00:02:c9:00:{GUID}"


@pytest.fixture(scope="module")
def service_of_module(tmp_path_factory):
    with running(tmp_path_factory.mktemp("infiniband"), "[DEFAULT]\ninfiniband_addresses = true\n"
                 "[auto_discovery]\nenabled = true\ndriver = fake-hardware\n") as started:
        yield started


@pytest.fixture
def whole(service_of_module):
    yield service_of_module
    for port in service_of_module.app.get("/v1/ports").json["ports"]:
        assert service_of_module.app.delete(f"/v1/ports/{port['uuid']}").status_int == 204


@pytest.fixture(scope="module")
def without(tmp_path_factory):
    with running(tmp_path_factory.mktemp("ethernet")) as started:
        yield started


def ports_of(whole, node):
    return whole.app.get(f"/v1/nodes/{node}/ports/detail").json["ports"]


def report(whole, **changes):
    _, body = whole.machine()
    body["inventory"]["interfaces"] = [
        {"name": "ib0", "mac_address": ADDRESSES[1], "ipv4_address": "192.0.2.9", "client_id": CLIENT_ID, **changes}]
    return body


@pytest.mark.parametrize("address", [*ADDRESSES, GUID, MAC])
def test_a_port_has_the_mac_address_that_stands_for_it(whole, address):
    node = whole.enroll()

    made = whole.app.post_json("/v1/ports", {"node_uuid": node, "address": address})

    assert (made.status_int, made.json["address"]) == (201, MAC)
    for asked in (*ADDRESSES, GUID, MAC):
        found = whole.app.get("/v1/ports", {"address": asked}).json["ports"]
        assert [port["uuid"] for port in found] == [made.json["uuid"]], asked
    again = whole.app.post_json("/v1/ports", {"node_uuid": node, "address": ADDRESSES[0]})
    assert (again.status_int, MAC in fault(again)) == (409, True)


def test_the_address_of_a_port_and_of_a_group_is_changed(whole):
    node = whole.enroll("manageable")
    for resource in ("ports", "portgroups"):
        made = whole.app.post_json(f"/v1/{resource}", {"node_uuid": node, "address": "52:54:00:1b:00:01"}).json
        changed = whole.app.patch_json(f"/v1/{resource}/{made['uuid']}",
                                       [{"op": "replace", "path": "/address", "value": ADDRESSES[0]}])
        assert (changed.status_int, changed.json["address"]) == (200, MAC)
    assert whole.app.delete(f"/v1/portgroups/{made['uuid']}").status_int == 204
    group = whole.app.post_json("/v1/portgroups", {"node_uuid": node, "address": ADDRESSES[1]})
    assert (group.status_int, group.json["address"]) == (201, MAC)


def test_a_ramdisk_finds_its_node_by_any_of_the_addresses(whole):
    node = whole.enroll("inspect wait")
    whole.app.post_json("/v1/ports", {"node_uuid": node, "address": ADDRESSES[0]})

    for address in (*ADDRESSES, MAC):
        found = whole.app.get("/v1/lookup", {"addresses": address})
        assert (found.status_int, found.json["node"]["uuid"]) == (200, node)


def test_an_inspection_creates_the_port_and_a_second_one_keeps_it(whole):
    node = whole.enroll("manageable", inspect_interface="agent")
    body = report(whole)
    body["inventory"]["boot"] = {"current_boot_mode": "uefi", "pxe_interface": f"20-{MAC.replace(':', '-')}"}

    assert whole.inspect(node, body)["provision_state"] == "manageable"
    port, = ports_of(whole, node)
    assert (port["address"], port["pxe_enabled"], port["extra"]) == (MAC, True, {"client-id": CLIENT_ID})
    body["inventory"]["interfaces"][0]["mac_address"] = ADDRESSES[0]
    whole.inspect(node, body)

    assert [one["uuid"] for one in ports_of(whole, node)] == [port["uuid"]]
    inventory = whole.app.get(f"/v1/nodes/{node}/inventory").json
    assert inventory["inventory"]["interfaces"][0]["mac_address"] == ADDRESSES[0]
    assert inventory["plugin_data"]["macs"] == [MAC]


def test_a_machine_with_infiniband_only_is_discovered_and_known_afterwards(whole):
    body = report(whole)

    found = whole.app.post_json("/v1/continue_inspection", body)

    assert found.status_int == 200, found.text
    node = found.json["node"]["uuid"]
    whole.at_rest(node)
    assert [port["address"] for port in ports_of(whole, node)] == [MAC]
    whole.put(node, provision_state="inspect wait")
    tried = whole.app.post_json("/v1/inspection_rules/dry_run", {"report": report(whole, mac_address=ADDRESSES[0])})
    assert (tried.status_int, tried.json["outcome"]) == (200, "finished"), tried.text
    assert tried.json["ports_created"] == []


def test_the_address_of_another_node_is_left_to_it(whole):
    owner, other = whole.enroll(), whole.enroll("manageable", inspect_interface="agent")
    whole.app.post_json("/v1/ports", {"node_uuid": owner, "address": GUID})

    refused = whole.provision(other, "inspect") and whole.callback(other, report(whole))

    assert refused.status_int == 404
    assert ports_of(whole, other) == []


def test_without_the_option_they_are_refused_and_unknown(without):
    node = without.enroll("manageable", inspect_interface="agent")
    port = without.app.post_json("/v1/ports", {"node_uuid": node, "address": MAC}).json

    for address in (*ADDRESSES, GUID):
        for resource in ("ports", "portgroups"):
            reply = without.app.post_json(f"/v1/{resource}", {"node_uuid": node, "address": address})
            assert (reply.status_int, "infiniband_addresses" in fault(reply)) == (400, True)
        reply = without.app.patch_json(f"/v1/ports/{port['uuid']}",
                                       [{"op": "replace", "path": "/address", "value": address}])
        assert (reply.status_int, "/address: " in fault(reply)) == (400, True)
    assert without.app.get("/v1/lookup", {"addresses": ADDRESSES[0]}).status_int == 400
    without.inspect(node, report(without))
    assert without.app.get(f"/v1/nodes/{node}/inventory").json["plugin_data"]["macs"] == []
