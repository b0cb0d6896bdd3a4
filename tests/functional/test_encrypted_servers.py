"""Connections over TLS, with the options of the page on TLS: a right authority and a wrong one, which is sent nothing.

RabbitMQ, MariaDB, PostgreSQL, BMCs, agents and Keystone.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import re
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest
import sqlalchemy as sa
from oslo_db import exception as db_exc

from ironic_rules import service
from ironic_rules.exceptions import AgentSilent, BMCError, ConfigurationError
from ironic_rules.hardware.agent.client import AgentClient
from ironic_rules.hardware.redfish import client
from ironic_rules.hardware.redfish.client import Connections
from ironic_rules.hardware.redfish.power import RedfishPower
from ironic_rules.models import states
from ironic_rules.rpc import transport as rpc_transport
from ironic_rules.rpc.api import ConductorAPI
from tests.functional import databases
from tests.functional.authorities import Authority, Pair
from tests.functional.brokers import temporary_vhost
from tests.functional.processes import free_port, standalone, wait_for
from tests.suites import identity
from tests.unit.hardware import redfish_bmc
from tests.unit.inspection.tasks import make_task

pytestmark = [pytest.mark.slow, pytest.mark.servers]

PAGE = (Path(__file__).parents[2] / "doc" / "source" / "admin" / "tls.rst").read_text()
AWAY = (db_exc.DBError, sa.exc.OperationalError)
POSTGRESQL = sorted(Path("/usr/lib/postgresql").glob("*/bin"))


@pytest.fixture
def authorities(tmp_path: Path) -> tuple[Authority, Authority]:
    return Authority(tmp_path, "right"), Authority(tmp_path, "wrong")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that the users of servers can enter: that of the test is closed to them."""
    with tempfile.TemporaryDirectory() as path:
        Path(path).chmod(0o755)
        yield Path(path)


@contextlib.contextmanager
def running(command: list[str], user: str | None, log: Path) -> Iterator[Callable[[], bool]]:
    """Run a server as a user; yield the function that tells whether it still runs."""
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, user=user, group=user)
    try:
        yield lambda: process.poll() is None
    finally:
        process.terminate()
        process.wait(60)


def owned(folder: Path, user: str, pair: Pair) -> Pair:
    """Return copies of a pair that a user may read, as servers want it, in a folder of that user."""
    account = pwd.getpwnam(user)
    folder.mkdir()
    os.chown(folder, account.pw_uid, account.pw_gid)
    found = Pair(*(Path(shutil.copy(path, folder)) for path in pair))
    for path in found:
        os.chown(path, account.pw_uid, account.pw_gid)
        path.chmod(0o600)
    return found


def connects(url: str) -> str:
    """Return the cipher or version that a query shows; fail as the service does."""
    db = databases.open_database(url, max_retries=0)
    query = ("SELECT version FROM pg_stat_ssl WHERE pid = pg_backend_pid()" if db.dialect == "postgresql"
             else "SHOW STATUS LIKE 'Ssl_version'")
    try:
        with db.engine.connect() as conn:
            return str(conn.execute(sa.text(query)).one()[-1])
    finally:
        db.dispose()


