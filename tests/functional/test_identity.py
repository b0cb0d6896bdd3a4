"""Which node a machine is, in the whole service: addresses that several machines have, and reports that pretend."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from ironic_rules.db import node_sets, nodes
from ironic_rules.models import states
from tests.functional.whole import Whole, running

USB, MEGARAC = "02:00:5e:00:00:01", "be:3a:f2:b6:05:9f"
CONFIG = ("[auto_discovery]\nenabled = true\ndriver = fake-hardware\nmax_nodes_per_minute = 1000\n")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Whole]:
    with running(tmp_path_factory.mktemp("identity"), CONFIG) as made:
        yield made


class Machine:
    """A machine with its own MAC address, BMC and serial number, and addresses that others have as well."""

    def __init__(self, whole: Whole, *shared: str, bmc: str | None = None) -> None:
        self.mac, self.body = whole.machine()
        number = whole._serial
        self.bmc = bmc or f"198.51.100.{number % 250}"
        inventory = self.body["inventory"]
        inventory["bmc_address"] = self.bmc
        inventory["system_vendor"] = {"serial_number": f"SN{number:06}X"}
        for place, address in enumerate(shared):
            inventory["interfaces"].append({"name": f"usb{place}", "mac_address": address})
        self.reports = 0

    def report(self, *, without: str = "", **more: Any) -> dict[str, Any]:
        """Return its next report, not an equal one."""
        self.reports += 1
        body = copy.deepcopy(self.body) | {"number": self.reports}
        body["inventory"] |= more
        body["inventory"]["interfaces"] = [
            each for each in body["inventory"]["interfaces"] if each["mac_address"] != without]
        return body


def send(whole: Whole, body: dict[str, Any], node: str | None = None) -> str | None:
    """Send a report; return the node that accepts it, None for a refusal."""
    path = "/v1/continue_inspection" + (f"?node_uuid={node}" if node else "")
    reply = whole.app.post_json(path, body, headers={"X-OpenStack-Ironic-API-Version": "1.1"})
    if reply.status_int == 404:
        return None
    whole.at_rest(reply.json["uuid"])
    return str(reply.json["uuid"])


def enrolled(whole: Whole, machine: Machine, *more: str) -> str:
    """Return the node of a machine, waiting, with a port for its own address and others."""
    uuid = whole.enroll(states.MANAGEABLE)
    for address in (machine.mac, *more):
        whole.app.post_json("/v1/ports", {"node_uuid": uuid, "address": address})
    whole.provision(uuid, "inspect")
    return uuid


def macs(whole: Whole, uuid: str) -> set[str]:
    return {port["address"] for port in whole.app.get(f"/v1/nodes/{uuid}/ports").json["ports"]}


def shared(whole: Whole) -> list[str]:
    with whole.db.reader() as conn:
        return [entry["address"] for entry in node_sets.list_shared_macs(conn)]


@pytest.fixture
def usb(whole: Whole) -> str:
    """Return a new address of which nothing is known."""
    return whole.machine()[0].replace("52:54:00", "06:54:00")


@pytest.mark.parametrize("is_named", [False, True])
def test_a_machine_whose_bmc_has_another_address_than_its_node_is_inspected(whole: Whole, is_named: bool) -> None:
    machine = Machine(whole)
    uuid = whole.enroll(states.MANAGEABLE, driver_info={"ipmi_address": "10.9.9.1"})
    whole.app.post_json("/v1/ports", {"node_uuid": uuid, "address": machine.mac})
    whole.provision(uuid, "inspect")

    with whole.option("inspector", "foreign_bmc", "strict"):
        assert send(whole, machine.report(), uuid if is_named else None) is None
    assert send(whole, machine.report(), uuid if is_named else None) == uuid
    assert whole.row(uuid).provision_state == states.MANAGEABLE


def test_a_known_address_of_bmcs_makes_no_port_and_finds_no_node(whole: Whole) -> None:
    machines = [Machine(whole, MEGARAC) for _ in range(2)]
    found = [enrolled(whole, machine) for machine in machines]

    assert [send(whole, machine.report()) for machine in machines] == found
    assert [macs(whole, uuid) for uuid in found] == [{machine.mac} for machine in machines]
    assert MEGARAC not in shared(whole)


def test_the_second_machine_with_an_unknown_shared_address_is_inspected_and_the_address_learned(
        whole: Whole, usb: str) -> None:
    machines = [Machine(whole, usb) for _ in range(3)]
    first, second, third = (enrolled(whole, machine) for machine in machines)

    assert send(whole, machines[0].report()) == first
    assert macs(whole, first) == {machines[0].mac, usb}
    assert send(whole, machines[1].report()) == second
    assert macs(whole, second) == {machines[1].mac}
    assert usb in shared(whole)
    assert send(whole, machines[2].report()) == third
    assert macs(whole, third) == {machines[2].mac}
    # The one with the port is found, too, and no other gets a port when it is gone.
    whole.provision(first, "inspect")
    assert send(whole, machines[0].report()) == first
    whole.app.delete(f"/v1/nodes/{first}")
    whole.provision(third, "inspect")
    assert send(whole, machines[2].report()) == third
    assert macs(whole, third) == {machines[2].mac}


@pytest.mark.parametrize("has_bmc", [False, True])
def test_a_node_without_ports_is_found_by_its_bmc_or_name_in_spite_of_a_shared_address(
        whole: Whole, usb: str, has_bmc: bool) -> None:
    one, other = Machine(whole, usb), Machine(whole, usb)
    assert send(whole, one.report(), enrolled(whole, one))
    uuid = whole.enroll(states.MANAGEABLE, **({"driver_info": {"ipmi_address": other.bmc}} if has_bmc else {}))
    whole.provision(uuid, "inspect")

    assert send(whole, other.report(), None if has_bmc else uuid) == uuid
    assert macs(whole, uuid) == {other.mac}


def test_discovery_enrols_each_machine_with_an_address_of_its_own(whole: Whole, usb: str) -> None:
    machines = [Machine(whole, usb, MEGARAC) for _ in range(3)]

    found = [send(whole, machine.report()) for machine in machines]

    assert None not in found
    assert len(set(found)) == 3
    assert [macs(whole, uuid) for uuid in found] == [  # type: ignore[arg-type]
        {machines[0].mac, usb}, {machines[1].mac}, {machines[2].mac}]
    # They are known, each as its own node.
    assert [send(whole, machine.report()) for machine in machines] == [None] * 3
    for uuid, machine in zip(found, machines, strict=True):
        whole.provision(str(uuid), "manage")
        whole.provision(str(uuid), "inspect")
        assert send(whole, machine.report()) == uuid


def test_discovery_compares_with_the_stored_inventory_of_a_node_whose_bmc_says_nothing(whole: Whole, usb: str) -> None:
    known, without = Machine(whole, usb), Machine(whole, usb)
    known.body["inventory"].pop("bmc_address")
    uuid = whole.enroll(states.MANAGEABLE)
    whole.app.post_json("/v1/ports", {"node_uuid": uuid, "address": known.mac})
    whole.provision(uuid, "inspect")
    assert send(whole, known.report()) == uuid
    with whole.db.reader() as conn:
        assert node_sets.machine_ids_of(conn, [nodes.get_id(conn, uuid)]) == {}

    found = send(whole, Machine(whole, usb).report())

    assert found not in (None, uuid)
    # The same machine with a new card, and one that says nothing of itself, may be it.
    without.body["inventory"]["system_vendor"] = {}
    without.body["inventory"].pop("bmc_address")
    known.body["inventory"]["interfaces"][0]["mac_address"] = whole.machine()[0]
    known.body["inventory"]["interfaces"].append({"name": "eth9", "mac_address": known.mac})
    assert [send(whole, machine.report()) for machine in (known, without)] == [None, None]


def test_discovery_enrols_machines_of_a_chassis_by_their_serial_numbers(whole: Whole) -> None:
    one = Machine(whole)
    machines = [one, Machine(whole, bmc=one.bmc), Machine(whole, bmc=one.bmc)]
    of_none = Machine(whole, bmc=one.bmc)
    of_none.body["inventory"].pop("system_vendor")

    first = send(whole, machines[0].report())
    assert send(whole, of_none.report()) is None
    others = [send(whole, machine.report()) for machine in machines[1:]]

    assert len({first, *others} - {None}) == 3


def test_discovery_does_not_enrol_a_machine_with_addresses_of_others_only(whole: Whole, usb: str) -> None:
    for _ in range(2):
        machine = Machine(whole, usb, MEGARAC)
        assert send(whole, machine.report())
    lonely = Machine(whole, usb, MEGARAC)

    assert send(whole, lonely.report(without=lonely.mac, bmc_address=machine.bmc)) is None


def test_an_agent_looks_up_its_node_in_spite_of_a_shared_address(whole: Whole, usb: str) -> None:
    one, other = Machine(whole, usb), Machine(whole, usb)
    assert send(whole, one.report(), enrolled(whole, one))
    uuid = enrolled(whole, other)

    def looked_up(*addresses: str, **more: str) -> str | None:
        reply = whole.app.get("/v1/lookup", {"addresses": ",".join(addresses), **more})
        return reply.json["node"]["uuid"] if reply.status_int == 200 else None

    assert looked_up(other.mac, usb, MEGARAC) == uuid
    assert looked_up(other.mac, usb, node_uuid=uuid) == uuid
    assert looked_up(other.mac, one.mac, usb) is None
    assert looked_up(one.mac, node_uuid=uuid) is None


def test_shared_addresses_are_listed_and_can_be_forgotten(whole: Whole, usb: str) -> None:
    machines = [Machine(whole, usb) for _ in range(2)]
    found = [send(whole, machine.report(), enrolled(whole, machine)) for machine in machines]

    (entry,) = (each for each in whole.app.get("/v1/shared_macs").json["shared_macs"] if each["address"] == usb)
    assert (entry["nodes"], entry["port_of"]) == ([found[1]], found[0])
    assert entry["created_at"].endswith("+00:00")
    assert whole.app.delete(f"/v1/shared_macs/{usb.upper()}").status_int == 204
    again = whole.app.delete(f"/v1/shared_macs/{usb}", status="*")
    assert (again.status_int, usb in shared(whole)) == (404, False)
    assert whole.app.delete("/v1/shared_macs/nothing", status="*").status_int == 404


# Attacks: every client that reaches the endpoint can send any report.


def test_the_uuid_of_another_node_with_own_addresses_is_refused(whole: Whole, usb: str) -> None:
    victim, attacker = Machine(whole, usb), Machine(whole)
    of_victim, of_attacker = enrolled(whole, victim), enrolled(whole, attacker)

    assert send(whole, attacker.report(), of_victim) is None
    assert send(whole, Machine(whole).report(), of_victim) is None
    both = attacker.report()
    both["inventory"]["interfaces"].append({"name": "stolen", "mac_address": victim.mac})
    assert send(whole, both, of_victim) is None
    assert send(whole, both, of_attacker) is None
    assert send(whole, both) is None
    assert shared(whole) == [] or victim.mac not in shared(whole)


@pytest.mark.parametrize("state", ["inspect wait", "manageable", "active"])
def test_the_address_of_another_node_with_the_own_bmc_is_refused(whole: Whole, state: str) -> None:
    victim, attacker = Machine(whole), Machine(whole)
    of_victim = enrolled(whole, victim)
    of_attacker = whole.enroll(states.MANAGEABLE, driver_info={"ipmi_address": attacker.bmc})
    whole.put(of_attacker, provision_state=state)

    stolen = attacker.report(without=attacker.mac)
    stolen["inventory"]["interfaces"].append({"name": "stolen", "mac_address": victim.mac})

    assert send(whole, stolen) is None
    whole.put(of_attacker, provision_state="manageable")
    whole.app.delete(f"/v1/nodes/{of_attacker}")
    assert whole.row(of_victim).provision_state == states.INSPECTWAIT


def test_a_node_that_does_not_wait_cannot_be_reported_by_way_of_another(whole: Whole) -> None:
    victim, attacker = Machine(whole), Machine(whole)
    of_victim, of_attacker = enrolled(whole, victim), enrolled(whole, attacker)
    assert send(whole, victim.report()) == of_victim

    stolen = attacker.report()
    stolen["inventory"]["interfaces"].append({"name": "stolen", "mac_address": victim.mac})

    assert send(whole, stolen) is None
    assert macs(whole, of_victim) == {victim.mac}
    assert whole.row(of_attacker).provision_state == states.INSPECTWAIT


def test_a_repetition_changes_nothing_and_teaches_nothing(whole: Whole, usb: str) -> None:
    one, other = Machine(whole, usb), Machine(whole, usb)
    assert send(whole, one.report(), enrolled(whole, one))
    uuid, body = enrolled(whole, other), other.report()
    assert send(whole, body) == uuid
    before = shared(whole)

    assert send(whole, body) == uuid
    assert (shared(whole), whole.row(uuid).provision_state) == (before, states.MANAGEABLE)


def poison(whole: Whole, addresses: set[str]) -> str:
    """Have accepted reports of an own node list the addresses of another one, more and more; return the own node."""
    attacker = Machine(whole)
    own = enrolled(whole, attacker)
    for address in sorted(addresses):
        attacker.body["inventory"]["interfaces"].append({"name": address, "mac_address": address})
        send(whole, attacker.report())
        if whole.row(own).provision_state != states.INSPECTWAIT:
            whole.provision(own, "inspect")
    return own


def test_a_confined_caller_makes_no_node_unknown(whole: Whole) -> None:
    victim = Machine(whole)
    more = {whole.machine()[0] for _ in range(2)}
    uuid = enrolled(whole, victim, *more)
    assert send(whole, victim.report()) == uuid

    own = poison(whole, {victim.mac, *more})

    assert len({victim.mac, *more}.intersection(shared(whole))) == 2
    # Its ports are as they were, and it is found by whichever it has now.
    assert macs(whole, uuid) == {victim.mac, *more}
    whole.provision(uuid, "inspect")
    assert send(whole, victim.report()) == uuid
    assert macs(whole, uuid) == {victim.mac, *more}
    # Nor is a second node made of it.
    again = send(whole, victim.report())
    assert again in (None, uuid)
    # With the node of the caller, all of that goes.
    whole.put(own, provision_state="manageable")
    whole.app.delete(f"/v1/nodes/{own}")
    with whole.db.reader() as conn:
        assert node_sets.identifying_macs(conn, [nodes.get_id(conn, uuid)]).popitem()[1] == {victim.mac, *more}


def test_a_port_that_an_operator_creates_for_a_shared_address_finds_its_node(whole: Whole, usb: str) -> None:
    for _ in range(3):
        machine = Machine(whole, usb)
        assert send(whole, machine.report(), enrolled(whole, machine))
    with whole.db.reader() as conn:
        (entry,) = (each for each in node_sets.list_shared_macs(conn) if each["address"] == usb)
    (port,) = whole.app.get(f"/v1/ports?address={usb}").json["ports"]
    whole.app.delete(f"/v1/ports/{port['uuid']}")
    uuid = whole.enroll(states.MANAGEABLE)
    whole.app.post_json("/v1/ports", {"node_uuid": uuid, "address": usb})
    whole.provision(uuid, "inspect")

    machine = Machine(whole, usb)
    assert entry["port_of"] is not None
    assert send(whole, machine.report()) == uuid
