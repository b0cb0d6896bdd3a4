"""RabbitMQ for tests: a virtual host with a random name, deleted afterwards."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

_VARIABLE, _DEFAULT = "IRONIC_RULES_TEST_RABBITMQ_URL", "rabbit://guest:guest@127.0.0.1:5672"


@contextlib.contextmanager
def temporary_vhost() -> Iterator[str]:
    """Yield the transport URL of a new virtual host; skip the test if RabbitMQ cannot be used."""
    server = os.environ.get(_VARIABLE, _DEFAULT).rstrip("/")
    parts = urlsplit(server)
    _require(_answers(parts.hostname or "127.0.0.1", parts.port or 5672), "RabbitMQ does not answer")
    _require(shutil.which("rabbitmqctl") is not None, "rabbitmqctl, which makes virtual hosts, is not installed")
    name = f"ironic-rules-test-{secrets.token_hex(6)}"
    _control("add_vhost", name)
    try:
        _control("set_permissions", "-p", name, parts.username or "guest", ".*", ".*", ".*")
        yield f"{server}/{name}"
    finally:
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


def _control(*arguments: str) -> None:
    """Run ``rabbitmqctl``. It fails now and then if the server is busy; its commands can be repeated."""
    for attempt in range(3):
        result = subprocess.run(["rabbitmqctl", "-q", *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                text=True, timeout=120)
        is_done_already = attempt > 0 and "does not exist" in result.stdout
        if result.returncode == 0 or is_done_already:
            return
        assert attempt < 2, f"rabbitmqctl {arguments[0]}: {result.stdout}"
        time.sleep(1)
