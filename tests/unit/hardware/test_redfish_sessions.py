"""HTTP with BMCs that answer late, without end or too much, name other hosts, or allow few sessions."""

from __future__ import annotations

import gc
import gzip
import io
import json
import socket
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
import requests

from ironic_rules.exceptions import BMCError
from ironic_rules.hardware.redfish import client, connections
from ironic_rules.hardware.redfish.management import RedfishManagement
from ironic_rules.hardware.redfish.vendor import RedfishVendor
from ironic_rules.hardware.waiting import time_limit
from tests.functional.processes import in_time
from tests.unit.hardware import dripping
from tests.unit.hardware.redfish_bmc import ROOT, SESSIONS, SYSTEM, close_all, documents, serving
from tests.unit.inspection.tasks import make_task
from tests.walking import walking

EVENTS, SUBSCRIPTIONS = "/redfish/v1/EventService", "/redfish/v1/EventService/Subscriptions"
RESET = f"{SYSTEM}/Reset"
SUBSCRIPTION = {"@odata.id": f"{SUBSCRIPTIONS}/1", "Id": "1", "Context": "c", "HttpHeaders": [{"A": "Bearer SECRET"}]}


def content():
    found = documents(
        {"Boot": {"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once"}, "PowerState": "On",
         "Actions": {"#ComputerSystem.Reset": {"target": RESET, "ResetType@Redfish.AllowableValues": ["Nmi"]}}}, {
            EVENTS: {"Id": "Events", "Subscriptions": {"@odata.id": SUBSCRIPTIONS}},
            SUBSCRIPTIONS: {"Name": "Subscriptions", "Members": [SUBSCRIPTION, {"@odata.id": f"{SUBSCRIPTIONS}/2"}]}})
    found[ROOT] |= {"EventService": {"@odata.id": EVENTS}, "Links": {"Sessions": {"@odata.id": SESSIONS}}}
    return found


@pytest.fixture
def bmc():
    with serving(content()) as found:
        found.sessions = set()
        yield found


@pytest.fixture
def other():
    """The server of another owner."""
    with serving(content()) as found:
        yield found


@pytest.fixture(autouse=True)
def quick(conf, monkeypatch):
    conf.set_override("connection_attempts", 3, group="redfish")
    conf.set_override("connection_retry_interval", 1, group="redfish")
    monkeypatch.setattr("sushy.connector.time", SimpleNamespace(sleep=lambda seconds: None))
    monkeypatch.setattr(client, "CONNECTIONS", client.Connections())
    yield
    close_all(client.CONNECTIONS)


@pytest.fixture
def management(conf):
    return RedfishManagement(conf, lambda node, kind: None)


def task_of(url, **info):
    return make_task({"driver_info": {"redfish_address": url, "redfish_username": "u", "redfish_password": "S3cret",
                                      "redfish_system_id": SYSTEM, **info}})


def changes(bmc):
    return [(method, path) for method, path, _ in bmc.told if not path.startswith(SESSIONS)]


def closed(bmc):
    return [path for method, path, _ in bmc.told if method == "DELETE"]


@pytest.mark.parametrize("fault", ["late", "broken"])
def test_what_may_have_changed_something_is_sent_once(bmc, management, conf, fault):
    conf.set_override("request_timeout", 1 if fault == "late" else 60, group="redfish")
    management.get_boot_device(task_of(bmc.url))
    bmc.late_s, bmc.broken = (600, {}) if fault == "late" else (0.0, {RESET: None})

    with pytest.raises(BMCError, match=r"cannot be reached.* it was sent, and may have been carried out"):
        management.inject_nmi(task_of(bmc.url))

    assert changes(bmc) == [("POST", RESET)]


