"""Random requests to every route: never a server error, always Ironic's format, no effect of refused requests."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any
from urllib.parse import quote

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ironic_rules import rules
from ironic_rules.api.app import make_app
from ironic_rules.db import inspection_rules
from ironic_rules.db.tables import inspection_rule_versions
from ironic_rules.db.tables import inspection_rules as table
from ironic_rules.inspection.rule_sets import RuleCaches, RuleSettings
from ironic_rules.models import nodes
from ironic_rules.rules.limits import AllowedHosts
from tests import strategies
from tests.functional.api.conftest import Client
from tests.functional.api.raw import send
from tests.functional.api.routes import MAC, NODE, PORT, PORTGROUP, ROUTES, RULE, Known
from tests.functional.api.tables import contents

pytestmark = pytest.mark.slow

#: Names and values that pass more of the service's checks than random ones.
WORDS = [*nodes.NODE.patchable, "maintenance_reason", "uuid", "node_uuid", "address", "extra", "mode", "traits",
         "reason", "target", "id", "timeout", "clean_steps", "configdrive", "actions", "conditions", "op", "args",
         "loop", "multiple", "priority", "phase", "scope", "sensitive", "msg", "path", "value", "values", "inventory",
         "interfaces", "mac_address",
         "bmc_address", "disks", "callback_url", "agent_token", "limit", "marker", "sort_key", "sort_dir", "fields",
         "detail", "portgroup_uuid", "local_link_connection", "addresses", "level", "regex", "subnet"]
KNOWN = [NODE, PORT, PORTGROUP, RULE, MAC, "node-1", "group-1", "CUSTOM_A", "vif-1", "fake-hardware", "conductor-1",
         "manage", "abort", "inspect", "power on", "log", "fail", "set-attribute", "eq", "!matches", "in-net", "early",
         "{inventory[cpu]}", "{", "(", "/extra/a", "/", "", "detail", "all", "true", "0", "-1", "https://x", "a\n", "☃"]
RULES_URL = "/v1/inspection_rules"
LOG_IT = {"op": "log", "args": {"msg": "x"}}
HOLDS = {"op": "eq", "args": ["{inventory[hostname]}", "a"]}

texts = st.one_of(st.sampled_from(KNOWN), st.sampled_from(WORDS), st.text(max_size=20))
scalars = st.one_of(st.none(), st.booleans(), st.integers(-2**70, 2**70), st.floats(), texts)
values = st.recursive(scalars, lambda inner: st.one_of(
    st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)), max_leaves=8)
pointers = st.lists(texts, max_size=3).map(lambda tokens: "".join(f"/{token}" for token in tokens))
operations = st.lists(st.fixed_dictionaries(
    {"op": st.sampled_from(["add", "replace", "remove", "test", "copy", "move"]), "path": pointers},
    optional={"value": values, "from": pointers}), max_size=4)


@st.composite
def bodies(draw: st.DrawFn, route: Known) -> bytes:
    """A body: one that the route accepts with some changes, a patch, any JSON, or any bytes."""
    if route.method == "PATCH":
        body: Any = draw(st.one_of(operations, values))
    elif isinstance(route.body, dict):
        changed = st.dictionaries(texts, values, max_size=3).map(lambda more: {**route.body, **more})
        body = draw(st.one_of(changed, values))
    else:
        return draw(st.one_of(st.just(b""), st.binary(max_size=20)))
    return json.dumps(body).encode()


@st.composite
def requests(draw: st.DrawFn) -> dict[str, Any]:
    route = draw(st.sampled_from(ROUTES))
    path = route.path
    for place in range(route.pattern.count("{")):
        if draw(st.integers(0, 3)) == 0:
            ident = draw(texts).encode("utf-8", "surrogatepass").decode("latin-1")
            path = route.path_with(place, ident)
    pairs = draw(st.lists(st.tuples(texts, texts), max_size=2)) if draw(st.booleans()) else []
    query = "&".join(f"{quote(name, errors='surrogatepass')}={quote(value, errors='surrogatepass')}"
                     for name, value in pairs)
    return {"method": draw(st.sampled_from([route.method, route.method, route.method, "HEAD", "PUT", "DELETE"])),
            "path": path, "query": query, "body": draw(bodies(route)),
            "HTTP_X_OPENSTACK_IRONIC_API_VERSION": f"1.{draw(st.sampled_from([96, 96, 96, 1, 30, 50]))}"}


@settings(max_examples=strategies.wanted(150), deadline=None, derandomize=True,
          suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(request=requests())
def test_no_request_is_the_services_fault(app, stocked, prepared, rpc, request):
    before = contents(stocked)
    rpc.calls.clear()

    reply = send(app, **request)

    assert reply.status < 500
    if reply.status >= 400:
        assert request["method"] == "HEAD" or reply.fault
        assert contents(stocked) == before
        assert rpc.calls == []
    elif contents(stocked) != before:
        prepared.stock()


# Rules, by the thousand: ``tox -e fuzz``.

OPERATIONS = st.lists(st.fixed_dictionaries(
    {"op": st.sampled_from(["add", "replace", "remove", "test", "copy", "move"]),
     "path": st.one_of(pointers, st.sampled_from([
         "/actions", "/conditions", "/action/0", "/conditions/-", "/actions/0/args", "/actions/0/args/msg", "/priority",
         "/phase", "/scope", "/sensitive", "/description", "/uuid", "/built_in", "/actions/0/op", "/created_at"]))},
    optional={"value": st.one_of(strategies.anything, strategies.changed(strategies.RULES, 1)),
              "from": st.sampled_from(["/actions", "/actions/0", "/conditions", "/description", "/uuid", "/x"])}),
    max_size=4)
#: A patch that changes the stored rule, or tries to.
REPLACEMENTS = strategies.changed(strategies.RULES).map(
    lambda rule: [{"op": "add", "path": f"/{name}", "value": value} for name, value in rule.items()]
    if isinstance(rule, dict) else rule)
PATCHES = strategies.bodies(strategies.mostly(REPLACEMENTS, st.one_of(OPERATIONS, strategies.changed([
    [{"op": "replace", "path": "/actions", "value": [LOG_IT]}, {"op": "add", "path": "/conditions/-", "value": HOLDS},
     {"op": "remove", "path": "/scope"}],
    [{"op": "test", "path": "/priority", "value": 0}, {"op": "copy", "from": "/actions/0", "path": "/actions/-"},
     {"op": "move", "from": "/actions/0/args", "path": "/actions/1/args"}],
]))))
FIELDS = st.dictionaries(
    st.sampled_from(["actions", "conditions", "priority", "phase", "scope", "sensitive", "uuid", "description", "x"]),
    strategies.anything, max_size=4)
POSTS = strategies.bodies(strategies.mostly(
    strategies.changed(strategies.RULES), st.one_of(strategies.anything, FIELDS)))
LIMITS = rules.Limits(hosts=AllowedHosts.of(["cmdb.example.org"]))
SENSITIVE = "88888888-8888-4888-8888-888888888888"


def left(conn: Any) -> tuple[int, ...]:
    """Return the values that every change of a rule changes: the number of rules, and the revision."""
    return inspection_rules.revision(conn), conn.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()


def said(shown: dict[str, Any]) -> str:
    """Return what a rule says, in which true is not 1."""
    return json.dumps({name: value for name, value in shown.items() if name != "updated_at"}, sort_keys=True)


@pytest.fixture
def calling(conf, stocked, rpc):
    """An API whose rules may call a service."""
    return Client(make_app(conf, stocked, rpc, RuleCaches(stocked, RuleSettings(limits=LIMITS))))


@pytest.mark.parametrize("batch", strategies.batches(50))
def test_no_rule_is_the_services_fault(calling, stocked, batch):
    with stocked.writer() as conn:
        inspection_rules.create(conn, rules.from_wire({
            "uuid": SENSITIVE, "sensitive": True, "actions": [LOG_IT], "conditions": [HOLDS]}))
        saved = {row.uuid: row._mapping for row in conn.execute(sa.select(table))}

    def restore() -> None:
        with stocked.writer() as conn:
            for each in (table, inspection_rule_versions):
                conn.execute(sa.delete(each))
            conn.execute(sa.insert(table), [dict(row) for row in saved.values()])

    def ask(method: str, path: str, body: bytes, allowed: tuple[int, ...]) -> None:
        was = send(calling, "GET", path).body if method == "PATCH" else b"{}"
        with stocked.reader() as conn:
            before = left(conn)
        reply = send(calling, method, path, body=body)
        with stocked.reader() as conn:
            after = left(conn)
        answered[reply.status] += 1
        assert reply.status in allowed
        if reply.status >= 400:
            assert reply.fault
            assert after == before
        else:
            shown = json.loads(reply.body)
            shown.pop("warnings", None)
            is_written = shown["sensitive"] or said(shown) != said(json.loads(was))
            assert after == (before[0] + is_written, before[1] + (method == "POST"))
            assert json.loads(send(calling, "GET", f"{RULES_URL}/{shown['uuid']}").body) == shown
            assert (shown["actions"] is None) is shown["sensitive"]
            with stocked.reader() as conn:
                stored = inspection_rules.get(conn, shown["uuid"])
            rules.compile(stored, limits=LIMITS)
            restore()

    def one(post: bytes, patch: bytes, of: str) -> None:
        ask("POST", RULES_URL, post, (201, 400, 409) if of.encode() in post or RULE.encode() in post else (201, 400))
        ask("PATCH", f"{RULES_URL}/{of}", patch, (404, 400) if of == NODE else (200, 400))

    answered: Counter[int] = Counter()
    strategies.check(batch, one, post=POSTS, patch=PATCHES, of=st.sampled_from([RULE, RULE, RULE, SENSITIVE, NODE]))
    print("batch", batch, "statuses", dict(answered))
    assert answered[201] and answered[200] and answered[400]
