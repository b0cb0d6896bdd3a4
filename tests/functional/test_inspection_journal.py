"""The journal of rejected reports, over HTTP."""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa

from ironic_rules.db import clock, inspection_journal, tables
from ironic_rules.inspection import journal as journals
from ironic_rules.inspection.journal import Journal
from ironic_rules.models.rejected_reports import UNKNOWN, RejectedReport
from tests.functional import whole as wholes
from tests.functional.processes import wait_for
from tests.functional.whole import Whole
from tests.walking import walking

URL = "/v1/inspection_journal"
PLANTED = ("Planted-4711", "Planted-4712", "Planted-4713")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Whole]:
    text = "[inspection_journal]\nmax_entries = 50\nkeep_reports = true\n[api]\nserve_metrics = true\n"
    with wholes.running(tmp_path_factory.mktemp("journal"), text) as found:
        yield found


def send(whole: Whole, body: dict[str, Any], status: int = 404) -> None:
    assert whole.app.post_json("/v1/continue_inspection", body).status_int == status


def entries(whole: Whole, query: str, count: int = 1) -> list[dict[str, Any]]:
    """Return the entries, when so many callbacks are written."""
    def found() -> list[dict[str, Any]]:
        listed: list[dict[str, Any]] = whole.app.get(f"{URL}?{query}").json["inspection_journal"]
        return listed if sum(each["times"] for each in listed) >= count else []
    return wait_for("the journal", found)


def test_a_refused_machine_is_in_the_journal_once_with_the_nodes_that_came_near(whole: Whole) -> None:
    node = whole.enroll("manageable")
    mac, body = whole.machine()
    whole.app.post_json("/v1/ports", {"node_uuid": node, "address": mac})
    for _ in range(3):
        send(whole, {**body, "site_token": "Xyzzy-1"})
    entry, = entries(whole, f"mac={mac}", 3)
    assert (entry["reason"], entry["times"], entry["source"], entry["macs"]) == ("wrong state", 3, "192.0.2.77", [mac])
    assert entry["nodes"] == [{"node": node, "provision_state": "manageable", "has_uuid": False, "macs": [mac],
                               "bmc_addresses": []}]
    assert whole.app.get(f"/v1/nodes/{node}/inspection_journal").json["inspection_journal"] == [entry]
    shown = whole.app.get(f"{URL}/{entry['uuid']}").json
    assert shown["report"]["site_token"] == "******"
    assert shown["report"]["inventory"] == body["inventory"]


def test_reasons_are_told_apart(whole: Whole) -> None:
    mac, body = whole.machine()
    send(whole, body)
    entry, = entries(whole, f"mac={mac}")
    assert (entry["reason"], "[auto_discovery]enabled is false" in entry["detail"]) == ("discovery off", True)
    whole.callback("0f7a2a68-3d7c-49f8-8a5c-6d9b6a7c1e22", body)
    assert {each["reason"] for each in entries(whole, f"mac={mac}", 2)} == {"unknown", "discovery off"}
    bmc = copy.deepcopy(body)
    bmc["inventory"]["bmc_address"] = "198.51.100.77"
    send(whole, bmc)
    assert entries(whole, "address=198.51.100.77")[0]["bmc_addresses"] == ["198.51.100.77"]
    send(whole, {"inventory": 5}, 400)
    assert "inventory" in entries(whole, "reason=malformed")[0]["detail"]
    rule = whole.app.post_json("/v1/inspection_rules", {
        "phase": "early", "actions": [{"op": "fail", "args": {"msg": "not you"}}]}).json["uuid"]
    send(whole, body)
    early, = entries(whole, f"mac={mac}&reason=early%20rule")
    assert rule in early["detail"]
    assert "not you" in early["detail"]
    whole.app.delete("/v1/inspection_rules")


@walking("path", ["?mac=x", "?address=x", "?reason=x", "?node=x", "?other=1", "/x"])
def test_bad_requests_are_refused(whole: Whole, path: str) -> None:
    assert whole.app.get(URL + path).status_int == 400


