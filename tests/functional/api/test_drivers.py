"""``/v1/drivers`` and ``/v1/conductors``."""

from __future__ import annotations

from ironic_rules.db import conductors
from tests.functional.api.conftest import FAKE_HARDWARE, at


def test_drivers_are_those_of_living_conductors(app, db):
    with db.writer() as conn:
        conductors.register(conn, "conductor-2", "", {**FAKE_HARDWARE, "redfish": {}}, "instance-2")
        conductors.register(conn, "conductor-3", "", {"gone": {}}, "instance-3")
        conductors.unregister(conn, "conductor-3", "instance-3")

    drivers = app.get("/v1/drivers?detail=false").json["drivers"]

    assert [(driver["name"], driver["hosts"]) for driver in drivers] == [
        ("fake-hardware", ["conductor-1", "conductor-2"]), ("redfish", ["conductor-2"])]
    assert drivers[0]["type"] == "dynamic"
    assert drivers[0]["links"][0]["href"] == "http://localhost/v1/drivers/fake-hardware"
    assert "default_inspect_interface" not in drivers[0]


def test_detail_shows_the_interfaces_of_the_version(app):
    driver = app.get("/v1/drivers/?detail=True").json["drivers"][0]

    assert driver["default_inspect_interface"] == "agent"
    assert driver["enabled_inspect_interfaces"] == ["agent", "no-inspect"]
    assert "default_firmware_interface" in driver
    assert "default_firmware_interface" not in app.get("/v1/drivers/?detail=True", headers=at(85)).json["drivers"][0]
    assert app.get("/v1/drivers", headers=at(1)).json["drivers"][0].keys() == {"name", "hosts", "links"}


def test_one_driver_has_its_interfaces_and_properties(app):
    assert app.get("/v1/drivers/fake-hardware").json["default_network_interface"] == "noop"
    assert app.get("/v1/drivers/fake-hardware?fields=name").json.keys() == {"name", "links"}
    assert app.get("/v1/drivers/fake-hardware/properties").json == {}
    app.get("/v1/drivers/nosuch", status=404)
    app.get("/v1/drivers/nosuch/properties", status=404)
    app.get("/v1/drivers/fake-hardware?fields=nosuch", status=400)


def test_drivers_are_paged_by_name(app, db):
    with db.writer() as conn:
        conductors.register(conn, "conductor-2", "", {"redfish": {}, "ipmi": {}}, "instance-2")

    names, path = [], "/v1/drivers?limit=1&fields=name"
    while path:
        page = app.get(path).json
        names += [driver["name"] for driver in page["drivers"]]
        path = page.get("next")

    assert names == ["fake-hardware", "ipmi", "redfish"]
    listed = app.get("/v1/drivers?sort_dir=desc&marker=redfish").json["drivers"]
    assert [driver["name"] for driver in listed] == ["ipmi", "fake-hardware"]
    for query, status in (("marker=nosuch", 404), ("sort_key=hosts", 400), ("fields=name&detail=true", 400)):
        app.get(f"/v1/drivers?{query}", status=status)


def test_there_are_no_classic_drivers(app):
    assert app.get("/v1/drivers?type=classic").json == {"drivers": []}
    app.get("/v1/drivers?type=modern", status=400)


def test_conductors_are_listed_with_their_signs_of_life(app, db):
    with db.writer() as conn:
        conductors.register(conn, "conductor-0", "rack", {}, "instance-0")
        conductors.unregister(conn, "conductor-0", "instance-0")

    listed = app.get("/v1/conductors").json["conductors"]

    assert [(row["hostname"], row["conductor_group"], row["alive"]) for row in listed] == [
        ("conductor-0", "rack", False), ("conductor-1", "", True)]
    assert listed[0].keys() == {"hostname", "conductor_group", "alive", "links"}
    assert app.get("/v1/conductors?detail=true").json["conductors"][1]["drivers"] == ["fake-hardware"]


def test_conductors_are_paged_by_host_name(app, db):
    with db.writer() as conn:
        conductors.register(conn, "conductor-0", "", {}, "instance-0")

    first = app.get("/v1/conductors?limit=1&fields=hostname").json
    second = app.get(first["next"]).json

    assert [row["hostname"] for row in first["conductors"] + second["conductors"]] == ["conductor-0", "conductor-1"]
    assert "next" not in second
    assert app.get("/v1/conductors?sort_dir=desc").json["conductors"][0]["hostname"] == "conductor-1"
    app.get("/v1/conductors?marker=nosuch", status=404)


def test_one_conductor(app):
    assert app.get("/v1/conductors/conductor-1").json["drivers"] == ["fake-hardware"]
    app.get("/v1/conductors/nosuch", status=404)
    app.get("/v1/conductors", headers=at(48), status=404)
