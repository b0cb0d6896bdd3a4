"""Common to all routes: versions, errors, headers, limits."""

from __future__ import annotations

import json
import re
import threading
import time

import pytest
from pecan import core

from ironic_rules.api import access_log, health, versions
from ironic_rules.api.app import make_app
from ironic_rules.api.body import BodyLimit
from ironic_rules.db import conductors
from ironic_rules.exceptions import Unavailable
from tests.functional.api.conftest import Client, at
from tests.functional.processes import in_time
from tests.walking import walking

REQUEST_ID = re.compile(r"req-[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")


def test_root_names_the_version_that_ramdisks_and_clients_look_for(app):
    body = app.get("/", headers={"X-OpenStack-Ironic-API-Version": "1.1"}).json

    assert body["default_version"] == body["versions"][0]
    assert body["versions"] == [{
        "id": "v1", "status": "CURRENT", "min_version": "1.1", "version": "1.96",
        "links": [{"href": "http://localhost/v1/", "rel": "self"}]}]


@pytest.mark.parametrize("path", ["/v1", "/v1/"])
def test_v1_has_one_version_object_with_and_without_a_slash(app, path):
    body = app.get(path).json

    assert body["id"] == "v1"
    assert body["version"]["version"] == "1.96"
    assert body["nodes"] == [{"href": "http://localhost/v1/nodes/", "rel": "self"},
                             {"href": "http://localhost/nodes/", "rel": "bookmark"}]


def test_v1_lists_only_what_the_version_has(app):
    old, new = app.get("/v1", headers=at(1)).json, app.get("/v1").json

    assert {"nodes", "ports", "drivers"} <= old.keys()
    assert new.keys() - old.keys() == {"portgroups", "volume", "lookup", "heartbeat", "conductors", "inspection_rules",
                                       "continue_inspection", "deploy_templates", "allocations", "runbooks", "shards"}
    assert "inspection_rules" not in app.get("/v1", headers=at(95)).json


def test_pecan_does_not_look_at_the_parameters_of_methods_in_each_request(app, monkeypatch):
    """Looking at parameters takes pecan longer than all else that a short request needs."""
    monkeypatch.setattr(core, "getargspec", None)

    assert app.get("/v1").status_int == 200
    assert app.get("/v1/nodes").json == {"nodes": []}


def test_every_advertised_resource_is_routed(app):
    names = app.get("/v1").json.keys() - {"id", "links", "media_types", "version"}

    statuses = {name: {app.options(f"/v1/{name}{rest}", expect_errors=True).status_int for rest in ("", "/x")}
                for name in names}

    assert all(405 in found for found in statuses.values()), statuses


def test_links_use_the_public_endpoint_if_there_is_one(app, conf):
    conf.set_override("public_endpoint", "https://bare.example/metal/", group="api")

    assert app.get("/").json["versions"][0]["links"][0]["href"] == "https://bare.example/metal/v1/"


@pytest.mark.parametrize(("own", "standard", "used"), [
    (None, None, "1.1"), ("1.96", None, "1.96"), ("latest", None, "1.96"), (None, "baremetal 1.50", "1.50"),
    ("1.60", "baremetal 1.50", "1.50"), ("1.60", "compute 2.1", "1.60"),
    (None, "compute 2.1, baremetal latest", "1.96"),
])
def test_version_headers_are_negotiated(app, own, standard, used):
    headers = {"X-OpenStack-Ironic-API-Version": own, "OpenStack-API-Version": standard}
    response = app.get("/v1", headers={k: v for k, v in headers.items() if v}, extra_environ={"no-version": "1"})

    assert response.headers[versions.HEADER] == used
    assert response.headers[versions.HEADER_MIN] == "1.1"
    assert response.headers[versions.HEADER_MAX] == "1.96"


@walking("version", ["1.999", "1.0", "2.1", "1.97", "x", "1.9.6", "1.-1", "1.٣"])
def test_a_version_out_of_range_is_406_with_the_bounds(app, version):
    response = app.get("/v1/nodes", extra_environ={
        "HTTP_X_OPENSTACK_IRONIC_API_VERSION": version.encode().decode("latin-1"), "no-version": "1",
    }, expect_errors=True)

    assert response.status_int == 406
    assert response.fault["code"] == 406
    assert response.fault["title"] == "Not Acceptable"
    assert versions.HEADER not in response.headers
    assert response.headers[versions.HEADER_MAX] == "1.96"


