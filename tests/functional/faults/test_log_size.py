"""The log is not filled by requests of anyone: refused requests of ramdisks are counted, not logged one by one."""

from __future__ import annotations

import collections
import http.client
import json
import re
import secrets
import threading
from urllib.parse import urlsplit

import pytest

from tests.functional.faults.conftest import Api
from tests.functional.processes import standalone

pytestmark = [pytest.mark.slow, pytest.mark.long]
NUMBER = 10_000
CLIENTS = 4
JSON = {"Content-Type": "application/json", "X-OpenStack-Ironic-API-Version": "1.96"}
LEFT_OUT = re.compile(r"\((\d+) refused ones were not logged")


def unknown() -> tuple[str, str, str]:
    return "POST", "/v1/continue_inspection", json.dumps(Api.machine()[1])


def nonsense() -> tuple[str, str, str]:
    return "POST", "/v1/continue_inspection", "{" + secrets.token_hex()


def invalid() -> tuple[str, str, str]:
    return "POST", "/v1/continue_inspection", json.dumps({"inventory": {"interfaces": secrets.token_hex()}})


def lookup() -> tuple[str, str, str]:
    return "GET", f"/v1/lookup?addresses={Api.machine()[0]}&{secrets.token_hex(100)}=x", ""


def heartbeat() -> tuple[str, str, str]:
    body = {"callback_url": "http://192.0.2.1:9999", "agent_token": secrets.token_hex(), "agent_version": "11.0.0"}
    return "POST", f"/v1/heartbeat/{secrets.token_hex(200)}", json.dumps(body)


@pytest.mark.parametrize("hostile", [unknown, nonsense, invalid, lookup, heartbeat])
def test_ten_thousand_hostile_requests_make_less_than_a_mib_of_log(tmp_path, hostile):
    with standalone(tmp_path) as (_, url):
        log, statuses = tmp_path / "state" / "ironic-rules.log", collections.Counter()
        before = log.stat().st_size

        def send() -> None:
            connection = http.client.HTTPConnection(urlsplit(url).netloc)
            for _ in range(NUMBER // CLIENTS):
                method, path, body = hostile()
                connection.request(method, path, body, JSON)
                answer = connection.getresponse()
                answer.read()
                statuses[answer.status // 100] += 1
            connection.close()

        clients = [threading.Thread(target=send) for _ in range(CLIENTS)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        written = log.stat().st_size - before
        text = log.read_text()

    assert statuses == {4: NUMBER}
    print(f"{hostile.__name__}: {written / 2**20:.2f} MiB of log")
    assert written < 2**20
    logged = [line for line in text.splitlines() if "request_log" in line]
    left_out = [int(number) for number in LEFT_OUT.findall(text)]
    assert len(logged) + sum(left_out) <= NUMBER
