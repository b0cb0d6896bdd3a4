"""``/v1/nodes/{node}/traits``."""

from __future__ import annotations

import pytest

from tests.walking import walking

from .conftest import at

UUID = "44444444-4444-4444-8444-444444444444"
URL = f"/v1/nodes/{UUID}/traits"


@pytest.fixture(autouse=True)
def node(make_node):
    return make_node(uuid=UUID, name="n")


def test_a_new_node_has_none(app):
    assert app.get(URL).json == {"traits": []}


def test_traits_are_replaced_added_and_removed(app):
    assert app.put_json(URL, {"traits": ["CUSTOM_B", "HW_CPU_X86_VMX", "CUSTOM_B"]}).status_int == 204
    assert app.put_json(URL, {"traits": ["CUSTOM_B", "CUSTOM_A"]}).body == b""
    assert app.get("/v1/nodes/n/traits").json == {"traits": ["CUSTOM_A", "CUSTOM_B"]}

    added = app.put(f"{URL}/CUSTOM_C", headers={"Content-Type": "application/json"})
    assert (added.status_int, added.headers["Location"]) == (204, f"http://localhost{URL}/CUSTOM_C")
    assert app.put(f"{URL}/CUSTOM_C").status_int == 204
    assert app.delete(f"{URL}/CUSTOM_A").status_int == 204
    assert app.get(URL).json == {"traits": ["CUSTOM_B", "CUSTOM_C"]}
    assert app.get(f"/v1/nodes/{UUID}?fields=traits").json["traits"] == ["CUSTOM_B", "CUSTOM_C"]

    assert app.delete(URL).status_int == 204
    assert app.get(URL).json == {"traits": []}


def test_a_trait_that_the_node_has_not_is_404(app):
    reply = app.delete(f"{URL}/CUSTOM_B", expect_errors=True)

    assert (reply.status_int, reply.fault["faultstring"]) == (404, f"Node {UUID} doesn't have a trait 'CUSTOM_B'")


@walking("body, place", [
    ({"traits": ["CUSTOM_A", "nope"]}, "/traits/1"), ({"traits": ["CUSTOM_A\n"]}, "/traits/0"),
    ({"traits": [1]}, "/traits/0"),
    ({"traits": ["CUSTOM_" + "A" * 249]}, "/traits/0"), ({"traits": "CUSTOM_A"}, "/traits"), ({}, "/traits"),
    (None, ""),
    ({"traits": [], "x": 1}, "/x"), ([], "object"), ({"traits": ["HW_NO_SUCH"]}, "/traits/0"),
])
def test_bad_bodies_are_refused_and_change_nothing(app, body, place):
    app.put(f"{URL}/CUSTOM_OLD")

    reply = app.put_json(URL, body, expect_errors=True)

    assert reply.status_int == 400
    assert place in reply.fault["faultstring"]
    assert app.get(URL).json == {"traits": ["CUSTOM_OLD"]}


@walking("trait", ["nope", "custom_a", "CUSTOM_", "CUSTOM_A%0A", "CUSTOM_%C3%84"])
def test_a_bad_trait_in_the_url_is_refused(app, trait):
    assert app.put(f"{URL}/{trait}", expect_errors=True).status_int == 400


def test_one_trait_takes_no_body(app):
    assert app.put_json(f"{URL}/CUSTOM_A", {"traits": []}, expect_errors=True).status_int == 400


def test_a_node_has_at_most_50(app):
    names = [f"CUSTOM_T{i}" for i in range(51)]
    reply = app.put_json(URL, {"traits": names}, expect_errors=True)

    assert reply.status_int == 400
    assert f"for node {UUID} " in reply.fault["faultstring"]
    assert "(51 vs. 50)" in reply.fault["faultstring"]
    assert app.put_json(URL, {"traits": names[:50]}).status_int == 204
    assert app.put(f"{URL}/{names[0]}").status_int == 204
    assert app.put(f"{URL}/{names[50]}", expect_errors=True).status_int == 400


def test_below_1_37_there_are_none(app):
    assert app.get(URL, headers=at(36), expect_errors=True).status_int == 406
    assert app.put_json(URL, {"traits": []}, headers=at(36), expect_errors=True).status_int == 405
    assert app.delete(URL, headers=at(36), expect_errors=True).status_int == 404
    assert app.put(f"{URL}/CUSTOM_A", headers=at(37)).status_int == 204


def test_traits_of_a_locked_node_are_a_conflict(app, make_node):
    locked = make_node(reservation="conductor-7").uuid

    for send, path, body in ((app.put_json, "", ({"traits": []},)), (app.put, "/CUSTOM_A", ()), (app.delete, "", ()),
                             (app.delete, "/CUSTOM_A", ())):
        assert send(f"/v1/nodes/{locked}/traits{path}", *body, expect_errors=True).status_int == 409


def test_an_unknown_node_is_404(app):
    assert app.get("/v1/nodes/nosuch/traits", expect_errors=True).status_int == 404
    assert app.put("/v1/nodes/nosuch/traits/CUSTOM_A", expect_errors=True).status_int == 404
