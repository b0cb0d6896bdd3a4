"""Generated requests with odd targets, methods, headers and bodies: no server error, and no log without bounds.

``IRONIC_RULES_TEST_REQUESTS`` is their number, ``IRONIC_RULES_TEST_REQUESTS_SEED`` selects other ones.
"""

from __future__ import annotations

import base64
import contextlib
import os
import random
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import bcrypt
import pytest

from tests.functional.processes import PATIENCE_S, answers, free_port, standalone, wait_for
from tests.functional.rows import identity
from tests.functional.test_wsgi_servers import serve

NUMBER = int(os.environ.get("IRONIC_RULES_TEST_REQUESTS", "600"))
SEED = int(os.environ.get("IRONIC_RULES_TEST_REQUESTS_SEED", "36"))
#: Most bytes of a line of the log, and of all lines about one request.
LONGEST_LINE, OF_REQUEST = 9000, 6000
STATUS = re.compile(rb"HTTP/1\.[01] ([0-9]{3}) ")
NODE = b"44444444-4444-4444-8444-444444444444"

#: Texts that break parsers of URLs, addresses, numbers, JSON and texts.
PIECES = [
    b"[", b"]", b"[]", b"//[", b"[::1", b"[v1.x]", b"@", b":", b"::", b"#", b"?", b"/", b"//", b"\\", b"..", b"./..",
    b"%", b"%0", b"%00", b"%zz", b"%ff", b"%C0%AF", b"%ED%A0%80", b"%E2%80%A8", b"%2F", b"%0d%0aX: y", b"\xff",
    b"\xed\xa0\x80", b"\x80", "é".encode(), "☃".encode(), "℀".encode(), b"'", b'"', b"<b>", b"{", b"}", b"{0}", b"%s",
    b"%(x)s", b"$x", b";", b";a=b", b",", b",,", b"=", b"&", b"+", b"*", b"-", b"--", b"0", b"-1", b"1e9", b"9" * 30,
    b"9" * 5000, b"0x1", b"1.", b"NaN", b"Infinity", b"null", b"true", b"a" * 300, b"a" * 9000, b" ", b"\t", b"~",
    b"^", b"|", b"`", b"v1", b"nodes", b".json", NODE, b"http:", b"http://", b"http://[", b"http://x:99999/",
    b"https://x", b"ftp://x/", b"file:///etc/passwd", b"javascript:x", b"q=0", b"q=", b";q=1.x", b"bytes=0-", b"W/",
    b'W/"x"', b'"', b"latest", b"1.999999", b"1.-1", b"baremetal 1.96", b"compute 2.x", b"charset=",
    b"charset=utf-16", b"charset=nope", b"boundary=", b"chunked", b"gzip", b"Basic", b"Basic ", b"Basic =",
    b"Basic \xff", b"Basic " + base64.b64encode(b"\xff:\xff"), b"Basic " + b"A" * 9000, b"Bearer", b"__import__",
    b"\xf0\x9f\x98\x80", b"\xc2\xa0", b"\xe2\x80\xae"]
PATHS = [
    b"/", b"/v1", b"/v1/nodes", b"/v1/nodes/" + NODE, b"/v1/nodes/" + NODE + b"/states/provision", b"/v1/nodes/detail",
    b"/v1/nodes/" + NODE + b"/vendor_passthru", b"/v1/nodes/" + NODE + b"/traits/CUSTOM_A", b"/v1/ports", b"/v1/lookup",
    b"/v1/heartbeat/" + NODE, b"/v1/continue_inspection", b"/v1/rules", b"/v1/inspection_rules", b"/v1/drivers/x",
    b"/v1/inspection_rules/dry_run", b"/v1/inspection_rules/revisions/1", b"/v1/inspection_journal", b"/v1/flavors",
    b"/v1/inspection_rules/statistics", b"/v1/deploy_templates/x", b"/v1/extra_specs/validate",
    b"/compute/v2.1/flavors/x", b"/compute", b"/healthcheck", b"/healthcheck/live", b"/metrics", b"/ui", b"/ui/",
    b"/ui/app.js", b"/ui/session", b"/nodes", b"//v1//nodes", b"*", b"", b"http://127.0.0.1/v1/nodes", b"v1",
    b"http://127.0.0.1", b"127.0.0.1:80"]
