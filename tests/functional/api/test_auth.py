"""Authentication, and what each role may do."""

from __future__ import annotations

import base64
import functools
import itertools
import os
import sys
import textwrap
import time
import types
from pathlib import Path
from typing import Any

import bcrypt
import orjson
import pytest
from oslo_context import context
from oslo_policy import policy as oslo_policy

from ironic_rules.api import authorization
from ironic_rules.api.app import make_app
from ironic_rules.api.routes import walk_routes
from ironic_rules.api.v1 import RootController
from ironic_rules.exceptions import ConfigurationError
from ironic_rules.models.rules import LEGACY_RULE, SUMMARY
from ironic_rules.policies import by_name, nodes, policies, templates
from ironic_rules.policies import rules as legacy_rule_policies
from tests.functional.api.conftest import Client, Configuration, at
from tests.walking import walking

ROOT = Path(__file__).resolve().parents[3]
ROUTES = [(route.method, route.path.replace("{", "").replace("}", ""), route.controller.route)
          for route in walk_routes(RootController())]
PUBLIC = {"/", "/v1", "/v1/openapi.json", "/healthcheck", "/healthcheck/live", "/v1/lookup", "/v1/continue_inspection",
          "/v1/heartbeat/node", "/compute", "/compute/v2.1"}

#: Headers of keystonemiddleware about the scope of a token.
SCOPES = {
    "system": {"HTTP_OPENSTACK_SYSTEM_SCOPE": "all"}, "domain": {"HTTP_X_DOMAIN_ID": "d1", "HTTP_X_DOMAIN_NAME": "d"},
    "": {"HTTP_X_PROJECT_ID": "someones", "HTTP_X_PROJECT_NAME": "theirs", "HTTP_X_PROJECT_DOMAIN_ID": "default"},
    "service": {"HTTP_X_PROJECT_ID": "p", "HTTP_X_PROJECT_NAME": "service", "HTTP_X_PROJECT_DOMAIN_ID": "default"},
    "foreign": {"HTTP_X_PROJECT_ID": "p", "HTTP_X_PROJECT_NAME": "service", "HTTP_X_PROJECT_DOMAIN_ID": "d1"},
}


class FakeAuthToken:
    """keystonemiddleware's contract: 401 without a token; otherwise the token's roles and scope in headers.

    A token is a role, of a project, of the whole system (``system:``), of a domain (``domain:``), or of the project
    ``service``, in the domain default (``service:``) or another one (``foreign:``).
    """

    def __init__(self, app: Any, conf: dict[str, Any]) -> None:
        self._app = app

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        token = environ.get("HTTP_X_AUTH_TOKEN")
        if not token:
            start_response("401 Unauthorized", [("Content-Type", "application/json")])
            return [b"{}"]
        scope, _, role = token.rpartition(":")
        environ["HTTP_X_ROLES"] = environ["HTTP_X_USER_ID"] = role
        environ |= SCOPES[scope]
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


def use_policies(conf: Configuration, folder: Path) -> None:
    """Let the service read ``policy.yaml`` of ``folder``."""
    oslo_policy.Enforcer(conf)  # registers its options
    conf.set_override("policy_file", str(folder / "policy.yaml"), group="oslo_policy")
    conf.forget_policies()


def test_every_route_declares_its_version_and_its_policy():
    known = {policy.name for policy in policies()}

    assert ROUTES
    assert [f"{method} {path}: version {route.since}" for method, path, route in ROUTES if route.since < 1] == []
    assert [f"{method} {path}: policy {route.policy}" for method, path, route in ROUTES
            if route.policy not in known and not (route.public and route.policy is None)] == []


def test_every_policy_guards_a_route_and_documents_its_paths():
    used = {route.policy for _, _, route in ROUTES}
    # For callers in a project, or for all of them.
    used |= {name for policy in policies() if policy.name in used for name in (policy.own, policy.everywhere)}
    # Required in addition, by what the body says or the reply shows.
    used |= {templates.RUNBOOK_USE, templates.RUNBOOK_UPDATE_PUBLIC, nodes.DISABLE_CLEANING,
             nodes.UPDATE_OWNER_PROVISIONED,
             *nodes.UPDATE_FIELD.values(), *nodes.GET_FIELD.values(), legacy_rule_policies.LEGACY_GET_DETAILS}

    assert [policy.name for policy in policies() if policy.operations and policy.name not in used] == []


