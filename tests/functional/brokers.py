"""RabbitMQ for tests: a virtual host with a random name, deleted when the process of the tests ends."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

#: Virtual hosts that are made at once: each command of ``rabbitmqctl`` starts Erlang, 0.4 s of processor time.
_BATCH = 4
#: Virtual hosts of this process, and those of them that no test has used.
_made: list[str] = []
_unused: list[str] = []
_VARIABLE, _DEFAULT = "IRONIC_RULES_TEST_RABBITMQ_URL", "rabbit://guest:guest@127.0.0.1:5672"


@contextlib.contextmanager
def temporary_vhost() -> Iterator[str]:
    """Yield the transport URL of a new virtual host; skip the test if RabbitMQ cannot be used."""
    server = os.environ.get(_VARIABLE, _DEFAULT).rstrip("/")
    parts = urlsplit(server)
    _require(_answers(parts.hostname or "127.0.0.1", parts.port or 5672), "RabbitMQ does not answer")
    _require(shutil.which("rabbitmqctl") is not None, "rabbitmqctl, which makes virtual hosts, is not installed")
    if not _unused:
        _make_more(parts.username or "guest")
    yield f"{server}/{_unused.pop()}"


def _make_more(user: str) -> None:
    names = [f"ironic-rules-test-{secrets.token_hex(6)}" for _ in range(_BATCH)]
    may = {"user": user, "configure": ".*", "write": ".*", "read": ".*"}
    _control("import_definitions", "--format", "json", text=json.dumps({
        "vhosts": [{"name": name} for name in names], "permissions": [{**may, "vhost": name} for name in names]}))
    if not _made:
        atexit.register(_delete_all)
    _made.extend(names)
    _unused.extend(names)


def _delete_all() -> None:
    """Delete the virtual hosts of this process, by one command where this version of RabbitMQ has the function."""
    listed = ", ".join(f'<<"{name}">>' for name in _made)
    try:
        _control("eval", f'[rabbit_vhost:delete(Name, <<"tests">>) || Name <- [{listed}]].')
    except AssertionError:
        for name in _made:
            _control("delete_vhost", name)


def address() -> str:
    """Return host and port of RabbitMQ."""
    parts = urlsplit(os.environ.get(_VARIABLE, _DEFAULT))
    return f"{parts.hostname}:{parts.port or 5672}"


def require_server(name: str, place: str) -> None:
    """Skip the test if nothing listens at ``place``, a host and a port."""
    host, _, port = place.rpartition(":")
    _require(_answers(host, int(port)), f"{name} does not answer")


def _answers(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=60):
            return True
    except OSError:
        return False


def _require(condition: bool, what_is_missing: str) -> None:
    if condition:
        return
    if os.environ.get("IRONIC_RULES_TEST_REQUIRE_SERVERS") == "1":
        raise AssertionError(what_is_missing)
    pytest.skip(what_is_missing)


def _control(*arguments: str, text: str = "") -> None:
    """Run ``rabbitmqctl``. It fails now and then if the server is busy; its commands can be repeated."""
    for attempt in range(3):
        result = subprocess.run(["rabbitmqctl", "-q", *arguments], input=text, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, timeout=120)
        is_done_already = attempt > 0 and "does not exist" in result.stdout
        if result.returncode == 0 or is_done_already:
            return
        assert attempt < 2, f"rabbitmqctl {arguments[0]}: {result.stdout}"
        time.sleep(1)
