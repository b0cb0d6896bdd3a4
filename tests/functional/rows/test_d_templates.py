"""D-01, D-12, D-15 to D-25, D-27 to D-29, S-49 to S-51: deploy templates as a resource."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from ironic_rules import policies
from ironic_rules.db import deploy_templates
from ironic_rules.db.tables import deploy_template_steps
from tests.functional.whole import Whole, fault
from tests.walking import walking

TEMPLATES = "/v1/deploy-templates"
UUID = "11111111-1111-4111-8111-111111111111"
NOBODY = "22222222-2222-4222-8222-222222222222"
MIRROR = "CUSTOM_BM_CONFIG_RAID_DISK_MIRROR"
#: The document's own example.
STEP = {
    "interface": "raid", "step": "create_configuration", "priority": 10,
    "args": {"logical_disks": [{"size_gb": "MAX", "raid_level": "1", "is_root_volume": True}],
             "delete_configuration": True},
}


def at(version: str) -> dict[str, str]:
    """Return the headers that request an API version."""
    return {"X-OpenStack-Ironic-API-Version": version}


@pytest.fixture
def whole(service: Whole) -> Iterator[Whole]:
    """The whole service without any templates."""
    yield service
    for item in listed(service):
        assert service.app.delete(f"{TEMPLATES}/{item['uuid']}").status_int == 204


def listed(whole: Whole) -> list[dict[str, Any]]:
    reply = whole.app.get(TEMPLATES)
    assert reply.status_int == 200, reply.text
    found: list[dict[str, Any]] = reply.json["deploy-templates"]
    return found


def create(whole: Whole, name: str = MIRROR, *steps: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Create a template, by default with the document's step; return its representation in the API."""
    reply = whole.app.post_json(TEMPLATES, {"name": name, "steps": list(steps) or [STEP], **fields})
    assert reply.status_int == 201, reply.text
    created: dict[str, Any] = reply.json
    return created


def refusal(whole: Whole, **fields: Any) -> str:
    """Try to create a template that the API refuses with 400; return its reason."""
    reply = whole.app.post_json(TEMPLATES, {"name": MIRROR, "steps": [STEP], **fields})
    assert reply.status_int == 400, reply.text
    assert listed(whole) == []
    return fault(reply)


def patch(whole: Whole, ident: str, *operations: dict[str, Any], headers: dict[str, str] | None = None) -> Any:
    return whole.app.patch_json(f"{TEMPLATES}/{ident}", list(operations), headers=headers)


@pytest.mark.parametrize("name", [MIRROR, "CUSTOM_" + "A" * 248, "CUSTOM_0", "CUSTOM__", "HW_CPU_X86_VMX"])
def test_d_01_a_template_is_a_trait_with_steps_and_all_their_arguments(whole, name):
    steps = [STEP, {"interface": "bios", "step": "apply_configuration", "args": {}, "priority": 0}]

    created = create(whole, name, *steps)

    assert (created["name"], created["steps"]) == (name, steps)
    assert listed(whole) == [created]


@walking("name", [
    "", "CUSTOM_", "CUSTOM_a", "CUSTOM_A-B", "custom_A", "XCUSTOM_A", "CUSTOM_A\n", "CUSTOM_" + "A" * 249, "HW_NO_SUCH",
    "hw_cpu_x86_vmx", None, 1, ["CUSTOM_A"], UUID])
def test_d_01_the_name_is_a_trait(whole, name):
    assert refusal(whole, name=name).startswith("/name: ")


@walking("steps", [None, [], {}, "raid", [STEP] * 257, [STEP] * 10_000])
def test_d_01_there_are_steps(whole, steps):
    assert refusal(whole, steps=steps).startswith("/steps: ")


@walking("field", ["interface", "step", "args", "priority"])
def test_d_01_a_step_has_four_fields_that_are_all_needed_and_no_other(whole, field):
    lacks = {name: value for name, value in STEP.items() if name != field}

    assert refusal(whole, steps=[STEP, lacks]) == f"/steps/1/{field}: is required"
    assert refusal(whole, steps=[{**STEP, f"{field}s": 1}]) == f"/steps/0/{field}s: is not a known field"