@walking("path", [
    "/nosuch", "/v1/nosuch", "/v1/deploy-steps", "/v1/__class__", "/v1/nodes/x/__class__", "/v1/nodes/x/below",
    "/v1/inspection_rules/__init__/__globals__", "/v1/inspection_rules/a/b/c", "/v2", "/index.html", "/v1/_pecan",
])
def test_an_unknown_path_is_404_in_ironics_form(app, path):
    response = app.get(path, status=404)

    assert response.fault == {
        "code": 404, "title": "Not Found", "description": "There is no such resource.",
        "faultcode": "Client", "faultstring": "There is no such resource.", "debuginfo": None, "message_id": "IR-0404"}
    assert response.headers[versions.HEADER] == "1.96"


@walking("method, path, allow", [
    ("DELETE", "/v1", "GET"), ("PATCH", "/v1/inspection_rules", "DELETE, GET, POST, PUT"), ("OPTIONS", "/", "GET"),
    ("POST", "/v1/inspection_rules/11111111-1111-4111-8111-111111111111", "DELETE, GET, PATCH"),
    ("GET", "/v1/continue_inspection", "POST"), ("TRACE", "/v1", "GET"),
])
def test_an_unknown_method_is_405_and_names_the_known_ones(app, method, path, allow):
    response = app.request(path, method=method, expect_errors=True)

    assert response.status_int == 405
    assert response.headers["Allow"] == allow
    assert response.fault["code"] == 405


def test_a_method_override_in_the_query_is_refused(app, db):
    assert app.post("/v1/inspection_rules?_method=delete", "", expect_errors=True).status_int == 400


def test_head_is_get_without_a_body(app):
    response = app.head("/v1")

    assert response.status_int == 200
    assert response.body == b""


def test_each_reply_has_its_own_request_id(app):
    first, second = app.get("/v1"), app.get("/v1/nosuch", expect_errors=True)

    assert REQUEST_ID.fullmatch(first.headers["x-openstack-request-id"])
    assert first.headers["openstack-request-id"] == first.headers["x-openstack-request-id"]
    assert first.headers["x-openstack-request-id"] != second.headers["x-openstack-request-id"]


def test_a_clients_request_id_is_taken_over_only_in_the_usual_form(app):
    good = "req-d99c14b4-d066-4708-b04e-e52a6ef5b2f8"

    assert app.get("/v1", headers={"X-OpenStack-Request-Id": good}).headers["x-openstack-request-id"] == good
    for bad in ("req-1", good + "x", good.upper(), "a" * 5000):
        assert app.get("/v1", headers={"X-OpenStack-Request-Id": bad}).headers["x-openstack-request-id"] != bad


def test_the_request_log_has_one_line_without_control_characters(app, caplog):
    caplog.set_level("INFO", logger="ironic_rules.api.access_log")

    app.get("/v1/nodes?name=%0Ax", extra_environ={"QUERY_STRING": "a\n2026 forged"}, expect_errors=True)

    lines = [record.getMessage() for record in caplog.records if record.name.endswith("access_log")]
    assert len(lines) == 1
    assert lines[0].startswith('192.0.2.77 "GET /v1/nodes?')
    assert "\n" not in lines[0]


def test_refused_requests_of_ramdisks_are_counted_when_there_are_many(app, caplog, monkeypatch):
    caplog.set_level("INFO", logger="ironic_rules.api.access_log")
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now)

    for _ in range(access_log.REFUSED_AT_ONCE + 20):
        app.post("/v1/continue_inspection", "x", content_type="application/json", status=400)
    # Other requests are logged.
    app.get("/v1/nodes/nobody", status=404)
    now += 1 / access_log.REFUSED_PER_SECOND
    app.post("/v1/continue_inspection", "x", content_type="application/json", status=400)

    lines = [record.getMessage() for record in caplog.records if record.name.endswith("access_log")]
    assert len(lines) == access_log.REFUSED_AT_ONCE + 2
    assert "/v1/nodes/nobody" in lines[-2]
    assert lines[-1].endswith("(20 refused ones were not logged since the last such line)")


def test_the_request_log_names_who_asked_and_not_who_is_said_to_have_asked(app, caplog):
    caplog.set_level("INFO", logger="ironic_rules.api.access_log")

    app.get("/v1/nodes", headers={"X-Forwarded-For": "198.51.100.7", "Forwarded": "for=198.51.100.7"})

    assert caplog.messages[-1].startswith('192.0.2.77 "GET /v1/nodes"')
    assert "198.51.100.7" not in caplog.text


