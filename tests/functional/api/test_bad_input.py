"""Whatever the input, the answer is a 4xx in Ironic's format, and nothing is written."""

from __future__ import annotations

import gzip
import json
import re
from typing import Any

import pytest

from ironic_rules.api.app import make_app
from ironic_rules.db import nodes
from tests import matrices
from tests.functional.api.conftest import Client
from tests.functional.api.raw import Reply, send
from tests.functional.api.routes import (
    MAC,
    NODE,
    PORT,
    PORTGROUP,
    ROUTES,
    RULE,
    STEP,
    TAKING_A_BODY,
    TEMPLATE,
    WITH_IDENTS,
    WRITING,
    Known,
)
from tests.functional.api.tables import contents
from tests.walking import walking

MALFORMED = {
    "half": b"{", "word": b"nul", "bytes": b"\xff", "bytes in a string": b'["\xff"]', "NaN": b"[NaN]",
    "infinity": b"[-Infinity]", "1e999": b"[1e999]", "2**64": b"[18446744073709551616]",
    "duplicate keys": b'{"name":"a","name":"b"}', "lone surrogate": b'["\\ud800"]',
    "byte order mark": b"\xef\xbb\xbf{}",
    "deep list": b"[" * 101 + b"]" * 101, "deep object": b'{"a":' * 200 + b"1" + b"}" * 200, "two values": b"{} {}",
}
NEVER_AN_OBJECT = (5, "text", True, ["text"], [[]], [None])
IDENTS = ("x" * 20_000, "%", "..", "a b", "'", "\\", "{node}", "<b>", "a;b", "a,b", "é".encode().decode("latin-1"), "0",
          "no-such-thing", f"{NODE} ", f"{{{NODE}}}0", "-" * 300)
BROKEN_IDENTS = ("\xff", "\xed\xa0\x80", "a\nb", "\0", "a\x7f", "\xe2\x80\xa8")
QUERIES = ("nosuch=1", "%=1", "%FF=%FF", "a%00b=1", "x" * 100_000, "limit[]=1", "_method=DELETE", "=", "a=" * 500)
CONDITIONAL = re.compile(
    r"(PATCH|DELETE) /v1/deploy[-_]templates|(PUT|PATCH|DELETE) /v1/(facts|(inspection_)?rules)|POST .*/rollback$")
by_name = walking("route", ROUTES)


def refused(app: Client, db: Any, *request: Any, **kwargs: Any) -> Reply:
    """Send a request that must be refused as a client error without any effect."""
    before = contents(db)
    reply = send(app, *request, **kwargs)
    assert 400 <= reply.status < 500, reply
    assert reply.fault.get("faultcode", "Client") == "Client"
    assert len(reply.body) < 20_000
    assert contents(db) == before
    return reply


def test_what_is_written_is_noticed(stocked, make_node):
    before = contents(stocked)
    node = make_node(extra={"a": 1})
    between = contents(stocked)
    stocked.write(lambda conn: nodes.update(conn, node.id, {"extra": {"a": 2}}))

    assert len(between["nodes"]) == len(before["nodes"]) + 1
    assert contents(stocked) != between
    assert contents(stocked)["nodes"] != between["nodes"]


@walking("route", WRITING)
def test_a_malformed_body_is_400_everywhere(app, stocked, rpc, route):
    for raw in MALFORMED.values():
        assert refused(app, stocked, route.method, route.path, "", raw).status == 400

    assert rpc.calls == []


@walking("route", TAKING_A_BODY)
def test_a_body_of_another_type_is_400(app, stocked, rpc, route):
    for value in NEVER_AN_OBJECT:
        assert refused(app, stocked, route.method, route.path, "", json.dumps(value).encode()).status == 400

    assert rpc.calls == []


@walking("route", WRITING)
def test_a_precondition_is_checked_or_refused_everywhere(app, stocked, rpc, route):
    body = b"" if route.body is None else json.dumps(route.body).encode()
    statuses = set()
    for name, header in (("If-Match", '"stale"'), ("If-Match", 'W/"stale", "old"'), ("If-None-Match", "*")):
        environ = {f"HTTP_{name.upper().replace('-', '_')}": header}
        reply = refused(app, stocked, route.method, route.path, "", body, **environ)
        assert reply.fault["faultstring"].startswith(name)
        statuses.add(reply.status)

    assert statuses == ({412} if CONDITIONAL.match(str(route)) else {400})
    assert rpc.calls == []


