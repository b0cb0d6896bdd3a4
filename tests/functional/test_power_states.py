"""The stored power states follow those that BMCs report; a time-out says what is known of the machine."""

from __future__ import annotations

import datetime
import threading

import pytest

from ironic_rules.conductor import power_states, recovery
from ironic_rules.conductor.power_states import PowerStates
from ironic_rules.exceptions import BMCError
from ironic_rules.hardware import waiting
from ironic_rules.hardware.base import RamdiskFiles
from ironic_rules.hardware.fake import FakeBoot, FakePower
from tests.functional.faulty import FaultyPower
from tests.functional.whole import running


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with running(tmp_path_factory.mktemp("whole")) as service:
        yield service


@pytest.fixture
def whole(service):
    yield service
    for node in service.app.get("/v1/nodes").json["nodes"]:
        service.put(node["uuid"], maintenance=True)  # left out by the next tests


class BMCs:
    """Reports of the BMCs of faulty hardware, by node: a state, an error, or nothing for a while."""

    def __init__(self):
        self.reported = {}
        self.asked = []
        self._lock = threading.Lock()

    def get_power_state(self, task):
        with self._lock:
            self.asked.append(task.node.uuid)
        reported = self.reported[task.node.uuid]
        if isinstance(reported, Exception):
            raise reported
        return reported


@pytest.fixture
def bmcs(monkeypatch):
    made = BMCs()
    monkeypatch.setattr(FaultyPower, "get_power_state", lambda self, task: made.get_power_state(task))
    return made


def enroll(whole, bmcs, reported, state="active", **values):
    node = whole.enroll(state, driver="faulty-hardware")
    whole.put(node, power_state="power on", **values)
    bmcs.reported[node] = reported
    return node


def test_the_agent_of_a_machine_that_has_lost_its_power_is_forgotten(whole, bmcs):
    """The next ramdisk has another token, and may have another address and certificate."""
    node = enroll(whole, bmcs, "power off", "available", agent_token_hash="0" * 64, driver_internal_info={
        "agent_url": "http://192.0.2.1:9999", "agent_verify_ca": "a certificate", "agent_version": "13.0"})

    PowerStates(whole.conductor).sync()

    row = whole.row(node)
    assert (row.power_state, row.agent_token_hash) == ("power off", None)
    assert row.driver_internal_info == {"agent_version": "13.0"}


def test_a_machine_that_has_lost_its_power_is_shown_as_off(whole, bmcs, caplog):
    lost, same = enroll(whole, bmcs, "power off"), enroll(whole, bmcs, "power on")

    assert PowerStates(whole.conductor).sync() == 1

    assert (whole.row(lost).power_state, whole.row(same).power_state) == ("power off", "power on")
    assert whole.row(lost).reservation is None
    assert f"Node {lost}: the BMC reports 'power off', but 'power on' was stored" in caplog.text


@pytest.mark.parametrize("state", ["inspect wait", "clean wait", "wait call-back", "manageable"])
def test_it_is_read_in_every_state_in_which_no_conductor_works(whole, bmcs, state):
    node = enroll(whole, bmcs, "power off", state)

    PowerStates(whole.conductor).sync()

    assert (whole.row(node).power_state, whole.row(node).provision_state) == ("power off", state)


@pytest.mark.parametrize(("state", "values"), [
    ("enroll", {}), ("active", {"maintenance": True}), ("active", {"reservation": "other"}),
    ("active", {"conductor_group": "rack-9"}), ("active", {"power_interface": "fake"}),
])
def test_who_is_left_out(whole, bmcs, state, values):
    node = enroll(whole, bmcs, "power off", state, **values)

    assert PowerStates(whole.conductor).sync() == 0

    assert whole.row(node).power_state == "power on"
    assert bmcs.asked == []


def test_a_state_that_a_request_has_changed_meanwhile_remains(whole, bmcs, monkeypatch):
    node = enroll(whole, bmcs, "power off")

    def changed_meanwhile(self, task):
        whole.put(node, power_state="rebooting")
        return "power off"

    monkeypatch.setattr(FaultyPower, "get_power_state", changed_meanwhile)
    assert PowerStates(whole.conductor).sync() == 0

    assert whole.row(node).power_state == "rebooting"


def test_a_bmc_that_does_not_answer_is_asked_more_and_more_seldom(whole, bmcs, caplog):
    silent = enroll(whole, bmcs, BMCError(node="n", reason="it does not answer"))
    other = enroll(whole, bmcs, ValueError("not JSON"))
    states = PowerStates(whole.conductor)

    for _ in range(12):
        states.sync()

    assert bmcs.asked.count(silent) == bmcs.asked.count(other) == 4  # rounds 1, 3, 6, 11
    assert caplog.text.count(f"The power state of node {silent} cannot be read") == 1
    assert "it sent an invalid response (ValueError)" in caplog.text
    assert whole.row(silent).power_state == "power on"

    bmcs.reported[silent] = "power off"
    while whole.row(silent).power_state == "power on":
        states.sync()
    bmcs.asked.clear()
    for _ in range(3):
        states.sync()
    assert bmcs.asked.count(silent) == 3


def test_conductors_of_a_group_share_the_nodes(whole, bmcs, monkeypatch):
    nodes = {enroll(whole, bmcs, "power off") for _ in range(5)}
    states = PowerStates(whole.conductor)
    parts = []
    for place in range(2):
        monkeypatch.setattr(states, "_share", lambda place=place: (place, 2))
        bmcs.asked.clear()
        states.sync()
        parts.append(set(bmcs.asked))

    assert parts[0] | parts[1] == nodes and not parts[0] & parts[1]
    assert {len(part) for part in parts} == {2, 3}