def test_what_changes_nothing_and_what_was_not_sent_is_repeated(bmc, management, monkeypatch):
    management.get_boot_device(task_of(bmc.url))
    bmc.read.clear()
    bmc.broken = {SYSTEM: None}
    with pytest.raises(BMCError, match="cannot be reached"):
        management.get_boot_device(task_of(bmc.url))
    assert bmc.read == [SYSTEM] * 3

    with socket.create_server(("127.0.0.1", 0)) as unused:
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
    with pytest.raises(requests.ConnectionError):  # after which sushy sends the request again
        connections.BMCSession(url, False, ()).request("POST", url, timeout=1)


@pytest.mark.parametrize("start", [dripping.HEADERS, dripping.BODY])
@pytest.mark.parametrize(("attempts", "request_s", "all_s"), [(1, 1, 600), (3, 600, 0.3)])
def test_a_response_in_single_bytes_ends_with_the_time_of_the_request_or_of_all_requests(
        management, conf, start, attempts, request_s, all_s):
    conf.set_override("connection_attempts", attempts, group="redfish")
    conf.set_override("request_timeout", request_s, group="redfish")

    with dripping.server(start) as url, in_time(), pytest.raises(BMCError, match="cannot be reached"):
        with time_limit(all_s):
            management.get_boot_device(task_of(url, redfish_auth_type="basic"))


@pytest.mark.parametrize(("document", "text"), [
    (b"x" * 30_000, "has more than 0 MiB"), (gzip.compress(b"x" * 300_000), "has more than 0 MiB"),
    (b"[" * 9_000, "sent an invalid response"), (b'{"a":' * 500 + b"1" + b"}" * 500, "deeper than 100 levels"),
    (b"PK\x03\x04", "is an archive"),
], ids=["large", "compressed", "unclosed", "deep", "archive"])
def test_documents_are_bounded_in_size_and_depth(bmc, management, monkeypatch, document, text):
    monkeypatch.setattr(connections, "MAX_BYTES", 10_000)
    bmc.content[SYSTEM] = document

    with pytest.raises(BMCError, match=text):
        management.get_boot_device(task_of(bmc.url))


@walking("encoding", [None, "utf-8", "UTF-16", "ISO-8859-1", "gb2312"])
def test_a_document_in_a_usual_encoding_is_read(encoding):
    assert connections.document('{"Name": "R640"}'.encode(encoding or "utf-8"), encoding) == {"Name": "R640"}


@walking("encoding", ["punycode", "idna", "unicode_escape", "zip", "undefined", "no-such-encoding", ""])
def test_a_document_in_any_other_encoding_is_utf_8(encoding):
    assert connections.document(b'{"Name-": "R640-\xc3\xbc"}', encoding) == {"Name-": "R640-\u00fc"}


def test_a_document_that_unpacks_to_much_takes_little_memory(bmc, management):
    bmc.content[SYSTEM] = gzip.compress(bytes(256 * 2**20), 1)

    tracemalloc.start()
    try:
        with pytest.raises(BMCError, match="has more than 16 MiB"):
            management.get_boot_device(task_of(bmc.url))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 4 * connections.MAX_BYTES


def test_many_large_documents_are_too_much_for_one_reader(bmc, management, monkeypatch):
    monkeypatch.setattr(client, "_MAX_READ_BYTES", 5_000)
    bmc.content[f"{SYSTEM}/Large"] = {"Text": "x" * 2_000}

    with management.system(task_of(bmc.url)) as system:
        read = client.documents(system)
        assert read(f"{SYSTEM}/Large") == read(f"{SYSTEM}/Large")
        with pytest.raises(ValueError, match="too large together"):
            read(f"{SYSTEM}/Large")


