"""The API's own HTTP server with TLS: its versions, certificates that change, and clients that disturb handshakes."""

from __future__ import annotations

import contextlib
import shutil
import socket
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from ironic_rules import certificates, service
from ironic_rules.api.app import make_app
from ironic_rules.exceptions import ConfigurationError
from ironic_rules.httpd import connections
from ironic_rules.httpd.server import ApiServer
from ironic_rules.metrics import exporter
from ironic_rules.metrics.numbers import Numbers
from tests.functional.authorities import Authority
from tests.functional.processes import wait_for
from tests.walking import walking

LARGE = b"x" * 20_000_000


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"), "authority")


@pytest.fixture
def start(conf: Any, authority: Authority) -> Iterator[Callable[..., ApiServer]]:
    """Start a server of an application, with other options of ``[api]``."""
    with contextlib.ExitStack() as stack:
        def start(app: Any, **options: Any) -> ApiServer:
            pair = authority.sign("server")
            for name, value in {"port": 0, "ssl_cert_file": str(pair.certificate), "ssl_key_file": str(pair.key),
                                **options}.items():
                conf.set_override(name, value, group="api")
            made = ApiServer(conf, app, Numbers(), certificates=service.make_certificates(conf))
            made.start()
            stack.callback(made.stop)
            return made

        yield start


def reply(environ: dict[str, Any], start_response: Any) -> list[bytes]:
    """Reply with the scheme and the body; at /large with 20 MB, in pieces of many sizes."""
    if environ["PATH_INFO"] == "/large":
        sizes = [1, 100, 0, 16_384, 16_385, 5_000_000]
        ends = [sum(sizes[:index + 1]) for index in range(len(sizes))]
        start_response("200 OK", [("Content-Length", str(len(LARGE)))])
        return [LARGE[end - size:end] for size, end in zip(sizes, ends, strict=True)] + [LARGE[ends[-1]:]]
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    start_response("200 OK", [("Content-Length", str(len(body) + 6))])
    return [environ["wsgi.url_scheme"].encode(), b" ", body]


def address(server: ApiServer) -> tuple[str, int]:
    host, port = server.url.removeprefix("https://").split(":")
    return host, int(port)


def connect(server: ApiServer, context: ssl.SSLContext) -> ssl.SSLSocket:
    return context.wrap_socket(socket.create_connection(address(server), 60), server_hostname="127.0.0.1")


def test_the_service_is_used_over_tls_and_watches_itself(start, authority, conf, db, rpc):
    server = start(make_app(conf, db, rpc), ssl_ca_file=str(authority.certificate))
    with httpx.Client(verify=authority.context(authority.sign("client")), base_url=server.url) as client:
        version = client.get("/").json()
        made = client.post("/v1/nodes", json={"driver": "fake-hardware"})

    assert version["default_version"]["links"][0]["href"] == f"{server.url}/v1/"
    assert made.headers["Location"].startswith("https://")
    assert server.is_answering()


