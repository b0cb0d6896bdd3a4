
import pytest
from sqlalchemy import event

from ironic_rules.db import discovery, node_sets, nodes, ports
from ironic_rules.exceptions import Invalid, LookupFailed
from ironic_rules.inspection import lookup

MAC_A, MAC_B, MAC_NEW = "52:54:00:00:00:0a", "52:54:00:00:00:0b", "52:54:00:00:00:99"
BMC_A, BMC_B, BMC_NEW, BMC_V6 = "192.0.2.1", "192.0.2.2", "192.0.2.99", "2001:db8::99"
UUID_A, UUID_B = "aaaaaaaa-0000-4000-8000-000000000001", "bbbbbbbb-0000-4000-8000-000000000002"


def find_node(conn, uuid, macs, bmcs):
    owners, _ = ports.owners_and_rules_revision(conn, macs)
    return lookup.find_node(conn, uuid, macs, bmcs, owners)


@pytest.fixture
def add(db):
    """Return a function that enrolls a node."""

    def add_node(uuid, macs=(), bmcs=(), state="inspect wait"):
        with db.writer() as conn:
            row = nodes.create(conn, {"uuid": uuid, "driver": "fake-hardware", "provision_state": state})
            for mac in macs:
                ports.create(conn, {"address": mac, "node_id": row.id})
            node_sets.set_bmc_addresses(conn, row.id, bmcs)

    return add_node


@pytest.fixture
def find(db):
    """Return a function that looks up a node and returns its UUID, None for a failure."""

    def find_uuid(uuid=None, macs=(), bmcs=()):
        with db.reader() as conn:
            try:
                return find_node(conn, uuid, macs, bmcs).uuid
            except LookupFailed:
                return None

    return find_uuid


@pytest.mark.parametrize("sent", [
    {"macs": [MAC_A]},
    {"macs": [MAC_NEW, MAC_A]},
    {"bmcs": [BMC_A]},
    {"bmcs": [BMC_NEW, BMC_A]},
    {"macs": [MAC_NEW], "bmcs": [BMC_A]},
    {"macs": [MAC_A], "bmcs": [BMC_A]},
    {"macs": [MAC_A], "bmcs": [BMC_V6]},
    {"macs": [MAC_A], "bmcs": [BMC_NEW]},
    {"uuid": UUID_A, "bmcs": [BMC_NEW]},
    {"uuid": UUID_A, "macs": [MAC_A], "bmcs": [BMC_B]},
    {"uuid": UUID_A},
    {"uuid": UUID_A.upper()},
    {"uuid": UUID_A, "macs": [MAC_A], "bmcs": [BMC_A]},
    {"uuid": UUID_A, "macs": [MAC_NEW, MAC_A]},
    {"uuid": UUID_A, "bmcs": [BMC_A]},
], ids=str)
def test_what_agrees_on_one_waiting_node_finds_it(add, find, sent):
    add(UUID_A, [MAC_A], [BMC_A])
    add(UUID_B, [MAC_B], [BMC_B])

    assert find(**sent) == UUID_A


@pytest.mark.parametrize("sent", [
    {"macs": [MAC_NEW]},
    {"bmcs": [BMC_NEW]},
    {"macs": [MAC_A, MAC_B]},
    {"macs": [MAC_A], "bmcs": [BMC_B]},
    {"bmcs": [BMC_A, BMC_B]},
    {"uuid": UUID_A, "macs": [MAC_B]},
    {"uuid": UUID_A, "macs": [MAC_A, MAC_B]},
    {"uuid": UUID_A, "macs": [MAC_NEW]},
    {"uuid": UUID_A, "bmcs": [BMC_B]},
    {"uuid": "cccccccc-0000-4000-8000-000000000003"},
    {"uuid": "cccccccc-0000-4000-8000-000000000003", "macs": [MAC_A]},
    {"uuid": "no uuid"},
], ids=str)
def test_what_does_not_agree_on_one_node_finds_none(add, find, sent):
    add(UUID_A, [MAC_A], [BMC_A])
    add(UUID_B, [MAC_B], [BMC_B])

    assert find(**sent) is None


@pytest.mark.parametrize("state", ["manageable", "inspecting", "enroll", "active"])
@pytest.mark.parametrize("sent", [{"macs": [MAC_A]}, {"bmcs": [BMC_A]}, {"uuid": UUID_A}], ids=str)
def test_a_node_that_does_not_wait_is_not_found(add, find, sent, state):
    add(UUID_A, [MAC_A], [BMC_A], state)

    assert find(**sent) is None


def test_the_uuid_suffices_for_a_node_without_ports(add, find):
    add(UUID_A)

    assert find(UUID_A, [MAC_NEW], [BMC_NEW]) == UUID_A


def test_a_node_whose_bmc_is_unknown_is_found_whatever_bmc_is_sent(add, find):
    add(UUID_A, [MAC_A])

    assert find(None, [MAC_A], [BMC_NEW]) == UUID_A


def test_a_shared_bmc_address_finds_the_only_node_that_waits(add, find):
    add(UUID_A, [MAC_A], [BMC_A])
    add(UUID_B, [MAC_B], [BMC_A], "active")

    assert find(bmcs=[BMC_A]) == UUID_A


def test_two_waiting_nodes_with_one_bmc_address_are_told_apart_by_mac_address_only(add, find):
    add(UUID_A, [MAC_A], [BMC_A])
    add(UUID_B, [MAC_B], [BMC_A])

    assert find(bmcs=[BMC_A]) is None
    assert find(None, [MAC_B], [BMC_A]) == UUID_B


