"""``/v1/nodes``: creating, showing, listing and deleting nodes."""

from __future__ import annotations

import re
import uuid

import pytest
import sqlalchemy as sa

from ironic_rules.api.app import make_app
from ironic_rules.db import conductors, node_sets, nodes
from ironic_rules.db.tables import nodes as table
from ironic_rules.models import states
from ironic_rules.models.nodes import INTERFACE_FIELDS
from tests.functional import databases
from tests.walking import walking

from .conftest import Client, at

UUID = "44444444-4444-4444-8444-444444444444"
#: Fields of a node at 1.1, and the additions of this service.
BASE = {
    "uuid", "created_at", "updated_at", "console_enabled", "driver", "driver_info", "extra", "instance_info",
    "instance_uuid", "last_error", "maintenance", "maintenance_reason", "power_state", "properties", "provision_state",
    "provision_updated_at", "reservation", "target_power_state", "target_provision_state", "links", "chassis_uuid",
    "ports",
    "auto_discovered", "inspection_scope",
}
#: The fields that were added up to 1.96.
LATER = {
    "automated_clean", "boot_mode", "clean_step", "conductor_group", "disable_power_off", "deploy_step", "description",
    "driver_internal_info", "fault", "inspection_finished_at", "inspection_started_at", "lessee", "name",
    "network_data",
    "owner", "parent_node", "protected", "protected_reason", "raid_config", "resource_class", "retired",
    "retired_reason",
    "secure_boot", "service_step", "shard", "target_raid_config", "traits", "conductor", "allocation_uuid", "states",
    "portgroups", "volume", *INTERFACE_FIELDS,
}


def create(app, minor=96, **fields):
    return app.post_json("/v1/nodes", {"driver": "fake-hardware", **fields}, headers=at(minor), expect_errors=True)


def test_a_new_node_has_every_field_and_its_url(app):
    reply = create(app, uuid=UUID, name="node-a")

    assert reply.status_int == 201
    assert reply.headers["Location"] == f"http://localhost/v1/nodes/{UUID}"
    node = reply.json
    assert node.keys() == BASE | LATER
    assert node["links"] == [{"href": f"http://localhost/v1/nodes/{UUID}", "rel": "self"},
                             {"href": f"http://localhost/nodes/{UUID}", "rel": "bookmark"}]
    for below in ("ports", "states", "portgroups", "volume"):
        assert node[below][0] == {"href": f"http://localhost/v1/nodes/{UUID}/{below}", "rel": "self"}
    assert (node["provision_state"], node["conductor"], node["traits"]) == ("enroll", "conductor-1", [])
    assert (node["inspect_interface"], node["network_interface"], node["power_interface"]) == ("agent", "noop", "fake")
    assert (node["driver_info"], node["automated_clean"], node["protected"], node["reservation"]) == ({}, None, False,
                                                                                                      None)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?\+00:00", node["created_at"])


def test_the_oldest_version_knows_few_fields_and_starts_available(app):
    node = create(app, minor=1).json

    assert node.keys() == BASE
    assert node["provision_state"] is None
    assert app.get(f"/v1/nodes/{node['uuid']}").json["provision_state"] == "available"


@pytest.mark.parametrize(("minor", "state"), [(10, "available"), (11, "enroll")])
def test_the_first_state_depends_on_the_version(app, minor, state):
    assert create(app, minor=minor).json["provision_state"] == state


@walking("fields, place", [
    ({"name": "bad name!"}, "/name"), ({"name": UUID}, "/name"), ({"name": UUID.replace("-", "")}, "/name"),
    ({"name": "detail"}, "/name"), ({"name": "maintenance"}, "/name"), ({"name": "vendor_passthru"}, "/name"),
    ({"name": "a\n"}, "/name"), ({"name": ""}, "/name"), ({"name": 5}, "/name"),
    ({"name": "x" * 256}, "/name"), ({"uuid": "nope"}, "/uuid"), ({"uuid": UUID + "\n"}, "/uuid"),
    ({"driver": None}, "/driver"), ({"driver": 1}, "/driver"), ({"driver": ""}, "/driver"),
    ({"nosuch": 1}, "/nosuch"), ({"provision_state": "active"}, "/provision_state"), ({"a/b~": 1}, "/a~1b~0"),
    ({"extra": []}, "/extra"), ({"properties": "x"}, "/properties"), ({"retired": "maybe"}, "/retired"),
    ({"instance_uuid": "x"}, "/instance_uuid"), ({"conductor_group": "a b"}, "/conductor_group"),
    ({"resource_class": "x" * 81}, "/resource_class"), ({"description": "a\0b"}, ""),
    ({"parent_node": "nosuch"}, "/parent_node"),
    ({"parent_node": "bad name!"}, ""),
])
def test_a_bad_field_is_refused_with_its_place_and_nothing_is_stored(app, fields, place):
    reply = create(app, **fields)

    assert reply.status_int == 400
    assert reply.fault["faultcode"] == "Client"
    assert place in reply.fault["faultstring"]
    assert app.get("/v1/nodes").json == {"nodes": []}