METHODS = [
    b"HEAD", b"HEAD", b"OPTIONS", b"OPTIONS", b"TRACE", b"CONNECT", b"CONNECT", b"get", b"Post", b"PROPFIND", b"PRI",
    b"M" * 300, b"A" * 70_000, b"X-Y_Z", b"!#$%&'*+-.^_`|~", b"G\xffT", b"G ET", b"\x00", b"GET\t", b""]
VERSIONS = [
    b"HTTP/1.0", b"HTTP/1.0", b"HTTP/0.9", b"HTTP/2.0", b"HTTP/1.2", b"HTTP/1.1 x", b"http/1.1", b"HTTP/1",
    b"HTTP/x.y", b"", b"HTTP/1.1" * 99]
PARAMETERS = [
    b"limit", b"marker", b"sort_key", b"sort_dir", b"fields", b"detail", b"addresses", b"node_uuid", b"mac",
    b"writes", b"uuid", b"since", b"all", b"state", b"method", b"cleanup", b"validation", b"name", b"_method", b"",
    b"resource_class"]
HEADERS = [
    b"Host", b"Content-Length", b"Content-Type", b"Content-Encoding", b"Transfer-Encoding", b"Accept",
    b"Accept-Charset", b"Accept-Encoding", b"Accept-Language", b"Range", b"If-Range", b"If-Match", b"If-None-Match",
    b"If-Modified-Since", b"If-Unmodified-Since", b"Date", b"Expect", b"Connection", b"Keep-Alive", b"Upgrade",
    b"Trailer", b"TE", b"Cookie", b"Authorization", b"Proxy-Authorization", b"X-Auth-Token", b"X-Service-Token",
    b"X-Forwarded-For", b"X-Forwarded-Host", b"X-Forwarded-Proto", b"X-Forwarded-Port", b"X-Forwarded-Prefix",
    b"Forwarded", b"X-Real-IP", b"X-Script-Name", b"X-OpenStack-Ironic-API-Version", b"OpenStack-API-Version",
    b"X-OpenStack-Nova-API-Version", b"Origin", b"Referer", b"X-OpenStack-Ironic-Inspector-API-Version",
    b"X-OpenStack-Request-ID", b"X-HTTP-Method-Override", b"User-Agent", b"Sec-Fetch-Site", b"Sec-Fetch-Mode",
    b"X-Roles", b"X-Project-Id", b"From", b"Via", b"Max-Forwards", b"Pragma"]
VALID = {
    b"Host": [b"127.0.0.1"], b"Content-Type": [b"application/json"], b"Connection": [b"close"],
    b"Accept-Encoding": [b"gzip"], b"X-OpenStack-Ironic-API-Version": [b"1.96", b"1.1", b"latest"],
    b"Transfer-Encoding": [b"chunked"]}
BODIES = [
    b"", b"", b"{}", b"[]", b'{"driver": "fake-hardware"}', b"{", b"\xff", b"\x00", b"0\r\n\r\n", b"1\r\nx", b"null",
    b'{"inventory": {"interfaces": [{"mac_address": "x"}]}}', b"[" * 3000,
    b'[{"op": "add", "path": "/x~2", "value": 1}]', b'{"flavor": {"name": "\xed\xa0\x80"}}', b"9" * 5000,
    b"fffffffffffffffffffff\r\n", b"-1\r\n"]


def odd(choose: random.Random) -> bytes:
    """Return some pieces, or some bytes."""
    if choose.random() < 0.1:
        return choose.randbytes(choose.randrange(40))
    return b"".join(choose.choices(PIECES, k=choose.choice((1, 1, 1, 2, 3))))


