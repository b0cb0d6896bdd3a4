"""A cluster whose processes can be started with an injected fault, and checks of the state afterwards."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa

from ironic_rules.db.tables import node_inventory, nodes, ports
from tests.functional.brokers import temporary_vhost
from tests.functional.databases import migrated_database
from tests.functional.processes import TREE, Cluster, Process, wait_for

#: Within this time after a fault every node is in a stable state: heartbeat_timeout (4 s) and two recovery intervals (1
#: s), on a busy machine.
SETTLED_S = 60


#: The short time-outs of conductors and calls in these tests. Calls to a dead conductor are not answered: callers
#: repeat them after that time.
SHORT = "heartbeat_interval = 1\nheartbeat_timeout = 4\nrecovery_interval = 1\n"
SHORT_RPC = "\nrpc_response_timeout = 3"


class FaultyCluster(Cluster):
    """A cluster with its own database.

    :param has_defaults: it has the service's own time-outs
    """

    def __init__(self, folder: Path, database_url: str, transport_url: str, config: str = "", *,
                 has_defaults: bool = False) -> None:
        super().__init__(folder, database_url, transport_url + ("" if has_defaults else SHORT_RPC), config)
        if has_defaults:
            assert SHORT in self._base
            self._base = self._base.replace(SHORT, "")
        self.database_url = database_url

    def faulty_conductor(self, name: str, host: str | None = None, **environment: str) -> Process:
        """Start a conductor with the fault that ``environment`` names; ``name`` is its host name by default."""
        process = self._faulty(name, ["ironic_rules.cmd.conductor"], environment, host)
        process.printed("is running")
        return process

    def faulty_api(self, name: str, **environment: str) -> str:
        """Start an API with the fault that ``environment`` names; return its URL."""
        process = self._faulty(name, ["ironic_rules.cmd.api", "--port", "0"], environment)
        return process.printed(r"listens on (http://\S+)").group(1)

    def _faulty(self, name: str, command: list[str], environment: dict[str, str], host: str | None = None) -> Process:
        file = self.configuration(host or name)
        process = Process(
            "tests.functional.faults.launcher", [*command, "--config-file", file], self.folder, name,
            {**environment, "PYTHONPATH": os.pathsep.join(filter(None, (TREE, os.environ.get("PYTHONPATH"))))})
        self._processes.append(process)
        return process

    def select(self, query: sa.Select) -> list[sa.Row]:
        """Return the result of a query in the cluster's database."""
        engine = sa.create_engine(self.database_url, poolclass=sa.NullPool)
        try:
            with engine.connect() as conn:
                return list(conn.execute(query))
        finally:
            engine.dispose()

    def rests(self) -> bool:
        """Return whether no node is in a transient state or locked."""
        busy = sa.or_(nodes.c.provision_state.in_(["inspecting", "verifying"]), nodes.c.reservation.is_not(None))
        return not self.select(sa.select(nodes.c.id).where(busy).limit(1))

    def assert_all_inspected(self, number: int) -> None:
        """Check that every node is manageable, unlocked, has one processed inventory, and no duplicate ports."""
        wait_for("stable states of all nodes", self.rests, SETTLED_S)
        rows = self.select(sa.select(nodes.c.provision_state, nodes.c.last_error))
        assert {tuple(row) for row in rows} == {("manageable", None)}
        assert len(rows) == number
        statuses = self.select(sa.select(node_inventory.c.status, sa.func.count()).group_by(node_inventory.c.status))
        assert [tuple(row) for row in statuses] == [("processed", number)]
        doubled = sa.select(ports.c.address).group_by(ports.c.address).having(sa.func.count() > 1)
        assert self.select(doubled) == []


class Api:
    """The API as an operator and a ramdisk use it; the tests check the answers."""

    def __init__(self, url: str) -> None:
        self._http = httpx.Client(base_url=url, timeout=60, headers={"X-OpenStack-Ironic-API-Version": "1.96"})

    def close(self) -> None:
        self._http.close()

    def __call__(self, method: str, path: str, body: Any = None) -> httpx.Response:
        return self._http.request(method, path, json=body)

    def patiently(self, method: str, path: str, body: Any = None) -> httpx.Response:
        """Repeat a request while the node is locked or all conductors are busy."""
        def attempt() -> httpx.Response | None:
            answer = self(method, path, body)
            return answer if answer.status_code not in (409, 503) else None

        answer = wait_for(f"{method} {path}", attempt)
        assert answer.status_code < 400, answer.text
        return answer

    def state(self, uuid: str) -> str:
        node = self("GET", f"/v1/nodes/{uuid}?fields=provision_state,reservation").json()
        return node["provision_state"] if not node["reservation"] else "locked"

    @staticmethod
    def machine() -> tuple[str, dict[str, Any]]:
        """Return the MAC address of a new machine and the report of its ramdisk."""
        mac = "52:54:00:" + ":".join(secrets.token_hex(1) for _ in range(3))
        return mac, {
            "inventory": {"interfaces": [{"name": "eth0", "mac_address": mac}], "cpu": {"architecture": "x86_64"}}}

    def waiting(self, **fields: Any) -> tuple[str, dict[str, Any]]:
        """Return the UUID of a node in INSPECT WAIT and the report of its ramdisk."""
        mac, body = self.machine()
        uuid = self.patiently("POST", "/v1/nodes", {"driver": "fake-hardware", **fields}).json()["uuid"]
        self.patiently("POST", "/v1/ports", {"node_uuid": uuid, "address": mac})
        for target, state in (("manage", "manageable"), ("inspect", "inspect wait")):
            self.patiently("PUT", f"/v1/nodes/{uuid}/states/provision", {"target": target})
            wait_for(state, lambda state=state: self.state(uuid) == state)
        return uuid, body


@pytest.fixture(params=["mysql", "postgresql"])
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FaultyCluster]:
    with migrated_database(request.param) as database, temporary_vhost() as transport:
        cluster = FaultyCluster(tmp_path, database, transport)
        try:
            yield cluster
        finally:
            cluster.close()