def test_bodies_and_replies_of_any_size_pass_unchanged(start, authority):
    server = start(reply)
    body = bytes(range(256)) * 8000
    with connect(server, authority.context()) as connection:
        for size in (0, 1, 16_384, len(body)):
            head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % size
            for piece in (head[:9], head[9:] + body[:size]):
                connection.sendall(piece)
            found = b""
            while b"\r\n\r\n" not in found or not found.endswith(b"https " + body[:size]):
                found += connection.recv(65536)
        # Another request before the reply to the first is read, and the end of what the client sends.
        connection.sendall(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n"
                           b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        rest = b"".join(iter(lambda: connection.recv(100_000), b""))
        assert rest.partition(b"\r\n\r\n")[2][:len(LARGE)] == LARGE
        assert rest.endswith(b"\r\n\r\nhttps ")
        connection.unwrap().close()  # the server has said in TLS that nothing more comes


@walking("version, is_spoken", [
    (ssl.TLSVersion.TLSv1_1, False), (ssl.TLSVersion.TLSv1_2, True), (ssl.TLSVersion.TLSv1_3, True)])
@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1:DeprecationWarning")
def test_versions_from_1_2_are_spoken(start, authority, version, is_spoken):
    server = start(reply)
    context = authority.context(version=version)
    context.set_ciphers("ALL:@SECLEVEL=0")
    with contextlib.nullcontext() if is_spoken else pytest.raises(ssl.SSLError):
        connect(server, context).close()


def test_only_clients_with_a_certificate_of_the_authority_are_served(start, authority, tmp_path):
    server = start(reply, ssl_ca_file=str(authority.certificate))
    other = Authority(tmp_path, "other")

    def ask(context: ssl.SSLContext) -> str:
        with httpx.Client(verify=context) as client:
            return client.get(server.url).text

    assert ask(authority.context(authority.sign("client"))) == "https "
    for context in (authority.context(), authority.context(other.sign("unknown")),
                    authority.context(authority.sign("late", days=-1)), other.context(authority.sign("client"))):
        with pytest.raises(httpx.TransportError):
            ask(context)


def test_a_new_certificate_is_used_and_a_broken_one_is_not(start, authority, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(certificates, "_LOOK_EVERY_S", 0.0)
    monkeypatch.setattr(connections, "_SWEEP_S", 0.05)
    files = {name: tmp_path / name for name in ("pem", "key")}
    pairs = {name: authority.sign(name) for name in ("first", "second")}
    expired = authority.sign("expired", days=-1)

    def put(certificate: Path, key: Path) -> None:
        for name, path in (("key", key), ("pem", certificate)):
            shutil.copy(path, tmp_path / "new")
            (tmp_path / "new").rename(files[name])

    def subject() -> str:
        with connect(server, authority.context()) as connection:
            found: Any = connection.getpeercert()
            return str(found["subject"][0][0][1])

    put(*pairs["first"])
    server = start(reply, ssl_cert_file=str(files["pem"]), ssl_key_file=str(files["key"]))
    with connect(server, authority.context()) as kept:
        assert subject() == "first"
        for told, change in (("is not the key of", lambda: put(pairs["second"].certificate, pairs["first"].key)),
                             ("is empty", lambda: files["pem"].write_bytes(b"")),
                             ("not complete PEM", lambda: files["pem"].write_bytes(
                                 pairs["second"].certificate.read_bytes()[:200])),
                             ("cannot be read: No such file", files["key"].unlink),
                             ("certificate has expired", lambda: put(*expired))):
            caplog.clear()
            change()
            wait_for(f"the log to have {told}", lambda told=told: told in caplog.text)
            assert "The certificate from before stays in use" in caplog.text
            assert subject() == "first"
        put(*pairs["second"])
        wait_for("the new certificate", lambda: subject() == "second")
        kept.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert kept.recv(15) == b"HTTP/1.1 200 OK"


def test_handshakes_that_go_on_for_ever_take_no_place_of_others(start, authority, caplog):
    server = start(reply, head_timeout=1, max_connections=20, max_connections_per_source=20)
    opened = []
    for begin in (b"", b"\x16\x03\x01\x02\x00\x01", b"GET / HTTP/1.1\r\n\r\n", b"\x80\x01\x00") * 12:
        connection = socket.create_connection(address(server), 60)
        connection.sendall(begin)
        opened.append(connection)
    with httpx.Client(verify=authority.context()) as client:
        assert client.get(server.url).text == "https "
    ends = []
    for connection in opened:
        with contextlib.suppress(ConnectionResetError):
            ends.append(connection.recv(2000))
        connection.close()

    # A connection that was closed to make room got nothing, others got a text or an alert of TLS.
    assert {end[:1] for end in ends} <= {b"", b"H", b"\x15"}
    assert any(b"This port speaks https, not http." in end for end in ends)
    assert "slow clients" in caplog.text and "handshakes of TLS that failed" in caplog.text


@walking("name, told", [
    ("nowhere", "cannot be read: No such file or directory"), ("encrypted", "is encrypted"),
    ("expired", "certificate has expired"), ("another's key", "is not the key of"), ("text", "not complete PEM")])
def test_what_cannot_be_used_is_refused_at_the_start(conf, authority, tmp_path, name, told):
    pairs = {"encrypted": lambda: authority.sign("a", password=b"secret"),
             "expired": lambda: authority.sign("b", days=-1),
             "another's key": lambda: (authority.certificate, authority.sign("c").key),
             "nowhere": lambda: (tmp_path / "nowhere.pem", tmp_path / "nowhere.pem"),
             "text": lambda: (Path(__file__), Path(__file__))}
    certificate, key = pairs[name]()
    conf.set_override("ssl_cert_file", str(certificate), group="api")
    conf.set_override("ssl_key_file", str(key), group="api")
    with pytest.raises(ConfigurationError, match=told):
        service.make_certificates(conf)


def test_options_without_a_certificate_are_refused(conf, authority):
    conf.set_override("ssl_ca_file", str(authority.certificate), group="api")
    with pytest.raises(ConfigurationError, match=r"\[api\]ssl_ca_file has no effect without"):
        service.make_certificates(conf)
    conf.clear_override("ssl_ca_file", group="api")
    conf.set_override("metrics_tls", True, group="conductor")
    with pytest.raises(ConfigurationError, match=r"\[conductor\]metrics_tls needs \[api\]ssl_cert_file"):
        service.certificates_of_metrics(conf, "conductor")


def test_metrics_are_served_over_tls_while_others_begin_handshakes(conf, authority):
    pair = authority.sign("metrics")
    for name, value in (("ssl_cert_file", pair.certificate), ("ssl_key_file", pair.key), ("metrics_tls", True)):
        conf.set_override(name, str(value) if isinstance(value, Path) else value, group="api")
    served = exporter.serve(lambda accept: ("text/plain", b"x 1\n"), "127.0.0.1", 0,
                            certificates=service.certificates_of_metrics(conf, "api"))
    with contextlib.ExitStack() as stack:
        stack.callback(served.server_close)
        stack.callback(served.shutdown)
        for _ in range(20):
            stack.enter_context(socket.create_connection(("127.0.0.1", served.server_port), 60))
        with httpx.Client(verify=authority.context()) as client:
            assert client.get(f"https://127.0.0.1:{served.server_port}/metrics").text == "x 1\n"