@walking("field, values", [
    ("interface", ["network", "inspect", "boot", "Raid", "", None, 1]), ("step", ["", None, 1, "a\n", "x" * 256]),
    ("args", [[], None, "{}", 1]), ("priority", [-1, "-1", "x", "", 1.5, None, True, 2**31, "1e3"]),
])
def test_d_01_a_field_of_a_step_is_what_it_must_be(whole, field, values):
    for value in values:
        assert refusal(whole, steps=[{**STEP, field: value}]).startswith(f"/steps/0/{field}: ")


@pytest.mark.parametrize("interface", ["vendor", "power", "management", "firmware", "deploy", "bios", "raid"])
def test_d_01_seven_interfaces_have_steps(whole, interface):
    assert create(whole, MIRROR, {**STEP, "interface": interface})["steps"][0]["interface"] == interface


def test_d_01_a_priority_may_come_as_digits_and_is_a_number(whole):
    assert create(whole, MIRROR, {**STEP, "priority": "10"})["steps"] == [STEP]


def test_d_12_a_step_can_be_asked_for_several_times_with_different_arguments_or_the_same(whole):
    partitions = [{**STEP, "step": "partition", "args": {"disk": disk}} for disk in ("sda", "sdb", "sdb")]

    created = create(whole, MIRROR, *partitions)
    changed = patch(whole, MIRROR, {"op": "add", "path": "/steps/1", "value": partitions[0]})

    assert created["steps"] == partitions
    assert changed.json["steps"] == [partitions[0], *partitions]


def test_d_15_two_templates_never_have_one_trait(whole):
    create(whole)
    other = create(whole, "CUSTOM_OTHER")

    again = whole.app.post_json(TEMPLATES, {"name": MIRROR, "steps": [STEP]})
    renamed = patch(whole, "CUSTOM_OTHER", {"op": "replace", "path": "/name", "value": MIRROR})

    assert (again.status_int, renamed.status_int) == (409, 409)
    assert f"with name {MIRROR} already exists" in fault(again)
    assert fault(again) == fault(renamed)
    assert [(item["name"], item["updated_at"]) for item in listed(whole)] == [(MIRROR, None), (other["name"], None)]


def columns(whole: Whole, table: str) -> dict[str, bool]:
    """Return the columns of a table of the running service, and whether they may be null."""
    return {column["name"]: column["nullable"] for column in sa.inspect(whole.db.engine).get_columns(table)}


def test_d_16_the_table_of_templates(whole):
    found = columns(whole, "deploy_templates")
    unique = {tuple(each["column_names"]) for each in
              sa.inspect(whole.db.engine).get_unique_constraints("deploy_templates")}

    assert {name: found[name] for name in ("id", "name", "uuid")} == {"id": False, "name": False, "uuid": False}
    assert unique == {("uuid",), ("name",)}


def test_d_17_the_table_of_steps_goes_with_its_template(whole):
    found = columns(whole, "deploy_template_steps")
    inspector = sa.inspect(whole.db.engine)
    indexes = {index["name"]: index["column_names"] for index in inspector.get_indexes("deploy_template_steps")}
    key, = inspector.get_foreign_keys("deploy_template_steps")

    assert not any(found[name] for name in ("deploy_template_id", "interface", "step", "args", "priority"))
    assert indexes == {"deploy_template_steps_interface_idx": ["interface"], "deploy_template_steps_step_idx": ["step"]}
    assert inspector.get_pk_constraint("deploy_template_steps")["constrained_columns"][0] == "deploy_template_id"
    assert (key["referred_table"], key["options"]["ondelete"]) == ("deploy_templates", "CASCADE")
    create(whole, MIRROR, STEP, STEP)
    assert whole.app.delete(f"{TEMPLATES}/{MIRROR}").status_int == 204
    with whole.db.reader() as conn:
        assert conn.scalar(sa.select(sa.func.count()).select_from(deploy_template_steps)) == 0