@pytest.mark.parametrize("header", ["*", " *\t"])
def test_any_tag_matches_where_there_are_no_preconditions(app, stocked, header):
    body = json.dumps([{"op": "add", "path": "/extra/a", "value": 1}]).encode()

    assert send(app, "PATCH", f"/v1/nodes/{NODE}", "", body, HTTP_IF_MATCH=header).status == 200
    assert send(app, "GET", f"/v1/nodes/{NODE}", HTTP_IF_MATCH=header).status == 200


@pytest.fixture
def narrow(conf, db, rpc):
    """An API that takes bodies of 1 KiB."""
    conf.set_override("max_json_body_size", 1024, group="api")
    return Client(make_app(conf, db, rpc))


@walking("route", WRITING)
def test_a_body_over_the_limit_is_413_everywhere(narrow, stocked, route):
    chunked = {"HTTP_TRANSFER_ENCODING": "chunked", "CONTENT_LENGTH": "", "wsgi.input_terminated": True}

    for framing in ({}, {"CONTENT_TYPE": "application/vnd.example+json"}, chunked):
        assert refused(narrow, stocked, route.method, route.path, "", b" " * 1025, **framing).status == 413


@pytest.mark.parametrize("path", ["/v1/nodes", "/v1/continue_inspection"])
def test_a_compressed_body_is_415(app, stocked, path):
    reply = refused(app, stocked, "POST", path, "", gzip.compress(b"{}"), HTTP_CONTENT_ENCODING="gzip")

    assert reply.status == 415
    assert "Content-Encoding" in reply.fault["faultstring"]
    # Clients that only say so do no harm.
    body = b'{"driver": "fake-hardware"}'
    assert send(app, "POST", "/v1/nodes", "", body, HTTP_CONTENT_ENCODING="utf-8").status == 201


@walking("length", ["100", "-1", "1.5", "x", "0x10", "+5", "٣", "9" * 18, "9" * 5000, "1,1"])
def test_a_wrong_content_length_is_refused(app, stocked, length):
    refused(app, stocked, "POST", "/v1/nodes", "", b'{"driver": "fake-hardware"}', CONTENT_LENGTH=length)


