"""Two listeners: one for ramdisks and one for everybody else, in one process and under other WSGI servers."""

from __future__ import annotations

from typing import Any

import bcrypt
import httpx
import pytest
from webtest import TestApp

from ironic_rules import service
from ironic_rules.api.app import Listener, make_apps
from ironic_rules.api.routes import Audience, walk_routes
from ironic_rules.api.v1 import RootController
from ironic_rules.httpd.server import ApiServer, ApiServers, addresses
from ironic_rules.inspection.pipeline import Pipeline
from ironic_rules.policies.base import RAMDISK_POLICIES

#: Routes of both.
COMMON = {("GET", "/"), ("GET", "/v1"), ("GET", "/healthcheck/live")}
IDENT = "5d0b8b0e-9d1e-4a2c-8f55-3a3a1f0c6f10"


def made(conf: Any, db: Any, rpc: Any) -> dict[Audience, TestApp]:
    audiences = [Audience.OPERATORS, Audience.RAMDISKS]
    apps = make_apps(conf, db, rpc, None, None, None, lambda: Pipeline([]), [Listener(each) for each in audiences])
    return {audience: TestApp(app) for audience, app in zip(audiences, apps, strict=True)}


def exists(app: TestApp, method: str, path: str) -> bool:
    reply = app.request(path, method=method, expect_errors=True, headers={
        "X-OpenStack-Ironic-API-Version": "1.96", "Content-Type": "application/json"}, body=b"{}")
    return not (reply.status_int == 404 and "There is no such resource." in reply.text)


def test_each_route_exists_on_the_listener_of_its_clients(conf, db, rpc):
    conf.set_override("serve_metrics", True, group="api")
    apps = made(conf, db, rpc)
    routes = {(method, path): controller.route.policy for method, path, controller in walk_routes(RootController())}

    found = {audience: {route for route in routes if exists(app, route[0], "/".join(
        IDENT if part.startswith("{") else part for part in route[1].split("/")))} for audience, app in apps.items()}

    of_ramdisks = {route for route, policy in routes.items() if policy in RAMDISK_POLICIES}
    assert {path for _, path in of_ramdisks} == {"/v1/lookup", "/v1/continue_inspection", "/v1/heartbeat/{node}"}
    assert found[Audience.RAMDISKS] == of_ramdisks | COMMON
    assert found[Audience.OPERATORS] == set(routes) - of_ramdisks


@pytest.mark.parametrize("strategy", ["noauth", "http_basic"])
def test_nothing_else_is_at_the_listener_of_ramdisks_in_any_form(conf, db, rpc, strategy, tmp_path):
    (tmp_path / "users").write_text("admin:" + bcrypt.hashpw(b"SECRET", bcrypt.gensalt(4)).decode())
    conf.set_override("auth_strategy", strategy)
    conf.set_override("http_basic_auth_user_file", str(tmp_path / "users"))
    conf.set_override("enable_ui", True, group="api")
    app = made(conf, db, rpc)[Audience.RAMDISKS]

    for path in ("/v1/nodes", "/nodes", "/v1/nodes/", "/v1/nodes.json", "/v1//nodes", "/%76%31/nodes", "/ui/", "/ui",
                 "/ui/session", "/metrics", "/healthcheck", "/compute/v2.1/flavors", "/v1/inspection_rules",
                 "/v1/rules", "/v1/continue_inspection/../nodes", "/healthcheck/live/../"):
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"):
            reply = app.request(path, method=method, expect_errors=True, headers={
                "Authorization": "Basic YWRtaW46U0VDUkVU", "Content-Type": "application/json"}, body=b"{}")
            assert reply.status_int == 404, (method, path)


def test_both_listen_and_end_together(conf, db, rpc):
    for name, value in (("port", 0), ("public_port", 0), ("public_host_ip", "127.0.0.1")):
        conf.set_override(name, value, group="api")
    first, second = addresses(conf)
    apps = make_apps(conf, db, rpc, None, None, None, lambda: Pipeline([]), [
        Listener(Audience.OPERATORS, first.host), Listener(Audience.RAMDISKS, second.host)])
    servers = ApiServers([ApiServer(conf, apps[0], address=first), ApiServer(conf, apps[1], address=second)])
    servers.start()
    operators, ramdisks = servers.text.split(" and for ramdisks on ")
    with httpx.Client() as client:
        statuses = [client.get(f"{url}{path}").status_code for url in (operators, ramdisks)
                    for path in ("/v1/nodes", "/v1/lookup?node_uuid=x", "/healthcheck/live")]
    assert servers.is_answering()
    servers.stop()
    servers.wait()

    assert statuses[0] == 200 and statuses[1] == statuses[3] == 404 and statuses[4] in (400, 404)
    assert (statuses[2], statuses[5]) == (200, 200)
    for url in (operators, ramdisks):
        with pytest.raises(httpx.ConnectError):
            httpx.get(url)


def test_ramdisks_need_no_certificate_where_operators_do(conf, monkeypatch):
    seen = []
    monkeypatch.setattr(service, "Certificates", lambda files, option: seen.append(files.authorities))
    conf.set_override("ssl_cert_file", "a", group="api")
    conf.set_override("ssl_ca_file", "b", group="api")
    service.make_certificates(conf)
    service.make_certificates(conf, clients=False)

    assert seen == ["b", None]
