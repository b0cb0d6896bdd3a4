"""The metrics say what happened in a running service; what is shipped for Prometheus and Grafana uses only these."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
import yaml
from prometheus_client import parser

from ironic_rules import service
from ironic_rules.api import fleet_gauges
from ironic_rules.conductor import recovery, worker_pool
from ironic_rules.db import node_queries, nodes
from ironic_rules.exceptions import HookFailed
from ironic_rules.inspection.hooks.base import InspectionHook
from ironic_rules.metrics import exporter
from ironic_rules.metrics.catalog import FAMILIES, HISTOGRAM
from ironic_rules.metrics.numbers import Numbers
from ironic_rules.models import states
from ironic_rules.models.rules import Rule
from ironic_rules.rpc import transport as rpc_transport
from tests.functional.processes import free_port, wait_for
from tests.functional.whole import OneProcess, running

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = ROOT / "etc" / "ironic-rules" / "monitoring"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OneProcess]:
    with running(tmp_path_factory.mktemp("metrics"), "[api]\nserve_metrics = true\n[auto_discovery]\nenabled = true\n"
                 "driver = fake-hardware\n") as started:
        yield started


def samples(text: str) -> dict[str, float]:
    """Return the values of a page by name and labels, as queries have them."""
    return {sample.name.removeprefix("ironic_rules_") + "".join(f" {value}" for value in sample.labels.values()):
            sample.value for family in parser.text_string_to_metric_families(text) for sample in family.samples}


def shown(whole: OneProcess) -> dict[str, float]:
    reply = whole.app.get("/metrics")
    assert reply.status_int == 200, reply.text
    assert reply.headers["Content-Type"].startswith("text/plain; version=")
    return samples(reply.text)


class Counted:
    """The numbers by which the metrics have grown."""

    def __init__(self, whole: OneProcess) -> None:
        self._whole = whole
        self._before = shown(whole)

    def more(self, name: str) -> float:
        return shown(self._whole).get(name, 0) - self._before.get(name, 0)

    def becomes(self, name: str, number: int) -> None:
        """Wait until it is so many: what ends is counted after what others see of it."""
        wait_for(f"{number} more of {name}", lambda: self.more(name) == number)


@pytest.fixture
def counted(whole: OneProcess) -> Counted:
    return Counted(whole)


def waiting(whole: OneProcess, **fields: Any) -> tuple[str, dict[str, Any]]:
    _, body = whole.machine()
    node = whole.enroll(states.MANAGEABLE, inspect_interface="agent", **fields)
    whole.provision(node, "inspect")
    return node, body


def test_requests_are_counted_by_their_route_and_never_by_what_is_in_it(whole, counted):
    for path in ("/v1/nodes/a", "/v1/nodes/b", "/v1/nosuch/x", "/nosuch"):
        assert whole.app.get(path).status_int == 404
    assert whole.app.options("/v1/nodes").status_int == 405

    counted.becomes("api_requests_total GET /v1/nodes/{node} 404", 2)
    counted.becomes("api_requests_total GET none 404", 2)
    counted.becomes("api_requests_total other none 405", 1)
    counted.becomes("api_request_duration_seconds_count /v1/nodes/{node}", 2)
    assert not [name for name in shown(whole) if "nosuch" in name or "OPTIONS" in name]


def test_an_inspection_is_counted_with_its_stages(whole, counted):
    node, body = waiting(whole)
    assert whole.callback(node, body).status_int == 200
    whole.at_rest(node)

    counted.becomes("inspections_total succeeded save", 1)
    for stage in ("start", "accept", "receive", "hooks", "rules", "finish"):
        counted.becomes(f"inspection_stage_duration_seconds_count {stage}", 1)
    counted.becomes("inspection_stage_duration_seconds_count save", 2)  # it began to wait, and it ended
    counted.becomes("rpc_call_duration_seconds_count continue_inspection replied", 1)


class Refusing(InspectionHook):
    """Refuses every report."""

    def __call__(self, task: Any, inventory: Any, plugin_data: Any) -> None:
        raise HookFailed(hook="refusing", reason="it does")


def test_failures_are_counted_with_the_stage_they_are_of(whole, counted):
    node, body = waiting(whole)
    with whole.with_hooks(Refusing()):
        assert whole.callback(node, body).status_int == 200
        whole.at_rest(node)
    counted.becomes("inspections_total failed hooks", 1)

    rule = whole.app.post_json("/v1/inspection_rules", {"actions": [{"op": "fail", "args": ["no"]}]}).json
    node, body = waiting(whole)
    assert whole.callback(node, body).status_int == 200
    whole.at_rest(node)
    whole.app.delete(f"/v1/inspection_rules/{rule['uuid']}")
    counted.becomes("inspections_total failed rules", 1)

    node, _ = waiting(whole)
    whole.ask(node, "abort")
    whole.at_rest(node)
    counted.becomes("inspections_total aborted wait", 1)

    node, _ = waiting(whole)
    whole.put(node, provision_updated_at=whole.row(node).provision_updated_at.replace(year=2001))
    recovery.fail_overdue(whole.conductor)
    wait_for("the end of the wait", lambda: whole.row(node).provision_state == states.INSPECTFAIL)
    counted.becomes("inspections_total timed out wait", 1)


def test_refused_reports_and_bodies_are_counted_by_reason(whole, counted):
    node, body = waiting(whole)
    mac, _ = whole.machine()
    whole.app.post_json("/v1/ports", {"node_uuid": node, "address": mac})
    other = whole.enroll(states.MANAGEABLE)
    assert whole.callback(other, body).status_int == 404
    assert whole.callback(node, body).status_int == 404
    assert whole.app.post_json("/v1/continue_inspection", whole.machine()[1]).status_int == 200
    for sent, status in ((b"{", 400), (b"[" * 2000, 400), (b" " * (11 * 2**20), 413)):
        assert whole.app.post("/v1/continue_inspection", sent, {"Content-Type": "application/json"}
                              ).status_int == status

    counted.becomes("api_callbacks_refused_total wrong state", 1)
    counted.becomes("api_callbacks_refused_total several nodes", 1)
    counted.becomes("discovered_nodes_total", 1)
    counted.becomes("api_bodies_refused_total not acceptable as JSON", 2)
    counted.becomes("api_bodies_refused_total too large", 1)


def test_recovery_locks_and_slots_are_seen(whole, counted):
    conductor = whole.conductor
    node, _ = waiting(whole)
    with conductor.db.reader() as conn:
        node_id = nodes.get_id(conn, node)
    lock = nodes.Lock(node_id, "conductor-9", "gone:1")
    whole.db.write(lambda conn: nodes.reserve_in_state(conn, lock, "continue inspection", states.INSPECTWAIT, {}))
    with conductor.workers.take(node_id, lane=worker_pool.Lane.RECOVERY):
        assert shown(whole)["conductor_slots recovery taken"] == 1
        recovery.resume_orphans(conductor)
        assert shown(whole)["locks 0"] == 1
        assert shown(whole)["locks 60"] == 0
        now = conductor.lock_ages._clock()
        conductor.lock_ages._clock = lambda: now + 61
        assert shown(whole)["locks 60"] == 1
    recovery.resume_orphans(conductor)
    whole.at_rest(node)

    counted.becomes("recoveries_total resumed", 1)
    recovery.resume_orphans(conductor)
    assert shown(whole)["locks 0"] == 0
    assert shown(whole)["conductor_slots recovery taken"] == 0
    assert shown(whole)["conductor_slots requests free"] == 32 + 1000


def test_the_metrics_need_the_policy_and_the_option(whole, tmp_path):
    reply = whole.app.get("/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"})
    assert reply.headers["Content-Type"].startswith("application/openmetrics-text")

    with running(tmp_path) as other:
        assert other.app.get("/metrics").status_int == 404


def test_a_process_serves_them_on_a_port_of_its_own(whole):
    port = free_port()
    transport = rpc_transport.get_transport(whole.conf)
    with whole.option("api", "metrics_port", port), whole.option("api", "port", 0):
        numbers = service.Numbers()
        api = service.make_api(whole.conf, whole.db, transport, numbers=numbers)
        service.serve_metrics(numbers, whole.conf, "api")
        api.start()
    host, api_port = api.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(api_port))), socket.create_connection((host, int(api_port))) as bad:
        bad.sendall(b"GET / HTTP/1.1\nHost: x\n\r\n\r\n")
        assert bad.recv(100).startswith(b"HTTP/1.1 400")

        def page() -> dict[str, float]:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as reply:
                return samples(reply.read().decode())

        wait_for("the idle connection", lambda: page()["api_connections the request"] == 1)
        found = page()
    api.stop()

    assert found["api_connections_refused_total malformed requests"] == 1
    assert found["api_threads idle"] == whole.conf.api.threads
    assert found["api_threads busy"] == found["api_requests_waiting"] == found["rpc_calls_waiting"] == 0
    assert not any(name.startswith("conductor_work") for name in found if not name.endswith("_total"))


def test_the_fleet_is_read_once_however_often_it_is_scraped(whole, monkeypatch):
    now, readings = [1000.0], []
    count = node_queries.fleet_counts
    monkeypatch.setattr(node_queries, "fleet_counts", lambda *given: [readings.append(1), count(*given)][1])
    numbers = Numbers()
    built_in = Rule(uuid="built-in", name="shipped")
    fleet_gauges.FleetGauges(whole.db, 60, [built_in], lambda: now[0]).offer(numbers)

    def in_rack_9(conn: sa.Connection) -> None:
        nodes.create(conn, {"driver": "fake-hardware", "conductor_group": "rack-9"})

    def page() -> dict[str, float]:
        text = exporter.page_of(exporter.NumbersCollector(numbers), "test")("")[1].decode()
        return samples(text)

    whole.db.write(in_rack_9)
    rule = whole.app.post_json("/v1/inspection_rules", {
        "description": "no disks", "actions": [{"op": "fail", "args": {"msg": "no"}}]}).json["uuid"]
    first = page()
    whole.db.write(in_rack_9)
    now[0] += 9
    second = page()
    assert len(readings) == 1
    now[0] += 2
    wait_for("the second reading", lambda: page()["nodes_in_group rack-9"] == 2)
    assert len(readings) == 2

    assert first["nodes_in_group rack-9"] == second["nodes_in_group rack-9"] == 1
    assert (first["conductors_alive (none)"], first["conductors_alive rack-9"]) == (1, 0)
    assert first["nodes enroll"] >= 1 and first["nodes_waiting_longest_seconds clean wait"] >= 0
    assert first[f"inspection_rule_info no disks {rule}"] == first["inspection_rule_info shipped built-in"] == 1
    assert (first["fleet_age_seconds"], second["fleet_age_seconds"]) == (0, 9)


def test_the_fleet_keeps_its_age_while_the_database_is_away(whole, monkeypatch):
    numbers = Numbers()
    fleet_gauges.FleetGauges(whole.db, 60, []).offer(numbers)
    monkeypatch.setattr(fleet_gauges, "_FRESH_S", 0)
    monkeypatch.setattr(fleet_gauges, "_SHARE", 0)

    def gauges() -> dict[str, dict[tuple[str, ...], float]]:
        return {family.name: values for family, values in numbers.gauges()}

    before = gauges()["nodes"]
    monkeypatch.setattr(node_queries, "fleet_counts", lambda *arguments: 1 / 0)
    age = gauges()["fleet_age_seconds"][()]
    wait_for("the age to grow", lambda: gauges()["fleet_age_seconds"][()] > age)

    assert gauges()["nodes"] == before


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs Debian's package prometheus")
def test_prometheus_fires_the_shipped_alerts_when_it_should():
    for arguments in (["check", "rules", str(SHIPPED / "alerts.yaml")],
                      ["test", "rules", str(ROOT / "tests" / "alerts.yaml")]):
        done = subprocess.run(["promtool", *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def names_in(expression: str) -> set[str]:
    return set(re.findall(r"\b(?:ironic_rules|ironic_pxe_filter)_\w+", expression))


def existing() -> set[str]:
    names = {family.shown for family in FAMILIES.values()}
    return names | {f"{family.shown}_{part}" for family in FAMILIES.values() if family.kind == HISTOGRAM
                    for part in ("bucket", "sum", "count")}


def test_the_shipped_alerts_and_the_dashboard_name_metrics_and_labels_that_exist():
    alerts = yaml.safe_load((SHIPPED / "alerts.yaml").read_text(encoding="utf-8"))
    rules = [rule for group in alerts["groups"] for rule in group["rules"]]
    dashboard = json.loads((SHIPPED / "dashboard.json").read_text(encoding="utf-8"))
    panels = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    expressions = [rule["expr"] for rule in rules] + panels

    assert len(rules) >= 5
    assert all({"alert", "expr", "for", "labels", "annotations"} <= rule.keys() for rule in rules)
    assert all(names_in(text) or text.startswith(("up{", "absent(up{")) for text in expressions)
    assert set().union(*map(names_in, expressions)) - existing() == set()
    bare = {name for text in panels for name in names_in(text)}
    shown_on_it = {family.name for family in FAMILIES.values() if any(name.startswith(family.shown) for name in bare)}
    assert set(FAMILIES) - shown_on_it == set()
    known = {label for family in FAMILIES.values() for label in family.labels} | {"le", "instance", "job"}
    for text in expressions:
        matchers = re.sub(r'"[^"]*"', "", " ".join(re.findall(r"\{([^}]*)\}", text)))
        used = re.findall(r"\w+", " ".join([matchers, *re.findall(r"by \(([^)]*)\)", text)]))
        assert set(used) - known == set(), text


def test_the_page_on_metrics_has_each_of_them():
    text = (ROOT / "doc" / "source" / "admin" / "metrics.rst").read_text(encoding="utf-8")

    assert {family.shown for family in FAMILIES.values()} - set(re.findall(r"``(\w+)``", text)) == set()
    for family in FAMILIES.values():
        if family.labels:
            assert f"``{family.shown}``" in text
    assert names_in(text) - existing() == set()