@walking("body, text", [
    (b"{not json", "line 1 column 2"),
    (b"[" * 200 + b"]" * 200, "100 levels"),
    (b"[" * 5000 + b"]" * 5000, "100 levels"),
    (b'{"a": {"x": 1, "x": 2}}', "duplicate"),
    (b'{"a": NaN}', "not valid JSON"),
    (b'{"a": 1e999}', "not valid JSON"),
    (b'{"a": 18446744073709551616}', "64 bit"),
    (b'{"a": -9223372036854775809}', "64 bit"),
    (b'{"a": "\xff"}', "not valid JSON"),
    (b'{"a": "\\u0000"}', "NUL"),
    (b"[" + b"0," * 600_000 + b"0]", "values"),
])
def test_a_malformed_body_is_400(app, body, text):
    response = app.post("/v1/inspection_rules", body, content_type="application/json", expect_errors=True)

    assert response.status_int == 400
    assert response.fault["faultcode"] == "Client"
    assert text in response.fault["faultstring"]


def test_a_body_over_the_limit_is_413(conf, db, rpc):
    conf.set_override("max_json_body_size", 2048, group="api")
    app = Client(make_app(conf, db, rpc))

    response = app.post("/v1/inspection_rules", b" " * 2049, content_type="application/json", expect_errors=True)

    assert response.status_int == 413
    assert "2048" in response.fault["faultstring"]
    assert response.headers[versions.HEADER] == "1.96"


def test_a_chunked_body_is_counted_as_it_is_read():
    app = Client(BodyLimit(lambda environ, start: (start("200 OK", []), [environ["ironic_rules.body"]])[1], 10),
                 lint=False)
    chunked = {"HTTP_TRANSFER_ENCODING": "chunked", "CONTENT_LENGTH": "", "wsgi.input_terminated": True}

    assert app.post("/", b"x" * 10, extra_environ=chunked).body == b"x" * 10
    assert app.post("/", b"x" * 11, extra_environ=chunked, expect_errors=True).status_int == 413


def test_a_path_that_is_not_text_is_400(app):
    for raw in ("/v1/nodes/\xff", "/v1/nodes/a\nb", "/v1/nodes/\0"):
        response = app.request("/", environ={"PATH_INFO": raw}, expect_errors=True)
        assert response.status_int == 400


def test_an_unexpected_error_is_500_without_its_text(app, monkeypatch, caplog):
    def explode(*args: object, **kwargs: object) -> None:
        raise RuntimeError("the database password is hunter2")

    monkeypatch.setattr("ironic_rules.db.inspection_rules.list_rules", explode)

    response = app.get("/v1/inspection_rules", expect_errors=True)

    assert response.status_int == 500
    assert response.fault["faultcode"] == "Server"
    assert response.fault["debuginfo"] is None
    assert "hunter2" not in response.text
    assert "hunter2" in caplog.text


def test_an_error_outside_of_controllers_is_500_in_the_same_form(app, monkeypatch):
    monkeypatch.setattr("ironic_rules.api.authorization.context", lambda *args: 1 / 0)

    response = app.get("/v1", expect_errors=True)

    assert response.status_int == 500
    assert response.fault["faultcode"] == "Server"
    assert response.headers[versions.HEADER] == "1.96"


def test_a_body_where_none_is_expected_is_refused(app):
    assert app.delete("/v1/inspection_rules").status_int == 204
    assert app.delete_json("/v1/inspection_rules", {"a": 1}, status=400).fault


def test_dots_are_part_of_the_ident(app):
    fault = app.get("/v1/drivers/no.json", status=404).fault

    assert "no.json" in fault["faultstring"]


def test_the_healthcheck_needs_a_database_and_a_living_conductor(app, db):
    shown = app.get("/healthcheck").json
    assert 0 <= shown["checks"]["broker"].pop("age") < 60
    ok = {"state": "OK", "age": 0.0}
    assert shown == {
        "status": "OK", "database": True, "broker": True, "conductors": 1, "invalid_rules": 0,
        "checks": {"database": ok, "conductors": ok, "broker": {"state": "OK"}}}

    with db.writer() as conn:
        conductors.unregister(conn, "conductor-1", "instance-1")

    assert app.get("/healthcheck", status=503).json["conductors"] == 0


@pytest.mark.usefixtures("patient_check")
@pytest.mark.parametrize("hangs", [False, True])
def test_the_healthcheck_notices_a_broker_that_is_gone_or_silent_without_waiting(conf, db, rpc, monkeypatch, hangs):
    released = threading.Event()
    rpc.fail_with("ping_broker", Unavailable())
    if hangs:
        monkeypatch.setattr(rpc, "ping_broker", lambda: released.wait(600))
        monkeypatch.setattr(health, "STALE_S", 0.01)
    app = Client(make_app(conf, db, rpc))

    with in_time():
        shown = app.get("/healthcheck", status=503).json
    released.set()

    assert (shown["status"], shown["broker"], shown["database"], shown["conductors"]) == ("UNAVAILABLE", False, True, 1)
    assert shown["checks"]["broker"]["state"] == "UNAVAILABLE"
    assert app.get("/healthcheck/live").json == {"status": "OK"}


