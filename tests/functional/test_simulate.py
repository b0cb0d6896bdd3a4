"""``ironic-rules-simulate`` and the demo with the service as an operator runs it."""

from __future__ import annotations

import json
import os
import subprocess

import httpx
import pytest

from ironic_rules import samples
from tests.functional import processes

VERSION = {"X-OpenStack-Ironic-API-Version": "1.96"}


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """Yield the URL of a running one-process service."""
    with processes.standalone(tmp_path_factory.mktemp("service")) as (_, url):
        yield url


def simulate(url, *arguments, stdout=subprocess.PIPE):
    command = [*processes.PYTHON, "-m", "ironic_rules.cmd.simulate", "--endpoint", url, *arguments]
    return subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=processes.PATIENCE_S,
                          check=False)


def get(url, path):
    return httpx.get(url + path, headers=VERSION).json()


def test_a_fleet_of_the_shipped_samples_ends_manageable(url):
    done = simulate(url, "--nodes", "15", "--concurrency", "4", "--run-id", "fleet", "--json")

    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["as_expected"], report["states"], report["failures"]) == (15, {"manageable": 15}, [])
    assert report["post"]["count"] == 15
    assert 0 < report["post"]["p50_ms"] <= report["post"]["p95_ms"] <= report["post"]["p99_ms"]
    node = get(url, "/v1/nodes/sim-fleet-0")
    assert (node["provision_state"], node["properties"]["cpu_arch"]) == ("manageable", "x86_64")


def test_a_ramdisk_error_ends_in_inspect_failed_as_expected(url, tmp_path):
    for name in ("ramdisk-error", "vm-qemu-bios"):
        (tmp_path / f"{name}.json").write_text(json.dumps(samples.inventory(name)))

    done = simulate(url, "--nodes", "4", "--json", "--inventory", *map(str, sorted(tmp_path.iterdir())))

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["states"] == {"inspect failed": 2, "manageable": 2}


def test_cleanup_leaves_no_node_behind(url):
    done = simulate(url, "--nodes", "3", "--run-id", "gone", "--cleanup")

    assert done.returncode == 0, done.stderr
    assert "3 of 3 (all)" in done.stdout
    assert [node for node in get(url, "/v1/nodes")["nodes"] if str(node["name"]).startswith("sim-gone-")] == []


@pytest.mark.parametrize("form", ["--json", "--nojson"])
def test_a_report_that_no_one_reads_is_no_result(url, form):
    ours, theirs = os.pipe()
    os.close(ours)

    done = simulate(url, "--nodes", "1", "--cleanup", form, stdout=theirs)

    os.close(theirs)
    assert (done.returncode, done.stderr) == (
        2, "ironic-rules-simulate: standard output cannot be written: Broken pipe.\n")


def test_a_rule_that_fails_makes_the_status_1_and_names_the_reason(url):
    rule = {"actions": [{"op": "fail", "args": ["not today"]}],
            "conditions": [{"op": "eq", "args": ["{inventory[system_vendor][manufacturer]}", "QEMU"]}]}
    made = httpx.post(url + "/v1/inspection_rules", json=rule, headers=VERSION).json()

    done = simulate(url, "--nodes", "5", "--json", "--cleanup")

    httpx.delete(f"{url}/v1/inspection_rules/{made['uuid']}", headers=VERSION)
    assert done.returncode == 1
    (failure,) = json.loads(done.stdout)["failures"]
    assert (failure["sample"], failure["step"]) == ("vm-qemu-bios", "inspect")
    assert "not today" in failure["reason"]


def test_nobody_at_the_endpoint_is_one_line_and_status_2():
    done = simulate("http://127.0.0.1:1")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("ironic-rules-simulate: cannot connect to http://127.0.0.1:1: ")
    assert done.stderr.count("\n") == 1


def test_the_demo_shows_every_sample_also_when_run_again(tmp_path):
    for name in ("first", "second"):
        with processes.standalone(tmp_path, "--demo", name=name) as (process, url):
            process.printed("Still serving")
            shown = process.text()
            states = {node["name"]: node["provision_state"] for node in get(url, "/v1/nodes")["nodes"]}
            process.terminate()

        expected = {f"demo-{name}": "manageable" for name in samples.inventory_names()} | {
            "demo-ramdisk-error": "inspect failed"}
        assert states == expected
        for text in ("Rules that matched", "Dell server", "CUSTOM_VENDOR_DELL", "memory_mb: 524288", "IPv6-only BMC",
                     "52:54:00:7f:19:c3 (pxe)", "ramdisk-error failed", *expected):
            assert text in shown