def test_exactly_the_documented_routes_are_public():
    assert {path for _, path, route in ROUTES if route.public} == PUBLIC


@walking("method, path, route", ROUTES)
def test_a_stranger_gets_403_and_nobody_401(keystone, method, path, route):
    if route.public:
        assert keystone.request(path, method=method, expect_errors=True).status_int not in (401, 403)
        return
    strangers = ["domain:admin", "domain:member,reader", "domain:service", "domain:observer"]
    if not by_name()[route.policy].of:
        # Every member of a project has the role reader in it. What may be theirs is in test_project_access.
        strangers += ["member", "member,reader", "service", "foreign:service", "admin,manager,member,reader"]
    for token in strangers:
        stranger = keystone.request(path, method=method, headers={"X-Auth-Token": token}, expect_errors=True)

        assert stranger.status_int == 403
        assert route.policy in stranger.fault["faultstring"]
    assert keystone.request(path, method=method, expect_errors=True).status_int == 401


@pytest.mark.parametrize("role", ["system:reader", "observer", "system:observer"])
def test_a_reader_reads_and_does_not_write(keystone, role):
    token = {"X-Auth-Token": role}

    assert keystone.get("/v1/inspection_rules", headers=token).status_int == 200
    assert keystone.get("/v1/nodes", headers=token).status_int == 200
    keystone.post_json("/v1/inspection_rules", {"nonsense": 1}, headers=token, status=403)
    keystone.delete("/v1/inspection_rules", headers=token, status=403)


NODE = "11111111-1111-4111-8111-111111111111"
#: Requests of Nova, and others that change a node; (method, path, body): 403 only by policy.
READS = [("GET", path, None) for path in (
    "/v1/nodes", f"/v1/nodes/{NODE}", "/v1/ports/detail", "/v1/portgroups/detail",
    "/v1/volume/targets", "/v1/inspection_rules", "/v1/deploy_templates", f"/v1/nodes/{NODE}/inventory")]
USES = [
    ("GET", f"/v1/nodes/{NODE}/validate", None),
    ("PATCH", f"/v1/nodes/{NODE}", [{"op": "add", "path": "/extra/a", "value": 1}]),
    ("PUT", f"/v1/nodes/{NODE}/states/provision", {"target": "active"}),
    ("PUT", f"/v1/nodes/{NODE}/states/power", {"target": "power on"}),
    ("PUT", f"/v1/nodes/{NODE}/maintenance", {}), ("DELETE", f"/v1/nodes/{NODE}/maintenance", None),
    ("POST", f"/v1/nodes/{NODE}/vifs", {"id": "v"}), ("DELETE", f"/v1/nodes/{NODE}/vifs/v", None),
    ("PUT", f"/v1/nodes/{NODE}/traits/CUSTOM_A", None),
    ("PATCH", f"/v1/ports/{NODE}", [{"op": "add", "path": "/extra/a", "value": 1}]),
]
PORTS = [("POST", "/v1/ports", {"node_uuid": NODE, "address": "52:54:00:00:00:09"}),
         ("DELETE", f"/v1/ports/{NODE}", None)]
ADMINISTERS = [
    ("POST", "/v1/nodes", {"driver": "fake-hardware"}), ("DELETE", f"/v1/nodes/{NODE}", None),
    ("POST", "/v1/inspection_rules", {}), ("DELETE", "/v1/inspection_rules", None),
    ("POST", "/v1/deploy_templates", {}),
]


@pytest.mark.parametrize(("token", "allowed"), [
    ("system:reader", READS), ("system:member", READS + USES), ("system:service", READS + USES + PORTS),
    ("service:service", READS + USES + PORTS + ADMINISTERS[:1]), ("system:admin", READS + USES + PORTS + ADMINISTERS),
])
def test_roles_and_scopes_give_access_as_in_ironic(keystone, make_node, token, allowed):
    make_node(uuid=NODE)
    refused = []
    for method, path, body in READS + USES + PORTS + ADMINISTERS:
        reply = keystone.request(path, method=method, headers={"X-Auth-Token": token}, expect_errors=True,
                                 **({} if body is None else {"body": orjson.dumps(body),
                                                             "content_type": "application/json"}))
        assert reply.status_int != 401
        if reply.status_int == 403:
            refused.append((method, path, body))
    assert refused == [each for each in READS + USES + PORTS + ADMINISTERS if each not in allowed]


