"""Reports of real-shaped machines in the whole service, with all hooks and some rules: each becomes its node."""

from __future__ import annotations

import json

import pytest

from tests import corpus_reports
from tests.functional.whole import running
from tests.walking import walking

MACHINES = corpus_reports.machines()
OPTIONAL = ("parse-lldp,local-link-connection,physical-network,accelerators,boot-mode,cpu-capabilities,extra-hardware,"
            "memory,pci-devices,raid-device,root-device")


DISCOVERY = "\n[auto_discovery]\nenabled = true\ndriver = fake-hardware\nmax_nodes_per_minute = 1000\n"


def options():
    aliases = [dict(zip(("vendor_id", "product_id"), ids.split(":"), strict=True), name=name)
               for name, ids in corpus_reports.ALIASES.items()]
    return "\n".join(["[inspector]", f"hooks = $default_hooks,{OPTIONAL}",
                      f"physical_network_cidr_map = {','.join(corpus_reports.NETWORKS)}",
                      *(f"pci_device_alias = {json.dumps(alias)}" for alias in aliases)])


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    with running(tmp_path_factory.mktemp("corpus"), options()) as made:
        for rule in corpus_reports.RULES:
            assert made.app.post_json("/v1/inspection_rules", rule).status_int == 201
        yield made


@pytest.fixture(scope="module")
def discovering(tmp_path_factory):
    with running(tmp_path_factory.mktemp("discovering"), "[inspector]\nadd_ports = active\n" + DISCOVERY) as made:
        yield made


def test_there_are_enough_machines_and_each_is_another_one():
    names = [machine["name"] for machine in MACHINES]
    years = {machine.get("agent", 2026) for machine in MACHINES}

    assert (len(names) >= 40, len(set(names)), years) == (True, len(names), {2023, 2024, 2025, 2026})


@walking("machine", MACHINES)
def test_a_machine_becomes_the_node_that_its_report_describes(whole, machine):
    properties = machine.get("properties", {})
    uuid = whole.enroll("manageable", properties=properties)

    node = whole.inspect(uuid, corpus_reports.body(machine))

    expected = dict(machine["expect"])
    if error := expected.get("error"):
        assert (node["provision_state"], error in (node["last_error"] or "")) == ("inspect failed", True)
    else:
        assert (node["provision_state"], node["last_error"]) == ("manageable", None)
        ports = whole.app.get(f"/v1/ports/detail?node={uuid}").json["ports"]
        found = corpus_reports.summary(node, ports, whole.app.get(f"/v1/nodes/{uuid}/inventory").json["plugin_data"])
        if count := expected.pop("port_count", None):
            # Too many to list: some of them.
            assert len(found["ports"]) == count
            found["ports"] = {address: found["ports"].get(address) for address in expected["ports"]}
        assert found == {**properties, **expected}
    assert whole.app.delete(f"/v1/nodes/{uuid}").status_int == 204


@walking("machine", [each for each in MACHINES if "error" not in each["expect"]])
def test_a_machine_that_was_discovered_is_found_by_its_next_report(discovering, machine):
    def post():
        return discovering.app.post_json("/v1/continue_inspection", corpus_reports.body(machine), headers={
            "X-OpenStack-Ironic-API-Version": "1.1"})

    uuid = post().json["uuid"]
    discovering.at_rest(uuid)
    discovering.provision(uuid, "manage")
    discovering.provision(uuid, "inspect")

    assert post().json == {"uuid": uuid}
    assert discovering.at_rest(uuid).provision_state == "manageable"
    assert discovering.app.delete(f"/v1/nodes/{uuid}").status_int == 204