@pytest.mark.skipif(not POSTGRESQL or os.geteuid() != 0, reason="needs the programs of PostgreSQL, and root")
def test_postgresql(authorities: tuple[Authority, Authority], tmp_path: Path, folder: Path) -> None:
    right, wrong = authorities
    pair, port = owned(folder / "server", "postgres", right.sign("postgresql")), free_port()
    data = folder / "server" / "data"
    subprocess.run([POSTGRESQL[-1] / "initdb", "-D", data, "-A", "trust", "-N"], check=True, user="postgres",
                   group="postgres", capture_output=True, cwd=folder / "server")
    (data / "pg_hba.conf").write_text("hostssl all all 127.0.0.1/32 trust\n")
    arguments = {"port": port, "ssl": "on", "ssl_cert_file": pair.certificate, "ssl_key_file": pair.key,
                 "unix_socket_directories": "", "listen_addresses": "127.0.0.1"}
    options = [part for name, value in arguments.items() for part in ("-c", f"{name}={value}")]
    assert "?sslmode=verify-full&sslrootcert=" in PAGE

    def url(authority: Authority, host: str = "127.0.0.1") -> str:
        return (f"postgresql+psycopg://postgres@{host}:{port}/postgres?sslmode=verify-full&"
                f"sslrootcert={authority.certificate}")

    with running([str(POSTGRESQL[-1] / "postgres"), "-D", str(data), *options], "postgres", tmp_path / "log") as runs:
        def serves() -> bool:
            assert runs(), (tmp_path / "log").read_text()
            with contextlib.suppress(*AWAY):
                return connects(url(right)).startswith("TLSv1.")
            return False

        wait_for("PostgreSQL", serves)
        with pytest.raises(AWAY, match="certificate verify failed"):
            connects(url(wrong))


@pytest.mark.skipif(shutil.which("mariadbd") is None or os.geteuid() != 0, reason="needs MariaDB's server, and root")
def test_mariadb(authorities: tuple[Authority, Authority], tmp_path: Path, folder: Path) -> None:
    right, wrong = authorities
    pair, port = owned(folder / "server", "mysql", right.sign("mariadb")), free_port()
    data = folder / "server" / "data"
    subprocess.run(["mariadb-install-db", "--no-defaults", f"--datadir={data}", "--user=mysql", "--skip-test-db",
                    "--auth-root-authentication-method=normal"], check=True, capture_output=True)
    assert "/ironic_rules?ssl_ca=/etc/ssl/db-ca.pem``" in PAGE

    def url(authority: Authority) -> str:
        return f"mysql+pymysql://root@127.0.0.1:{port}/mysql?ssl_ca={authority.certificate}"

    command = ["mariadbd", "--no-defaults", f"--datadir={data}", "--user=mysql", f"--port={port}",
               "--bind-address=127.0.0.1", f"--socket={folder}/server/socket", f"--ssl-cert={pair.certificate}",
               f"--ssl-key={pair.key}", "--require-secure-transport=ON", f"--pid-file={folder}/server/pid"]
    with running(command, None, tmp_path / "log") as runs:
        def serves() -> bool:
            assert runs(), (tmp_path / "log").read_text()
            with contextlib.suppress(*AWAY):
                return connects(url(right)).startswith("TLSv1.")
            return False

        wait_for("MariaDB", serves)
        with pytest.raises(AWAY, match=r"certificate verify failed|CERTIFICATE_VERIFY_FAILED"):
            connects(url(wrong))


@pytest.fixture
def front(authorities: tuple[Authority, Authority], tmp_path: Path) -> Iterator[Callable[[str], int]]:
    """A function that ends TLS before a server, ``HOST:PORT``, and returns the port."""
    if shutil.which("haproxy") is None:
        pytest.skip("HAProxy is not installed")
    pair = authorities[0].sign("server")
    (tmp_path / "both.pem").write_bytes(pair.certificate.read_bytes() + pair.key.read_bytes())
    with contextlib.ExitStack() as stack:
        def listen(server: str) -> int:
            port = free_port()
            (tmp_path / "haproxy.cfg").write_text(
                "defaults\n    mode tcp\n    timeout connect 5s\n    timeout client 60s\n    timeout server 60s\n"
                f"listen server\n    bind 127.0.0.1:{port} ssl crt {tmp_path}/both.pem\n    server one {server}\n")
            stack.enter_context(running(["haproxy", "-db", "-f", str(tmp_path / "haproxy.cfg")], None,
                                        tmp_path / "log"))
            wait_for("HAProxy", lambda: listens(port))
            return port

        yield listen


def listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 10):
        return True
    return False


