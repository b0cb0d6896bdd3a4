"""Connections to the database and the broker are lost under load, and restored."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
import sqlalchemy as sa

from tests.functional.brokers import temporary_vhost
from tests.functional.databases import _server, migrated_database
from tests.functional.faults.conftest import FaultyCluster
from tests.functional.fleets import Simulation
from tests.functional.processes import Process, free_port, in_time, wait_for
from tests.functional.relay import Relay

pytestmark = pytest.mark.slow

FLEET = 60


def cut_connections(database_url: str) -> int:
    """Let the database server close every connection to the database; return how many."""
    name = sa.make_url(database_url).database
    kind = sa.make_url(database_url).get_backend_name()
    server = _server(kind)
    engine = sa.create_engine(server if kind == "mysql" else server.set(database="postgres"),
                              poolclass=sa.NullPool, isolation_level="AUTOCOMMIT")
    ended = 0
    try:
        with engine.connect() as conn:
            if kind == "postgresql":
                query = sa.text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = :name")
                return len(conn.execute(query, {"name": name}).all())
            query = sa.text("SELECT id FROM information_schema.processlist WHERE db = :name")
            for row in conn.execute(query, {"name": name}).all():
                with contextlib.suppress(sa.exc.DBAPIError):  # it has already ended
                    conn.execute(sa.text(f"KILL {row.id}"))
                    ended += 1
    finally:
        engine.dispose()
    return ended


@pytest.mark.parametrize("cluster", [pytest.param("mysql", marks=pytest.mark.long), "postgresql"], indirect=True)
def test_database_connections_are_cut_again_and_again(cluster):
    for name in ("conductor-1", "conductor-2"):
        cluster.conductor(name)
    url = cluster.api("api")[1]
    over = threading.Event()
    ended: list[int] = []

    def cut():
        while not over.wait(0.7):
            ended.append(cut_connections(cluster.database_url))

    saboteur = threading.Thread(target=cut)
    fleet = Simulation(url, FLEET, cluster.folder, "--timeout", "200", "--retry-delay", "2")
    saboteur.start()
    # The fleet needs some seconds without faults at the end, as a real one would get after its retries.
    wait_for("cuts of connections in use", lambda: sum(ended) >= 10 and sum(map(bool, ended)) >= 5)
    over.set()
    saboteur.join()
    report = fleet.report()
    assert report["status"] == 0, report["failures"]
    cluster.assert_all_inspected(FLEET)


@contextlib.contextmanager
def own_rabbitmq(folder: Path) -> Iterator[Broker]:
    """Run a separate RabbitMQ for the test, so that it can be restarted without affecting others."""
    program = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
    if not program.exists():
        if os.environ.get("IRONIC_RULES_TEST_REQUIRE_SERVERS") == "1":
            pytest.fail("RabbitMQ's programs are not in /usr/lib/rabbitmq/bin")
        pytest.skip("RabbitMQ's programs are not in /usr/lib/rabbitmq/bin")
    broker = Broker(program, folder)
    try:
        yield broker
    finally:
        broker.stop()


class Broker:
    """A RabbitMQ server with its data in a folder."""

    def __init__(self, program: Path, folder: Path) -> None:
        self._program = program
        self._folder = folder
        self._port = free_port()
        self._popen: subprocess.Popen[bytes] | None = None
        self.url = f"rabbit://guest:guest@127.0.0.1:{self._port}/"

    def start(self) -> None:
        """Start the server; return when it accepts connections."""
        environment = {
            **os.environ, "HOME": str(self._folder), "RABBITMQ_NODENAME": f"rabbit-{self._port}@localhost",
            "RABBITMQ_NODE_PORT": str(self._port), "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_DIST_PORT": str(free_port()), "RABBITMQ_BASE": str(self._folder),
            "RABBITMQ_MNESIA_BASE": str(self._folder / "mnesia"), "RABBITMQ_LOG_BASE": str(self._folder / "log"),
            "RABBITMQ_LOGS": "-", "RABBITMQ_ENABLED_PLUGINS_FILE": str(self._folder / "plugins"),
            "RABBITMQ_CONFIG_FILE": str(self._folder / "rabbitmq.conf"),
        }
        (self._folder / "rabbitmq.conf").write_text("loopback_users.guest = true\n")
        (self._folder / "plugins").write_text("[].\n")
        output = self._folder / "rabbitmq.out"
        with output.open("ab") as file:
            self._popen = subprocess.Popen([self._program], env=environment, cwd=self._folder, stdout=file,
                                           stderr=subprocess.STDOUT, start_new_session=True)
        begun = output.read_text(errors="replace").count("Server startup complete")
        wait_for(f"RabbitMQ; see {output}", lambda: output.read_text(errors="replace").count(
            "Server startup complete") > begun)

    def stop(self) -> None:
        """Kill the server, as a power failure would."""
        if self._popen is not None and self._popen.poll() is None:
            os.killpg(self._popen.pid, 9)
            self._popen.wait(60)


@pytest.mark.long
def test_the_broker_is_restarted_under_load(tmp_path):
    folder = tmp_path / "rabbitmq"
    folder.mkdir()
    with own_rabbitmq(folder) as broker, migrated_database("mysql") as database:
        broker.start()
        cluster = FaultyCluster(tmp_path, database, broker.url)
        try:
            for name in ("conductor-1", "conductor-2"):
                cluster.conductor(name)
            url = cluster.api("api")[1]
            fleet = Simulation(url, FLEET, cluster.folder, "--timeout", "200", "--retry-delay", "2")
            for _ in range(2):
                threading.Event().wait(3)
                broker.stop()
                threading.Event().wait(1)
                broker.start()
            report = fleet.report()
            assert report["status"] == 0, report["failures"]
            cluster.assert_all_inspected(FLEET)
        finally:
            cluster.close()


@pytest.mark.slow
def test_processes_end_at_once_although_their_broker_is_gone(tmp_path):
    """Threads of oslo.messaging try to reach it without a limit; no process waits for them."""
    with migrated_database("postgresql") as database, temporary_vhost() as transport:
        parts = urlsplit(transport)
        relay = Relay(parts.hostname, parts.port or 5672)
        cluster = FaultyCluster(tmp_path, database, parts._replace(
            netloc=f"{parts.username}:{parts.password}@127.0.0.1:{relay.port}").geturl())
        try:
            conductor, (api, url) = cluster.conductor("conductor"), cluster.api("api")
            with httpx.Client(base_url=url, headers={"X-OpenStack-Ironic-API-Version": "1.96"}) as client:
                node = client.post("/v1/nodes", json={"driver": "fake-hardware"}).json()["uuid"]
                assert client.get(f"/v1/nodes/{node}/validate").json()["power"]["result"]
            relay.cut()
            for name in ("conductor", "api"):
                wait_for(f"the retries of {name}",
                         lambda name=name: "Connection refused. Trying again" in (tmp_path / f"{name}.log").read_text())
            for process in (api, conductor):
                # [conductor]shutdown_grace and the largest interval of retries, 30 seconds, are longer.
                with in_time(20):
                    process.terminate()
                    wait_for("the end", lambda process=process: not process.is_running())
        finally:
            cluster.close()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = shutil.which("mount")
    made = mount and subprocess.run([mount, "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)],
                                    capture_output=True, check=False)
    if not made or made.returncode:
        if os.environ.get("IRONIC_RULES_TEST_REQUIRE_SERVERS") == "1" and os.geteuid() == 0:
            pytest.fail(f"tmpfs cannot be mounted: {made.stderr.decode() if made else 'there is no mount command'}")
        pytest.skip("mounting a small file system takes root's rights")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_the_disk_is_full_and_gets_room_again(tmp_path, small_disk):
    config = tmp_path / "ironic-rules.conf"
    config.write_text("[inspector]\nrequire_managed_boot = false\n[conductor]\nrecovery_interval = 1\n"
                      f"[DEFAULT]\nlog_file = {tmp_path}/log\n")
    process = Process("ironic_rules.cmd.standalone", [
        "--config-file", str(config), "--state-dir", str(small_disk), "--port", "0"], tmp_path, "ironic-rules")
    try:
        url = process.printed(r"listens on (http://\S+)").group(1)
        fleet = Simulation(url, 150, tmp_path, "--timeout", "200", "--retry-delay", "2")
        log = tmp_path / "log"
        wait_for("a full disk", lambda: log.exists() and "full" in log.read_text(errors="replace"))
        assert process.is_running()
        subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
        report = fleet.report()
        assert report["status"] == 0, report["failures"]
        cluster = FaultyCluster(tmp_path, f"sqlite:///{small_disk}/ironic-rules.sqlite", "")
        cluster.assert_all_inspected(150)
    finally:
        process.close()