def test_the_services_project_can_have_another_name_or_no_special_access(conf, keystone, make_node):
    def count(token: str) -> int:
        return len(keystone.get("/v1/nodes", headers={"X-Auth-Token": token}).json["nodes"])

    # Without special access they are in a project like any other, and see its nodes, of which there are none.
    make_node()
    conf.set_override("rbac_service_project_name", "theirs")
    assert (count("service"), count("service:service")) == (1, 0)
    conf.set_override("rbac_service_role_elevated_access", False)
    assert (count("service"), count("service:service"), count("system:service")) == (0, 0, 1)


def test_an_administrator_writes(keystone):
    keystone.post_json("/v1/inspection_rules", {"actions": [{"op": "log", "args": {"msg": "hi"}}]},
                       headers={"X-Auth-Token": "system:admin"}, status=201)


def test_the_version_is_checked_before_the_policy_and_the_policy_before_the_input(keystone):
    member = {"X-Auth-Token": "member"}

    keystone.get("/v1/inspection_rules?nosuch=1", headers=member, status=403)
    keystone.get("/v1/inspection_rules", headers={**member, "X-OpenStack-Ironic-API-Version": "1.95"}, status=404)


def test_an_operators_policy_file_can_close_a_public_endpoint(conf, tmp_path, keystone):
    (tmp_path / "policy.yaml").write_text('"baremetal:driver:ipa_lookup": "!"\n')
    use_policies(conf, tmp_path)

    keystone.get("/v1/lookup?addresses=52:54:00:00:00:01", status=403)


def test_an_operators_policy_file_can_reserve_runbooks(conf, tmp_path, keystone, make_node):
    node = make_node(provision_state="manageable").uuid
    (tmp_path / "policy.yaml").write_text('"baremetal:runbook:use": "rule:admin_api"\n')
    use_policies(conf, tmp_path)
    body = {"target": "clean", "runbook": "CUSTOM_NONE"}

    statuses = [keystone.put_json(f"/v1/nodes/{node}/states/provision", body, headers={"X-Auth-Token": token},
                                  expect_errors=True).status_int for token in ("system:member", "system:admin")]

    assert statuses == [403, 400]


LOOKUP = "baremetal:driver:ipa_lookup"
UNUSABLE = {
    "x": "an object is expected", "- x": "an object is expected", f'"{LOOKUP}": [': "is not YAML: while parsing",
    "\udcff": "is not text in UTF-8", f'"{LOOKUP}":': f"{LOOKUP} must be the name of a rule",
    f'"{LOOKUP}": false': f"{LOOKUP} must be the name of a rule", "1: '!'": "1 must be the name of a rule",
    f'"{LOOKUP}": [role:a, [1]]': f"{LOOKUP} must be the name of a rule",
    f'"{LOOKUP}": "role:a and"': "is not understood: role:a and",
    f'"{LOOKUP}": "role:a or nonsense"': "is not understood: role:a or nonsense",
    '"mine": "not rule:yours"\n"yours": "rule:mine"': "refer to each other in a circle: mine, yours, mine",
}


def write(folder: Path, text: str) -> None:
    """Write ``policy.yaml``, with a time of change of its own."""
    file = folder / "policy.yaml"
    file.write_bytes(text.encode(errors="surrogateescape"))
    os.utime(file, ns=(time.time_ns(), time.time_ns()))


@pytest.mark.parametrize("text", UNUSABLE)
def test_a_policy_file_that_cannot_be_used_stops_the_start(conf, db, rpc, tmp_path, keystone, text):
    write(tmp_path, text)
    use_policies(conf, tmp_path)

    with pytest.raises(ConfigurationError) as caught:
        make_app(conf, db, rpc)

    assert str(caught.value).startswith(f"[oslo_policy]policy_file: {tmp_path}/policy.yaml")
    assert UNUSABLE[text] in str(caught.value)


@pytest.mark.parametrize(("name", "value", "told"), [
    ("policy_file", "nosuch.yaml", "policy_file: nosuch.yaml does not exist"),
    ("policy_file", "/etc", "policy_file: /etc cannot be read: Is a directory"),
    ("policy_dirs", ["/etc/hostname"], "policy_dirs: /etc/hostname cannot be read: Not a directory"),
])
def test_a_policy_file_or_folder_that_cannot_be_read_stops_the_start(
        conf, db, rpc, tmp_path, keystone, name, value, told):
    write(tmp_path, "")
    use_policies(conf, tmp_path)
    conf.set_override(name, value, group="oslo_policy")

    with pytest.raises(ConfigurationError, match=told):
        make_app(conf, db, rpc)