def test_an_entry_that_does_not_exist_is_not_found(whole: Whole) -> None:
    assert whole.app.get(f"{URL}/6a1f5b9e-0d5c-4a0e-9f59-0c1c39a6f0d1").status_int == 404


def callback(number: int) -> RejectedReport:
    mac = f"52:54:01:00:{number // 256:02x}:{number % 256:02x}"
    return RejectedReport(UNKNOWN, "flood", None, clock.now(), None, (mac,))


def test_a_flood_is_bounded_and_counted(whole: Whole, monkeypatch: pytest.MonkeyPatch) -> None:
    flooded = Journal(whole.db, 20, 30)
    # Nothing is taken from the queue yet.
    monkeypatch.setattr(flooded, "_start", lambda: None)
    for number in range(journals.MOST_WAITING + 500):
        flooded.note(callback(number))
    assert flooded.dropped == 500
    monkeypatch.undo()
    monkeypatch.setattr(journals, "_PAUSE_S", 0)
    flooded.note(callback(0))
    flooded._start()
    flooded.flush()
    listed = whole.app.get(URL).json["inspection_journal"]
    assert len(listed) == 20


def test_nothing_is_written_if_there_is_no_journal(whole: Whole) -> None:
    off = Journal(whole.db, 0, 30)
    off.note(callback(70000 % 65536))
    assert off._thread is None