def test_d_18_templates_are_found_for_a_list_of_traits(whole):
    for name in ("CUSTOM_C", "CUSTOM_A", "CUSTOM_B"):
        create(whole, name)

    with whole.db.reader() as conn:
        found = deploy_templates.for_traits(conn, ["CUSTOM_C", "CUSTOM_UNUSED", "CUSTOM_A"])

    assert [(template.name, [step.to_wire() for step in template.steps]) for template in found] == [
        ("CUSTOM_A", [STEP]), ("CUSTOM_C", [STEP])]


@pytest.mark.parametrize("collection", [TEMPLATES, "/v1/deploy_templates"])
@pytest.mark.parametrize("ident", [UUID, UUID.upper(), MIRROR])
def test_d_19_a_uuid_and_a_name_mean_the_same(whole, collection, ident):
    create(whole, uuid=UUID)
    url = f"{collection}/{ident}"

    assert whole.app.get(url).json["name"] == MIRROR
    assert whole.app.patch_json(url, [{"op": "add", "path": "/extra/a", "value": 1}]).json["extra"] == {"a": 1}
    assert whole.app.delete(url).status_int == 204
    assert listed(whole) == []


def test_d_20_the_list_of_the_document_has_full_items_under_its_key(whole):
    created = [create(whole, name) for name in (MIRROR, "CUSTOM_B")]

    reply = whole.app.get(TEMPLATES)

    assert (reply.status_int, reply.json) == (200, {"deploy-templates": created})
    assert {"name", "steps", "uuid"} <= reply.json["deploy-templates"][0].keys()


@walking("query", [
    "?nosuch=1", "?limit=x", "?sort_key=steps", "?fields=nosuch", "?detail=1&fields=name"])
def test_d_20_a_list_that_can_not_be_is_400(whole, query):
    assert whole.app.get(TEMPLATES + query).status_int == 400


def test_d_20_the_list_of_the_clients_has_a_summary_unless_they_ask_for_more(whole):
    created = create(whole)
    listings = {query: whole.app.get("/v1/deploy_templates" + query).json["deploy_templates"][0]
                for query in ("", "?detail=true", "?fields=name,steps")}

    assert listings[""].keys() == {"uuid", "name", "links"}
    assert listings["?detail=true"].keys() == created.keys()
    assert listings["?detail=true"]["links"][0]["href"] == f"http://localhost/v1/deploy_templates/{created['uuid']}"
    assert (listings["?fields=name,steps"]["steps"], listings["?fields=name,steps"]["name"]) == ([STEP], MIRROR)


def test_d_21_a_template_is_shown_and_its_links_lead_back_to_it(whole):
    created = create(whole, uuid=UUID)

    shown = whole.app.get(f"{TEMPLATES}/{UUID}")

    assert (shown.status_int, shown.json) == (200, created)
    assert whole.app.get(created["links"][0]["href"]).json == created
    assert whole.app.get(f"{TEMPLATES}/{NOBODY}").status_int == 404
    assert whole.app.get(f"{TEMPLATES}/CUSTOM_NOPE").status_int == 404
    assert whole.app.get(f"{TEMPLATES}/not%20a%20name").status_int == 400


def test_d_22_create_answers_201_as_show_with_its_place(whole):
    reply = whole.app.post_json(TEMPLATES, {"uuid": UUID, "name": MIRROR, "steps": [STEP], "extra": {"a": [1]}})

    assert reply.status_int == 201
    assert reply.json == whole.app.get(reply.headers["Location"]).json
    assert (reply.json["uuid"], reply.json["extra"]) == (UUID, {"a": [1]})
    described = create(whole, name="CUSTOM_DESCRIBED", description="Why this is here.")
    assert described["description"] == "Why this is here."
    assert patch(whole, "CUSTOM_DESCRIBED", {"op": "remove", "path": "/description"}).json["description"] is None
    assert whole.app.post_json(TEMPLATES, {"uuid": UUID, "name": "CUSTOM_B", "steps": [STEP]}).status_int == 409


def test_d_22_nothing_that_was_sent_is_dropped_in_silence(whole):
    assert refusal(whole, descriptions="x") == "/descriptions: is not a known field"
    assert refusal(whole, description="x" * 256).startswith("/description: ")
    assert refusal(whole, description=1).startswith("/description: ")
    assert refusal(whole, uuid="x") == "/uuid: must be a UUID"
    assert refusal(whole, extra=[]) == "/extra: must be an object"


