"""Reports with odd values, from the callback to the stored inventory: one value does not cost a machine its report."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.functional import whole as wholes
from tests.functional.processes import wait_for
from tests.functional.whole import Whole

CALLBACK = "/v1/continue_inspection"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Whole]:
    with wholes.running(tmp_path_factory.mktemp("odd"), "[inspection_journal]\nmax_entries = 50\n") as found:
        yield found


def send(whole: Whole, text: bytes, status: int = 200, query: str = "") -> Any:
    reply = whole.app.post(f"{CALLBACK}{query}", text, {"Content-Type": "application/json"})
    assert reply.status_int == status, reply.text
    return reply


def waiting(whole: Whole) -> tuple[str, str, dict[str, Any]]:
    """Return a node that waits for a machine's report, the machine's MAC address, and its report."""
    mac, body = whole.machine()
    node = whole.enroll("inspect wait")
    whole.app.post_json("/v1/ports", {"node_uuid": node, "address": mac})
    return node, mac, body


def inspected(whole: Whole, node: str) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
    """Return the node, its inventory, and the messages of its history, when its inspection has ended."""
    whole.at_rest(node)
    newest = whole.app.get(f"/v1/nodes/{node}/inspections?limit=1").json["inspections"][0]
    entry = whole.app.get(f"/v1/nodes/{node}/inspections/{newest['uuid']}").json
    return (whole.show(node), whole.app.get(f"/v1/nodes/{node}/inventory").json,
            [message["text"] for message in entry["messages"]])


ODD: dict[str, tuple[dict[str, Any], str]] = {
    "a MAC address of eight octets": (
        {"interfaces": [{"name": "fw0", "mac_address": "00:11:22:ff:fe:33:44:55"}]},
        "/inventory/interfaces/1/mac_address"),
    "a BMC address that is none": ({"bmc_address": "N/A"}, "/inventory/bmc_address"),
    "a BMC's host name": ({"bmc_address": "bmc01.example.com"}, "/inventory/bmc_address"),
    "a fraction": ({"memory": {"physical_mb": 65536.0, "total": 68719476736.0}}, "/inventory/memory/physical_mb"),
}


@pytest.mark.parametrize("name", ODD)
def test_a_report_with_an_odd_value_is_processed_and_stored_as_it_came(whole: Whole, name: str) -> None:
    changes, where = ODD[name]
    node, mac, body = waiting(whole)
    body["inventory"] |= {**changes, "interfaces": body["inventory"]["interfaces"] + changes.get("interfaces", [])}
    send(whole, json.dumps(body).encode())
    shown, stored, messages = inspected(whole, node)
    assert (shown["provision_state"], shown["last_error"]) == ("manageable", None)
    assert stored["inventory"] == body["inventory"]
    assert where in [warning["path"] for warning in stored["warnings"]]
    assert where in messages[0]
    assert [port["address"] for port in whole.app.get(f"/v1/nodes/{node}/ports").json["ports"]] == [mac]


@pytest.mark.parametrize(("text", "stored_as"), [
    (b"NaN", "NaN"), (b"-Infinity", "-Infinity"), (b"99999999999999999999999", "99999999999999999999999"),
    (b'"\xff"', "\\xff"), (b'{"a": 1, "a": 2}', {"a": 2})])
def test_what_no_strict_reader_of_json_accepts_is_stored_as_what_all_accept(
        whole: Whole, text: bytes, stored_as: Any) -> None:
    node, _, body = waiting(whole)
    body["data"] = [["cpu", "logical_0", "loops_per_sec", "<odd>"]]
    send(whole, json.dumps(body).encode().replace(b'"<odd>"', text))
    shown, stored, messages = inspected(whole, node)
    assert (shown["provision_state"], shown["last_error"]) == ("manageable", None)
    assert [warning["path"] for warning in stored["warnings"]] == ["/data/0/3"]
    assert "/data/0/3" in messages[0]
    read = None if isinstance(stored_as, str) and not stored_as.startswith("\\") else stored_as
    assert stored["plugin_data"]["data"] == [["cpu", "logical_0", "loops_per_sec", read]]


def test_data_of_another_collector_are_stored_and_noted(whole: Whole) -> None:
    node, _, body = waiting(whole)
    body |= {"data": {"by": "another collector"}, "lldp_raw": [["eth0", []]], "pci_devices": {"0000:00:01.0": {}}}
    send(whole, json.dumps(body).encode())
    shown, stored, _ = inspected(whole, node)
    assert (shown["provision_state"], shown["last_error"]) == ("manageable", None)
    assert {name: stored["plugin_data"][name] for name in ("data", "lldp_raw", "pci_devices")} == {
        name: body[name] for name in ("data", "lldp_raw", "pci_devices")}
    assert [warning["path"] for warning in stored["warnings"]] == ["/pci_devices", "/data", "/lldp_raw"]


def test_a_rule_reads_what_is_usable(whole: Whole) -> None:
    reply = whole.app.post_json("/v1/inspection_rules", {
        "conditions": [{"op": "eq", "args": ["{inventory[memory][physical_mb]}", 4096]},
                       {"op": "is-none", "args": ["{inventory[bmc_address]}"]}],
        "actions": [{"op": "set-attribute", "args": {"path": "/extra/seen", "value": "yes"}}]})
    assert reply.status_int == 201, reply.text
    node, _, body = waiting(whole)
    body["inventory"] |= {"memory": {"physical_mb": "4096"}, "bmc_address": "N/A"}
    send(whole, json.dumps(body).encode())
    assert inspected(whole, node)[0]["extra"] == {"seen": "yes"}
    # The same with what is stored.
    dry = whole.app.post_json("/v1/inspection_rules/dry_run", {"node": node}).json
    assert "memory/physical_mb is a text" in json.dumps(dry)
    whole.app.delete("/v1/inspection_rules")


@pytest.mark.parametrize("text", [
    b'{"inventory": {"interfaces": [{"mac_address": "52:54:00:0D:0D:01"}], "bmc_address": "192.0.2.251"',
    b'{"inventory": [{"mac_address": "52:54:00:0D:0D:01"}, {"bmc_address": "192.0.2.251"}]}',
    b'[' * 200 + b'{"mac_address": "52:54:00:0D:0D:01", "bmc_v6address": "192.0.2.251"}' + b']' * 200])
def test_the_journal_has_the_addresses_of_a_report_that_is_refused(whole: Whole, text: bytes) -> None:
    send(whole, text, 400, "?node_uuid=0f7a2a68-3d7c-49f8-8a5c-6d9b6a7c1e33")
    url = "/v1/inspection_journal?mac=52:54:00:0d:0d:01&reason=malformed"
    entry, = wait_for("the journal", lambda: whole.app.get(url).json["inspection_journal"])
    assert (entry["macs"], entry["bmc_addresses"]) == (["52:54:00:0d:0d:01"], ["192.0.2.251"])
    assert entry["node_uuid"] == "0f7a2a68-3d7c-49f8-8a5c-6d9b6a7c1e33"