def test_a_policy_without_effect_is_named_with_the_nearest_one(conf, db, rpc, tmp_path, keystone, caplog):
    write(tmp_path, '"baremetal:node:ipa_heartbet": "!"\n"mine": "role:me"\n'
                    '"baremetal:node:list": "rule:mine or rule:you"')
    use_policies(conf, tmp_path)
    caplog.clear()

    make_app(conf, db, rpc)

    assert [line.partition("policy.yaml: ")[2] for line in caplog.messages] == [
        "this service has no rule baremetal:node:ipa_heartbet, and no rule refers to it. "
        "Is baremetal:node:ipa_heartbeat meant?",
        "baremetal:node:list refers to the rule you, which does not exist: this part of the check is never true."]


def test_what_is_closed_remains_closed_while_the_policy_files_cannot_be_used(conf, tmp_path, keystone, caplog):
    write(tmp_path, f'"{LOOKUP}": "!"')
    (tmp_path / "policy.d").mkdir()
    use_policies(conf, tmp_path)
    conf.set_override("policy_dirs", [str(tmp_path / "policy.d")], group="oslo_policy")
    looks_up = functools.partial(keystone.get, "/v1/lookup?addresses=52:54:00:00:00:01")
    looks_up(status=403)

    for text in ("x", "\udcff"):
        write(tmp_path, text)
        for _ in range(2):
            looks_up(status=403)
    (tmp_path / "policy.yaml").unlink()
    looks_up(status=403)
    write(tmp_path, "")
    (tmp_path / "policy.d" / "broken.yaml").write_text("x")
    looks_up(status=403)
    assert caplog.text.count("the rules of before remain in effect") == 4

    (tmp_path / "policy.d" / "broken.yaml").unlink()
    looks_up(status=404)
    (tmp_path / "policy.d" / "later.yaml").write_text(f'"{LOOKUP}": "!"')
    looks_up(status=403)


def documented_policy() -> str:
    """Return the policy file on the page about authentication."""
    page = (ROOT / "doc" / "source" / "admin" / "authentication.rst").read_text(encoding="utf-8")
    block = page.partition(".. code-block:: yaml\n\n")[2]
    return textwrap.dedent("".join(itertools.takewhile(lambda line: line.isspace() or line.startswith("   "),
                                                       block.splitlines(keepends=True))))


def test_the_role_of_the_documented_policy_file_reads_what_it_writes(conf, tmp_path, keystone):
    (tmp_path / "policy.yaml").write_text(documented_policy())
    use_policies(conf, tmp_path)
    writer, rules = {"X-Auth-Token": "rule_writer"}, "/v1/inspection_rules"
    action = {"actions": [{"op": "log", "args": {"msg": "hi"}}]}

    made = keystone.post_json(rules, {"description": "of the role", **action}, headers=writer, status=201).json["uuid"]
    assert [rule["uuid"] for rule in keystone.get(rules, headers=writer).json["inspection_rules"]] == [made]
    assert keystone.get(f"{rules}/{made}", headers=writer).json["description"] == "of the role"
    keystone.patch_json(f"{rules}/{made}", [{"op": "replace", "path": "/priority", "value": 5}], headers=writer)
    revisions = keystone.get(f"{rules}/revisions", headers=writer).json["revisions"]
    keystone.get(f"{rules}/revisions/{revisions[-1]['revision']}", headers=writer)
    keystone.delete(f"{rules}/{made}", headers=writer, status=204)
    # Others keep their access, and the role gets no other.
    assert keystone.get(rules, headers={"X-Auth-Token": "observer"}).status_int == 200
    keystone.post_json(rules, action, headers={"X-Auth-Token": "observer"}, status=403)
    keystone.get("/v1/nodes", headers=writer, status=403)


@pytest.mark.parametrize("token", [{}, {"X-Auth-Token": "admin"}])
def test_a_public_endpoint_believes_no_header_that_says_who_asks(conf, tmp_path, keystone, token):
    (tmp_path / "policy.yaml").write_text('"baremetal:driver:ipa_lookup": "rule:observer_api"\n')
    use_policies(conf, tmp_path)
    claims = {"X-Roles": "admin", "X-Identity-Status": "Confirmed", "OpenStack-System-Scope": "all", "X-User-Id": "me"}

    keystone.get("/v1/lookup?addresses=52:54:00:00:00:01", headers={**claims, **token}, status=403)


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