def test_all_problems_of_a_body_are_named_at_once(app):
    text = create(app, name="bad name!", extra=[], nosuch=1).fault["faultstring"]

    assert all(place in text for place in ("/name", "/extra", "/nosuch"))


def test_the_driver_is_required(app):
    reply = app.post_json("/v1/nodes", {"name": "x"}, expect_errors=True)

    assert (reply.status_int, reply.fault["faultstring"]) == (400, "/driver: is required")


def test_a_driver_or_interface_that_no_conductor_offers_is_refused(app):
    assert "nosuch" in create(app, driver="nosuch").fault["faultstring"]
    reply = create(app, inspect_interface="nosuch")
    assert reply.status_int == 400
    assert "agent, no-inspect" in reply.fault["faultstring"]


def test_a_driver_must_be_offered_in_the_nodes_group(app):
    assert create(app, conductor_group="elsewhere").status_int == 400


def test_the_conductor_group_is_lower_case(app, db):
    with db.writer() as conn:
        conductors.register(conn, "conductor-2", "rack1", conductors.get(conn, "conductor-1").hardware_types,
                            "instance-2")

    node = create(app, conductor_group="RACK1").json

    assert (node["conductor_group"], node["conductor"]) == ("rack1", "conductor-2")


def test_no_living_conductor_is_503(app, db):
    with db.writer() as conn:
        conductors.unregister(conn, "conductor-1", "instance-1")

    assert create(app).status_int == 503


@walking("fields, message", [
    ({"uuid": UUID}, f"A node with UUID {UUID} already exists."),
    ({"uuid": UUID.upper().replace("A", "a")}, "already exists"),
    ({"name": "node-a"}, "A node with name node-a already exists."),
    ({"instance_uuid": UUID}, "is already associated"),
], between="start_empty")
def test_duplicates_are_conflicts(app, fields, message):
    create(app, uuid=UUID, name="node-a", instance_uuid=UUID)

    reply = create(app, **fields)

    assert reply.status_int == 409
    assert message in reply.fault["faultstring"]


@walking("field, value, since", [
    ("name", "a", 5), ("network_interface", "noop", 20), ("resource_class", "x", 21), ("power_interface", "fake", 31),
    ("automated_clean", True, 47), ("owner", "me", 50), ("description", "x", 51), ("retired", True, 61),
    ("lessee", "x", 65),
    ("network_data", {"links": []}, 66), ("shard", "x", 82), ("firmware_interface", "fake", 86),
    ("disable_power_off", True, 95),
], between="start_empty")
def test_a_field_that_is_too_new_is_406(app, field, value, since):
    assert create(app, minor=since - 1, **{field: value}).status_int == 406
    assert create(app, minor=since, **{field: value}).status_int == 201


def test_null_stands_for_the_default(app):
    node = create(app, extra=None, name=None, uuid=None, retired=None, power_interface=None, conductor_group=None).json

    assert (node["extra"], node["retired"], node["power_interface"], node["conductor_group"]) == ({}, False, "fake", "")


def test_booleans_may_be_text_as_the_cli_sends_them(app):
    assert create(app, automated_clean="False").json["automated_clean"] is False


def test_additional_fields_work_in_the_oldest_version(app):
    node = create(app, minor=1, inspection_scope="lab").json

    assert (node["inspection_scope"], node["auto_discovered"]) == ("lab", False)


