"""Upgrades without a pause: processes of the release before are replaced one by one while machines are inspected."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from ironic_rules.cmd.simulate import shipped_samples
from ironic_rules.db import migration
from ironic_rules.simulator import inventories
from tests.functional import releases
from tests.functional.brokers import temporary_vhost
from tests.functional.databases import engine, temporary_database
from tests.functional.processes import PATIENCE_S, Cluster, free_port, wait_for

NODES = 40
_THREADS = 4
_HEADERS = {"X-OpenStack-Ironic-API-Version": "1.96"}


class Operator:
    """Inspects machines through any of the APIs, and notes every status that is no success.

    As a load balancer and its clients do: a connection that fails is tried again elsewhere, 503 and 409 are repeated.
    """

    def __init__(self, urls: list[str]) -> None:
        self._turns = itertools.cycle(urls)
        self.statuses: Counter[int] = Counter()
        self.problems: list[str] = []
        self.inspected: list[str] = []
        self._lock = threading.Lock()

    def call(self, client: httpx.Client, method: str, path: str, body: object = None,
             expected: tuple[int, ...] = (200, 201, 202, 204)) -> Any:
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            with self._lock:
                url = next(self._turns)
            try:
                reply = client.request(method, url + path, json=body, headers=_HEADERS)
            except httpx.TransportError:
                time.sleep(0.1)
                continue
            with self._lock:
                self.statuses[reply.status_code] += 1
            if reply.status_code in expected:
                return reply.json() if reply.content else None
            if reply.status_code >= 500 and (reply.status_code != 503 or "Retry-After" not in reply.headers):
                self.problems.append(f"{method} {path}: {reply.status_code} {dict(reply.headers)} {reply.text[:300]}")
            time.sleep(0.1)
        raise AssertionError(f"{method} {path} did not succeed: {self.statuses}")

    def inspect(self, machine: inventories.SimulatedMachine) -> None:
        with httpx.Client(timeout=30, trust_env=False) as client:
            node = f"/v1/nodes/{machine.uuid}"
            # 409: a reply was lost.
            self.call(client, "POST", "/v1/nodes", {
                "uuid": machine.uuid, "name": machine.name, "driver": "fake-hardware", "inspect_interface": "agent",
                "driver_info": {"ipmi_address": machine.bmc_address}}, (201, 409))
            self.call(client, "POST", "/v1/ports", {"node_uuid": machine.uuid, "address": machine.pxe_mac}, (201, 409))
            # 400: it was begun already.
            for verb, state in (("manage", "manageable"), ("inspect", "inspect wait")):
                self.call(client, "PUT", f"{node}/states/provision", {"target": verb}, (202, 400))
                self._wait(client, node, state)
            self.call(client, "POST", "/v1/continue_inspection", json.loads(machine.content), (200, 404))
            self._wait(client, node, "manageable")
            assert self.call(client, "GET", f"{node}/inventory")["inventory"]
            self.inspected.append(machine.uuid)

    def _wait(self, client: httpx.Client, node: str, state: str) -> None:
        wait_for(f"{node} to be {state}",
                 lambda: self.call(client, "GET", node)["provision_state"] == state, interval_s=0.1)


@pytest.mark.slow
@pytest.mark.servers
@pytest.mark.long
@pytest.mark.parametrize("kind", ["mysql", "postgresql"])
def test_nothing_is_lost_while_each_process_is_replaced(kind: str, tmp_path: Path) -> None:
    old = {"PYTHONPATH": releases.previous(tmp_path)}
    with temporary_database(kind) as database, temporary_vhost() as transport:
        cluster = Cluster(tmp_path, database, transport, "[conductor]\nshutdown_grace = 5\n")
        try:
            rolled(cluster, database, old)
        finally:
            cluster.close()


def rolled(cluster: Cluster, database: str, old: dict[str, str]) -> None:
    ports = {name: free_port() for name in ("api-1", "api-2")}

    def start(name: str, environment: dict[str, str] | None = None) -> Any:
        is_api = name in ports
        arguments = ("--port", str(ports[name])) if is_api else ()
        module = f"ironic_rules.cmd.{'api' if is_api else 'conductor'}"
        process = cluster.start(module, cluster.configuration(name), name, *arguments, environment=environment)
        process.printed("listens on" if is_api else "is running")
        return process

    def dbsync(*arguments: str, environment: dict[str, str] | None = None) -> str:
        process = cluster.start("ironic_rules.cmd.dbsync", cluster.configuration("dbsync"), "dbsync", *arguments,
                                environment=environment)
        wait_for("dbsync", lambda: not process.is_running(), 240)
        return process.text()

    dbsync("upgrade", environment=old)
    with engine(database) as made:
        before = migration.version(made)
    names = ("conductor-1", "conductor-2", "api-1", "api-2")
    running = {name: start(name, old) for name in names}
    operator = Operator([f"http://127.0.0.1:{port}" for port in ports.values()])
    samples = [sample for sample in shipped_samples() if not sample.body.get("error")]
    machines = [inventories.vary(samples[number % len(samples)], "rolling", number) for number in range(NODES)]
    steps = changes(running, start, dbsync)
    failures: list[BaseException] = []
    waiting = iter(machines)
    turn = threading.Lock()

    def work() -> None:
        while not failures:
            with turn:
                machine = next(waiting, None)
            if machine is None:
                return
            try:
                operator.inspect(machine)
            except BaseException as exc:
                failures.append(exc)
                raise

    threads = [threading.Thread(target=work) for _ in range(_THREADS)]
    for thread in threads:
        thread.start()
    for number, step in enumerate(steps):
        wanted = (number + 1) * NODES // 8
        wait_for(f"{wanted} inspections", lambda wanted=wanted: len(operator.inspected) >= wanted or failures, 240)
        step()
    for thread in threads:
        thread.join(240)
    with engine(database) as made:
        after = migration.version(made)

    assert not failures, failures
    assert operator.problems == []
    assert sorted(operator.inspected) == sorted(machine.uuid for machine in machines)
    assert before != after == migration.HEAD


def changes(running: dict[str, Any], start: Callable[[str], Any], dbsync: Callable[..., str],
            ) -> Iterator[Callable[[], None]]:
    """Yield the steps of an upgrade."""
    def expand() -> None:
        assert "is at revision" in dbsync("upgrade", "--expand")

    def replace(name: str) -> None:
        running[name].terminate()
        running[name] = start(name)

    def finish() -> None:
        assert "rows were changed" in dbsync("migrate")
        assert "is at revision" in dbsync("upgrade", "--contract")

    yield expand
    for name in list(running):
        yield lambda name=name: replace(name)
    yield finish
