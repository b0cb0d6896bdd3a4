"""Random requests to every route: never the service's fault, always Ironic's form, no effect of what is refused."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ironic_rules.models import node_fields
from tests.functional.api.conftest import empty, stock
from tests.functional.api.raw import send
from tests.functional.api.routes import MAC, NODE, PORT, PORTGROUP, ROUTES, RULE, Known
from tests.functional.api.tables import contents

#: Names and values that lead further into the service than noise does.
WORDS = [*node_fields.TYPES, "uuid", "node_uuid", "address", "extra", "mode", "traits", "reason", "target", "id",
         "timeout", "clean_steps", "configdrive", "actions", "conditions", "op", "args", "loop", "multiple", "priority",
         "phase", "scope", "sensitive", "msg", "path", "value", "values", "inventory", "interfaces", "mac_address",
         "bmc_address", "disks", "callback_url", "agent_token", "limit", "marker", "sort_key", "sort_dir", "fields",
         "detail", "portgroup_uuid", "local_link_connection", "addresses", "level", "regex", "subnet"]
KNOWN = [NODE, PORT, PORTGROUP, RULE, MAC, "node-1", "group-1", "CUSTOM_A", "vif-1", "fake-hardware", "conductor-1",
         "manage", "abort", "inspect", "power on", "log", "fail", "set-attribute", "eq", "!matches", "in-net", "early",
         "{inventory[cpu]}", "{", "(", "/extra/a", "/", "", "detail", "all", "true", "0", "-1", "https://x", "a\n", "☃"]

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
    """A body: one that the route takes with something changed, a patch, any JSON, or any bytes."""
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


@settings(max_examples=400, deadline=None, derandomize=True,
          suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(request=requests())
def test_no_request_is_the_services_fault(app, stocked, rpc, request):
    before = contents(stocked)
    rpc.calls.clear()

    reply = send(app, **request)

    assert reply.status < 500
    if reply.status >= 400:
        assert request["method"] == "HEAD" or reply.fault
        assert contents(stocked) == before
        assert rpc.calls == []
    elif contents(stocked) != before:
        empty(stocked)
        stock(stocked)