@pytest.mark.parametrize("ident", [UUID, "node-a", UUID.upper()])
def test_a_node_goes_by_uuid_and_name(app, ident):
    create(app, uuid=UUID, name="node-a")

    assert app.get(f"/v1/nodes/{ident}").json["uuid"] == UUID
    assert app.get(f"/v1/nodes/{ident}/").json["uuid"] == UUID


@walking("ident, status", [("nosuch", 404), (UUID, 404), ("bad%20name!", 400), ("a%00b", 400)])
def test_an_unknown_node_is_404_and_a_malformed_name_400(app, ident, status):
    assert app.get(f"/v1/nodes/{ident}", expect_errors=True).status_int == status
    assert app.delete(f"/v1/nodes/{ident}", expect_errors=True).status_int == status


def test_names_in_urls_need_1_5(app):
    create(app, name="node-a")

    assert app.get("/v1/nodes/node-a", headers=at(4), expect_errors=True).status_int == 404


def test_fields_select(app):
    create(app, uuid=UUID, name="node-a")

    node = app.get(f"/v1/nodes/{UUID}?fields=name,driver_info&fields=traits").json

    assert node.keys() == {"name", "driver_info", "traits", "links"}


@walking("query, minor, status", [
    ("fields=nosuch", 96, 400), ("fields=traits", 36, 406), ("fields=uuid", 7, 406), ("fields=uuid", 8, 200),
    ("fields=id", 96, 400), ("fields=agent_token_hash", 96, 400), ("detail=true", 96, 400), ("nosuch=1", 96, 400),
], between="start_empty")
def test_fields_and_parameters_of_one_node_are_checked(app, query, minor, status):
    create(app, uuid=UUID)

    assert app.get(f"/v1/nodes/{UUID}?{query}", headers=at(minor), expect_errors=True).status_int == status


def test_secrets_are_masked_everywhere(app, make_node):
    make_node(uuid=UUID, driver_info={"ipmi_password": "s3cret", "ipmi_address": "10.0.0.1"},
              instance_info={"configdrive": "s3cret", "deep": [{"auth_token": "s3cret"}],
                             "image_url": "https://store/image?temp_url_sig=s3cret"},
              driver_internal_info={"agent_secret_token": "s3cret"})

    replies = [app.get(path) for path in (
        f"/v1/nodes/{UUID}", "/v1/nodes/detail", "/v1/nodes?detail=true", "/v1/nodes?fields=driver_info,instance_info")]
    replies.append(app.patch_json(f"/v1/nodes/{UUID}", [{"op": "add", "path": "/extra/a", "value": 1}]))

    assert all("s3cret" not in reply.text for reply in replies)
    assert replies[0].json["driver_info"] == {"ipmi_password": "******", "ipmi_address": "10.0.0.1"}
    assert replies[0].json["instance_info"]["configdrive"] == "******"


@pytest.mark.parametrize(("state", "minor", "shown"), [
    (states.INSPECTWAIT, 39, "inspect wait"), (states.INSPECTWAIT, 38, "inspecting"),
    (states.AVAILABLE, 2, "available"),
    (states.AVAILABLE, 1, None), (states.MANAGEABLE, 1, "manageable"),
])
def test_states_go_by_the_names_of_the_version(app, make_node, state, minor, shown):
    make_node(uuid=UUID, provision_state=state)

    for path in (f"/v1/nodes/{UUID}", f"/v1/nodes/{UUID}/states"):
        assert app.get(path, headers=at(minor)).json["provision_state"] == shown
    assert app.get("/v1/nodes", headers=at(minor)).json["nodes"][0]["provision_state"] == shown


def test_the_conductor_of_a_locked_node_is_who_holds_it(app, make_node):
    make_node(uuid=UUID, reservation="conductor-9")

    assert app.get(f"/v1/nodes/{UUID}?fields=conductor").json["conductor"] == "conductor-9"


def test_a_list_shows_a_few_fields(app):
    create(app, uuid=UUID, name="node-a")

    listed = app.get("/v1/nodes").json["nodes"]

    assert [set(node) for node in listed] == [
        {"uuid", "instance_uuid", "maintenance", "power_state", "provision_state", "name", "links"}]
    assert "name" not in app.get("/v1/nodes", headers=at(4)).json["nodes"][0]