class _Broken:
    """Behaves like a server's stream when chunks are malformed or the client has disconnected."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def read(self, size: int) -> bytes:
        raise self._error


@walking("error", [ValueError("bad chunk"), ConnectionResetError(), TimeoutError()])
def test_a_body_that_can_not_be_read_is_400(app, stocked, error):
    stream = {"wsgi.input": _Broken(error), "CONTENT_LENGTH": "5"}

    assert refused(app, stocked, "POST", "/v1/nodes", **stream).status == 400


@by_name
def test_an_unknown_or_broken_query_parameter_is_400_everywhere(app, stocked, rpc, route):
    body = b"" if route.body is None else json.dumps(route.body).encode()

    for query in QUERIES:
        assert refused(app, stocked, route.method, route.path, query, body).status == 400
    assert rpc.calls == []


@walking("where, ident", matrices.sampled(6 * len(WITH_IDENTS), WITH_IDENTS, (*IDENTS, *BROKEN_IDENTS)))
def test_a_strange_ident_is_the_clients_fault(app, stocked, rpc, where, ident):
    route, place = where
    body = b"" if route.body is None else json.dumps(route.body).encode()

    reply = refused(app, stocked, route.method, route.path_with(place, ident), "", body)

    assert reply.status == 400 or ident in IDENTS
    assert rpc.calls == []


@by_name
def test_other_methods_are_405(app, stocked, route):
    for method in ("OPTIONS", "TRACE", "CONNECT", "FOO", "get", ""):
        reply = refused(app, stocked, method, route.path)
        assert reply.status == 405
        assert route.method in dict(reply.headers)["Allow"]


@walking("route", [route for route in ROUTES if route.method == "GET"])
def test_slashes_do_not_matter(app, stocked, route):
    plain = send(app, "GET", route.path, HTTP_HOST="localhost").status

    for path in (f"{route.path}/", f"{route.path}///", route.path.replace("/", "//")):
        assert send(app, "GET", path).status == plain


@walking("path", [
    f"/v1/nodes/{NODE}/nosuch", f"/v1/nodes/{NODE}/nosuch/x", f"/v1/nodes/{NODE}/states/nosuch",
    f"/v1/ports/{PORT}/nosuch", f"/v1/portgroups/{PORTGROUP}/nosuch", f"/v1/inspection_rules/{RULE}/nosuch",
    f"/v1/deploy_templates/{TEMPLATE}/nosuch", "/v1/deploy-templates/CUSTOM_A/steps",
    "/v1/nodes/detail/x", "/v1/lookup/x", "/v1/continue_inspection/x", "/v1" + "/a" * 10_000,
])
def test_what_is_below_a_resource_and_unknown_is_404(app, stocked, path):
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
        # As in Ironic.
        is_state = method == "PUT" and "/states/" in path
        assert refused(app, stocked, method, path, "", b"{}").status == (405 if is_state else 404)


ENROLLED = {"driver": "fake-hardware"}
TEMPLATES = "/v1/deploy-templates"
STEPS = {"steps": [STEP]}
LONG = "x" * 10_000_000


@walking("path, body, where", [
    ("/v1/nodes", {**ENROLLED, "name": LONG}, "/name"), ("/v1/nodes", {**ENROLLED, "name": "a\0"}, ""),
    ("/v1/nodes", {**ENROLLED, "name": 5}, "/name"), ("/v1/nodes", {**ENROLLED, "name": "a\n"}, "/name"),
    ("/v1/nodes", {**ENROLLED, "uuid": NODE + "\n"}, "/uuid"), ("/v1/nodes", {**ENROLLED, "uuid": "x"}, "/uuid"),
    ("/v1/nodes", {**ENROLLED, "properties": []}, "/properties"), ("/v1/nodes", {**ENROLLED, "extra": "{}"}, "/extra"),
    ("/v1/nodes", {**ENROLLED, "maintenance": "maybe"}, "/maintenance"), ("/v1/nodes", {"driver": None}, "/driver"),
    ("/v1/nodes", {**ENROLLED, "instance_uuid": 7}, "/instance_uuid"), ("/v1/nodes", {**ENROLLED, "id": 1}, "/id"),
    ("/v1/nodes", {**ENROLLED, "a/b~c": 1}, "/a~1b~0c"), ("/v1/nodes", {**ENROLLED, "agent_token_hash": "x"}, "/agent"),
    ("/v1/nodes", {**ENROLLED, "resource_class": "x" * 81}, "/resource_class"),
    ("/v1/nodes", {**ENROLLED, "parent_node": "nosuch"}, "/parent_node"),
    ("/v1/ports", {"address": f"{MAC}\n", "node_uuid": NODE}, "/address"),
    ("/v1/ports", {"address": MAC[:-1] + "٣", "node_uuid": NODE}, "/address"),
    ("/v1/ports", {"address": "52:54:00:aa:00:02", "node_uuid": "node-1"}, "/node_uuid"),
    ("/v1/ports", {"address": "52:54:00:aa:00:02", "node_uuid": NODE, "pxe_enabled": []}, "/pxe_enabled"),
    ("/v1/ports", {"address": "52:54:00:aa:00:02", "node_uuid": NODE, "portgroup_uuid": RULE}, "/portgroup_uuid"),
    ("/v1/portgroups", {"node_uuid": RULE}, "/node_uuid"), ("/v1/portgroups", {}, "/node_uuid"),
    ("/v1/portgroups", {"node_uuid": NODE, "mode": LONG}, "/mode"),
    ("/v1/inspection_rules", {"actions": [{"op": "log", "args": {"msg": "x"}}], "priority": 2**63}, "/priority"),
    ("/v1/inspection_rules", {"actions": [{"op": "log"}]}, "/actions/0/args"),
    ("/v1/inspection_rules", {"actions": [{"op": "log", "args": {"msg": "x"}}], "uuid": "x"}, "/uuid"),
    ("/v1/inspection_rules", {"actions": [{"op": "log", "args": {"msg": "x"}}], LONG[:1_000_000]: 1}, "/x"),
    (TEMPLATES, {**STEPS, "name": "CUSTOM_B\n"}, "/name"),
    (TEMPLATES, {**STEPS, "name": "CUSTOM_" + "B" * 249}, "/name"),
    (TEMPLATES, {**STEPS, "name": "CUSTOM_b"}, "/name"), (TEMPLATES, {**STEPS, "name": "CUSTOM_Ä"}, "/name"),
    (TEMPLATES, {**STEPS, "name": "HW_NO_SUCH_TRAIT"}, "/name"), (TEMPLATES, {**STEPS, "name": None}, "/name"),
    (TEMPLATES, {**STEPS, "name": "CUSTOM_B", "uuid": "x"}, "/uuid"), (TEMPLATES, STEPS, "/name"),
    (TEMPLATES, {"name": "CUSTOM_B", "steps": [STEP] * 10_000}, "/steps"),
    (TEMPLATES, {"name": "CUSTOM_B", "steps": {}}, "/steps"),
    (TEMPLATES, {"name": "CUSTOM_B", "steps": [[]]}, "/steps/0"),
    (TEMPLATES, {"name": "CUSTOM_B", "steps": [STEP, {**STEP, "step": LONG}]}, "/steps/1/step"),
    (TEMPLATES, {"name": "CUSTOM_B", "steps": [{**STEP, "priority": 2**31}]}, "/steps/0/priority"),
    (TEMPLATES, {"name": "CUSTOM_B", "steps": [{**STEP, "priority": True}]}, "/steps/0/priority"),
    (TEMPLATES, {"name": "CUSTOM_B", "steps": [{**STEP, "args": {"a": [{"x/~": "a", "password": "******"}]}}]},
     "/steps/0/args/a/0/password"),
    (TEMPLATES, {"name": "CUSTOM_B", "steps": [{**STEP, "interface": "vendor", "step": "send_raw"}]}, "/steps/0/step"),
    (f"/v1/nodes/{NODE}/vifs", {"id": LONG}, "/id"), (f"/v1/nodes/{NODE}/vifs", {}, "/id"),
    ("/v1/continue_inspection", {"inventory": {"interfaces": [{}] * 2000}}, "/inventory/interfaces"),
    ("/v1/continue_inspection", {"inventory": {"disks": [{}] * 5000}}, "/inventory/disks"),
    ("/v1/continue_inspection", {"inventory": [LONG[:4_000_000]]}, "/inventory"),
])
def test_a_wrong_field_is_400_and_named_by_its_pointer(app, stocked, rpc, path, body, where):
    reply = refused(app, stocked, "POST", path, "", json.dumps(body).encode())

    assert reply.status == 400
    assert reply.fault["faultstring"].startswith(where)
    assert rpc.calls == []


@walking("path, body", [
    ("/v1/nodes", {**ENROLLED, "name": "node-1"}), ("/v1/nodes", {**ENROLLED, "uuid": NODE}),
    ("/v1/nodes", {**ENROLLED, "uuid": NODE.upper()}),
    ("/v1/ports", {"address": MAC, "node_uuid": NODE}), ("/v1/ports", {"address": MAC.upper(), "node_uuid": NODE}),
    ("/v1/ports", {"address": MAC.replace(":", "-"), "node_uuid": NODE}),
    ("/v1/ports", {"address": "52:54:00:aa:00:02", "node_uuid": NODE, "uuid": PORT}),
    ("/v1/portgroups", {"node_uuid": NODE, "name": "group-1"}),
    ("/v1/portgroups", {"node_uuid": NODE, "uuid": PORTGROUP}),
    ("/v1/inspection_rules", {"uuid": RULE, "actions": [{"op": "log", "args": {"msg": "x"}}]}),
    ("/v1/deploy_templates", {**STEPS, "name": "CUSTOM_A"}),
    ("/v1/deploy_templates", {**STEPS, "name": "CUSTOM_B", "uuid": TEMPLATE.upper()}),
    (f"/v1/nodes/{NODE}/vifs", {"id": "vif-1"}),
])
def test_a_duplicate_is_409(app, stocked, path, body):
    assert refused(app, stocked, "POST", path, "", json.dumps(body).encode()).status == 409


PATCHED = [f"/v1/nodes/{NODE}", f"/v1/ports/{PORT}", f"/v1/portgroups/{PORTGROUP}", f"/v1/deploy_templates/{TEMPLATE}",
           f"/v1/inspection_rules/{RULE}"]
WITH_EXTRA = PATCHED[:-1]


@walking("path", PATCHED)
@walking("operation", [
    {"op": "add", "path": "", "value": {}}, {"op": "add", "path": "/", "value": {}}, {"op": "remove", "path": ""},
    {"op": "add", "path": "//", "value": {}}, {"op": "add", "path": "x", "value": 1}, {"op": "add", "path": "/~"},
    {"op": "add", "path": "/~2", "value": 1}, {"op": "replace", "path": "/extra/nosuch", "value": 1},
    {"op": "remove", "path": "/extra/nosuch"}, {"op": "add", "path": "/uuid", "value": RULE},
    {"op": "remove", "path": "/created_at"}, {"op": "test", "path": "/uuid", "value": "x"},
    {"op": "copy", "from": "", "path": "/extra"}, {"op": "move", "from": "/", "path": "/extra"},
    {"op": "add", "path": "/extra/" + "a/" * 600, "value": 1}, {"op": "add", "path": "/extra\n", "value": 1},
    {"op": "add", "path": "/__class__/x", "value": 1}, {"op": "add", "path": ["extra"], "value": 1},
    {"op": "add", "path": "/extra", "value": 1, "more": 1}, {"op": "ADD", "path": "/extra", "value": {}},
])
def test_a_wrong_patch_is_400(app, stocked, path, operation):
    good = {"op": "add", "path": "/description" if "rules" in path else "/extra/good", "value": "x"}

    assert refused(app, stocked, "PATCH", path, "", json.dumps([good, operation]).encode()).status == 400


@walking("path", PATCHED)
def test_a_patch_has_at_most_1000_operations(app, stocked, path):
    field = "/description" if "rules" in path else "/extra/a~1b~0c"
    patch = [{"op": "add", "path": field, "value": str(number)} for number in range(1001)]

    assert refused(app, stocked, "PATCH", path, "", json.dumps(patch).encode()).status == 400
    reply = send(app, "PATCH", path, "", json.dumps(patch[:1000]).encode())

    assert reply.status == 200
    changed = json.loads(reply.body)
    assert (changed["description"] if "rules" in path else changed["extra"]["a/b~c"]) == "999"


@walking("path", WITH_EXTRA)
def test_a_patch_that_doubles_its_own_value_stays_bounded(app, stocked, path):
    patch = [{"op": "add", "path": "/extra", "value": {"a": "x" * 1000}},
             *({"op": "copy", "from": "/extra", "path": f"/extra/{number}"} for number in range(60))]

    refused(app, stocked, "PATCH", path, "", json.dumps(patch).encode())


def _nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return value


@walking("path", WITH_EXTRA)
def test_a_patch_can_not_nest_deeper_than_a_body(app, stocked, path):
    piece = [{"op": "add", "path": "/extra" + "/a" * (90 * number), "value": _nested(90)} for number in range(4)]
    doubled = [{"op": "add", "path": "/extra", "value": _nested(60)},
               {"op": "copy", "from": "/extra", "path": "/extra" + "/a" * 59}]
    moved = [{"op": "add", "path": "/extra", "value": {"a": _nested(60), "b": _nested(60)}},
             {"op": "move", "from": "/extra/a", "path": "/extra/b" + "/a" * 59}]

    for patch in (piece, doubled, moved):
        assert "100 levels" in refused(app, stocked, "PATCH", path, "", json.dumps(patch).encode()).fault["faultstring"]


def test_the_routes_under_test_are_all_that_write():
    assert {route.pattern for route in TAKING_A_BODY} >= {
        "/v1/nodes", "/v1/nodes/{node}", "/v1/ports", "/v1/ports/{port}", "/v1/portgroups", "/v1/inspection_rules",
        "/v1/deploy-templates", "/v1/deploy_templates/{template}", "/v1/continue_inspection", "/v1/heartbeat/{node}"}
    assert all(isinstance(route, Known) for route in WRITING)