def request(choose: random.Random, credentials: tuple[bytes, bytes]) -> bytes:
    """Return the bytes of a request that has one odd part, or a few of them, and otherwise what the service expects."""
    parts = choose.choices(("path", "query", "header", "target", "method", "version", "body", "bytes", "end"),
                           (6, 6, 10, 2, 2, 1, 3, 1, 0.2), k=choose.choice((1, 1, 2, 3)))
    target, method, version, end = choose.choice(PATHS), b"GET", b"HTTP/1.1", b"\r\n"
    body = choose.choice((b"", b"{}"))
    headers = [(b"Host", b"127.0.0.1"), (b"Content-Type", b"application/json"), credentials,
               (b"X-OpenStack-Ironic-API-Version", choose.choice((b"1.96", b"1.96", b"1.1")))]
    if choose.random() < 0.3:
        method = choose.choice((b"POST", b"PUT", b"PATCH", b"DELETE"))
    for part in parts:
        if part == "path":
            target += choose.choice((b"", b"/")) + odd(choose)
        elif part == "query":
            target += b"&" if b"?" in target else b"?"
            target += choose.choice(PARAMETERS) + choose.choice((b"=", b"")) + odd(choose)
        elif part == "target":
            target = odd(choose)
        elif part == "method":
            method = choose.choice(METHODS)
        elif part == "version":
            version = choose.choice(VERSIONS)
        elif part == "body":
            body = choose.choice(BODIES)
        elif part == "end":
            end = choose.choice((b"\n", b"\r"))
        elif part == "header":
            name = choose.choice(HEADERS)
            value = choose.choice(VALID.get(name, [b""])) if choose.random() < 0.15 else odd(choose)
            if choose.random() < 0.7:
                headers = [(known, old) for known, old in headers if known != name]
            headers += [(name, value)] * choose.choice((1,) * 20 + (2, 300))
        else:
            headers.append((odd(choose), odd(choose)))
    if choose.random() < 0.95:  # else it is often no line of a request
        target = bytes(byte for byte in target if byte > 32 and byte != 127)
    if b"Content-Length" not in dict(headers):
        headers.append((b"Content-Length", b"%d" % len(body)))
    lines = [b" ".join((method, target, version)), *(b": ".join(header) for header in headers)]
    return end.join(lines) + end * 2 + body


def statuses(address: tuple[str, int], sent: bytes) -> list[int]:
    """Send a request and the end of the connection; return the status of every reply."""
    received = b""
    with socket.create_connection(address, timeout=PATIENCE_S) as connection, contextlib.suppress(ConnectionError):
        connection.sendall(sent)
        with contextlib.suppress(OSError):  # the server has closed the connection
            connection.shutdown(socket.SHUT_WR)
        while data := connection.recv(65536):
            received += data
    return [int(status) for status in STATUS.findall(received)]


def attack(url: str, credentials: tuple[bytes, bytes], of_server: frozenset[int] = frozenset()) -> int:
    """Send ``NUMBER`` requests; fail with those that have caused server errors. Return how many were accepted.

    :param of_server: statuses that are the server's own, and not the application's
    """
    address = urlsplit(url).hostname or "", urlsplit(url).port or 0
    choose = random.Random(SEED)
    accepted, failed = 0, []
    for number in range(NUMBER):
        sent = request(choose, credentials)
        found = statuses(address, sent)
        accepted += bool(found) and found[0] < 300
        if any(status >= 500 for status in found if status not in of_server):
            failed.append((number, found, sent[:2000]))
    assert failed == []
    return accepted


def check_log(text: str) -> None:
    """Check that what a service has logged about ``NUMBER`` requests has bounds, and no traceback."""
    lines = text.splitlines()
    assert [line[:500] for line in lines if "Traceback" in line or len(line) > LONGEST_LINE] == []
    assert len(text) < OF_REQUEST * NUMBER


