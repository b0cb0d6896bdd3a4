"""Every entry point of the image, with a file system that cannot be written, and without privileges."""

from __future__ import annotations

import json
import sys
import sysconfig
from pathlib import Path

import httpx
import pytest

from tests.containers.engine import Engine, until
from tests.functional import databases
from tests.functional.brokers import temporary_vhost
from tests.functional.processes import free_port

#: The servers of this machine are on its loopback address.
HOST = ("--network", "host")


def variables(**values: object) -> list[str]:
    return [part for name, value in values.items() for part in ("-e", f"OS_{name}={value}")]


def test_the_image_has_what_it_needs_and_little_else(engine: Engine, image: str) -> None:
    def told(*command: str) -> str:
        return engine.run("podman", "run", "--rm", "--read-only", image, *command).stdout.strip()

    labels = json.loads(engine.run("podman", "inspect", image).stdout)[0]["Config"]["Labels"]

    assert "uid=6385(ironic) gid=6385(ironic)" in told("id")
    assert told("ipmitool", "-V").startswith("ipmitool version")
    assert told("sh", "-c", "command -v pip gcc git curl; echo $?") == "127"
    assert told("sh", "-c", "find / -xdev -perm -002 -type f 2>/dev/null || true") == ""
    assert labels["org.opencontainers.image.licenses"] == "Apache-2.0"
    refused = engine.run("podman", "run", "--rm", "--read-only", image, "nonsense", check=False)
    assert refused.returncode == 1 and "roles are api, conductor, pxe-filter, all-in-one, dbsync" in refused.stderr
    # Without a volume for its state it says what is missing.
    refused = engine.run("podman", "run", "--rm", "--read-only", image, check=False)
    assert refused.returncode == 2 and "[DEFAULT]state_path" in refused.stderr


def test_all_in_one(engine: Engine, image: str) -> None:
    port, metrics = free_port(), free_port()
    options = [*HOST, "--tmpfs", "/var/lib/ironic-rules:U,mode=700",
               *variables(API__PORT=port, API__METRICS_PORT=metrics, DEFAULT__USE_JSON="true")]
    with engine.container("all-in-one", options=options) as running:
        until("the service", running.is_well)
        reply = httpx.get(f"http://127.0.0.1:{port}/healthcheck")
        assert reply.json()["status"] == "OK"
        lines = [line for line in running.log().splitlines() if line.startswith("{")]
        assert "message" in json.loads(lines[0])
        assert running.stop() == 0


def test_the_separate_roles_inspect_and_end_at_once(engine: Engine, image: str, tmp_path: Path) -> None:
    port = free_port()
    with databases.temporary_database("postgresql") as database, temporary_vhost() as broker:
        common = [*HOST, *variables(DATABASE__CONNECTION=database, DEFAULT__TRANSPORT_URL=broker,
                                    INSPECTOR__REQUIRE_MANAGED_BOOT="false", API__PORT=port)]
        refused = engine.run("podman", "run", "--rm", "--read-only", *common, image, "api", check=False)
        assert refused.returncode == 2 and "ironic-rules-dbsync upgrade" in refused.stderr + refused.stdout
        engine.run("podman", "run", "--rm", "--read-only", *common, image, "dbsync", "upgrade")
        with (
            engine.container("conductor", options=[
                *common, *variables(CONDUCTOR__METRICS_PORT=free_port(), DEFAULT__HOST="one")]) as conductor,
            engine.container("api", options=[*common, *variables(API__METRICS_PORT=free_port())]) as api,
            engine.container("pxe-filter", options=[
                *common, "--tmpfs", "/var/lib/ironic-rules:U,mode=700", *variables(
                    PXE_FILTER__METRICS_PORT=free_port(),
                    PXE_FILTER__DHCP_HOSTSDIR="/var/lib/ironic-rules")]) as pxe_filter,
        ):
            for role in (conductor, api, pxe_filter):
                until("the process", role.is_well)
            simulate(f"http://127.0.0.1:{port}", 20, tmp_path)
            assert conductor.execute("cat", "/proc/1/comm").stdout.startswith("ironic-rules")
            assert "Conductor one serves group ''" in conductor.log()
            assert [role.stop() for role in (api, conductor, pxe_filter)] == [0, 0, 0]


def simulate(url: str, nodes: int, folder: Path, *arguments: str) -> None:
    """Inspect simulated nodes; fail unless all end as expected."""
    program = Path(sysconfig.get_path("scripts")) / "ironic-rules-simulate"
    done = Engine({}).run(sys.executable, program, "--endpoint", url, "--nodes", str(nodes), "--cleanup", *arguments,
                          cwd=folder)
    print(done.stdout)
    assert f"{nodes} of {nodes} (all)" in done.stdout


@pytest.mark.parametrize("role", ["api", "conductor", "pxe-filter"])
def test_a_health_check_without_a_process_fails(engine: Engine, image: str, role: str) -> None:
    done = engine.run("podman", "run", "--rm", "--read-only", image, "ironic-rules-container", "healthcheck", role,
                      check=False)
    assert done.returncode == 1 and "does not reply" in done.stderr