def test_d_22_every_problem_is_named_at_once(whole):
    text = refusal(whole, name="x", extra=1, steps=[{**STEP, "interface": "x"}, {**STEP, "priority": -1, "step": ""}])

    assert all(where in text for where in (
        "/name: ", "/extra: ", "/steps/0/interface: ", "/steps/1/priority: ", "/steps/1/step: "))


def test_d_23_name_steps_and_extra_can_be_changed_and_the_uuid_can_not(whole):
    created = create(whole)
    new = {**STEP, "priority": 99}

    reply = patch(whole, MIRROR, {"op": "replace", "path": "/name", "value": "CUSTOM_B"},
                  {"op": "replace", "path": "/steps", "value": [new]}, {"op": "add", "path": "/extra/a", "value": 1},
                  {"op": "add", "path": "/description", "value": "Two disks.\nOne volume."})

    assert reply.status_int == 200
    assert (created["description"], reply.json["description"]) == (None, "Two disks.\nOne volume.")
    assert (reply.json["name"], reply.json["steps"], reply.json["extra"]) == ("CUSTOM_B", [new], {"a": 1})
    assert reply.json == whole.app.get(f"{TEMPLATES}/{created['uuid']}").json
    assert whole.app.get(f"{TEMPLATES}/{MIRROR}").status_int == 404
    for field in ("uuid", "created_at", "updated_at", "links"):
        wrong = patch(whole, "CUSTOM_B", {"op": "add", "path": f"/{field}", "value": UUID})
        assert (wrong.status_int, fault(wrong).partition(":")[0]) == (400, f"/0/{field}")
    assert patch(whole, NOBODY, {"op": "add", "path": "/extra", "value": {}}).status_int == 404


@pytest.mark.parametrize("operation", [
    {"op": "remove", "path": "/name"}, {"op": "remove", "path": "/steps"}, {"op": "remove", "path": "/steps/0"},
    {"op": "add", "path": "/steps", "value": None}, {"op": "add", "path": "/name", "value": "x"},
    {"op": "replace", "path": "/steps/0/priority", "value": -1}, {"op": "remove", "path": "/steps/0/args"},
    {"op": "add", "path": "/steps/0/more", "value": 1}, {"op": "replace", "path": "/steps/1", "value": STEP},
])
def test_d_23_a_patch_leaves_a_template_that_could_be_created(whole, operation):
    created = create(whole)

    assert patch(whole, MIRROR, operation).status_int == 400
    assert listed(whole) == [created]


def test_d_24_delete_answers_204_once(whole):
    create(whole)

    first = whole.app.delete(f"{TEMPLATES}/{MIRROR}")
    again = whole.app.delete(f"{TEMPLATES}/{MIRROR}")

    assert (first.status_int, first.body, again.status_int) == (204, b"", 404)
    assert whole.app.delete(f"{TEMPLATES}/not%20a%20name").status_int == 400


def test_d_27_administrators_write_and_readers_read(whole):
    checks = {policy.name: policy.check for policy in policies.policies() if ":deploy_template:" in policy.name}

    expected = {"list": "rule:observer_api", "get": "rule:observer_api",
                "create": "rule:admin_api", "update": "rule:admin_api", "delete": "rule:admin_api"}
    assert {name: checks[f"baremetal:deploy_template:{name}"] for name in expected} == expected


def test_d_28_users_find_what_a_trait_does(whole):
    create(whole)

    assert whole.app.get(f"{TEMPLATES}/{MIRROR}?fields=steps").json["steps"] == [STEP]


@pytest.mark.parametrize("collection", [TEMPLATES, "/v1/deploy_templates"])
def test_d_29_templates_are_hidden_below_version_1_55(whole, collection):
    create(whole, uuid=UUID)
    one, body = f"{collection}/{UUID}", [{"op": "add", "path": "/extra/a", "value": 1}]

    assert {whole.app.get(path, headers=at("1.54")).status_int for path in (collection, one)} == {404}
    assert [reply.status_int for reply in (
        whole.app.post_json(collection, {"name": "CUSTOM_B", "steps": [STEP]}, headers=at("1.54")),
        whole.app.patch_json(one, body, headers=at("1.54")), whole.app.delete(one, headers=at("1.54")))] == [405] * 3
    assert [reply.status_int for reply in (
        whole.app.get(collection, headers=at("1.55")), whole.app.get(one, headers=at("1.55")),
        whole.app.post_json(collection, {"name": "CUSTOM_B", "steps": [STEP]}, headers=at("1.55")),
        whole.app.patch_json(one, body, headers=at("1.55")), whole.app.delete(one, headers=at("1.55")),
    )] == [200, 200, 201, 200, 204]


