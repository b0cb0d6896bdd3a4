"""The clock of a host jumps while ``ironic-rules`` runs there with SQLite, whose clock is the host's."""

from __future__ import annotations

import sqlite3

import pytest

from tests.functional.faults.conftest import SHORT, Api
from tests.functional.processes import standalone, wait_for

pytestmark = pytest.mark.slow

NODES = 7
DAY_S = 86_400


@pytest.fixture
def clock(tmp_path):
    file = tmp_path / "clock"
    file.write_text("0")
    return file


@pytest.fixture
def service(tmp_path, clock):
    with standalone(tmp_path, config=f"[conductor]\n{SHORT}", IRONIC_RULES_TEST_CLOCK=str(clock)) as (_, url):
        api = Api(url)
        yield api
        api.close()


@pytest.fixture
def log(tmp_path):
    return lambda: (tmp_path / "state" / "ironic-rules.log").read_text()


def wait_since_yesterday(tmp_path, uuid):
    """Let a node have waited for a day."""
    [file] = (tmp_path / "state").glob("*.sqlite")
    database = sqlite3.connect(file, timeout=60)
    with database:
        database.execute("UPDATE nodes SET provision_updated_at = datetime(provision_updated_at, '-1 day')"
                         " WHERE uuid = ?", (uuid,))
    database.close()


@pytest.mark.parametrize("jump_s", [DAY_S, -DAY_S])
def test_a_jump_ends_no_wait_and_time_outs_still_do(tmp_path, service, clock, log, jump_s):
    waiting = [service.waiting() for _ in range(NODES + 1)]

    clock.write_text(str(jump_s))
    wait_for("the log of the jump", lambda: "clock of this host has jumped" in log())
    # The passes after the jump find what is overdue by the time that has passed, and nothing else.
    overdue, _ = waiting.pop()
    wait_since_yesterday(tmp_path, overdue)
    wait_for("the time-out", lambda: service.state(overdue) == "inspect failed")

    assert [service.state(uuid) for uuid, _ in waiting] == ["inspect wait"] * NODES
    for uuid, body in waiting:
        assert service("POST", "/v1/continue_inspection", body).status_code == 200
        wait_for("the inspected node", lambda uuid=uuid: service.state(uuid) == "manageable")
    assert log().count("clock of this host has jumped") == 1
    # Now nothing waits, and new timestamps are the host's.
    day = created(service("GET", f"/v1/nodes/{overdue}"))
    wait_for("the host's time", lambda: created(service("POST", "/v1/nodes", {"driver": "fake-hardware"})) != day)


def created(answer):
    """Return the day on which a node was created."""
    return answer.json()["created_at"][:10]
