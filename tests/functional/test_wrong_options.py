"""Processes that an operator starts with mistakes in the configuration: they end with one line for each mistake."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from tests.functional import brokers, forking
from tests.functional.databases import SERVERS, write_sqlite
from tests.functional.misconfigurations import MODULES, STARTS, Start
from tests.functional.processes import Process, free_port, wait_for

#: As in a file of Ironic: only the first three are wrong here.
CONFIG = """\
[DEFAULT]
enabled_hardware_types = ipmi,idrac
[inventory]
data_backend = swift
swift_data_container = introspection_data_container
[redfish]
auth_type = digest
[conductor]
workers_pool_size = 300
[database]
connection = sqlite:///{folder}/ironic.sqlite
"""
COMMANDS = {
    "ironic-rules": ["-m", "ironic_rules.cmd.standalone", "--config-file", "{file}"],
    "a WSGI server": ["-c", "import ironic_rules.api.wsgi"],
    "ironic-rules-status": ["-m", "ironic_rules.cmd.status", "--config-file", "{file}", "upgrade", "check"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_of_ironic_is_refused_with_what_to_set_instead(command: str, tmp_path: Path) -> None:
    file = tmp_path / "ironic.conf"
    file.write_text(CONFIG.format(folder=tmp_path))
    done = subprocess.run(
        [sys.executable, *(argument.format(file=file) for argument in COMMANDS[command])], cwd=tmp_path, text=True,
        env={"IRONIC_RULES_CONFIG_FILE": str(file)}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)

    told = " ".join("".join(done.stdout.split("|")).split())
    assert done.returncode == (1 if command == "a WSGI server" else 2), done.stdout
    assert "[inventory]data_backend = swift: one of these is required: database, none" in told
    assert "[redfish]auth_type = digest: one of these is required: auto, session, basic" in told
    assert ("use redfish or ipmi" in told) is (command != "a WSGI server")
    assert not (tmp_path / "ironic-rules-data").exists()


def test_an_upgrade_check_names_the_option_and_the_reason_of_each_failure(tmp_path: Path) -> None:
    file = tmp_path / "ironic-rules.conf"
    file.write_text("[DEFAULT]\nenabled_hardware_types = redfish\n[api]\nthreads = 5\nthreads = 6\n"
                    f"[database]\nconnection = sqlite:///{tmp_path}/none/x\n[agent]\nrequire_tls = yes\n")
    arguments = ["--config-file", str(file), "upgrade", "check"]
    done = forking.run(MODULES["status"], arguments, tmp_path)

    # Long lines are wrapped, also within words.
    told = re.sub(r"[\s|]", "", done.stdout)
    assert (done.returncode, done.stderr) == (2, "")
    for text in (f"{file}: [agent]require_tls = yes: no process reads this option.",
                 f"{file}: [api]threads is set 2 times; the last value counts.",
                 f"[database]connection = sqlite:///{tmp_path}/none/x: there is no folder {tmp_path}/none",
                 "enabled_management_interfaces is fake, noop; hardware type redfish needs one of redfish there.",
                 "enabled_power_interfaces is fake; hardware type redfish needs one of redfish there."):
        assert text.replace(" ", "") in told, done.stdout


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Yield what texts of the table name: addresses of servers, ports, and a database."""
    urls = {kind: sa.make_url(os.environ.get(*SERVERS[kind])) for kind in SERVERS}
    database = tmp_path_factory.mktemp("database") / "ironic.sqlite"
    write_sqlite(database)
    with socket.create_server(("127.0.0.1", 0)) as busy:
        yield {
            "busy": str(busy.getsockname()[1]), "free": str(free_port()), "sqlite": f"sqlite:///{database}",
            "broker": brokers.address(),
            **{kind: url.set(database=None).render_as_string(hide_password=False) for kind, url in urls.items()},
            **{f"{kind}_host": f"{url.host}:{url.port}" for kind, url in urls.items()}}


def filled_in(text: str, places: dict[str, str]) -> str:
    return re.sub(r"\{(\w+)\}", lambda found: places.get(found[1], found[0]), text)


@pytest.mark.parametrize("start", STARTS, ids=lambda start: start.name)
def test_each_mistake_is_one_line_with_its_place_and_what_to_do(
        start: Start, tmp_path: Path, places: dict[str, str]) -> None:
    for server in start.needs:
        brokers.require_server(server, places["broker" if server == "broker" else f"{server}_host"])
    file = tmp_path / "ironic-rules.conf"
    places = {**places, "folder": str(tmp_path), "file": str(file)}
    start.make(tmp_path)
    arguments = [filled_in(argument, places) for argument in start.arguments]
    if start.config is not None:
        text = start.config if isinstance(start.config, bytes) else filled_in(start.config, places).encode()
        file.write_bytes(text)
        arguments = ["--config-file", str(file), *arguments]
    done = forking.run(MODULES[start.process], arguments, tmp_path, start.environment)

    log = "".join(path.read_text() for path in (tmp_path / "log", tmp_path / "state" / "ironic-rules.log")
                  if path.exists())
    lines = [line.removeprefix(f"{start.process}.py: ") for line in done.stderr.splitlines()]
    assert done.returncode == start.status, done.stderr
    assert "Traceback" not in done.stdout + done.stderr + log
    expected = [[filled_in(part, places) for part in parts] for parts in start.told]
    missing = [parts for parts in expected if not any(
        line.startswith(parts[0]) and all(part in line for part in parts) for line in lines)]
    assert missing == [], done.stderr
    assert len(lines) == len(expected), done.stderr
    assert "secret" not in done.stderr + log
    if log:
        assert all(line.removeprefix("WARNING: ") in log for line in lines)


def test_the_table_has_mistakes_of_every_kind() -> None:
    assert sum(len(start.told) for start in STARTS) > 80
    assert {start.process for start in STARTS} >= MODULES.keys() - {"status"}


def test_a_process_that_waits_for_the_broker_says_so_and_has_warnings_in_its_log(
        tmp_path: Path, places: dict[str, str]) -> None:
    file = tmp_path / "ironic-rules.conf"
    file.write_text(f"[DEFAULT]\nlog_file = {tmp_path}/log\n"
                    f"transport_url = rabbit://guest:secret@127.0.0.1:{places['free']}/\n"
                    f"[database]\nconnection = {places['sqlite']}\n"
                    "[api]\nthreads = 5\nthreads = 6\n[apii]\nport = 1\n")
    process = Process(MODULES["api"], ["--config-file", str(file), "--port", "0"], tmp_path, "api")
    try:
        process.printed("listens on")
        lines = process.text().splitlines()
        log = wait_for("the log", (tmp_path / "log").read_text)
    finally:
        process.close()

    assert len(lines) == 2, lines
    assert lines[0].startswith(
        f"WARNING: {file}: [DEFAULT]transport_url: RabbitMQ at 127.0.0.1:{places['free']} cannot")
    assert "waits for it" in lines[0]
    assert "secret" not in log
    assert f"{file}: [apii]: no process reads this group. Is [api] meant?" in log
    assert f"{file}: [api]threads is set 2 times; the last value counts." in log