def test_the_conductor_that_a_node_shows_is_the_one_that_it_is_found_by(app, db, make_node):
    with db.writer() as conn:
        conductors.register(conn, "conductor-2", "", {}, "instance-2")
        conductors.register(conn, "conductor-3", "rack", {}, "instance-3")
    for number in range(6):
        make_node(name=f"n{number}", conductor_group="rack" if number == 5 else "")
    make_node(name="locked", reservation="conductor-9")
    make_node(name="nobodys", conductor_group="empty")
    shown = {node["name"]: node["conductor"] for node in app.get("/v1/nodes?fields=name,conductor").json["nodes"]}

    found = {node["name"]: host for host in ("conductor-1", "conductor-2", "conductor-3", "conductor-9", "nosuch")
             for node in app.get(f"/v1/nodes?conductor={host}").json["nodes"]}

    assert shown == {**found, "nobodys": None}
    assert set(found.values()) == {"conductor-1", "conductor-2", "conductor-3", "conductor-9"}


def test_a_detailed_list_shows_what_get_shows(app, db, make_node):
    node = make_node(uuid=UUID, extra={"a": [1, 2.5, None]})
    with db.writer() as conn:
        node_sets.set_traits(conn, node.id, ["CUSTOM_B", "CUSTOM_A"])
    one = app.get(f"/v1/nodes/{UUID}").json

    assert one["traits"] == ["CUSTOM_A", "CUSTOM_B"]
    for path in ("/v1/nodes/detail", "/v1/nodes?detail=true", "/v1/nodes?details=True", "/v1/nodes/detail?detail=True"):
        assert app.get(path).json == {"nodes": [one]}


def test_a_list_shows_a_node_that_mariadb_cannot_write_as_one_text(conf, rpc):
    large = {"extra": {"a": "x" * 9_000_000}, "properties": {"b": "y" * 9_000_000}}
    with databases.migrated_database("mysql") as url:
        database = databases.open_database(url)
        # One statement for each: max_allowed_packet is 16 MiB by default.
        database.write(lambda conn: nodes.create(conn, {"driver": "fake-hardware", "extra": large["extra"]}))
        database.write(lambda conn: conn.execute(sa.update(table).values(properties=large["properties"])))

        found = Client(make_app(conf, database, rpc)).get("/v1/nodes?fields=extra,properties").json["nodes"]

        assert [{name: node[name] for name in large} for node in found] == [large]
        database.dispose()


def test_pages_follow_each_other_and_keep_the_filters(app, make_node):
    made = [make_node(name=f"n{i}", resource_class="r").uuid for i in range(5)]
    make_node(name="other")

    found, url = [], "/v1/nodes?limit=2&resource_class=r&fields=uuid&sort_key=name&sort_dir=desc"
    while url:
        page = app.get(url).json
        found += [node["uuid"] for node in page["nodes"]]
        assert all(set(node) == {"uuid", "links"} for node in page["nodes"])
        url = page.get("next", "").removeprefix("http://localhost")

    assert found == made[::-1]


@walking("query, expected", [
    ("provision_state=manageable", ["a"]), ("maintenance=true", ["b"]), ("maintenance=False", ["a"]),
    ("associated=1", ["b"]), ("associated=no", ["a"]), (f"instance_uuid={UUID}", ["b"]),
    ("driver=fake-hardware", ["a", "b"]),
    ("driver=nosuch", []), ("resource_class=big", ["a"]), ("owner=me", ["a"]), ("lessee=you", ["b"]),
    ("project=you", ["b"]),
    ("project=me", ["a"]), ("fault=power+failure", ["b"]), ("conductor_group=", ["a", "b"]), ("conductor_group=x", []),
    ("shard=s1,s2", ["a"]), ("sharded=true", ["a"]), ("sharded=false", ["b"]), ("retired=true", ["b"]),
    ("description_contains=RACK", ["b"]), ("auto_discovered=true", ["a"]), ("inspection_scope=lab", ["b"]),
    ("parent_node=a", ["child"]), ("include_children=true", ["a", "b", "child"]), ("owner=me&lessee=you", []),
    ("conductor=conductor-9", ["b"]),
], between="start_empty")
def test_filters(app, make_node, query, expected):
    parent = make_node(name="a", provision_state="manageable", resource_class="big", owner="me", shard="s1",
                       auto_discovered=True)
    make_node(name="b", maintenance=True, instance_uuid=UUID, lessee="you", fault="power failure", retired=True,
              description="in rack 5", inspection_scope="lab", reservation="conductor-9")
    make_node(name="child", parent_node=parent.uuid)

    assert [node["name"] for node in app.get(f"/v1/nodes?{query}").json["nodes"]] == expected


