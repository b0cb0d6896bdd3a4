"""Who gets in, and what each role may do."""

from __future__ import annotations

import base64
import sys
import types
from typing import Any

import bcrypt
import pytest
from oslo_policy import policy as oslo_policy

from ironic_rules.api.app import make_app
from ironic_rules.api.controllers.root import RootController
from ironic_rules.api.resource import walk_routes
from ironic_rules.policies import policies
from tests.functional.api.conftest import Client

ROUTES = [(route.method, route.path.replace("{", "").replace("}", ""), route.controller.route)
          for route in walk_routes(RootController())]
PUBLIC = {"/", "/v1", "/healthcheck", "/v1/lookup", "/v1/continue_inspection", "/v1/heartbeat/node"}


class FakeAuthToken:
    """keystonemiddleware's contract: 401 without a token; otherwise the token's roles in headers."""

    def __init__(self, app: Any, conf: dict[str, Any]) -> None:
        self._app = app

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        token = environ.get("HTTP_X_AUTH_TOKEN")
        if not token:
            start_response("401 Unauthorized", [("Content-Type", "application/json")])
            return [b"{}"]
        environ["HTTP_X_ROLES"] = environ["HTTP_X_USER_ID"] = token
        return self._app(environ, start_response)


@pytest.fixture
def keystone(conf, db, rpc, monkeypatch) -> Client:
    package, module = types.ModuleType("keystonemiddleware"), types.ModuleType("keystonemiddleware.auth_token")
    package.auth_token = module
    module.AuthProtocol = FakeAuthToken
    monkeypatch.setitem(sys.modules, "keystonemiddleware", package)
    monkeypatch.setitem(sys.modules, "keystonemiddleware.auth_token", module)
    conf.set_override("auth_strategy", "keystone")
    return Client(make_app(conf, db, rpc))


def test_every_route_declares_its_version_and_its_policy():
    known = {policy.name for policy in policies()}

    for method, path, route in ROUTES:
        assert route.since >= 1, (method, path)
        assert route.policy in known or (route.public and route.policy is None), (method, path)


def test_every_policy_guards_a_route_and_documents_its_paths():
    used = {route.policy for _, _, route in ROUTES}

    assert [policy.name for policy in policies() if policy.operations and policy.name not in used] == []


def test_exactly_the_documented_routes_are_public():
    assert {path for _, path, route in ROUTES if route.public} == PUBLIC


@pytest.mark.parametrize(("method", "path", "route"), ROUTES, ids=lambda value: value if isinstance(value, str) else "")
def test_a_stranger_gets_403_and_nobody_401(keystone, method, path, route):
    if route.public:
        assert keystone.request(path, method=method, expect_errors=True).status_int not in (401, 403)
        return
    stranger = keystone.request(path, method=method, headers={"X-Auth-Token": "member"}, expect_errors=True)

    assert stranger.status_int == 403
    assert route.policy in stranger.fault["faultstring"]
    assert keystone.request(path, method=method, expect_errors=True).status_int == 401


@pytest.mark.parametrize("role", ["reader", "observer"])
def test_a_reader_reads_and_does_not_write(keystone, role):
    token = {"X-Auth-Token": role}

    assert keystone.get("/v1/inspection_rules", headers=token).status_int == 200
    assert keystone.get("/v1/nodes", headers=token).status_int == 200
    keystone.post_json("/v1/inspection_rules", {"nonsense": 1}, headers=token, status=403)
    keystone.delete("/v1/inspection_rules", headers=token, status=403)


def test_an_administrator_writes(keystone):
    keystone.post_json("/v1/inspection_rules", {"actions": [{"op": "log", "args": {"msg": "hi"}}]},
                       headers={"X-Auth-Token": "admin"}, status=201)


def test_the_version_is_checked_before_the_policy_and_the_policy_before_the_input(keystone):
    member = {"X-Auth-Token": "member"}

    keystone.get("/v1/inspection_rules?nosuch=1", headers=member, status=403)
    keystone.get("/v1/inspection_rules", headers={**member, "X-OpenStack-Ironic-API-Version": "1.95"}, status=404)


def test_an_operators_policy_file_can_close_a_public_endpoint(conf, tmp_path, keystone):
    (tmp_path / "policy.yaml").write_text('"baremetal:driver:ipa_lookup": "!"\n')
    oslo_policy.Enforcer(conf)  # registers its options
    conf.set_override("policy_file", str(tmp_path / "policy.yaml"), group="oslo_policy")

    keystone.get("/v1/lookup?addresses=52:54:00:00:00:01", status=403)


def credentials(user: str, password: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


@pytest.fixture
def basic(conf, db, rpc, tmp_path) -> Client:
    hashed = bcrypt.hashpw(b"pass", bcrypt.gensalt(4)).decode()
    (tmp_path / "htpasswd").write_text(f"admin:{hashed}\n# comment\nweak:plain\n")
    conf.set_override("auth_strategy", "http_basic")
    conf.set_override("http_basic_auth_user_file", str(tmp_path / "htpasswd"))
    return Client(make_app(conf, db, rpc))


def test_basic_authentication_lets_users_of_the_file_in(basic):
    for _ in range(2):
        assert basic.get("/v1/nodes", headers=credentials("admin", "pass")).status_int == 200


@pytest.mark.parametrize("headers", [
    {}, credentials("admin", "wrong"), credentials("nobody", "pass"), credentials("weak", "plain"),
    credentials("admin", "pass" + "x" * 100), {"Authorization": "Basic !!"}, {"Authorization": "Bearer x"},
    {"Authorization": "Basic " + base64.b64encode(b"admin").decode()}, credentials("", ""),
])
def test_basic_authentication_keeps_everybody_else_out(basic, headers):
    response = basic.get("/v1/nodes", headers=headers, status=401)

    assert response.headers["WWW-Authenticate"].startswith("Basic ")
    assert response.fault["faultcode"] == "Client"


def test_basic_authentication_notices_a_changed_file(basic, tmp_path):
    basic.get("/v1/nodes", headers=credentials("admin", "pass"))
    (tmp_path / "htpasswd").write_text("")

    basic.get("/v1/nodes", headers=credentials("admin", "pass"), status=401)


def test_public_routes_need_no_password(basic):
    assert basic.get("/v1").status_int == 200
    basic.get("/nosuch", status=401)