@pytest.mark.usefixtures("patient_check")
def test_a_broker_that_is_not_checked_yet_is_not_missed(conf, db, rpc, monkeypatch):
    released = threading.Event()
    monkeypatch.setattr(rpc, "ping_broker", lambda: released.wait(60))
    app = Client(make_app(conf, db, rpc))

    shown = app.get("/healthcheck").json
    released.set()

    assert (shown["status"], shown["broker"], shown["checks"]["broker"]) == (
        "OK", None, {"state": "UNKNOWN", "age": None})


def test_the_healthcheck_can_be_turned_off(app, conf):
    conf.set_override("enable_healthcheck", False, group="api")

    app.get("/healthcheck", status=404)
    app.get("/healthcheck/live", status=404)


def test_error_bodies_are_json_text_within_json(app):
    response = app.get("/v1/inspection_rules?nosuch=1", status=400)

    assert response.content_type == "application/json"
    detail = json.loads(response.json["error_message"])
    assert detail.keys() == {"faultcode", "faultstring", "debuginfo", "message_id"}
    assert "nosuch" in detail["faultstring"]


def test_until_1_90_the_url_of_a_resource_may_end_in_json(app, make_node, db):
    plain, suffixed, both = make_node(name="a"), make_node(name="b.json"), make_node(name="c.json")
    short = make_node(name="c")
    app.post_json("/v1/chassis", {"uuid": plain.uuid})

    def named(ident, minor=90):
        reply = app.get(f"/v1/nodes/{ident}", headers=at(minor), expect_errors=True)
        return reply.json["uuid"] if reply.status_int == 200 else reply.status_int

    assert named("a.json") == named(f"{plain.uuid}.json") == plain.uuid
    assert (named("b.json"), named("c.json"), named("c")) == (suffixed.uuid, both.uuid, short.uuid)
    assert (named("a.json", 91), named("b.json", 91), named("none.json"), named(".json")) == (
        404, suffixed.uuid, 404, 404)
    assert named("a.json/states") == 404
    app.get(f"/v1/chassis/{plain.uuid}.json", headers=at(1))
    app.patch_json("/v1/nodes/a.json", [{"op": "add", "path": "/extra/a", "value": 1}], headers=at(90))
    app.delete("/v1/nodes/a.json", headers=at(90), status=204)
    assert named("a") == 404


@pytest.mark.parametrize("path", [
    "/v1", "/v1/nodes", "/v1/nodes/detail", "/v1/nodes/a/states", "/v1/nodes/a/traits", "/v1/ports", "/nodes",
    "/v1/nodes/a/ports", "/v1/chassis", "/v1/deploy_templates", "/v1/drivers"])
def test_until_1_90_the_url_of_a_collection_may_end_in_json(app, make_node, path):
    make_node(name="a")
    make_node(name="b.json")
    plain = app.get(path, headers=at(90))

    assert [app.get(f"{path}.json{end}", headers=at(90)).json for end in ("", "/")] == [plain.json] * 2
    app.get(f"{path}.json", headers=at(91), status=404)
    app.get(f"{path}.json.json", headers=at(90), status=404)


def test_a_suffix_changes_no_other_part_of_the_url(app, make_node):
    for name in ("a", "b.json", "states.json"):
        make_node(name=name)

    shown = app.get("/v1/nodes.json?limit=1", headers=at(90)).json
    assert shown["next"].partition("?")[0] == "http://localhost/v1/nodes"
    assert len(app.get(shown["next"], headers=at(90)).json["nodes"]) == 1
    assert app.get("/v1/nodes/b.json/states.json", headers=at(90)).json["provision_state"]
    app.get("/v1/nodes/a.json/states.json", headers=at(90), status=404)
    assert app.get("/v1/nodes/states.json", headers=at(90)).json["name"] == "states.json"
    app.post_json("/v1/chassis.json", {}, headers=at(90), status=201)
    app.put_json("/v1/nodes/a/maintenance.json", {"reason": "x"}, headers=at(90), status=202)
    app.put_json("/v1/nodes/a/maintenance.json", {"reason": "x"}, headers=at(91), status=404)
