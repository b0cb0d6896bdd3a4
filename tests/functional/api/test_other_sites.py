"""Every route refuses the requests that a browser sends for a page of another site, without any effect."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from oslo_config import cfg

from ironic_rules.api.app import make_app
from ironic_rules.db.session import Database
from tests import matrices
from tests.fakes import FakeConductorAPI
from tests.functional.api.conftest import Client
from tests.functional.api.raw import Reply, send
from tests.functional.api.routes import NODE, ROUTES, Known
from tests.functional.api.tables import contents
from tests.walking import walking

READING = ("GET", "HEAD", "OPTIONS")
#: Routes of GET that may have an effect: a token is issued once, and a method of a driver may do anything.
ACTING = ("/lookup", "/vendor_passthru/")
OWN = "http://localhost"
FOREIGN_PAGES: list[dict[str, str]] = [
    {"HTTP_ORIGIN": "https://evil.example"}, {"HTTP_ORIGIN": "null"}, {"HTTP_ORIGIN": ""}, {"HTTP_ORIGIN": "http://"},
    {"HTTP_ORIGIN": "http://localhost:8080"}, {"HTTP_ORIGIN": "https://localhost"},
    {"HTTP_ORIGIN": "http://localhost.evil.example"}, {"HTTP_ORIGIN": f"{OWN}, https://evil.example"},
    {"HTTP_SEC_FETCH_SITE": "cross-site"}, {"HTTP_SEC_FETCH_SITE": "same-site"}, {"HTTP_SEC_FETCH_SITE": "?"},
    {"HTTP_SEC_FETCH_SITE": "cross-site", "HTTP_ORIGIN": OWN},
    {"HTTP_SEC_FETCH_SITE": "same-origin", "HTTP_ORIGIN": "https://evil.example"},
]
OWN_PAGES: list[dict[str, str]] = [
    {}, {"HTTP_ORIGIN": OWN}, {"HTTP_ORIGIN": "http://LOCALHOST:80"}, {"HTTP_SEC_FETCH_SITE": "none"},
    {"HTTP_SEC_FETCH_SITE": "same-origin", "HTTP_ORIGIN": OWN},
    {"HTTP_SEC_FETCH_SITE": "same-origin", "HTTP_ORIGIN": "https://localhost"},  # a proxy ends TLS
]
FORMS = ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "", "json",
         "text/json", "application/json-seq", "text/plain; application/json")


def body_of(route: Known) -> bytes:
    return b"" if route.body is None else json.dumps(route.body).encode()


def text_of(reply: Reply) -> str:
    if "compute" in reply.body.decode() or b"error_message" not in reply.body:
        return reply.body.decode()
    return str(reply.fault["faultstring"])


@walking("route, page", matrices.sampled(3 * len(ROUTES), ROUTES, FOREIGN_PAGES))
def test_a_page_of_another_site_changes_nothing(
        app: Client, stocked: Database, rpc: FakeConductorAPI, route: Known, page: dict[str, str]) -> None:
    before = contents(stocked)
    rpc.calls.clear()
    for content_type in ("application/json", "text/plain"):
        reply = send(app, route.method, route.path, "", body_of(route), CONTENT_TYPE=content_type, **page)
        is_read = route.method in READING and not any(part in route.pattern for part in ACTING)
        assert (reply.status == 403) is not is_read, reply
        assert is_read or "[api]public_endpoint" in text_of(reply)

    assert contents(stocked) == before
    assert is_read or rpc.calls == []


@walking("route, page", matrices.sampled(2 * len(ROUTES), ROUTES, OWN_PAGES), between="restock")
def test_the_page_of_the_service_may_do_everything(
        app: Client, stocked: Database, route: Known, page: dict[str, str]) -> None:
    assert send(app, route.method, route.path, "", body_of(route), **page).status not in (403, 415, 421)


@walking("route", [route for route in ROUTES if route.method not in READING])
def test_a_body_that_is_not_called_json_is_415(
        app: Client, stocked: Database, rpc: FakeConductorAPI, route: Known) -> None:
    before = contents(stocked)
    is_of_ramdisks = route.pattern.startswith(("/v1/continue_inspection", "/v1/heartbeat"))
    for content_type in FORMS:
        if content_type or not is_of_ramdisks:
            body = body_of(route) or b"{}"
            reply = send(app, route.method, route.path, "", body, CONTENT_TYPE=content_type)
            assert reply.status == 415, content_type
            has = f"the Content-Type {content_type}" if content_type else "no Content-Type"
            assert f"The body has {has}: send JSON with Content-Type: application/json." in text_of(reply)
            chunked = {"HTTP_TRANSFER_ENCODING": "chunked", "CONTENT_LENGTH": "", "wsgi.input_terminated": True}
            assert send(app, route.method, route.path, "", body, CONTENT_TYPE=content_type, **chunked).status == 415

    assert contents(stocked) == before
    assert rpc.calls == []


@pytest.mark.parametrize("content_type", [
    "application/json", "Application/JSON; charset=UTF-8", "application/json-patch+json", "application/a+json;x=y"])
def test_json_has_several_names(app: Client, stocked: Database, content_type: str) -> None:
    body = b'{"driver": "fake-hardware"}'

    assert send(app, "POST", "/v1/nodes", "", body, CONTENT_TYPE=content_type).status == 201


@pytest.mark.parametrize("path", [
    "/v1/continue_inspection", "/continue_inspection", "/v1/continue_inspection/", f"/v1/heartbeat/{NODE}",
    f"/heartbeat/{NODE}", "/v1/heartbeat", "//v1//continue_inspection.json"])
def test_agents_of_earlier_releases_need_no_content_type(app: Client, stocked: Database, path: str) -> None:
    body = b'{"inventory": {"interfaces": [{"mac_address": "52:54:00:00:77:01"}]}, "callback_url": "http://192.0.2.1"}'
    statuses = [send(app, "POST", path, "", body, CONTENT_TYPE="", **page).status for page in (
        {}, {"HTTP_ORIGIN": OWN}, {"HTTP_ORIGIN": "null"})]

    assert statuses[0] in (400, 404)
    assert statuses[1:] == [415, 403]


def test_nothing_is_needed_for_no_body(app: Client, stocked: Database) -> None:
    assert send(app, "DELETE", f"/v1/nodes/{NODE}/maintenance", CONTENT_TYPE="text/plain").status == 202
    assert send(app, "DELETE", f"/v1/nodes/{NODE}/maintenance", CONTENT_TYPE="", CONTENT_LENGTH="").status == 202


@pytest.mark.parametrize("method", ["TRACE", "CONNECT", "get", "NO-SUCH"])
def test_methods_that_nobody_knows_are_not_for_other_sites(app: Client, method: str) -> None:
    assert send(app, method, "/v1/nodes", HTTP_SEC_FETCH_SITE="cross-site").status == 403


@pytest.mark.parametrize("path", ["/ui/session", "/ui/", "/no-such-path", "/compute/v2.1/no-such-path"])
def test_every_other_path_refuses_other_sites_too(
        conf: cfg.ConfigOpts, db: Database, rpc: FakeConductorAPI, path: str) -> None:
    conf.set_override("enable_ui", True, group="api")
    app = Client(make_app(conf, db, rpc))

    assert send(app, "POST", path, "", b"{}", HTTP_ORIGIN="https://evil.example").status == 403
    assert send(app, "POST", path, "", b"{}", CONTENT_TYPE="text/plain").status == 415
    assert send(app, "GET", path, HTTP_HOST="evil.example").status < 421


def test_an_error_has_the_form_that_the_client_reads(app: Client) -> None:
    page = {"HTTP_ORIGIN": "https://evil.example"}
    of_nova = json.loads(send(app, "POST", "/compute/v2.1/flavors", "", b"{}", **page).body)
    of_inspector = json.loads(send(app, "POST", "/v1/rules", "", b"{}", **page).body)

    assert of_nova["forbidden"]["code"] == 403
    assert "https://evil.example" in of_nova["forbidden"]["message"]
    assert "https://evil.example" in of_inspector["error"]["message"]


@pytest.mark.parametrize("origin", ["https://ironic.example.org", "https://ironic.example.org:443"])
def test_the_public_endpoint_is_an_origin_of_the_service(
        conf: cfg.ConfigOpts, db: Database, rpc: FakeConductorAPI, origin: str) -> None:
    conf.set_override("public_endpoint", "https://ironic.example.org/baremetal", group="api")
    app = Client(make_app(conf, db, rpc))

    assert send(app, "POST", "/v1/nodes", "", b'{"driver": "fake-hardware"}', HTTP_ORIGIN=origin).status == 201
    other = {"HTTP_ORIGIN": "http://ironic.example.org"}
    assert send(app, "POST", "/v1/nodes", "", b'{"driver": "fake-hardware"}', **other).status == 403


@pytest.fixture
def listening(conf: cfg.ConfigOpts, db: Database, rpc: FakeConductorAPI) -> Callable[..., Client]:
    """Return a function that makes the API, as it listens on an address."""

    def make(address: str | None, **options: Any) -> Client:
        for name, value in options.items():
            conf.set_override(name, value, group="api")
        return Client(make_app(conf, db, rpc, address=address))

    return make


@pytest.fixture
def on_loopback(listening: Callable[..., Client]) -> Client:
    return listening("127.0.0.1")


@walking("route", ROUTES)
def test_another_name_gets_nothing_from_a_loopback_address(
        on_loopback: Client, stocked: Database, rpc: FakeConductorAPI, route: Known) -> None:
    before = contents(stocked)

    reply = send(on_loopback, route.method, route.path, "", body_of(route), HTTP_HOST="evil.example:6385",
                 HTTP_ORIGIN="http://evil.example:6385", HTTP_SEC_FETCH_SITE="same-origin")

    assert reply.status == 421
    assert "evil.example:6385" in text_of(reply)
    assert "[api]allowed_hosts" in text_of(reply)
    assert contents(stocked) == before
    assert rpc.calls == []


def test_the_page_is_not_shown_under_another_name(listening: Callable[..., Client]) -> None:
    app = listening("::1", enable_ui=True)

    for path in ("/ui/", "/ui/app.js", "/ui/session", "/metrics", "/healthcheck", "/healthcheck/live", "/nothing"):
        assert send(app, "GET", path, HTTP_HOST="evil.example").status == 421
        assert send(app, "HEAD", path, HTTP_HOST="evil.example").body == b""
        assert send(app, "GET", path, HTTP_HOST="evil.example", HTTP_X_FORWARDED_HOST="localhost").status == 421
        assert send(app, "GET", path, HTTP_HOST="localhost", HTTP_X_FORWARDED_HOST="evil.example").status != 421


LOOPBACK = ("localhost", "LocalHost:6385", "localhost.", "127.0.0.1", "127.0.0.1:1", "127.1", "127.8.9.10:6385",
            "0x7f.0.0.1", "2130706433", "017700000001", "[::1]", "[::1]:6385", "[0:0:0:0:0:0:0:1]",
            "[::ffff:127.0.0.1]:80", "[::FFFF:7f00:1]", "[::1%lo]", "")
OTHERS = ("evil.example", "localhost.evil.example", "evil.localhost", "127.0.0.1.evil.example", "0.0.0.0", "[::]",
          "192.0.2.1", "[::ffff:192.0.2.1]", "127.0.0.1%2eevil.example", "127.0.0.1%25.evil.example",
          "[127.0.0.1]", "127.0.0.1, evil.example", "localhost,evil.example",
          "localhost evil.example", "127.0.0.1 evil", "user@localhost", "evil.example#@localhost", "localhost:80:80",
          "[", "[]", "]", "[::1", "[::1]x", ":6385", "é.example", "\x00", "a" * 70_000, "9" * 5000,
          "[" + ":" * 5000 + "]", "0x", "127.0.0.0x1g")


def test_a_loopback_address_has_these_names(listening: Callable[..., Client]) -> None:
    app = listening("127.0.0.1")
    accepted = {host: send(app, "GET", "/v1/nodes", HTTP_HOST=host) for host in (*LOOPBACK, *OTHERS)}

    assert {host: reply.status for host, reply in accepted.items()} == {
        **dict.fromkeys(LOOPBACK, 200), **dict.fromkeys(OTHERS, 421)}
    assert max(len(reply.body) for host, reply in accepted.items() if host in OTHERS) < 1000


@pytest.mark.parametrize(("address", "options", "accepted", "refused"), [
    ("127.0.0.1", {"public_endpoint": "https://Ironic.example.org:13385/x"},
     ["ironic.example.org", "ironic.example.org:13385", "IRONIC.EXAMPLE.ORG."], ["example.org", "xironic.example.org"]),
    ("localhost", {"allowed_hosts": ["Ironic", "192.0.2.7", "2001:db8::1", "[2001:db8::2]", ".example.org",
                                     ".Example.NET."]},
     ["ironic:6385", "192.0.2.7", "[2001:DB8::1]:6385", "[2001:db8:0::2]", "a.example.org", "a.b.Example.org:80",
      "a.example.net", "a.example.net."],
     ["ironic.evil.example", "example.org", "badexample.org", "192.0.2.8", "[2001:db8::3]"]),
    ("127.0.0.1", {"allowed_hosts": ["*"]}, ["evil.example", "é"], []),
    ("0.0.0.0", {}, ["evil.example", "192.0.2.1"], []),
    ("ironic.example.org", {}, ["evil.example"], []),
    ("192.0.2.5", {"allowed_hosts": ["ironic"]},
     ["ironic", "192.0.2.5:6385", "localhost"], ["evil.example", "192.0.2.6"]),
    (None, {}, ["evil.example"], []),
    (None, {"allowed_hosts": ["ironic"]}, ["ironic", "127.0.0.1:6385"], ["evil.example"]),
])
def test_allowed_hosts_and_what_the_service_is_called_elsewhere(
        listening: Callable[..., Client], address: str | None, options: dict[str, Any], accepted: list[str],
        refused: list[str]) -> None:
    app = listening(address, **options)

    assert {host: send(app, "GET", "/v1/nodes", HTTP_HOST=host).status for host in (*accepted, *refused)} == {
        **dict.fromkeys(accepted, 200), **dict.fromkeys(refused, 421)}


def test_ramdisks_may_use_the_urls_that_they_are_told(conf: cfg.ConfigOpts, listening: Callable[..., Client]) -> None:
    conf.set_override("callback_endpoint_override", "http://provision.example:6385", group="inspector")
    conf.set_override("external_callback_url", "http://[2001:db8::9]:6385", group="deploy")
    app = listening("127.0.0.1")

    for host in ("provision.example:6385", "[2001:db8::9]:6385"):
        assert send(app, "GET", "/v1/nodes", HTTP_HOST=host).status == 200


def test_http_1_0_has_no_host(listening: Callable[..., Client]) -> None:
    app = listening("127.0.0.1")
    got: list[str] = []
    app.app({"REQUEST_METHOD": "GET", "PATH_INFO": "/v1", "SERVER_NAME": "x", "SERVER_PORT": "1", "SCRIPT_NAME": "",
             "QUERY_STRING": "", "SERVER_PROTOCOL": "HTTP/1.0", "wsgi.url_scheme": "http", "wsgi.input": None},
            lambda status, headers, exc_info=None: got.append(status))

    assert got == ["200 OK"]
