"""The commands of the page on containers: a composition with TLS, PostgreSQL and RabbitMQ that inspects a fleet."""

from __future__ import annotations

import re
import shutil
import sysconfig
from pathlib import Path

import pytest

from tests.containers.engine import FILES, ROOT, Engine
from tests.functional.processes import free_port

PAGE = (ROOT / "doc" / "source" / "install" / "containers.rst").read_text()
HEADING = re.compile(r"^(.+)\n=+\n", re.MULTILINE)


def typed_in(section: str) -> list[str]:
    """Return the commands of a section of the page."""
    parts = HEADING.split(PAGE)
    text = parts[parts.index(section) + 1]
    return [re.sub(r"^   ", "", command, flags=re.MULTILINE).strip()
            for command in re.findall(r"^   \$ (.+\n(?:       .+\n)*)", text, re.MULTILINE)]


@pytest.mark.long
def test_the_composition_inspects_a_fleet_over_tls_while_processes_stop(engine: Engine, image: str, servers: str,
                                                                        tmp_path: Path) -> None:
    (tmp_path / "etc").symlink_to(ROOT / "etc")
    port = str(free_port())
    commands = [command.replace("8443", port) for command in typed_in("A composition")]
    check, simulate = (next(number for number, command in enumerate(commands) if command.startswith(begin))
                       for begin in ("curl", "podman run --rm --network host"))
    assert check < simulate == len(commands) - 1
    engine.environment |= {
        "COMPOSE_FILE": "compose.yaml:compose.debian.yaml", "SERVERS_IMAGE": servers, "IRONIC_RULES_IMAGE": image,
        "PATH": f"{sysconfig.get_path('scripts')}:{engine.environment['PATH']}"}
    assert shutil.which("podman-compose", path=engine.environment["PATH"]), "podman-compose is not installed"
    site = tmp_path / "site"
    try:
        # One shell for all, as a person has it.
        engine.run("bash", "-c", "\n".join(["set -ex -o pipefail", *commands[:check + 1]]), cwd=tmp_path)
        first = engine.run("bash", "-c", commands[simulate], cwd=site)
        print(first.stdout)
        assert "200 of 200 (all)" in first.stdout
        # A conductor and an API process that end meanwhile, the latter without a warning.
        second = engine.run("bash", "-c", f"""
            ({commands[simulate]}) > told 2>&1 &
            until grep -q 'at a time' told; do sleep 0.2; done
            sleep 5
            podman stop ironic-rules_conductor-2_1 && podman start ironic-rules_conductor-2_1
            podman kill ironic-rules_api-1_1 && podman start ironic-rules_api-1_1
            wait $!; cat told""", cwd=site)
        assert "200 of 200 (all)" in second.stdout, second.stdout
        told = engine.run("podman", "logs", "ironic-rules_proxy_1").stdout
        assert re.search(r"POST /v1/continue_inspection", told)
    finally:
        engine.run("podman-compose", "down", "-v", cwd=site, check=False)


def test_the_page_builds_as_the_tests_do() -> None:
    build = " ".join(typed_in("The image")[0].split())

    for part in ("--format docker", "--ignorefile etc/container/ignore", "-f etc/container/Containerfile"):
        assert part in build
    assert (FILES / "ignore").read_text() == (FILES / "Containerfile.dockerignore").read_text()