def test_many_bmcs_are_asked_at_once_but_no_more_than_configured(whole, bmcs, monkeypatch):
    for _ in range(6):
        enroll(whole, bmcs, "power on")
    both, busy, most = threading.Barrier(3, timeout=30), [0], [0]

    def slow(self, task):
        busy[0] += 1
        most[0] = max(most[0], busy[0])
        both.wait()
        busy[0] -= 1
        return "power on"

    monkeypatch.setattr(FaultyPower, "get_power_state", slow)
    with whole.option("conductor", "sync_power_state_workers", 3):
        PowerStates(whole.conductor).sync()

    assert most[0] == 3


def test_bmcs_that_hang_do_not_keep_the_others_waiting(whole, bmcs, monkeypatch):
    """One thread may read: it is held by the first BMC, until the others have been read by threads in its place."""
    monkeypatch.setattr(power_states, "_HELD_S", 0.0)
    hung = [enroll(whole, bmcs, "power on") for _ in range(3)]
    others = [enroll(whole, bmcs, "power off") for _ in range(3)]
    read = threading.Event()

    def get_power_state(self, task):
        if task.node.uuid in hung:
            assert 0 < waiting.left_s() <= 30
            assert read.wait(60)
            raise BMCError(node="n", reason="it does not answer")
        state = bmcs.get_power_state(task)
        if set(others) <= set(bmcs.asked):
            read.set()
        return state

    monkeypatch.setattr(FaultyPower, "get_power_state", get_power_state)
    with whole.option("conductor", "sync_power_state_workers", 1):
        assert PowerStates(whole.conductor).sync() == 3

    assert {whole.row(node).power_state for node in others} == {"power off"}


def test_a_node_that_cannot_be_read_does_not_end_the_round(whole, bmcs, monkeypatch, caplog):
    nodes = [enroll(whole, bmcs, "power off") for _ in range(3)]
    states = PowerStates(whole.conductor)
    check = states._check
    monkeypatch.setattr(states, "_check", lambda row: 1 // 0 if row.uuid == nodes[0] else check(row))

    assert states.sync() == 2
    assert f"The power state of node {nodes[0]} cannot be read" in caplog.text


def test_it_ends_when_the_conductor_does(whole, bmcs):
    enroll(whole, bmcs, "power off")
    states = PowerStates(whole.conductor)
    states.stop()

    assert states.sync() == 0
    assert bmcs.asked == []


def overdue(whole, node):
    whole.put(node, provision_updated_at=datetime.datetime.now(datetime.UTC) - datetime.timedelta(hours=1))
    with whole.option("conductor", "inspect_wait_timeout", 1800):
        recovery.fail_overdue(whole.conductor)
    return whole.at_rest(node)


@pytest.mark.parametrize(("reported", "told"), [
    ("power off", "Its power state is 'power off'."), ("power on", "Its power state is 'power on'."),
    (BMCError(node="n", reason="it does not answer"), "Its power state cannot be read: The BMC of node n: it does not"),
])
def test_a_time_out_asks_the_bmc_and_says_what_is_known(whole, monkeypatch, reported, told):
    node = whole.enroll("manageable")
    whole.provision(node, "inspect")
    asked = []

    def get_power_state(self, task):
        asked.append(task.node.uuid)
        if isinstance(reported, Exception):
            raise reported
        return reported

    monkeypatch.setattr(FakePower, "get_power_state", get_power_state)
    row = overdue(whole, node)

    assert row.provision_state == "inspect failed"
    assert f"[conductor]inspect_wait_timeout). {told}" in row.last_error
    assert "No ramdisk has looked the node up." in row.last_error
    assert asked == [node]


def test_a_time_out_says_that_a_ramdisk_was_seen_and_whether_dhcp_serves_the_machine(whole, monkeypatch):
    class Own:
        def update_pxe_filters(self, context, allow=None, deny=None):
            pass

        def await_served(self, addresses, timeout_s):
            return list(addresses)

    node, mac = whole.enroll("manageable"), "52:54:00:00:00:0a"
    assert whole.app.post_json("/v1/ports", {"node_uuid": node, "address": mac}).status_int == 201
    whole.provision(node, "inspect")
    whole.put(node, agent_token_hash="x")
    monkeypatch.setattr(whole.conductor.pxe_filter, "_own", Own())
    row = overdue(whole, node)

    assert "A ramdisk has looked the node up. The DHCP server does not serve 52:54:00:00:00:0a." in row.last_error


def test_a_time_out_says_which_boot_files_were_requested(whole, monkeypatch, tmp_path):
    node, log, web = whole.enroll("manageable"), tmp_path / "access.log", "http://192.0.2.10:8080"
    at = datetime.datetime.now(datetime.UTC).strftime("%d/%b/%Y:%H:%M:%S %z")
    log.write_text("".join(f'192.0.2.9 - - [{at}] "GET {path} HTTP/1.1" {status} 9\n'
                           for path, status in (("/script", 200), ("/kernel", 404))))
    monkeypatch.setattr(FakeBoot, "ramdisk_files", lambda self, task: RamdiskFiles(
        datetime.datetime.now(datetime.UTC) - datetime.timedelta(minutes=1),
        {"its boot script": [f"{web}/script"], "the kernel": [f"{web}/kernel"], "the ramdisk": [f"{web}/initrd"]}))
    whole.provision(node, "inspect")
    with whole.option("deploy", "http_url", web), whole.option("deploy", "http_access_log", str(log)):
        row = overdue(whole, node)

    assert ("The web server's log has requests for its boot script and the kernel (answered with 404), and none for "
            "the ramdisk. No ramdisk has looked the node up.") in row.last_error