def test_a_mac_address_of_a_node_that_does_not_wait_is_not_outvoted_by_the_bmc(add, find):
    add(UUID_A, [MAC_A], [BMC_A])
    add(UUID_B, [MAC_B], [], "active")

    assert find(None, [MAC_B], [BMC_A]) is None


def test_a_name_is_no_uuid(db, add, find):
    add(UUID_A)
    with db.writer() as conn:
        nodes.update(conn, 1, {"name": "node-a"})

    assert find("node-a") is None


def test_nothing_to_look_up_by_is_the_senders_fault(db):
    with db.reader() as conn, pytest.raises(Invalid, match="No lookup information") as caught:
        find_node(conn, None, [], [])

    assert caught.value.code == 400


def test_the_reason_is_for_the_log_and_not_told(db, add):
    add(UUID_A, [MAC_A])

    with db.reader() as conn, pytest.raises(LookupFailed) as caught:
        find_node(conn, UUID_B, [MAC_A], [])

    assert (str(caught.value), caught.value.facts) == (LookupFailed.message, {})
    assert caught.value.reason == "no node with this UUID waits for inspection"


@pytest.mark.parametrize(("state", "sent", "reason"), [
    ("inspect wait", {"uuid": UUID_B, "macs": [MAC_A]}, "the UUID and the MAC addresses are of different nodes"),
    ("manageable", {"macs": [MAC_A]}, "the node does not wait for inspection"),
    ("manageable", {"uuid": UUID_A, "macs": [MAC_A]}, "no node with this UUID waits for inspection"),
    ("manageable", {"macs": [MAC_NEW]}, "no waiting node has any of them"),
])
def test_each_cause_has_its_own_reason(db, add, state, sent, reason):
    add(UUID_A, [MAC_A], state=state)
    add(UUID_B)

    with db.reader() as conn, pytest.raises(LookupFailed) as caught:
        find_node(conn, sent.get("uuid"), sent.get("macs", ()), [])

    assert caught.value.reason == reason


@pytest.mark.parametrize("sent", [
    {"macs": [MAC_A], "bmcs": [BMC_A]}, {"uuid": UUID_A, "macs": [MAC_NEW], "bmcs": [BMC_NEW]}, {"bmcs": [BMC_A]}],
    ids=str)
def test_the_number_of_queries_does_not_grow_with_the_nodes(db, add, find, sent):
    queries = []
    event.listen(db.engine, "before_cursor_execute", lambda *args: queries.append(args[2]))

    def count():
        queries.clear()
        find(**sent)
        return len([text for text in queries if text.startswith("SELECT")])

    add(UUID_A, [MAC_A], [BMC_A])
    alone = count()
    for other in range(20):
        add(f"00000000-0000-4000-8000-{other:012}", [f"52:54:00:00:01:{other:02x}"], [f"198.51.100.{other}"])

    assert count() == alone <= 5


def test_a_node_without_ports_is_found_by_the_addresses_with_which_it_was_discovered(db, add, find):
    add(UUID_A)
    add(UUID_B, [MAC_B])
    with db.writer() as conn:
        discovery.begin(conn, nodes.get_id(conn, UUID_A), [MAC_A, MAC_NEW])

    assert (find(macs=[MAC_A]), find(UUID_A, [MAC_NEW]), find(macs=[MAC_A], bmcs=[BMC_NEW])) == (UUID_A,) * 3
    assert find(UUID_B, [MAC_A]) is None
    # A port is newer than the discovery, and certain.
    assert find(macs=[MAC_A, MAC_B]) == UUID_B


@pytest.mark.parametrize("state", ["manageable", "enroll", "inspect wait"])
@pytest.mark.parametrize("known", [[], [BMC_V6]], ids=["no BMC", "a BMC of the other version"])
@pytest.mark.parametrize("sent", [{"macs": [MAC_A]}, {"uuid": UUID_A}], ids=str)
def test_the_bmc_of_another_node_is_not_that_of_a_node_whose_own_is_not_known(add, find, state, known, sent):
    add(UUID_A, [MAC_A], known)
    add(UUID_B, [], [BMC_B], state=state)

    assert find(**sent, bmcs=[BMC_B]) is None
    assert find(**sent, bmcs=[BMC_B, BMC_V6]) == (UUID_A if known else None)
    assert find(**sent, bmcs=[BMC_NEW]) == UUID_A


def test_the_bmc_of_another_node_can_be_accepted_with_a_warning(add, db, caplog):
    add(UUID_A, [MAC_A])
    add(UUID_B, [], [BMC_B], state="manageable")
    with db.reader() as conn:
        owners, _ = ports.owners_and_rules_revision(conn, [MAC_A])
        assert lookup.find_node(conn, None, [MAC_A], [BMC_B], owners, "warn").uuid == UUID_A

    assert f"The ramdisk of node {UUID_A} has BMC addresses that belong to 1 other nodes, {BMC_B}" in caplog.text


def test_a_bmc_that_nodes_share_is_that_of_each_of_them(add, find):
    add(UUID_A, [MAC_A], [BMC_A])
    add(UUID_B, [MAC_B], [BMC_A], state="manageable")

    assert find(macs=[MAC_A], bmcs=[BMC_A]) == UUID_A
