import json

import pytest

from ironic_rules.cmd import simulate
from tests.unit.simulator import stand_in


@pytest.fixture
def service():
    """Yield a stand-in for the service that answers over HTTP."""
    with stand_in.running() as running:
        yield running


def run(service, *argv):
    return simulate.main(["--endpoint", service.url, "--nodes", "6", "--retry-delay", "0.01", *argv])


def test_standard_output_has_the_report(service, capsys):
    assert run(service, "--run-id", "t") == 0

    out = capsys.readouterr().out
    assert "6 of 6 (all)" in out
    assert "p50" in out


def test_json_is_the_only_thing_on_standard_output(service, capsys):
    assert run(service, "--json", "--concurrency", "2") == 0

    report = json.loads(capsys.readouterr().out)
    assert (report["nodes"], report["as_expected"], report["concurrency"]) == (6, 6, 2)


def test_nodes_take_turns_with_the_shipped_samples(service):
    run(service, "--json", "--run-id", "t")

    assert [sample.name for sample in simulate.shipped_samples()] == [
        "dell-r660", "extra-hardware-r730", "hpe-dl380-gen11", "ipv6-only-bmc", "vm-qemu-bios"]
    assert sorted(node["name"] for node in service.nodes.values()) == [f"sim-t-{i}" for i in range(6)]


def test_status_is_1_when_a_node_did_not_end_as_expected(service, capsys):
    service.callback_faults = [(404, False)]

    assert run(service, "--json") == 1
    assert len(json.loads(capsys.readouterr().out)["failures"]) == 1


def test_cleanup_leaves_nothing_also_after_a_failure(service):
    service.callback_faults = [(404, False)]

    assert run(service, "--json", "--cleanup") == 1
    assert service.nodes == {}


def test_what_can_not_be_deleted_is_a_failure(service, capsys):
    def refuse(method, *rest, inner=service.handle):
        if method == "DELETE":
            raise stand_in.Refusal(403, "policy")
        return inner(method, *rest)

    service.handle = refuse

    assert run(service, "--json", "--cleanup", "--nodes", "1") == 1
    assert "not deleted: sim-" in capsys.readouterr().err


def test_an_interrupt_ends_with_130_and_cleans_up(service, monkeypatch, capsys):
    def interrupted(fleet):
        raise KeyboardInterrupt

    monkeypatch.setattr("ironic_rules.simulator.fleet.Fleet.run", interrupted)

    assert run(service, "--cleanup") == 130
    assert "interrupted" in capsys.readouterr().err


@pytest.mark.parametrize("argv", [
    ["--endpoint", "http://127.0.0.1:1"], ["--inventory", "missing.json"], ["--header", "no colon"],
    ["--config-file", "missing.conf"], ["--config-file", "/"], ["--timeout", "nan"], ["--retry-delay", "inf"],
])
def test_what_keeps_the_run_from_beginning_is_one_line_and_status_2(argv, capsys):
    assert simulate.main(argv) == 2

    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("argv", [["--nodes", "0"], ["--nodes", "many"], ["--unknown"], ["--run-id", "Not/Valid"],
                                  ["--retry-delay", "0"], ["--inventory"], ["--inventory", "--json"]])
def test_a_bad_option_is_status_2(argv, capsys):
    with pytest.raises(SystemExit) as caught:
        simulate.main(argv)

    assert caught.value.code == 2
    assert argv[0] in capsys.readouterr().err


def test_headers_go_with_every_request(service):
    run(service, "--json", "--header", "X-Auth-Token: t:1")

    assert {headers.get("X-Auth-Token") for _, _, headers in service.calls} == {"t:1"}


def test_options_can_come_from_a_configuration_file(service, tmp_path, capsys):
    (tmp_path / "fleet.conf").write_text("[DEFAULT]\nnodes = 2\njson = true\n")

    assert simulate.main(["--endpoint", service.url, "--config-file", str(tmp_path / "fleet.conf")]) == 0
    assert json.loads(capsys.readouterr().out)["nodes"] == 2


def test_an_option_may_have_several_values():
    words = ["--inventory", "a", "b", "--json", "--nodes", "3", "--inventory=c", "--inventory", "d"]

    assert simulate.one_option_per_value(words, "--inventory") == [
        "--inventory", "a", "--inventory", "b", "--json", "--nodes", "3", "--inventory=c", "--inventory", "d"]