def test_rabbitmq(authorities: tuple[Authority, Authority], tmp_path: Path, front: Callable[[str], int]) -> None:
    """The broker's protocol begins after the handshake."""
    right, wrong = authorities
    with temporary_vhost() as plain:
        host = re.fullmatch(r"rabbit://(?:.*@)?([^/]+)/.*", plain)
        assert host
        port = front(host[1])

        def of(authority: Authority) -> tuple[str | None, ConductorAPI]:
            file = tmp_path / "rpc.conf"
            file.write_text(f"[DEFAULT]\ntransport_url = {plain.replace(host[1], f'127.0.0.1:{port}')}\n"
                            f"[oslo_messaging_rabbit]\nssl = true\nssl_ca_file = {authority.certificate}\n")
            conf = service.prepare_config([], config_files=[str(file)])
            return rpc_transport.check_broker(conf), ConductorAPI(rpc_transport.get_transport(conf), conf)

        wait_for("the broker", lambda: of(right)[0] is None)
        of(right)[1].ping_broker()
        with pytest.raises(ConfigurationError, match=r"\[oslo_messaging_rabbit\]"):
            of(wrong)


def test_a_bmc(authorities: tuple[Authority, Authority], front: Callable[[str], int], tmp_path: Path,
               monkeypatch: pytest.MonkeyPatch) -> None:
    right, wrong = authorities
    (tmp_path / "bmc.conf").write_text("[redfish]\nconnection_attempts = 1\nauth_type = basic\n"
                                       f"verify_ca_allowed_paths = {right.certificate.parent}\n")
    conf = service.prepare_config([], config_files=[str(tmp_path / "bmc.conf")])
    assert "``redfish_verify_ca`` in ``driver_info``" in PAGE
    with redfish_bmc.serving(redfish_bmc.documents({}, {})) as bmc:
        port = front(bmc.url.removeprefix("http://"))

        def power_state(verify: object) -> str | None:
            monkeypatch.setattr(client, "CONNECTIONS", Connections())
            settings = {"redfish_address": f"https://127.0.0.1:{port}", "redfish_system_id": redfish_bmc.SYSTEM,
                        "redfish_username": "admin", "redfish_password": "secret", "redfish_verify_ca": verify}
            try:
                return RedfishPower(conf, lambda task, kind: None).get_power_state(make_task({"driver_info": settings}))
            finally:
                redfish_bmc.close_all(client.CONNECTIONS)

        assert power_state(str(right.certificate)) == power_state(False) == states.POWER_OFF
        bmc.read.clear()
        # By default, too: the authorities of the system do not include that of the test.
        for verify in (str(wrong.certificate), True):
            with pytest.raises(BMCError, match="certificate"):
                power_state(verify)
        assert (bmc.read, bmc.told) == ([], [])


def test_an_agent(authorities: tuple[Authority, Authority], front: Callable[[str], int]) -> None:
    right, wrong = authorities
    asked = []

    class Agent(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"commands": []}')

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Agent) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        port = front(f"127.0.0.1:{server.server_port}")

        def commands(authority: Authority | None) -> list[object]:
            certificate = authority.certificate.read_text() if authority else None
            return list(AgentClient(f"https://127.0.0.1:{port}", "token", [], certificate).commands())

        assert commands(right) == []
        for other in (wrong, None):
            with pytest.raises(AgentSilent):
                commands(other)
        server.shutdown()
    assert len(asked) == 1


def test_keystone(authorities: tuple[Authority, Authority], front: Callable[[str], int], tmp_path: Path) -> None:
    with identity.running() as keystone:
        plain = f"127.0.0.1:{keystone.server_port}"
        port = front(plain)
        keystone.url = f"https://127.0.0.1:{port}/v3"

        def asked(authority: Authority) -> int:
            folder = tmp_path / authority.certificate.stem
            folder.mkdir()
            config = f"{keystone.configuration()}cafile = {authority.certificate}\nhttp_request_max_retries = 0\n"
            with standalone(folder, config=config) as (_, url):
                return httpx.get(f"{url}/v1/nodes", headers={"X-Auth-Token": "admin:system"}, timeout=60).status_code

        right, wrong = authorities
        assert asked(right) == 200
        assert asked(wrong) == 503
