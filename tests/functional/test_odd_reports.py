"""Reports with odd values, from the callback to the stored inventory: one value does not cost a machine its report."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ironic_rules.api import body as bodies
from ironic_rules.inspection import payload
from ironic_rules.text import printable
from tests.functional import databases
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


@pytest.mark.parametrize(("number", "text"), [*enumerate([
    '{"inventory": {"interfaces": [{"mac_address": "<mac>"}], "bmc_address": "192.0.2.251"',
    '{"inventory": [{"mac_address": "<mac>"}, {"bmc_address": "192.0.2.251"}]}',
    "{'inventory': {'interfaces': [{'mac_address': '<mac>'}], 'bmc_address': '192.0.2.251'}}",
    json.dumps('{"inventory": {"interfaces": [{"mac_address": "<mac>"}], "bmc_address": "192.0.2.251"}}'),
    '\ufeff{"inventory": {"interfaces": [{"mac_address": "<mac>"}], "bmc_address": "192.0.2.251"}}',
    "[" * 200 + '{"mac_address": "<mac>", "bmc_v6address": "192.0.2.251"}' + "]" * 200])])
def test_the_journal_has_the_addresses_of_a_report_that_is_refused(whole: Whole, number: int, text: str) -> None:
    raw = text.replace("<mac>", f"52-54-00:0D:0D:{number:02}").encode("utf-16-le" if text[0] == "\ufeff" else "utf-8")
    send(whole, raw, 400, "?node_uuid=0f7a2a68-3d7c-49f8-8a5c-6d9b6a7c1e33")
    mac = f"52:54:00:0d:0d:{number:02}"
    url = f"/v1/inspection_journal?mac={mac}&reason=malformed"
    entry, = wait_for("the journal", lambda: whole.app.get(url).json["inspection_journal"])
    assert (entry["macs"], entry["bmc_addresses"]) == ([mac], ["192.0.2.251"])
    assert entry["node_uuid"] == "0f7a2a68-3d7c-49f8-8a5c-6d9b6a7c1e33"


#: Texts that a column of a database could refuse, cut or change.
TEXTS = {"NUL": "a\0", "lone surrogate": "a\ud800", "characters of 4 bytes": "\U0001f600" * 900,
         "many of these": "\U0001f600" * 20_000,
         "100 kB": "y" * 100_000, "quotes": "'; DROP TABLE nodes; -- %s %(a)s \\ \"", "blanks at its end": "abc  ",
         "marks": "e\u0301\u200d\ufeff"}
#: Values as JSON texts or nearly so, besides these.
VALUES = [b"NaN", b"-Infinity", b"1e999", b"0.1", b"1e-320", b"-0.0", b"18446744073709551615", b"-9223372036854775808",
          b"99999999999999999999999", b'"\xff\xfeHPE"', b'"a\tb"', b'{"a": 1, "a": {"": 2}}', b'{"\\u0000 \\ud800": 1}']


@pytest.mark.servers
@pytest.mark.slow
@pytest.mark.parametrize("kind", databases.SERVERS)
def test_each_database_takes_odd_values_as_the_others_do(tmp_path: Path, kind: str) -> None:
    with databases.migrated_database(kind) as url, wholes.running(tmp_path, f"""\
[database]
connection = {url}
[auto_discovery]
enabled = true
driver = fake-hardware
[inspection_journal]
max_entries = 50
[inspection_rules]
max_text_size = 200000
""") as whole:
        assert whole.db.engine.dialect.name == kind
        rules = "/v1/inspection_rules"
        copies = {"conditions": [{"op": "!is-none", "args": {"value": "{inventory[odd]}"}}], "actions": [
            {"op": "set-attribute", "args": {"path": "/extra/copy", "value": "{inventory[odd]}"}},
            {"op": "set-plugin-data", "args": {"path": "copy", "value": "{inventory[odd]}"}}]}
        fails = {"conditions": [{"op": "!is-none", "args": {"value": "{inventory[hostname]}"}}],
                 "actions": [{"op": "log", "args": {"msg": "{inventory[hostname]}", "level": "warning"}},
                             {"op": "fail", "args": {"msg": "{inventory[hostname]}"}}]}
        for rule in (copies, fails):
            assert whole.app.post_json(rules, rule).status_int == 201

        node, _, body = waiting(whole)
        body["inventory"] |= {"odd": ["<odd>"], "hostname": None,
                              "system_vendor": {**TEXTS, "serial_number": "<serial>"}}
        values = b", ".join([*VALUES, json.dumps(TEXTS).encode()])
        text = json.dumps(body).encode().replace(b'"<odd>"', values).replace(b'"<serial>"', b'"\\u0000\xff"')
        send(whole, text)
        shown, stored, _ = inspected(whole, node)
        received = json.loads(json.dumps(payload.split(*bodies.parse_report(text, 100)).received))
        assert (shown["provision_state"], shown["last_error"]) == ("manageable", None)
        assert stored["inventory"] == received
        assert shown["extra"]["copy"] == stored["plugin_data"]["copy"]
        assert len(shown["extra"]["copy"]) == len(VALUES) + 1

        refused = []
        for name, value in TEXTS.items():
            node, _, body = waiting(whole)
            body["inventory"] |= {"hostname": value, "system_vendor": {"serial_number": value, "product_uuid": value}}
            send(whole, json.dumps(body).encode())
            shown, _, messages = inspected(whole, node)
            # The same machine, which no node is, and as one that says that it is another one.
            for query, status in (("", 200), ("?node_uuid=11111111-1111-4111-8111-111111111111", 404)):
                mac, other = whole.machine()
                send(whole, json.dumps({**other, "inventory": {**body["inventory"], "interfaces": [
                    {"name": value, "mac_address": mac}]}}).encode(), status, query)
            refused.append(mac)
            if len(value) > 10_000:
                # Rules do not read it.
                assert shown["provision_state"] == "manageable", name
                continue
            assert shown["provision_state"] == "inspect failed", name
            assert f"failed at /actions/1: {printable(value, 20)[:10]}" in shown["last_error"], name
            assert any("Inspection rule" in message for message in messages), name
            assert whole.app.get(f"/v1/nodes/{node}/history").status_int == 200, name
        for mac in refused:
            entry, = wait_for("the journal", lambda mac=mac: whole.app.get(
                f"/v1/inspection_journal?mac={mac}").json["inspection_journal"])
            assert entry["macs"] == [mac]