@contextlib.contextmanager
def strategy(name: str, folder: Path) -> Iterator[tuple[str, tuple[bytes, bytes]]]:
    """Yield the options of a strategy of authentication, and a header with credentials."""
    if name == "keystone":
        with identity.configuration() as options:
            yield options, (b"X-Auth-Token", b"admin")
        return
    (folder / "htpasswd").write_text("admin:" + bcrypt.hashpw(b"SECRET", bcrypt.gensalt(4)).decode() + "\n")
    file = f"http_basic_auth_user_file = {folder}/htpasswd\n" if name == "http_basic" else ""
    credentials = b"Basic " + base64.b64encode(b"admin:SECRET")
    yield f"[DEFAULT]\nauth_strategy = {name}\n{file}", (b"Authorization", credentials)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["noauth", "http_basic", "keystone"])
def test_no_request_makes_a_server_error_or_fills_a_log(tmp_path, name):
    with strategy(name, tmp_path) as (options, credentials), standalone(tmp_path, config=options) as (service, url):
        written = len(service.text())
        accepted = attack(url, credentials)

        assert answers(f"{url}/healthcheck")
        assert service.text()[written:] == ""
    assert accepted > NUMBER / 50  # the requests are not so odd that nothing looks at them
    check_log((tmp_path / "state" / "ironic-rules.log").read_text())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gunicorn", pytest.param("uwsgi", marks=pytest.mark.long)])
def test_no_request_that_another_wsgi_server_lets_through_makes_a_server_error(tmp_path, name):
    log = tmp_path / "wsgi.log"
    with strategy("http_basic", tmp_path) as (options, credentials), standalone(tmp_path):
        (tmp_path / "wsgi.conf").write_text(
            f"{options}transport_url = ironic-rules-memory://\nlog_file = {log}\n"
            f"[database]\nconnection = sqlite:///{tmp_path}/state/ironic-rules.sqlite\n[api]\nenable_ui = true\n")
        url = f"http://127.0.0.1:{(port := free_port())}"
        server = serve(str(tmp_path / "wsgi.conf"), name, tmp_path, port)
        try:
            wait_for(f"{name} to answer", lambda: server.is_running() and answers(f"{url}/"))
            assert attack(url, credentials, frozenset({501})) > NUMBER / 50  # of gunicorn, for transfer codings
        finally:
            server.close()
    check_log(log.read_text())


def test_what_is_a_host_for_parsers_of_urls_is_a_path(tmp_path):
    with standalone(tmp_path) as (service, url):
        written = len(service.text())
        address = urlsplit(url).hostname or "", urlsplit(url).port or 0
        rest = b" HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        found = {target: statuses(address, target + rest) for target in (
            b"GET //[", b"GET http://127.0.0.1//[", b"OPTIONS //[", b"POST ///[::1", b"CONNECT //[",
            b"CONNECT http://[]x",
            b"CONNECT [", b"GET //v1//nodes", b"GET //x/v1/nodes", b"HEAD //healthcheck/live")}
        assert service.text()[written:] == ""

    assert found == {
        b"GET //[": [404], b"GET http://127.0.0.1//[": [404], b"OPTIONS //[": [404], b"POST ///[::1": [404],
        b"CONNECT //[": [405], b"CONNECT http://[]x": [400], b"CONNECT [": [400], b"GET //v1//nodes": [200],
        b"GET //x/v1/nodes": [404], b"HEAD //healthcheck/live": [200]}


def test_a_log_on_a_full_disk_is_reported_once(tmp_path):
    with standalone(tmp_path, config="[DEFAULT]\nlog_file = /dev/full\n") as (service, url):
        address = urlsplit(url).hostname or "", urlsplit(url).port or 0
        for number in range(50):
            assert statuses(address, b"GET /v1/nodes?%d HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" % number) == [400]
        text = service.text()

    told = [line for line in text.splitlines() if line.startswith("ERROR")]
    assert told == [
        "ERROR: the log /dev/full cannot be written: [Errno 28] No space left on device. Lines lost so far: 1. This is "
        "repeated once per hour while it lasts."]
    assert "Traceback" not in text
    assert len(text) < 2000
