"""Flavors and their extra specs: the resources, bad input, concurrent writers, what is known."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from tests.functional.api.tables import contents
from tests.walking import walking

URL = "/v1/flavors"
BODY = {"id": "gold", "name": "bm.gold", "ram": 1024, "vcpus": 2, "disk": 10}
SPECS = {"resources:CUSTOM_GOLD": "1", "hw:cpu_policy": "shared"}


def make(app: Any, **values: Any) -> dict[str, Any]:
    made: dict[str, Any] = app.post_json(URL, {"flavor": {**BODY, **values}}, status=200).json["flavor"]
    return made


@pytest.fixture
def specs_url(app) -> str:
    make(app)
    return f"{URL}/gold/os-extra_specs"


def test_a_flavor_has_novas_fields(app):
    made = make(app, swap="512", **{"OS-FLV-EXT-DATA:ephemeral": 5, "os-flavor-access:is_public": False,
                                    "rxtx_factor": "1.5"}, description="Gold\nand more")
    anonymous = make(app, id=None, name="other")

    href = "http://localhost/v1/flavors/gold"
    assert made == {
        **BODY, "swap": 512, "OS-FLV-EXT-DATA:ephemeral": 5, "os-flavor-access:is_public": False, "rxtx_factor": 1.5,
        "OS-FLV-DISABLED:disabled": False, "description": "Gold\nand more", "extra_specs": {},
        "links": [{"rel": "self", "href": href}, {"rel": "bookmark", "href": href}]}
    assert len(anonymous["id"]) == 36
    assert (anonymous["swap"], anonymous["rxtx_factor"], anonymous["description"]) == (0, 1.0, None)
    assert app.get(f"{URL}/gold").json["flavor"] == made
    assert app.get(f"{URL}/bm.gold").json["flavor"] == made
    changed = app.put_json(f"{URL}/gold", {"flavor": {"description": None}}).json["flavor"]
    assert changed == {**made, "description": None}
    assert app.delete(f"{URL}/gold", status=202).body == b""
    assert app.get(f"{URL}/gold", status=404).fault["faultstring"] == "Flavor gold could not be found."
    assert app.delete(f"{URL}/gold", status=404)


def test_an_id_has_precedence_over_a_name_and_both_are_unique(app):
    make(app, id="a", name="b")
    make(app, id="b", name="a")

    assert app.get(f"{URL}/a").json["flavor"]["name"] == "b"
    assert "ID a" in app.post_json(URL, {"flavor": {**BODY, "id": "a"}}, status=409).fault["faultstring"]
    assert "name a" in app.post_json(URL, {"flavor": {**BODY, "name": "a"}}, status=409).fault["faultstring"]


def test_lists_are_filtered_sorted_and_paged(app):
    for number, (name, ram, public) in enumerate([("c", 1, True), ("a", 3, False), ("b", 2, True)]):
        make(app, id=f"f{number}", name=name, ram=ram, **{"os-flavor-access:is_public": public})
        app.post_json(f"{URL}/f{number}/os-extra_specs", {"extra_specs": SPECS})

    def names(query: str, url: str = URL) -> list[str]:
        return [flavor["name"] for flavor in app.get(f"{url}?{query}").json["flavors"]]

    assert names("") == ["c", "a", "b"]
    assert names("sort_key=name&sort_dir=desc") == ["c", "b", "a"]
    assert names("is_public=true") == ["c", "b"]
    assert names("minRam=2&sort_key=memory_mb") == ["b", "a"]
    assert names("minDisk=11") == []
    assert names("", "/compute/v2.1/flavors") == ["c", "b"]
    assert names("is_public=None&minRam=0", "/compute/v2.1/flavors/detail") == ["c", "a", "b"]
    page = app.get(f"{URL}/detail?limit=2&sort_key=name").json
    assert [flavor["extra_specs"] for flavor in page["flavors"]] == [SPECS] * 2
    assert page["flavors_links"] == [{"rel": "next", "href": page["next"]}]
    rest = app.get(page["next"]).json
    assert ([flavor["name"] for flavor in rest["flavors"]], "next" in rest) == (["c"], False)
    assert app.get(f"{URL}?fields=ram,id").json["flavors"][0] == {"id": "f0", "ram": 1}
    assert app.get(f"{URL}?marker=missing", status=404)
    assert app.get("/compute/v2.1/flavors?marker=missing", status=400)


def test_amounts_that_no_flavor_can_have_select_none_anywhere(anywhere):
    assert anywhere.post(URL, json={"flavor": BODY}).status_code == 200
    for path in (URL, "/compute/v2.1/flavors", "/compute/v2.1/flavors/detail"):
        for name in ("minRam", "minDisk"):
            reply = anywhere.get(f"{path}?{name}={2 ** 31}")
            assert (reply.status_code, reply.json()["flavors"]) == (200, [])
            assert anywhere.get(f"{path}?{name}={10 ** 18 - 1}").json()["flavors"] == []
            assert anywhere.get(f"{path}?{name}={10 ** 18}").status_code == 400


@walking("field, value", [
    ("name", "a/b"), ("name", ""), ("name", " a"), ("name", "x" * 256), ("name", "a\nb"), ("name", None), ("name", 1),
    ("id", "a/b"), ("id", "detail"), ("id", ".."), ("id", " a"), ("id", "é"), ("id", True), ("ram", 0), ("ram", 1.5),
    ("ram", 2**31), ("ram", "1e3"), ("vcpus", 0), ("disk", -1), ("swap", None), ("rxtx_factor", 0),
    ("rxtx_factor", "nan"), ("rxtx_factor", 1e39), ("os-flavor-access:is_public", "maybe"), ("description", "a\x01"),
    ("description", "x" * 65_536), ("OS-FLV-DISABLED:disabled", True), ("extra_specs", {})])
def test_a_flavor_that_is_not_valid_is_refused_with_a_pointer(app, db, field, value):
    before = contents(db)

    refused = app.post_json(URL, {"flavor": {**BODY, field: value}}, status=400)

    assert refused.fault["faultstring"].startswith(f"/flavor/{field}: ")
    assert contents(db) == before


HOSTILE = {
    "long key": ({"x" * 100_000: "1"}, "characters"), "long value": ({"hw:cpu_policy": "x" * 100_000}, "at most 255"),
    "exponential": ({"hw:numa_cpus.0": "1" + ",1-1" * 60 + "!"}, "hw:numa_cpus.0"),
    "control": ({"hw:cpu_policy": "shared\x07"}, "control character"),
    "newline": ({"hw:numa_nodes": "1\n"}, "hw:numa_nodes"),
    "upper case": ({"HW:CPU_POLICY": "shared"}, "hw:cpu_policy"),
    "homoglyph": ({"hw:сpu_policy": "shared"}, "Cyrillic"),
    "slash": ({"hw:cpu/policy": "1"}, "hw:cpu~1policy"),
    "number": ({"hw:numa_nodes": 1}, "hw:numa_nodes"), "null": ({"hw:numa_nodes": None}, "hw:numa_nodes"),
    "object": ({"hw:numa_nodes": {}}, "hw:numa_nodes"), "boolean": ({"hw:mem_encryption": True}, "hw:mem_encryption"),
    "thousand": ({f"trait:CUSTOM_{number}": "required" for number in range(1000)}, "at most 128"),
    "empty key": ({"": "1"}, "/extra_specs/"), "list": ([], "must be an object"),
    "nothing": (None, "must be an object"),
}


@walking("case", HOSTILE)
def test_hostile_extra_specs_are_refused_and_nothing_is_stored(app, db, specs_url, case):
    given, text = HOSTILE[case]
    before = contents(db)

    refused = app.post_json(specs_url, {"extra_specs": {**given, "hw:cpu_policy": "shared"} if isinstance(
        given, dict) and "hw:cpu_policy" not in given else given}, status=400).fault["faultstring"]

    assert text.casefold() in refused.casefold()
    assert refused.startswith("/extra_specs")
    assert len(refused) < 9000
    assert contents(db) == before


def test_off_still_refuses_what_cannot_be_stored(app, specs_url):
    for key, value in (("x" * 256, "1"), ("a", "x" * 256), ("a", 1), ("a", "b\n"), ("a/b", "1"), ("é", "1"),
                       ("..", "1")):
        app.post_json(f"{specs_url}?validation=off", {"extra_specs": {key: value, "fine": "1"}}, status=400)

    assert app.get(specs_url).json == {"extra_specs": {}}


def test_secrets_are_not_repeated(app, specs_url):
    refused = app.post_json(specs_url, {"extra_specs": {"foo:password": "hunter2"}}, status=400)

    assert "hunter2" not in refused.text


def test_one_extra_spec_is_set_shown_and_removed(app, specs_url):
    one = f"{specs_url}/hw:cpu_policy"

    assert app.put_json(one, {"hw:cpu_policy": "shared"}).json["hw:cpu_policy"] == "shared"
    assert app.put_json(one, {"hw:cpu_policy": "dedicated"}).json["hw:cpu_policy"] == "dedicated"
    assert app.get(one).json == {"hw:cpu_policy": "dedicated"}
    for body in ({}, {"hw:numa_nodes": "1"}, {"hw:cpu_policy": "shared", "hw:numa_nodes": "1"}, []):
        app.put_json(one, body, status=400)
    assert app.get(one).json == {"hw:cpu_policy": "dedicated"}
    assert app.delete(one, status=200).body == b""
    for method in (app.get, app.delete):
        assert "hw:cpu_policy" in method(one, status=404).fault["faultstring"]


def test_the_limit_counts_what_the_flavor_has(app, conf, specs_url):
    conf.set_override("max_flavor_extra_specs", 3, group="api")
    app.post_json(specs_url, {"extra_specs": {"trait:CUSTOM_A": "required", "trait:CUSTOM_B": "required"}})

    app.post_json(specs_url, {"extra_specs": {"trait:CUSTOM_A": "forbidden", "trait:CUSTOM_C": "required"}})
    refused = app.post_json(specs_url, {"extra_specs": {"trait:CUSTOM_D": "required"}}, status=400)

    assert "4 extra specs; at most 3" in refused.fault["faultstring"]
    assert app.get(specs_url).json["extra_specs"] == {
        "trait:CUSTOM_A": "forbidden", "trait:CUSTOM_B": "required", "trait:CUSTOM_C": "required"}


def test_concurrent_writers_lose_nothing_anywhere(anywhere):
    assert anywhere.post(URL, json={"flavor": BODY}).status_code == 200
    failures: list[str] = []

    def write(number: int) -> None:
        for turn in range(5):
            key = f"trait:CUSTOM_{number}_{turn}"
            reply = (anywhere.post(f"{URL}/gold/os-extra_specs", json={"extra_specs": {key: "required"}}) if turn % 2
                     else anywhere.put(f"{URL}/gold/os-extra_specs/{key}", json={key: "required"}))
            if reply.status_code != 200:
                failures.append(reply.text)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []
    assert len(anywhere.get(f"{URL}/gold/os-extra_specs").json()["extra_specs"]) == 30
    told = anywhere.get(f"{URL}/gold/explanation").json()
    assert len(told["required_traits"]) == 30


def test_extra_specs_are_validated_without_a_flavor(app, db):
    before = contents(db)
    body = {"extra_specs": {"hw:cpu_policy": "deddddicated", "hw:numa_nodes": "2", "foo": "bar"}}

    strict = app.post_json("/v1/extra_specs/validate", body).json
    permissive = app.post_json("/v1/extra_specs/validate?validation=permissive", body).json
    off = app.post_json("/v1/extra_specs/validate?validation=off", body).json

    assert [(problem["pointer"], problem["kind"]) for problem in strict["problems"]] == [
        ("/extra_specs/hw:cpu_policy", "enum"), ("/extra_specs/foo", "unknown")]
    assert strict["problems"][0]["nearest"] == "dedicated"
    assert [problem["key"] for problem in permissive["problems"]] == ["hw:cpu_policy"]
    assert [warning["kind"] for warning in permissive["warnings"]] == ["unknown"]
    assert off == {"valid": True, "problems": [], "warnings": []}
    assert contents(db) == before


def test_known_extra_specs_are_listed_and_shown(app):
    everything = app.get("/v1/extra_specs?detail=true").json["extra_specs"]
    names = [item["name"] for item in everything]
    numa = app.get("/v1/extra_specs?namespace=hw&type=int&text=NUMA").json["extra_specs"]
    page = app.get("/v1/extra_specs?limit=3&sort_dir=desc").json

    assert names == sorted(names)
    assert len(names) > 100
    assert "hw:numa_nodes" in [item["name"] for item in numa]
    assert {item["namespace"] for item in numa} == {"hw"}
    assert [item["name"] for item in page["extra_specs"]] == names[:-4:-1]
    assert [item["name"] for item in app.get(page["next"]).json["extra_specs"]] == names[-4:-7:-1]
    assert {item["status"] for item in app.get("/v1/extra_specs?status=removed").json["extra_specs"]} == {"removed"}
    assert app.get("/v1/extra_specs?fields=name,status").json["extra_specs"][0].keys() == {"name", "status"}
    assert app.get("/v1/extra_specs?fields=nosuch", status=400)
    assert app.get("/v1/extra_specs/hw:numa_cpus.7").json["name"] == "hw:numa_cpus.{num}"
    assert "hw:cpu_policy" in app.get("/v1/extra_specs/hw:cpu_polcy", status=404).fault["faultstring"]
    images = app.get("/v1/image_properties?text=cpu_policy").json["image_properties"]
    assert "hw_cpu_policy" in [item["name"] for item in images]


def test_lists_of_what_is_known_have_tags(app):
    first = app.get("/v1/extra_specs?namespace=hw")

    again = app.get("/v1/extra_specs?namespace=hw", headers={"If-None-Match": first.headers["ETag"]}, status=304)
    other = app.get("/v1/extra_specs?namespace=os")

    assert again.body == b""
    assert other.headers["ETag"] != first.headers["ETag"]


def test_the_compute_api_can_be_disabled(app, conf, db, rpc):
    from ironic_rules.api.app import make_app
    from tests.functional.api.conftest import Client

    conf.set_override("enable_compute_flavors", False, group="api")
    without = Client(make_app(conf, db, rpc))

    assert without.get("/compute/v2.1/flavors", status=404)
    assert without.get("/compute", status=404)
    assert without.get(URL).json == {"flavors": []}


def test_what_the_compute_api_does_with_numbers_and_old_versions(app):
    make(app)
    url = "/compute/v2.1/flavors/gold"
    numbers = {"extra_specs": {"hw:numa_nodes": 2, "quota:cpu_shares": 1.5}}

    assert app.post_json(f"{url}/os-extra_specs", numbers).json == numbers
    assert app.get(f"{url}/os-extra_specs").json == {"extra_specs": {"hw:numa_nodes": "2", "quota:cpu_shares": "1.5"}}
    assert app.post_json(f"{url}/os-extra_specs", {"extra_specs": {"a": True}}, status=400)
    assert app.put_json(url, {"flavor": {"description": "x"}}, status=404)
    assert app.post_json("/compute/v2.1/flavors", {"flavor": {**BODY, "id": "x", "description": "x"}}, status=400)
    assert app.get("/compute/v2.1/flavors/bm.gold", status=404).json == {
        "itemNotFound": {"code": 404, "message": "Flavor bm.gold could not be found."}}
    reply = app.get(url, headers={"X-OpenStack-Nova-API-Version": "2.61"})
    assert reply.headers["OpenStack-API-Version"] == "compute 2.61"
    assert json.loads(reply.body)["flavor"]["swap"] == ""