def test_s_49_vendor_commands_are_refused_when_a_template_is_made(whole):
    raw = {**STEP, "interface": "vendor", "step": "send_raw", "args": {"raw_bytes": "0x00 0x01"}}

    assert refusal(whole, steps=[STEP, raw]).startswith("/steps/1/step: the step vendor.send_raw is not allowed")
    with whole.option("api", "disallow_deploy_steps", []):
        assert create(whole, MIRROR, raw)["steps"] == [raw]


def test_s_50_secrets_are_hidden_and_not_overwritten_by_what_hides_them(whole):
    args = {"user": "root", "password": "hunter2", "list": [{"auth_token": "x"}]}
    secret = {**STEP, "step": "set_users", "args": args}
    created = create(whole, MIRROR, secret)
    hidden = created["steps"][0]["args"]

    echoed = patch(whole, MIRROR, {"op": "add", "path": "/steps", "value": created["steps"]})
    other = patch(whole, MIRROR, {"op": "replace", "path": "/steps/0/args/user", "value": "admin"})

    assert hidden == {"user": "root", "password": "******", "list": [{"auth_token": "******"}]}
    assert echoed.status_int == 400
    assert fault(echoed).startswith("/steps/0/args/password: is a secret that a reply has hidden")
    assert other.json["steps"][0]["args"] == {**hidden, "user": "admin"}
    with whole.db.reader() as conn:
        step, = deploy_templates.get(conn, MIRROR).steps
    assert step.args == {**args, "user": "admin"}


def test_s_51_a_change_that_was_not_seen_is_not_overwritten(whole):
    create(whole)
    seen = whole.app.get(f"{TEMPLATES}/{MIRROR}").headers["ETag"]
    mine = {"op": "add", "path": "/steps/-", "value": {**STEP, "priority": 1}}
    theirs = {"op": "add", "path": "/steps", "value": [STEP]}

    assert patch(whole, MIRROR, mine, headers={"If-Match": seen}).status_int == 200
    assert patch(whole, MIRROR, theirs, headers={"If-Match": seen}).status_int == 412
    assert [step["priority"] for step in listed(whole)[0]["steps"]] == [10, 1]


def test_d_22_a_step_without_the_arguments_that_hardware_requires_is_accepted_with_a_warning(whole):
    bare = {"interface": "bios", "step": "apply_configuration", "args": {}, "priority": 90}
    created = create(whole, name="CUSTOM_BARE", steps=[bare])

    [warning] = created["warnings"]
    assert (warning["kind"], warning["pointer"]) == ("arguments", "/steps/0/args/settings")
    assert warning["text"].startswith("the step requires this argument; nodes with the bios interface fake")
    assert whole.app.get(f"{TEMPLATES}/CUSTOM_BARE").json == created
    assert patch(whole, "CUSTOM_BARE", {"op": "add", "path": "/extra/a", "value": 1}).json["warnings"] == [warning]
    changed = patch(whole, "CUSTOM_BARE", {"op": "replace", "path": "/steps/0/priority", "value": 91}).json
    assert changed["warnings"] == [warning]
    node = whole.enroll("available", driver="fake-hardware", bios_interface="fake")
    assert whole.app.put(f"/v1/nodes/{node}/traits/CUSTOM_BARE").status_int == 204
    reason = "deploy template CUSTOM_BARE, /steps/0 (bios.apply_configuration): /args/settings: the step requires"
    assert whole.app.get(f"/v1/nodes/{node}/validate").json["deploy"]["reason"].startswith(reason)
    refused = whole.ask(node, "active")
    assert (refused.status_int, reason in fault(refused)) == (400, True)