@walking("query, named", [
    ("nosuch=1&other=2", "nosuch, other"), ("limit=x", "limit"), ("limit=-1", "limit"), ("marker=nosuch", "marker"),
    ("limit=0", "limit"), ("sort_key=nosuch", "sort_key"), ("sort_key=extra", "sort_key"),
    ("sort_key=agent_token_hash", "sort_key"), ("sort_dir=up", "sort_dir"), ("maintenance=perhaps", "maintenance"),
    ("provision_state=nosuch", "provision_state"), ("instance_uuid=x", "instance_uuid"), ("driver=a%00b", "driver"),
    ("fields=uuid&detail=true", "fields"),
])
def test_bad_parameters_are_refused_by_name(app, query, named):
    reply = app.get(f"/v1/nodes?{query}", expect_errors=True)

    assert reply.status_int == 400
    assert named in reply.fault["faultstring"]


@walking("query, since", [
    ("provision_state=enroll", 9), ("driver=x", 16), ("resource_class=x", 21), ("fault=power failure", 42),
    ("conductor_group=x", 46),
    ("conductor=x", 49), ("owner=x", 50), ("lessee=x", 65), ("shard=x", 82), ("include_children=1", 83),
    ("sort_key=name", 5),
    ("fields=uuid,owner", 50),
])
def test_a_filter_that_is_too_new_is_406(app, query, since):
    reply = app.get(f"/v1/nodes?{query}", headers=at(since - 1), expect_errors=True)
    assert reply.status_int == 406
    # openstacksdk shows the text of this key only.
    assert reply.fault["faultstring"].endswith(f"needs at least API version 1.{since}.")
    assert app.get(f"/v1/nodes?{query}", headers=at(since)).status_int == 200


def test_detail_of_a_collection_needs_1_43(app):
    assert app.get("/v1/nodes?detail=true", headers=at(42), expect_errors=True).status_int == 400
    assert app.get("/v1/nodes/detail", headers=at(1)).status_int == 200


def test_fields_make_no_sense_in_a_detailed_list(app):
    assert app.get("/v1/nodes/detail?fields=uuid", expect_errors=True).status_int == 400


@walking("state", sorted(states.ALL), between="start_empty")
def test_what_is_at_work_can_not_be_deleted(app, make_node, state):
    make_node(uuid=UUID, provision_state=state)

    reply = app.delete(f"/v1/nodes/{UUID}", expect_errors=True)

    assert reply.status_int == (204 if state in states.DELETE_ALLOWED else 409)
    assert app.get(f"/v1/nodes/{UUID}", expect_errors=True).status_int == (404 if reply.status_int == 204 else 200)


@pytest.mark.parametrize(("values", "status"), [
    ({"provision_state": "active", "maintenance": True}, 204), ({"instance_uuid": UUID}, 409),
    ({"reservation": "c"}, 409),
    ({"instance_uuid": UUID, "maintenance": True}, 204), ({"protected": True, "maintenance": True}, 403),
    ({"reservation": "c", "maintenance": True}, 409),
])
def test_what_keeps_a_node_from_being_deleted(app, make_node, values, status):
    make_node(uuid=UUID, **values)

    assert app.delete(f"/v1/nodes/{UUID}", expect_errors=True).status_int == status


def test_deleting_has_no_body(app):
    created = create(app).json

    reply = app.delete(f"/v1/nodes/{created['uuid']}", headers={"Content-Type": "application/octet-stream"})

    assert (reply.status_int, reply.body, reply.headers.get("Content-Type")) == (204, b"", None)


def test_links_do_not_let_the_host_header_break_the_json(app):
    create(app, uuid=UUID)

    node = app.get(f"/v1/nodes/{UUID}?fields=uuid", extra_environ={"HTTP_HOST": 'a"b\\'}).json

    assert node["links"][0]["href"] == f'http://a"b\\/v1/nodes/{UUID}'


def test_many_nodes_are_listed_in_the_order_of_creation(app, make_node):
    made = [make_node(uuid=str(uuid.uuid4())).uuid for _ in range(12)]

    assert [node["uuid"] for node in app.get("/v1/nodes").json["nodes"]] == made


