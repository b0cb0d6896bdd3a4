"""The node that a report belongs to, and machines that are not enrolled (M-24 to M-32)."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import sqlalchemy as sa

from ironic_rules import service as composition
from ironic_rules.conf import inspection
from tests.functional.installations import only_in_one_process, refusal, running
from tests.functional.rows import hooks
from tests.functional.rows.conftest import create, inspected
from tests.functional.whole import Whole, fault

URL = "/v1/continue_inspection"
_numbers = itertools.count(1)


def bmc() -> str:
    """Return the address of a BMC that no other node has."""
    number = next(_numbers)
    return f"10.0.{number >> 8}.{number & 255}"


def known(whole: Whole, **fields: Any) -> tuple[str, str, str]:
    """Return UUID, MAC address and BMC address of a new manageable node that has both."""
    mac, address = whole.machine()[0], bmc()
    uuid = whole.enroll("manageable", driver_info={"ipmi_address": address}, **fields)
    assert whole.app.post_json("/v1/ports", {"node_uuid": uuid, "address": mac}).status_int == 201
    return uuid, mac, address


def machine(whole: Whole, *macs: str, bmc_address: str | None = None) -> dict[str, Any]:
    """Return the report of a machine; without ``macs``, it has an unknown one."""
    body = whole.machine()[1]
    if macs:
        body["inventory"]["interfaces"] = [{"name": f"e{n}", "mac_address": mac} for n, mac in enumerate(macs)]
    body["inventory"]["bmc_address"] = bmc_address
    return body


def post(whole: Whole, body: Any, uuid: str | None = None) -> Any:
    headers = {"X-OpenStack-Ironic-API-Version": "1.1"}
    return whole.app.post_json(URL + (f"?node_uuid={uuid}" if uuid else ""), body, headers=headers)


def count(whole: Whole) -> int:
    with whole.db.reader() as conn:
        return int(conn.scalar(sa.text("SELECT count(*) FROM nodes")))


@contextlib.contextmanager
def discovery(whole: Whole, scope: str | None = None) -> Iterator[None]:
    with (whole.option("auto_discovery", "enabled", True), whole.option("auto_discovery", "driver", "fake-hardware"),
          whole.option("auto_discovery", "inspection_scope", scope),
          whole.option("auto_discovery", "max_nodes_per_minute", 1000)):
        yield


def discovered(whole: Whole, body: dict[str, Any]) -> dict[str, Any]:
    """Send the report of a new machine; return its node when it is in a stable state."""
    reply = post(whole, body)
    assert reply.status_int == 200, reply.text
    whole.at_rest(reply.json["uuid"])
    return whole.show(reply.json["uuid"])


def test_m_24_uuid_mac_and_bmc_addresses_must_all_fit_the_one_node(whole):
    (one, mac, address), (other, other_mac, other_address) = known(whole), known(whole)
    for uuid in (one, other):
        whole.provision(uuid, "inspect")
    foreign = whole.machine()[0]

    refused = {
        "UUID and MAC of two nodes": post(whole, machine(whole, other_mac), one),
        "UUID, and a MAC address that its node does not have": post(whole, machine(whole, foreign), one),
        "MAC addresses of two nodes": post(whole, machine(whole, mac, other_mac)),
        "MAC and BMC of two nodes": post(whole, machine(whole, mac, bmc_address=other_address)),
    }

    assert {case: reply.status_int for case, reply in refused.items() if reply.status_int != 404} == {}
    assert [whole.row(uuid).provision_state for uuid in (one, other)] == ["inspect wait"] * 2
    assert post(whole, machine(whole, mac, foreign, bmc_address=address), one).json == {"uuid": one}
    whole.at_rest(one)
    whole.provision(other, "abort")


@pytest.mark.parametrize("by", ["uuid", "mac", "bmc"])
def test_m_24_each_of_them_alone_is_enough(whole, by):
    uuid, mac, address = known(whole)
    if by != "mac":
        port, = whole.app.get(f"/v1/nodes/{uuid}/ports").json["ports"]
        assert whole.app.delete(f"/v1/ports/{port['uuid']}").status_int == 204
    whole.provision(uuid, "inspect")
    body = machine(whole, *([mac] if by == "mac" else []), bmc_address=address if by == "bmc" else None)

    assert post(whole, body, uuid if by == "uuid" else None).json == {"uuid": uuid}
    assert whole.at_rest(uuid).provision_state == "manageable"


def test_m_24_of_several_nodes_with_one_bmc_none_is_taken(whole):
    address = bmc()
    uuids = [whole.enroll("manageable", driver_info={"redfish_address": f"https://{address}"}) for _ in range(2)]
    for uuid in uuids:
        whole.provision(uuid, "inspect")

    assert post(whole, machine(whole, bmc_address=address)).status_int == 404
    for uuid in uuids:
        whole.provision(uuid, "abort")


def test_m_25_bmc_addresses_are_resolved_and_kept_when_the_inspection_starts(whole):
    uuid = whole.enroll("manageable", driver_info={
        "redfish_address": "https://m25.example.org/redfish", "ipmi_address": "198.51.100.26", "ipmi_username": "x"})

    with whole.resolving({"m25.example.org": ["198.51.100.25", "2001:DB8::25"]}) as asked:
        whole.provision(uuid, "inspect")

        kept = ["198.51.100.25", "198.51.100.26", "2001:db8::25"]
        assert asked() == ["m25.example.org"]
        assert whole.row(uuid).driver_internal_info["lookup_bmc_addresses"] == whole.bmc_addresses(uuid) == kept
        assert post(whole, machine(whole, bmc_address="198.51.100.25")).json == {"uuid": uuid}
        # The name is not resolved again when the report arrives.
        whole.at_rest(uuid)
        assert asked() == ["m25.example.org"]


def test_m_26_only_waiting_nodes_are_found_by_their_bmc(whole):
    uuid, _, address = known(whole)

    assert post(whole, machine(whole, bmc_address=address)).status_int == 404
    whole.provision(uuid, "inspect")
    assert post(whole, machine(whole, bmc_address=address)).json == {"uuid": uuid}
    whole.at_rest(uuid)


@only_in_one_process("it listens to the queries, and reads SQLite's plans, which do not depend on the number of rows")
def test_m_26_a_lookup_by_bmc_reads_no_table_from_end_to_end(whole):
    uuids = [whole.enroll("manageable", driver_info={"ipmi_address": bmc()}) for _ in range(5)]
    for uuid in uuids:
        whole.provision(uuid, "inspect")
    queries: list[tuple[str, Any]] = []

    def note(conn: Any, cursor: Any, statement: str, parameters: Any, *rest: Any) -> None:
        queries.append((statement, parameters))

    sa.event.listen(whole.db.engine, "before_cursor_execute", note)
    try:
        assert post(whole, machine(whole, bmc_address="10.99.0.1")).status_int == 404
    finally:
        sa.event.remove(whole.db.engine, "before_cursor_execute", note)

    with whole.db.reader() as conn:
        steps = [f"{row.detail}: {query}" for query, parameters in queries if query.startswith("SELECT")
                 for row in conn.exec_driver_sql(f"EXPLAIN QUERY PLAN {query}", parameters)]
    assert any("node_bmc_addresses" in step for step in steps)
    assert [step for step in steps if step.startswith(("SCAN nodes", "SCAN node_bmc_addresses", "SCAN ports"))] == []
    for uuid in uuids:
        whole.provision(uuid, "abort")


@pytest.mark.parametrize(("found", "reason"), [
    ("nobody", "no waiting node has any of them"), ("resting", "the node does not wait for inspection"),
    ("two", "the MAC addresses belong to several nodes"),
])
def test_m_27_the_answer_has_no_reason_and_the_log_has_it_all(whole, logged, found, reason):
    (uuid, mac, _), (_, second_mac, _) = known(whole), known(whole)
    body = {"nobody": lambda: machine(whole, bmc_address="10.9.9.27"), "resting": lambda: machine(whole, mac),
            "two": lambda: machine(whole, mac, second_mac)}[found]()

    reply = post(whole, body)

    assert (reply.status_int, fault(reply)) == (404, "The requested node could not be found.")
    line, = (line for line in logged().splitlines() if "A report is rejected" in line)
    assert reason in line
    state = "inspect wait" if found == "other BMC" else "manageable"
    sent = body["inventory"]["interfaces"][0]["mac_address"]
    assert (f'node {uuid} in state "{state}" has the MAC address {sent}' in line) is (found != "nobody")
    assert (f"no node has the MAC address {sent}" in line) is (found == "nobody")
    assert ("no node has the BMC address 10.9.9.27" in line) is (found == "other BMC")
    post(whole, body)
    assert logged().count("A report is rejected") == 1
    if found == "other BMC":
        whole.provision(uuid, "abort")


@pytest.mark.parametrize("state", ["active", "enroll", "manageable", "inspect failed", "deploy failed", "clean wait"])
@pytest.mark.parametrize("by", ["mac", "bmc"])
def test_m_28_a_known_machine_in_a_wrong_state_is_not_enrolled_a_second_time(whole, state, by):
    uuid, mac, address = known(whole)
    whole.put(uuid, provision_state=state)
    before = count(whole)

    with discovery(whole):
        # By BMC address: a new network card in a machine that is in use.
        reply = post(whole, machine(whole, mac) if by == "mac" else machine(whole, bmc_address=address))

    assert (reply.status_int, count(whole), whole.row(uuid).provision_state) == (404, before, state)


def test_m_28_a_machine_that_nobody_knows_gets_a_node(whole):
    before = count(whole)

    with discovery(whole):
        node = discovered(whole, machine(whole, bmc_address=bmc()))

    assert (count(whole), node["provision_state"], node["driver"]) == (before + 1, "enroll", "fake-hardware")


def test_m_29_a_new_node_is_inspected_as_any_other(whole):
    mac, address = whole.machine()[0], bmc()
    body = machine(whole, mac, bmc_address=address)
    create(whole, {"op": "set-attribute", "args": ["/extra/rule", "{inventory[hostname]}"]})

    with discovery(whole), hooks.held(whole, lambda: post(whole, body)) as reply:
        uuid = reply.json["uuid"]
        assert whole.row(uuid).provision_state == "inspecting"
    whole.at_rest(uuid)

    node = whole.show(uuid)
    assert (node["auto_discovered"], node["inspect_interface"], node["last_error"]) == (True, "agent", None)
    assert node["properties"] == {"cpu_arch": body["inventory"]["cpu"]["architecture"]}
    assert node["extra"] == {"rule": body["inventory"]["hostname"]}
    assert [port["address"] for port in whole.app.get(f"/v1/nodes/{uuid}/ports").json["ports"]] == [mac]
    assert whole.bmc_addresses(uuid) == [address]
    assert whole.app.get(f"/v1/nodes/{uuid}/inventory").json["inventory"] == body["inventory"]
    whole.provision(uuid, "manage")
    assert whole.inspect(uuid, body)["provision_state"] == "manageable"


def test_m_29_two_reports_of_one_new_machine_at_once_make_one_node(whole):
    body, before = machine(whole, bmc_address=bmc()), count(whole)

    with discovery(whole), ThreadPoolExecutor(8) as pool:
        statuses = sorted(reply.status_int for reply in pool.map(
            lambda number: post(whole, {**body, "number": number}), range(8)))

    assert (statuses, count(whole)) == ([200] + [404] * 7, before + 1)


def test_m_30_discovery_is_off_by_default(whole):
    before = count(whole)

    assert composition.prepare_config([], config_files=[]).auto_discovery.enabled is False
    assert post(whole, machine(whole)).status_int == 404
    assert count(whole) == before


@pytest.mark.parametrize("driver", ["", "driver =\n", "driver = nosuch\n"])
def test_m_31_without_a_driver_a_service_that_discovers_does_not_start(tmp_path, driver):
    assert "[auto_discovery]driver" in refusal(tmp_path, f"[auto_discovery]\nenabled = true\n{driver}")


def test_m_31_discovered_nodes_get_the_driver_of_the_option(tmp_path):
    with running(tmp_path, "[auto_discovery]\nenabled = true\ndriver = fake-hardware\n") as whole:
        assert discovered(whole, machine(whole))["driver"] == "fake-hardware"


def test_m_32_no_option_tunes_new_nodes_and_rules_do(whole):
    # The scope is for rules, the limits for the number of nodes and how long they stay, and known_serial for which
    # machines get one.
    assert {option.dest for option in inspection.DISCOVERY_OPTS} == {
        "enabled", "driver", "inspection_scope", "known_serial", "max_bytes_per_minute", "max_nodes_per_minute",
        "max_unclaimed_nodes", "unclaimed_timeout"}
    create(whole, {"op": "set-attribute", "args": ["/resource_class", "fresh"]},
           {"op": "set-attribute", "args": ["/driver_info/ipmi_address", "{plugin_data[bmc_address]}"]},
           {"op": "set-attribute", "args": ["/name", "found-{inventory[bmc_address]}"]},
           conditions=[{"op": "is-true", "args": ["{node.auto_discovered}"]}])
    address = bmc()

    with discovery(whole):
        node = discovered(whole, machine(whole, bmc_address=address))

    assert (node["resource_class"], node["driver_info"], node["name"]) == (
        "fresh", {"ipmi_address": address}, f"found-{address}")
    assert inspected(whole)["resource_class"] is None
