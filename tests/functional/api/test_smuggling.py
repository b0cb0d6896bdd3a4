"""Requests that servers understand in different ways, to the API's own HTTP server, directly and behind two proxies."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from ironic_rules.httpd.server import ApiServer
from tests.functional.processes import answers, free_port, wait_for

CASES = yaml.safe_load((Path(__file__).parents[2] / "vectors" / "http" / "requests.yaml").read_text(encoding="utf-8"))
CLEAN = b"GET /clean HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
NGINX = """
daemon off; master_process off; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{}}
http {{
  access_log off; client_body_temp_path {folder}/1; proxy_temp_path {folder}/2; fastcgi_temp_path {folder}/3;
  uwsgi_temp_path {folder}/4; scgi_temp_path {folder}/5;
  upstream api {{ server {api}; keepalive 1; }}
  server {{
    listen 127.0.0.1:{port};
    location / {{ proxy_pass http://api; proxy_http_version 1.1; proxy_set_header Connection ""; {more} }}
  }}
}}
"""
HAPROXY = """
defaults
  mode http
  timeout connect 5s
  timeout client 5s
  timeout server 5s
  http-reuse always
frontend front
  bind 127.0.0.1:{port}
  {more}
  default_backend back
backend back
  server api {api}
"""


class Application:
    """Replies with the path of the request, and notes it."""

    def __init__(self) -> None:
        self.paths: list[str] = []

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        path = environ["PATH_INFO"]
        self.paths.append(path)
        environ["wsgi.input"].read(1000)
        start_response("200 OK", [("Content-Length", str(len(path))), ("X-Path", path)])
        return [path.encode()]


@pytest.fixture
def application() -> Application:
    return Application()


@pytest.fixture
def server(conf, application) -> Iterator[ApiServer]:
    conf.set_override("port", 0, group="api")
    conf.set_override("head_timeout", 1, group="api")
    made = ApiServer(conf, application)
    made.start()
    yield made
    made.stop()


@pytest.fixture(params=["nginx", *(pytest.param(name, marks=pytest.mark.slow) for name in (
    "nginx-unbuffered", "haproxy", "haproxy-lax"))])
def proxy(request, server, tmp_path) -> Iterator[str]:
    """A proxy with kept connections to the server."""
    name = request.param.partition("-")[0]
    program = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    if program is None:
        assert not os.environ.get("IRONIC_RULES_TEST_REQUIRE_SERVERS"), f"{name} is not installed"
        pytest.skip(f"{name} is not installed")
    more = {"nginx-unbuffered": "proxy_request_buffering off;", "haproxy-lax": "option accept-invalid-http-request"}
    port = free_port()
    configuration = tmp_path / "conf"
    configuration.write_text((NGINX if name == "nginx" else HAPROXY).format(
        folder=tmp_path, api=server.url.removeprefix("http://"), port=port, more=more.get(request.param, "")))
    arguments = ["-p", str(tmp_path), "-c"] if name == "nginx" else ["-db", "-f"]
    with (tmp_path / "output").open("wb") as output:
        process = subprocess.Popen([program, *arguments, str(configuration)], stdout=output, stderr=output)
    try:
        wait_for(f"{name} to answer", lambda: process.poll() is None and answers(f"http://127.0.0.1:{port}/up"))
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(60)


def send(address: str, request: bytes, *, is_all: Callable[[bytes], bool] = lambda replies: False) -> bytes:
    """Send a request and return what comes until the end of the connection, or for 10 seconds.

    :param is_all: whether these replies are all that are expected; then a third of a second without more is enough.
    """
    host, port = address.split(":")
    replies = b""
    give_up = time.monotonic() + 10
    with socket.create_connection((host, int(port)), timeout=0.3) as connection, contextlib.suppress(ConnectionError):
        connection.sendall(request)
        while time.monotonic() < give_up:
            try:
                piece = connection.recv(65536)
            except TimeoutError:
                if is_all(replies):
                    break
                continue
            if not piece:
                break
            replies += piece
    return replies


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_request_of_two_meanings_is_refused_and_the_connection_closed(server, application, case):
    replies = send(server.url.removeprefix("http://"), case["request"].encode("latin-1"))

    assert replies.startswith(b"HTTP/1.1 400 Bad Request\r\n"), replies
    assert b"\r\nConnection: close\r\n" in replies
    assert replies.count(b"HTTP/1.1 ") == 1
    assert application.paths == []


def test_a_header_that_proxies_do_not_know_by_its_underscore_is_not_seen(server, application):
    seen: list[str] = []
    server._server.wsgi_app = lambda environ, start: seen.extend(environ) or application(environ, start)
    request = b"GET /first HTTP/1.1\r\nHost: a\r\nContent_Length: 5\r\nX_Roles: admin\r\nConnection: close\r\n\r\n"

    assert send(server.url.removeprefix("http://"), request).startswith(b"HTTP/1.1 200 OK")
    assert not {"CONTENT_LENGTH", "HTTP_CONTENT_LENGTH", "HTTP_X_ROLES"} & set(seen)


@pytest.mark.parametrize(("target", "host", "path"), [
    (b"http://b:80/v1/x?y=http://c/", "b:80", "/v1/x?y=http://c/"), (b"HTTPS://[::1]/", "[::1]", "/"),
    (b"http://b", "b", "/?"), (b"http://b?y", "b", "/?y"), (b"/http://b/", "a", "/http://b/?")])
def test_the_host_of_an_absolute_target_counts(server, target, host, path):
    """RFC 9112, section 3.2.2."""
    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        start_response("200 OK", [])
        return [f"{environ['HTTP_HOST']} {environ['PATH_INFO']}?{environ['QUERY_STRING']}".encode()]

    server._server.wsgi_app = application
    request = b"GET %b HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n" % target
    reply = send(server.url.removeprefix("http://"), request)

    assert reply.startswith(b"HTTP/1.1 200 OK")
    assert f"{host} {path}" in reply.decode()


def test_behind_a_proxy_nothing_is_smuggled(proxy, application):
    for case in CASES:
        application.paths.clear()

        def has_replies_to_all(replies: bytes) -> bool:
            # To a request without a version, nginx replies without a status line.
            return len(application.paths) <= (replies.count(b"HTTP/1.1 ") or bool(replies))

        replies = send(proxy, case["request"].encode("latin-1"), is_all=has_replies_to_all)
        # Whatever the proxy took for a request has a reply; there was none that it did not know of.
        assert has_replies_to_all(replies), case["name"]
        assert "/smuggled" not in application.paths or replies.lower().count(b"x-path: /smuggled") == 1, case["name"]
        # What another client gets over the same connection is its own reply.
        # A proxy that was not told that the service closes the connection of the request before would use it again.
        clean = send(proxy, CLEAN)
        assert clean.startswith(b"HTTP/1.1 200 OK") and clean.endswith(b"\r\n\r\n/clean"), (case["name"], clean)