def test_the_size_of_what_is_no_document_is_bounded_too(management, monkeypatch):
    monkeypatch.setattr(connections, "MAX_BYTES", 10)
    monkeypatch.setattr(connections, "_MAX_OTHER_BYTES", 10)

    with dripping.server(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n") as url, \
            pytest.raises(BMCError, match="too large"):
        management.get_boot_device(task_of(url, redfish_auth_type="basic"))


@pytest.mark.parametrize("place", ["system", "redirected", "login", "target", "subscriptions", "events"])
def test_no_other_host_is_sent_anything(bmc, other, management, conf, place):
    task, vendor = task_of(bmc.url), RedfishVendor(conf, lambda node, kind: None)
    elsewhere = other.url.replace("127.0.0.1", "localhost")
    calls = [management.inject_nmi, vendor.get_all_subscriptions, lambda task: vendor.delete_subscription(task, id="1")]
    if place == "system":
        del task.node.driver_info["redfish_system_id"]
        bmc.content["/redfish/v1/Systems"] = {"Members": [{"@odata.id": elsewhere + SYSTEM}]}
    elif place == "redirected":
        bmc.redirected = {SYSTEM: (302, elsewhere + SYSTEM)}
    elif place == "login":
        bmc.redirected = {SESSIONS: (307, elsewhere + SESSIONS)}
    elif place == "target":
        bmc.content[SYSTEM]["Actions"]["#ComputerSystem.Reset"]["target"] = elsewhere + RESET
        calls = calls[:1]
    else:
        target = bmc.content[EVENTS]["Subscriptions"] if place == "subscriptions" else bmc.content[ROOT]["EventService"]
        target["@odata.id"] = elsewhere + SUBSCRIPTIONS
        calls = calls[1:]

    for call in calls:
        with pytest.raises(BMCError, match=r"is not a URL of http://127"):
            call(task)

    assert (other.read, other.told) == ([], [])


@pytest.mark.parametrize(("address", "url"), [
    ("https://BMC.example", "https://bmc.example:443/"), ("http://[fe80::1%lo]", "http://[fe80::1%lo]/"),
    ("http://[FD00::1]", "http://[fd00::1]:80/")])
def test_a_host_is_the_same_in_other_spellings(monkeypatch, address, url):
    monkeypatch.setattr("requests.Session.send", lambda self, request, **named: reply)
    reply = requests.Response()
    reply.status_code, reply.raw = 204, io.BytesIO()

    assert connections.BMCSession(address, False, ()).request("GET", url, timeout=60) is reply


@pytest.mark.parametrize(("status", "followed"), [
    (301, ["GET"]), (302, ["GET"]), (303, ["GET"]), (307, ["GET", "POST"]), (308, ["GET", "POST"])])
def test_redirections_by_the_bmc_to_itself_are_followed_if_the_request_remains_the_same(bmc, management, status,
                                                                                       followed):
    bmc.redirected = {SYSTEM: (status, f"{SYSTEM}/")}
    assert management.get_boot_device(task_of(bmc.url))["boot_device"] == "pxe"

    bmc.redirected = {RESET: (status, f"{bmc.url}{RESET}/")}
    if "POST" in followed:
        management.inject_nmi(task_of(bmc.url))
        assert changes(bmc) == [("POST", RESET), ("POST", f"{RESET}/")]
    else:
        with pytest.raises(BMCError, match=f"was answered with HTTP {status}"):
            management.inject_nmi(task_of(bmc.url))
        assert changes(bmc) == [("POST", RESET)]


def test_many_threads_need_one_session_also_after_it_has_expired(bmc, management):
    bmc.delay_s = 0.05
    with ThreadPoolExecutor(8) as pool:
        for _ in range(2):
            list(pool.map(management.get_boot_device, [task_of(bmc.url)] * 8))
            assert len(bmc.sessions) == 1
            bmc.sessions.clear()

    assert len([path for method, path, _ in bmc.told if path == SESSIONS]) == 2


def test_a_thread_that_waits_no_longer_for_a_login_does_not_end_it(bmc, management):
    bmc.delay_s = 0.2
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(management.get_boot_device, task_of(bmc.url))
        while not bmc.read:
            time.sleep(0.01)
        with pytest.raises(BMCError, match="cannot be reached"), time_limit(0.05):
            management.get_boot_device(task_of(bmc.url))
        management.get_boot_device(task_of(bmc.url))
        assert first.result()["boot_device"] == "pxe"

    assert len([path for method, path, _ in bmc.told if path == SESSIONS]) == 1


def test_a_thread_with_more_time_tries_after_one_that_had_too_little(bmc, management):
    bmc.delay_s = 0.3

    def hurry():
        with pytest.raises(BMCError), time_limit(0.2):
            management.get_boot_device(task_of(bmc.url))

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(hurry)
        while not bmc.read:
            time.sleep(0.01)
        assert management.get_boot_device(task_of(bmc.url))["boot_device"] == "pxe"
        first.result()


def test_a_document_that_the_user_may_not_read_leaves_the_session_to_other_threads(bmc, management):
    with management.system(task_of(bmc.url)) as system:
        bmc.refuse = (403, "no")
        with pytest.raises(management.sushy.exceptions.AccessError):
            system._conn.get(SYSTEM)
        bmc.refuse = None
        client.CONNECTIONS._logouts.wait(60)
        assert (bmc.sessions, closed(bmc)) == ({f"{SESSIONS}/1"}, [])
        system.refresh()


def test_a_failed_login_fails_for_all_who_wait_for_it(bmc, management):
    bmc.delay_s, bmc.broken = 0.1, {ROOT: 500}

    def attempt(_):
        with pytest.raises(BMCError, match="refused a request"):
            management.get_boot_device(task_of(bmc.url, redfish_auth_type="basic"))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(attempt, range(8)))

    assert len(bmc.read) < 8
    bmc.broken = {}
    assert management.get_boot_device(task_of(bmc.url))["boot_device"] == "pxe"


