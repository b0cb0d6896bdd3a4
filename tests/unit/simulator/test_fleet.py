import pytest

from ironic_rules import samples
from ironic_rules.simulator import inventories
from ironic_rules.simulator.fleet import Fleet
from ironic_rules.simulator.inventories import Sample

GOOD = Sample("vm", samples.inventory("vm-qemu-bios"))
FAILING = Sample("bad", samples.inventory("ramdisk-error"))


@pytest.fixture
def run_fleet(client):
    def run(count, sample=GOOD, timeout_s=10.0):
        machines = [inventories.vary(sample, "t", i) for i in range(count)]
        fleet = Fleet(client, machines, concurrency=3, timeout_s=timeout_s)
        return fleet, fleet.run().runs

    return run


def problems(runs):
    return [(run.step, run.problem) for run in runs if run.problem]


def test_all_nodes_end_manageable(run_fleet, service):
    _, runs = run_fleet(7)

    assert problems(runs) == []
    assert {node["provision_state"] for node in service.nodes.values()} == {"manageable"}
    assert sorted(node["name"] for node in service.nodes.values()) == [f"sim-t-{i}" for i in range(7)]


def test_processing_that_lasts_is_waited_for(run_fleet, service):
    service.slow_lists = 2

    _, runs = run_fleet(5)

    assert problems(runs) == []
    assert all(run.done_at > run.posted_at for run in runs)


def test_a_ramdisk_error_is_expected_to_fail(run_fleet):
    _, runs = run_fleet(2, FAILING)

    assert problems(runs) == []
    assert [run.state for run in runs] == ["inspect failed"] * 2


def test_a_node_that_ends_in_the_wrong_state_is_a_failure(run_fleet, service):
    service.finish = lambda node: node.update(provision_state="inspect failed", last_error="a rule said no")

    _, runs = run_fleet(1)

    assert problems(runs) == [("inspect", "expected manageable, is inspect failed: a rule said no")]


def test_another_inventory_than_the_sent_one_is_a_failure(run_fleet, service):
    service.spoil_inventory = True

    _, runs = run_fleet(1)

    assert problems(runs) == [("inventory", "the stored inventory is not the one that was sent")]


def test_a_rejected_report_is_a_failure_of_its_node_only(run_fleet, service):
    service.callback_faults = [(404, False)]

    _, runs = run_fleet(3)

    assert problems(runs) == [("callback", "404 callback refused")]


def test_a_lost_answer_is_judged_by_the_node(run_fleet, service):
    service.callback_faults = [(None, True)]

    _, runs = run_fleet(1)

    assert problems(runs) == []
    assert not runs[0].callback.accepted


def test_a_callback_that_never_arrives_is_a_failure(run_fleet, service):
    service.callback_faults = [(503, False)] * 5

    _, runs = run_fleet(1)

    assert problems(runs) == [("callback", "503 callback refused")]


def test_a_node_that_can_not_be_managed_is_a_failure(run_fleet, service):
    service.verify_fails = True

    _, runs = run_fleet(1)

    assert problems(runs) == [("prepare", "expected manageable, is enroll: no power")]


def test_processing_that_does_not_end_is_a_failure(run_fleet, service):
    service.slow_lists = 10_000

    _, runs = run_fleet(1, timeout_s=0.2)

    assert problems(runs)[0][1].startswith("still inspecting after 0 s")


def test_clean_up_deletes_all_nodes_in_whatever_state(run_fleet, service):
    service.callback_faults = [(404, False)]
    fleet, _ = run_fleet(3)

    # The stand-in refuses to delete a node that waits for its ramdisk, as the service does.
    assert "inspect wait" in {node["provision_state"] for node in service.nodes.values()}
    assert fleet.clean_up() == []
    assert service.nodes == {}
    # One request is enough: that state would last.
    assert len([call for call in service.calls if call[0] == "DELETE"]) == 4


def test_clean_up_names_what_is_left(run_fleet, service):
    fleet, _ = run_fleet(1)
    service.faults = [403] * 9

    assert fleet.clean_up() == [f"sim-t-0: DELETE /v1/nodes/{next(iter(service.nodes))}: 403 not now"]


def test_an_interrupted_run_says_so_for_each_node(client, service):
    fleet = Fleet(client, [inventories.vary(GOOD, "t", i) for i in range(2)])
    client.stop.set()

    runs = fleet.run().runs

    assert {problem for _, problem in problems(runs)} == {"interrupted"}
    assert service.nodes == {}