def test_reports_that_wait_have_bounded_sizes(whole: Whole, monkeypatch: pytest.MonkeyPatch) -> None:
    flooded = Journal(whole.db, 20, 30, keep_reports=True)
    monkeypatch.setattr(flooded, "_start", lambda: None)
    sizes = [journals.MAX_REPORT + 1, *[journals.MAX_REPORT] * 20, 100]
    for number, size in enumerate(sizes):
        flooded.note(replace(callback(number), report={"number": number}, size=size))
    waiting = [flooded._waiting.get_nowait() for _ in sizes]
    kept = [each.size for each in waiting if each.report is not None]
    assert kept == [journals.MAX_REPORT] * (journals.MOST_REPORTS // journals.MAX_REPORT)


def test_a_written_report_makes_room_for_others(whole: Whole) -> None:
    flooded = Journal(whole.db, 20, 30, keep_reports=True)
    for number in range(journals.MOST_REPORTS // journals.MAX_REPORT + 5):
        flooded.note(replace(callback(1000), detail=f"number {number}", report={"number": number},
                             size=journals.MAX_REPORT))
        flooded.flush()
    mac, = callback(1000).macs
    uuid = whole.app.get(f"{URL}?mac={mac}").json["inspection_journal"][0]["uuid"]
    assert whole.app.get(f"{URL}/{uuid}").json["report"] == {"number": 20}


def test_a_callback_that_cannot_be_written_keeps_no_others_from_being_written(
        whole: Whole, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    add = inspection_journal.add

    def failing(conn: Any, callbacks: list[tuple[RejectedReport, int]]) -> None:
        if any(noted.detail == "poison" for noted, _ in callbacks):
            raise ValueError("it is poison")
        add(conn, callbacks)

    monkeypatch.setattr(inspection_journal, "add", failing)
    written = Journal(whole.db, 50, 30)
    with monkeypatch.context() as not_yet:
        not_yet.setattr(written, "_start", lambda: None)
        for number in range(2000, 2003):
            written.note(replace(callback(number), detail="poison" if number == 2001 else "other"))
    written._start()
    written.flush()
    found = [len(whole.app.get(f"{URL}?mac={callback(number).macs[0]}").json["inspection_journal"])
             for number in range(2000, 2003)]
    assert found == [1, 0, 1]
    assert "it is poison" in caplog.text


def test_a_machine_that_calls_for_ever_is_counted_up_to_what_the_column_can_have(whole: Whole) -> None:
    for _ in range(3):
        whole.db.write(lambda conn: inspection_journal.add(conn, [(callback(3000), 2 ** 30)]))
    entry, = whole.app.get(f"{URL}?mac={callback(3000).macs[0]}").json["inspection_journal"]
    assert entry["times"] == 2 ** 31 - 1


def refused(whole: Whole, bmc: str | None = None) -> tuple[str, dict[str, Any], str]:
    """Let a machine be refused; return its MAC address, its report, and the URL that enrolls it."""
    mac, body = whole.machine()
    if bmc is not None:
        body["inventory"]["bmc_address"] = bmc
    send(whole, body)
    entry, = entries(whole, f"mac={mac}")
    return mac, body, f"{URL}/{entry['uuid']}/enroll"


def test_an_enrolled_machine_is_inspected_at_its_next_callback(whole: Whole) -> None:
    mac, body, url = refused(whole, "198.51.100.7")
    reply = whole.app.post_json(url, {
        "driver": "fake-hardware", "name": "rack-7",
        "driver_info": {"ipmi_address": "198.51.100.7", "ipmi_password": "Xyzzy-2"}})
    assert reply.status_int == 201, reply.text
    node = reply.json
    assert reply.headers["Location"].endswith(f"/v1/nodes/{node['uuid']}")
    assert (node["name"], node["provision_state"], node["inspect_interface"]) == ("rack-7", "inspect wait", "agent")
    assert "Xyzzy-2" not in reply.text
    assert whole.row(node["uuid"]).driver_info["ipmi_password"] == "Xyzzy-2"
    assert [port["address"] for port in whole.app.get(f"/v1/nodes/{node['uuid']}/ports").json["ports"]] == [mac]
    assert whole.bmc_addresses(node["uuid"]) == ["198.51.100.7"]
    assert whole.app.post_json("/v1/continue_inspection", body).json["node"]["uuid"] == node["uuid"]
    row = whole.at_rest(node["uuid"])
    assert (row.provision_state, row.target_provision_state, row.last_error) == ("enroll", None, None)
    assert whole.inventories(node["uuid"]) == ["processed"]


def test_a_machine_is_enrolled_with_the_uuid_by_which_it_names_itself(whole: Whole) -> None:
    mac, body = whole.machine()
    named = "0f7a2a68-3d7c-49f8-8a5c-6d9b6a7c1e11"
    assert whole.callback(named, body).status_int == 404
    entry, = entries(whole, f"mac={mac}")
    url = f"{URL}/{entry['uuid']}/enroll"
    other = whole.app.post_json(url, {"driver": "fake-hardware", "uuid": entry["uuid"]})
    assert (other.status_int, "/uuid" in wholes.fault(other)) == (400, True)
    assert whole.app.post_json(url, {"driver": "fake-hardware"}).json["uuid"] == named
    assert whole.callback(named, body).status_int == 200
    assert whole.at_rest(named).provision_state == "enroll"


def test_a_machine_with_addresses_of_a_node_is_not_enrolled(whole: Whole) -> None:
    mac, _, url = refused(whole, "198.51.100.8")
    of_port = whole.enroll("available")
    whole.app.post_json("/v1/ports", {"node_uuid": of_port, "address": mac})
    of_bmc = whole.enroll(driver_info={"ipmi_address": "198.51.100.8"})
    before = len(whole.app.get("/v1/nodes?limit=1000").json["nodes"])
    reply = whole.app.post_json(url, {"driver": "fake-hardware"})
    assert reply.status_int == 409
    assert f"node {of_port} (available), node {of_bmc} (enroll)" in wholes.fault(reply)
    assert len(whole.app.get("/v1/nodes?limit=1000").json["nodes"]) == before


def test_of_concurrent_requests_one_enrolls_the_machine(whole: Whole) -> None:
    body = whole.machine()[1]
    body["inventory"] |= {"interfaces": [], "bmc_address": "198.51.100.10"}
    send(whole, body)
    entry, = entries(whole, "address=198.51.100.10")
    with ThreadPoolExecutor(4) as pool:
        replies = list(pool.map(
            lambda _: whole.app.post_json(f"{URL}/{entry['uuid']}/enroll", {"driver": "fake-hardware"}), range(4)))
    created, = (reply.json["uuid"] for reply in replies if reply.status_int == 201)
    assert sorted(reply.status_int for reply in replies) == [201, 409, 409, 409]
    assert whole.bmc_addresses(created) == ["198.51.100.10"]


@pytest.mark.parametrize(("body", "told"), [
    ({}, "/driver: is required"),
    ({"driver": "nosuch"}, "nosuch"),
    ({"driver": "fake-hardware", "inspect_interface": "no-inspect"}, "/inspect_interface"),
    ({"driver": "fake-hardware", "driver_info": {"ipmi_address": "203.0.113.1"}}, "another BMC than the machine"),
    ({"driver": "fake-hardware", "driver_info": {"ipmi_password": "******"}}, "ipmi_password"),
])
def test_what_cannot_be_enrolled_is_refused_with_its_reason(whole: Whole, body: dict[str, Any], told: str) -> None:
    mac, _, url = refused(whole, "198.51.100.9")
    reply = whole.app.post_json(url, body)
    assert (reply.status_int, told in wholes.fault(reply)) == (400, True), reply.text
    assert whole.app.get(f"/v1/ports?address={mac}").json["ports"] == []


def test_a_machine_that_cannot_be_recognised_is_not_enrolled(whole: Whole) -> None:
    send(whole, {"inventory": {"interfaces": []}}, 400)
    entry = entries(whole, "reason=malformed")[-1]
    assert entry["macs"] == entry["bmc_addresses"] == []
    reply = whole.app.post_json(f"{URL}/{entry['uuid']}/enroll", {"driver": "fake-hardware"})
    assert (reply.status_int, "neither a MAC address" in wholes.fault(reply)) == (400, True)
    missing = f"{URL}/6a1f5b9e-0d5c-4a0e-9f59-0c1c39a6f0d1/enroll"
    assert whole.app.post_json(missing, {"driver": "fake-hardware"}).status_int == 404
    assert whole.app.post_json(f"{URL}/x/enroll", {"driver": "fake-hardware"}).status_int == 400


def test_planted_secrets_are_in_no_journal_log_or_metric(whole: Whole, caplog: pytest.LogCaptureFixture) -> None:
    mac, body = whole.machine()
    rule = {"phase": "early", "actions": [{"op": "fail", "args": {
        "msg": "it sent {plugin_data[site_token]}, {plugin_data[copy]}"}}]}
    whole.app.post_json("/v1/inspection_rules", rule)
    body |= {"site_token": PLANTED[0], "copy": f"https://me:{PLANTED[1]}@host/", "ipmi": {"ipmi_password": PLANTED[1]}}
    send(whole, body)
    early, = entries(whole, f"mac={mac}")
    assert (early["reason"], "it sent ******, https://me:******@host/" in early["detail"]) == ("early rule", True)
    whole.app.delete("/v1/inspection_rules")
    caplog.clear()
    caplog.set_level(logging.DEBUG)
    send(whole, body)
    entry = entries(whole, f"mac={mac}&reason=discovery%20off")[0]
    driver_info = {"ipmi_address": "198.51.100.12", "ipmi_password": PLANTED[2]}
    created = whole.app.post_json(
        f"{URL}/{entry['uuid']}/enroll", {"driver": "fake-hardware", "driver_info": driver_info})
    assert created.status_int == 201, created.text
    shown = whole.app.get(f"{URL}/{entry['uuid']}")
    assert (shown.json["report"]["copy"], shown.json["report"]["ipmi"]) == (
        "https://me:******@host/", {"ipmi_password": "******"})
    with whole.db.reader() as conn:
        stored = repr(conn.execute(sa.select(tables.inspection_journal)).all())
    assert mac in stored
    metrics = whole.app.get("/metrics").text
    assert 'callbacks_refused_total{reason="discovery off"}' in metrics
    assert "is created for the machine" in caplog.text
    pages = [stored, created.text, whole.app.get(URL).text, shown.text, metrics, caplog.text]
    assert [secret for secret in PLANTED for page in pages if secret in page] == []


def test_without_keep_reports_no_report_is_written(whole: Whole) -> None:
    quiet = Journal(whole.db, 50, 30)
    quiet.note(replace(callback(400), report={"inventory": {}, "serial": "Unkept-1"}))
    quiet.flush()
    entry, = entries(whole, "mac=52:54:01:00:01:90")
    assert whole.app.get(f"{URL}/{entry['uuid']}").json["report"] is None