@pytest.mark.parametrize("cause", ["unreachable", "password", "bounded", "none kept", "idle", "privileges", "end"])
def test_sessions_that_are_left_are_closed_once(bmc, management, conf, monkeypatch, cause):
    if cause == "none kept":
        conf.set_override("connection_cache_size", 0, group="redfish")
    management.get_boot_device(task_of(bmc.url))
    first = f"{SESSIONS}/1"
    if cause == "unreachable":
        bmc.broken = {SYSTEM: None}
        with pytest.raises(BMCError):
            management.get_boot_device(task_of(bmc.url))
    elif cause == "privileges":
        bmc.refuse = (403, "no")
        with pytest.raises(BMCError):
            management.get_boot_device(task_of(bmc.url))
    elif cause == "password":
        management.get_boot_device(task_of(bmc.url, redfish_password="new"))
    elif cause == "bounded":
        conf.set_override("connection_cache_size", 1, group="redfish")
        management.get_boot_device(task_of(bmc.url, redfish_username="other"))
    elif cause == "idle":
        monkeypatch.setattr(connections, "_IDLE_S", 0.0)
        management.get_boot_device(task_of(bmc.url, redfish_username="other"))
    client.CONNECTIONS._logouts.wait(60)
    assert (first in bmc.sessions) == (cause == "end")

    client.CONNECTIONS.close(5)
    gc.collect()

    assert (bmc.sessions, len(closed(bmc))) == (set(), len(set(closed(bmc))))


def test_a_connection_in_use_keeps_its_session(bmc, management):
    with management.system(task_of(bmc.url)) as system:
        client.CONNECTIONS.close(5)
        system.refresh()
        assert closed(bmc) == []
    client.CONNECTIONS._logouts.wait(60)
    assert bmc.sessions == set()


def test_a_bmc_that_hangs_delays_neither_the_collection_of_its_connection_nor_the_end_for_long(bmc, management):
    management.get_boot_device(task_of(bmc.url))
    bmc.late_s = 600

    with in_time():
        client.CONNECTIONS.close(0.2)
        gc.collect()


def test_subscriptions_are_shown_without_their_headers(bmc, conf):
    found = RedfishVendor(conf, lambda node, kind: None).get_all_subscriptions(task_of(bmc.url))

    assert found == {"Name": "Subscriptions", "Members": [
        {"@odata.id": f"{SUBSCRIPTIONS}/1", "Id": "1", "Context": "c"}, {"@odata.id": f"{SUBSCRIPTIONS}/2"}]}
    assert "SECRET" not in json.dumps(found)