def test_failed_nodes_are_grouped_by_their_reason_which_selects_them(app, make_node):
    assert app.get("/v1/node_failures").json == {"groups": 0, "node_failures": []}
    made = []
    for number in range(3):
        ident = str(uuid.uuid4())
        made.append(make_node(uuid=ident, provision_state="inspect failed", last_error=(
            f"Timeout of node {ident} (52:54:00:00:00:0{number}) after {number + 1}800 s: 100% of \\d_x"))
            .uuid)
    make_node(provision_state="inspect failed", last_error="Timeout of nothing at all after 5 s: 100% of \\dax")
    for state in ("clean failed", "clean failed"):
        make_node(provision_state=state)
    make_node(provision_state="error", last_error=f"{'long ' * 57}{uuid.uuid4()} and {'more' * 100}")
    make_node(provision_state="active", last_error="Timeout of an old one")
    make_node(provision_state="clean failed", parent_node=made[0])

    reply = app.get("/v1/node_failures").json
    assert [(each["provision_state"], each["count"], each["reason"]) for each in reply["node_failures"]] == [
        ("inspect failed", 3, "Timeout of node … (…) after … s: …% of \\d_x"), ("clean failed", 2, ""),
        ("error", 1, "long " * 57 + "…"),
        ("inspect failed", 1, "Timeout of nothing at all after … s: …% of \\dax")]
    for each in reply["node_failures"]:
        listed = app.get(f"/v1/nodes?failure={each['failure']}").json["nodes"]
        assert len(listed) == each["count"], each
    first = reply["node_failures"][0]["failure"]
    assert [node["uuid"] for node in app.get(f"/v1/nodes?failure={first}").json["nodes"]] == made
    shown = app.get("/v1/node_failures?limit=1").json
    assert (shown["groups"], len(shown["node_failures"])) == (4, 1)
    # A group that has no node any more, or never had one, selects none.
    assert app.get("/v1/nodes?failure=0123456789abcdef").json["nodes"] == []
    older = {"X-OpenStack-Ironic-API-Version": "1.95"}
    app.get(f"/v1/nodes?failure={first}", headers=older, status=406)
    assert "1.96" in app.get("/v1/node_failures", headers=older, status=404).text


def test_an_error_for_a_low_version_names_the_header(app):
    reply = app.get("/v1/inspection_rules", headers={"X-OpenStack-Ironic-API-Version": "1.95"}, status=404)
    assert "as in the header X-OpenStack-Ironic-API-Version: 1.96." in reply.text


def test_nodes_are_counted_by_state_as_they_are_listed(app, make_node):
    assert app.get("/v1/node_states").json == {"node_states": []}
    parent = make_node(provision_state="active")
    for state, of in (("enroll", None), ("inspect failed", None), ("inspect failed", None), ("active", parent.uuid)):
        make_node(provision_state=state, parent_node=of)

    assert app.get("/v1/node_states").json == {"node_states": [
        {"provision_state": "inspect failed", "count": 2}, {"provision_state": "active", "count": 1},
        {"provision_state": "enroll", "count": 1}]}
    assert len(app.get("/v1/nodes").json["nodes"]) == 4
    app.get("/v1/node_states", headers={"X-OpenStack-Ironic-API-Version": "1.95"}, status=404)


def test_names_are_sorted_as_people_count_also_after_a_change_and_over_pages(app, make_node):
    made = {name: make_node(name=name).uuid for name in ("rack-10", "Rack-9", "rack-9-u2", "rack-9-u10", "b")}
    make_node()
    app.patch_json(f"/v1/nodes/{made['b']}", [{"op": "add", "path": "/name", "value": "rack-9-u003"}])
    expected = [None, "Rack-9", "rack-9-u2", "rack-9-u003", "rack-9-u10", "rack-10"]

    assert [node["name"] for node in app.get("/v1/nodes?sort_key=natural_name").json["nodes"]] == expected
    found, path = [], "/v1/nodes?sort_key=natural_name&sort_dir=desc&limit=2"
    while path:
        reply = app.get(path).json
        found += [node["name"] for node in reply["nodes"]]
        path = reply.get("next")
    assert found == expected[::-1]