@walking("headers", [
    {}, credentials("admin", "wrong"), credentials("nobody", "pass"), credentials("weak", "plain"),
    credentials("admin", "pass" + "x" * 100), {"Authorization": "Basic !!"}, {"Authorization": "Basic \xe9"},
    {"Authorization": "Bearer x"},
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


@pytest.fixture
def roles(conf, db, rpc, tmp_path, caplog) -> Client:
    """Users with roles: root, olga, rita, and nemo with none. A role of a user without a password is reported."""
    hashed = bcrypt.hashpw(b"pass", bcrypt.gensalt(4)).decode()
    (tmp_path / "htpasswd").write_text("".join(f"{user}:{hashed}\n" for user in ("root", "olga", "rita", "nemo")))
    (tmp_path / "groups").write_text("# roles\nadmin: root\nmember: olga\n\nreader: rita gone\nowner: nemo\n")
    conf.set_override("auth_strategy", "http_basic")
    conf.set_override("http_basic_auth_user_file", str(tmp_path / "htpasswd"))
    conf.set_override("http_basic_auth_group_file", str(tmp_path / "groups"))
    return Client(make_app(conf, db, rpc))


def test_users_of_the_file_have_roles(roles, caplog, make_node):
    node = make_node().uuid
    rule = {"actions": [{"op": "fail", "args": {"msg": "no"}}]}
    wanted = [  # root, olga, rita, nemo
        ("GET", "/v1/nodes", None, (200, 200, 200, 403)), ("GET", f"/v1/nodes/{node}", None, (200, 200, 200, 403)),
        ("PATCH", f"/v1/nodes/{node}", [{"op": "add", "path": "/extra/a", "value": 1}], (200, 200, 403, 403)),
        ("POST", "/v1/inspection_rules", rule, (201, 403, 403, 403)),
        ("DELETE", "/v1/inspection_rules", None, (204, 403, 403, 403)), ("GET", "/v1", None, (200, 200, 200, 200))]

    for method, path, body, statuses in wanted:
        for user, status in zip(("root", "olga", "rita", "nemo"), statuses, strict=True):
            reply = roles.request(path, method=method, expect_errors=True, headers={
                **credentials(user, "pass"), "Content-Type": "application/json",
                "X-OpenStack-Ironic-API-Version": "1.96"}, body=b"" if body is None else orjson.dumps(body))
            assert reply.status_int == status, (user, method, path, reply.text)
            if status == 403:
                has = {"olga": "member", "rita": "reader", "nemo": "none"}[user]
                assert f"Roles of the user {user}: {has}." in reply.text
    logged = "\n".join(record.getMessage() for record in caplog.get_records("setup"))
    assert "these users have no role, and may do nothing: nemo" in logged
    assert "have a role, but no password, and cannot log in: gone" in logged
    assert "line 6, does not begin with one of the roles admin:, member:, reader: and is ignored" in logged


def test_changed_roles_count_from_the_next_request(roles, tmp_path):
    def nodes_of_nemo() -> int:
        return int(roles.get("/v1/nodes", headers=credentials("nemo", "pass"), expect_errors=True).status_int)

    assert nodes_of_nemo() == 403
    (tmp_path / "groups").write_text("admin: root nemo\n")
    assert nodes_of_nemo() == 200
    (tmp_path / "groups").write_text("admin: root\n")
    assert nodes_of_nemo() == 403
    (tmp_path / "groups").unlink()
    assert nodes_of_nemo() == 503


def test_the_api_does_not_start_without_an_administrator(conf, db, rpc, roles, tmp_path):
    (tmp_path / "groups").write_text("reader: root\nadmin: gone\n")
    with pytest.raises(ConfigurationError, match="makes no user of http_basic_auth_user_file an administrator"):
        make_app(conf, db, rpc)
    (tmp_path / "groups").unlink()
    with pytest.raises(ConfigurationError, match=r"http_basic_auth_group_file cannot be read: .*groups"):
        make_app(conf, db, rpc)


def test_public_routes_need_no_password(basic):
    assert basic.get("/v1").status_int == 200
    basic.get("/nosuch", status=401)


def test_a_file_of_users_that_can_not_be_read_stops_the_start(conf, db, rpc, tmp_path):
    conf.set_override("auth_strategy", "http_basic")
    conf.set_override("http_basic_auth_user_file", str(tmp_path / "nosuch"))
    with pytest.raises(ConfigurationError, match=r"http_basic_auth_user_file cannot be read: .*nosuch"):
        make_app(conf, db, rpc)

    (tmp_path / "nosuch").write_bytes(b"admin:\xff\n")
    with pytest.raises(ConfigurationError, match=r"http_basic_auth_user_file cannot be read: .*utf-8"):
        make_app(conf, db, rpc)


def test_nobody_gets_in_while_the_file_of_users_can_not_be_read(basic, tmp_path, caplog):
    basic.get("/v1/nodes", headers=credentials("admin", "pass"))
    (tmp_path / "htpasswd").rename(tmp_path / "away")

    for password in ("pass", "wrong"):
        basic.get("/v1/nodes", headers=credentials("admin", password), status=503)
    assert "can no longer be read" in caplog.text

    (tmp_path / "away").rename(tmp_path / "htpasswd")
    basic.get("/v1/nodes", headers=credentials("admin", "pass"))


@pytest.mark.parametrize("hashed", ["$2y$04$abc", "$2b$04$" + "!" * 53, "$2b$04$" + "z" * 53, "$2b$99$" + "a" * 53,
                                    "x"])
def test_a_malformed_hash_lets_nobody_in_and_is_logged(basic, tmp_path, caplog, hashed):
    users = (tmp_path / "htpasswd").read_text()
    (tmp_path / "htpasswd").write_text(f"broken:{hashed}\n{users}")

    broken = basic.get("/v1/nodes", headers=credentials("broken", "pass"), status=401)
    unknown = basic.get("/v1/nodes", headers=credentials("nobody", "pass"), status=401)

    assert broken.body == unknown.body
    assert "htpasswd, line 1, has no valid bcrypt hash" in caplog.text
    assert hashed not in caplog.text
    basic.get("/v1/nodes", headers=credentials("admin", "pass"))


def test_unknown_names_are_checked_at_the_cost_of_known_ones(basic, tmp_path, monkeypatch):
    users = (tmp_path / "htpasswd").read_text()
    hashed = bcrypt.hashpw(b"pass", bcrypt.gensalt(5)).decode()
    (tmp_path / "htpasswd").write_text(f"{users}other:{hashed}\n")
    basic.get("/v1/nodes", headers=credentials("other", "pass"))
    costs = []
    check = bcrypt.checkpw
    monkeypatch.setattr(bcrypt, "checkpw", lambda given, known: costs.append(known[4:6]) or check(given, known))

    basic.get("/v1/nodes", headers=credentials("nobody", "pass"), status=401)

    assert costs == [b"05"]


@pytest.mark.parametrize(("strategy", "host", "warns"), [
    ("noauth", "0.0.0.0", True), ("noauth", "::", True), ("noauth", "192.0.2.1", True),
    ("noauth", "host.example", True),
    ("noauth", "127.0.0.1", False), ("noauth", "127.1.2.3", False), ("noauth", "::1", False),
    ("noauth", "localhost", False), ("http_basic", "0.0.0.0", False), ("keystone", "0.0.0.0", False),
])
def test_who_listens_without_authentication_is_warned(conf, caplog, strategy, host, warns):
    conf.set_override("auth_strategy", strategy)
    conf.set_override("host_ip", host, "api")

    assert bool(authorization.warn_if_open(conf)) is warns
    assert (f"noauth and the API listens on {host}:" in caplog.text) is warns


@pytest.mark.parametrize(("allowed", "warns"), [([], True), (["ironic"], False), (["*"], False)])
def test_who_accepts_every_name_without_authentication_is_warned(conf, caplog, allowed, warns):
    conf.set_override("host_ip", "0.0.0.0", "api")
    conf.set_override("allowed_hosts", allowed, "api")

    assert ("[api]allowed_hosts" in authorization.warn_if_open(conf)) is warns
    caplog.clear()
    authorization.warn_if_open_to_pages(conf)
    assert ("[api]allowed_hosts" in caplog.text) is warns

    conf.set_override("auth_strategy", "http_basic")
    caplog.clear()
    authorization.warn_if_open_to_pages(conf)
    assert caplog.text == ""


def test_what_is_refused_at_once_is_logged_under_its_own_id_and_nobodys_name(keystone):
    keystone.get("/v1/nodes", headers={"X-Auth-Token": "system:admin"})
    for headers, status in ((at(9999), 406), ({}, 401)):
        reply = keystone.get("/v1/nodes", headers=headers, status=status)
        logged = context.get_current()
        assert (logged.request_id, logged.user_id) == (reply.headers["openstack-request-id"], None)


def test_a_request_for_many_rules_needs_what_its_single_changes_need(conf, tmp_path, keystone):
    """A user who may create and change rules may do so by PUT; to delete, or to roll back, needs another policy."""
    (tmp_path / "policy.yaml").write_text(
        '"baremetal:inspection_rule:create": "role:creator or role:author or role:admin"\n'
        '"baremetal:inspection_rule:update": "role:author or role:admin"\n'
        '"baremetal:inspection_rule:revisions": "role:author"\n')
    use_policies(conf, tmp_path)
    url, body = "/v1/inspection_rules", {"rules": [{"actions": [{"op": "log", "args": {"msg": "hi"}}]}]}

    def asked(role: str, path: str = url, method: str = "put", **body: Any) -> Any:
        reply = getattr(keystone, f"{method}_json")(path, body, headers={"X-Auth-Token": role}, expect_errors=True)
        return reply.fault["faultstring"].rpartition(":")[2] if reply.status_int == 403 else reply.status_int

    assert (asked("creator", **body), asked("creator", **body, dry_run=True)) == ("update", "update")
    assert (asked("author", **body), asked("author", **body, prune=True)) == (200, "delete")
    assert asked("author", f"{url}/revisions/1/rollback", "post") == "delete"
    assert asked("system:admin", **body, prune=True) == 200
    revision, = keystone.get(f"{url}/revisions", headers={"X-Auth-Token": "author"}).json["revisions"]
    assert revision["user"] == "author"


DETAILS = "baremetal:inspection_rule:get_details"
RULES = "/v1/inspection_rules"
#: A condition and an action that only administrators see.
HIDDEN = {"conditions": [{"op": "eq", "args": ["{inventory[hostname]}", "h1dden-name"]}],
          "actions": [{"op": "set-attribute", "args": ["/driver_info/ipmi_password", "h1dden-word"]}]}


def test_conditions_and_actions_are_shown_to_administrators_only(keystone):
    admin, reader = ({"X-Auth-Token": token} for token in ("system:admin", "system:reader"))
    made = keystone.post_json(RULES, {"name": "a", **HIDDEN}, headers=admin, status=201).json["uuid"]
    keystone.patch_json(f"{RULES}/{made}", [{"op": "add", "path": "/priority", "value": 5}], headers=admin)
    revisions = keystone.get(f"{RULES}/revisions", headers=reader).json["revisions"]
    summary = {*SUMMARY, "links"}

    for path, of in ((f"{RULES}?detail=true", "inspection_rules"), (RULES, "inspection_rules"),
                     (f"{RULES}?detail=true&sort_key=execution", "inspection_rules"),
                     (f"{RULES}/revisions/{revisions[0]['revision']}", "rules")):
        (shown,) = keystone.get(path, headers=reader).json[of]
        assert (shown.keys(), shown["uuid"], shown["name"]) == (summary, made, "a")
    assert keystone.get(f"{RULES}/{made}", headers=reader).json.keys() == summary
    assert keystone.get(f"{RULES}/{made}?fields=max_nodes", headers=reader).json.keys() == {"max_nodes", "links"}
    for path in (f"{RULES}/{made}?fields=conditions", f"{RULES}/{made}?fields=uuid,actions",
                 f"{RULES}/{made}?fields=problems", f"{RULES}?fields=actions", f"{RULES}?op=eq",
                 f"{RULES}?writes=/driver_info", f"{RULES}/conflicts"):
        assert DETAILS in keystone.get(path, headers=reader, status=403).fault["faultstring"]
    for path in (f"{RULES}/statistics", f"{RULES}/{made}/statistics", f"{RULES}/vocabulary"):
        assert "h1dden" not in keystone.get(path, headers=reader).text

    for path in (f"{RULES}?detail=true", f"{RULES}/{made}", f"{RULES}?fields=conditions,actions&op=eq"):
        assert keystone.get(path, headers=admin).text.count("h1dden") == 2
    assert keystone.get(f"{RULES}/conflicts", headers=admin).json["conflicts"][0]["writes"]


def test_a_dry_run_needs_the_policy_for_conditions_and_actions(conf, tmp_path, keystone):
    (tmp_path / "policy.yaml").write_text('"baremetal:inspection_rule:dry_run": "role:tester"\n')
    use_policies(conf, tmp_path)
    body = {"report": {"inventory": {}}, "imagined": True}
    refused = keystone.post_json(f"{RULES}/dry_run", body, headers={"X-Auth-Token": "tester"}, status=403)
    assert DETAILS in refused.fault["faultstring"]


def test_an_operators_policy_file_can_show_conditions_and_actions_to_readers(conf, tmp_path, keystone):
    (tmp_path / "policy.yaml").write_text(f'"{DETAILS}": "rule:observer_api"\n')
    use_policies(conf, tmp_path)
    keystone.post_json(RULES, HIDDEN, headers={"X-Auth-Token": "system:admin"}, status=201)
    assert keystone.get(f"{RULES}?detail=true", headers={"X-Auth-Token": "system:reader"}).text.count("h1dden") == 2


def test_conditions_and_actions_of_legacy_rules_are_shown_to_administrators_only(keystone):
    admin, reader = ({"X-Auth-Token": token} for token in ("system:admin", "system:reader"))
    body = {"actions": [{"action": "set-attribute", "path": "/extra/a", "value": "h1dden"}]}
    made = keystone.post_json("/v1/rules", body, headers=admin).json["uuid"]
    summary = {*LEGACY_RULE.summary, "links"}
    assert keystone.get(f"/v1/rules/{made}", headers=reader).json.keys() == summary
    assert keystone.get("/v1/rules?detail=true", headers=reader).json["rules"][0].keys() == summary
    for path in (f"/v1/rules/{made}?fields=actions", "/v1/rules?fields=conditions"):
        refused = keystone.get(path, headers=reader, status=403)
        assert legacy_rule_policies.LEGACY_GET_DETAILS in refused.fault["faultstring"]
    assert "h1dden" in keystone.get(f"/v1/rules/{made}", headers=admin).text


def test_readers_do_not_see_what_legacy_rules_write_as_secrets(conf, tmp_path, keystone):
    (tmp_path / "policy.yaml").write_text(f'"{legacy_rule_policies.LEGACY_GET_DETAILS}": "rule:observer_api"\n')
    use_policies(conf, tmp_path)
    actions = [
        {"action": "set-attribute", "path": "driver_info/ipmi_password", "value": "s3cret", "cleanup": "old-s3cret"},
        {"action": "set-attribute", "path": "/extra/a", "value": {"token": "s3cret", "b": 1}},
        {"action": "append-attribute", "path": "/extra/api_key", "value": "s3cret"}]
    admin, reader = ({"X-Auth-Token": token} for token in ("system:admin", "system:reader"))
    url = "/v1/rules/00000000-0000-4000-8000-0000000000aa"
    keystone.put_json(url, {"actions": actions}, headers=admin, status=201)
    masked = [{**actions[0], "value": "******", "cleanup": "******"},
              {**actions[1], "value": {"token": "******", "b": 1}}, {**actions[2], "value": "******"}]
    assert keystone.get(url, headers=reader).json["actions"] == masked
    assert keystone.get("/v1/rules?detail=true", headers=reader).json["rules"][0]["actions"] == masked
    assert keystone.get(url, headers=admin).json["actions"] == actions
    # What a reply has hidden is not stored in the place of the secret.
    refused = keystone.put_json(url, {"actions": masked}, headers=admin, status=400).text
    for place in ("/actions/0/value", "/actions/0/cleanup", "/actions/1/value/token", "/actions/2/value"):
        assert place in refused
    assert keystone.get(url, headers=admin).json["actions"] == actions


def test_replacing_a_legacy_rule_needs_the_policy_for_that_only(conf, tmp_path, keystone):
    (tmp_path / "policy.yaml").write_text('"baremetal:legacy_rule:update": "role:author"\n')
    use_policies(conf, tmp_path)
    body, author = {"actions": [{"action": "fail", "message": "x"}]}, {"X-Auth-Token": "author"}
    made = keystone.post_json("/v1/rules", body, headers={"X-Auth-Token": "system:admin"}).json["uuid"]
    keystone.put_json(f"/v1/rules/{made}", body, headers=author, status=200)
    keystone.put_json("/v1/rules/00000000-0000-4000-8000-0000000000aa", body, headers=author, status=403)
