"""``/v1/inspection_rules/conflicts``: what rules write, and which of them write the same."""

from __future__ import annotations

from typing import Any

RULES = "/v1/inspection_rules"
CONFLICTS = f"{RULES}/conflicts"


def create(app: Any, name: str, *actions: tuple[str, Any], **more: Any) -> str:
    body = {"name": name, "actions": [{"op": op, "args": args} for op, args in actions], **more}
    return str(app.post_json(RULES, body).json["uuid"])


def listed(app: Any) -> dict[str, Any]:
    return {found["name"]: found for found in app.get(CONFLICTS).json["conflicts"]}


def fights(app: Any, name: str) -> list[tuple[str, str | None, int, list[str]]]:
    """Return the conflicts of a rule, the others by their names."""
    found = listed(app)
    names = {entry["uuid"]: entry["name"] for entry in found.values()}
    return [(each["path"], each["name"], each["count"], [names[uuid] for uuid in each["rules"]])
            for each in found[name]["conflicts"]]


def test_each_rule_has_what_it_writes_in_the_order_of_execution(app):
    create(app, "late", ("set-attribute", {"path": "/extra/a", "value": 1}), ("set-attribute", ["/extra/a", 2]),
           ("extend-attribute", {"path": "properties/tags", "value": 1}), ("del-attribute", {"path": "/extra/b"}))
    create(app, "first", ("add-trait", {"name": "CUSTOM_A"}), ("remove-trait", ["CUSTOM_B"]),
           ("set-capability", {"name": "boot_mode", "value": "uefi"}), ("set-port-attribute", {
               "port_id": "{inventory[interfaces][0][mac_address]}", "path": "/extra/c", "value": 1}),
           ("set-plugin-data", {"path": "site.rack", "value": 1}), ("log", {"msg": "hello"}), priority=9)
    create(app, "unknown", ("add-trait", {"name": "CUSTOM_{inventory[cpu][architecture]}"}),
           ("set-attribute", {"path": "/extra/{inventory[cpu][architecture]}", "value": 1}))
    rules = app.get(CONFLICTS).json["conflicts"]
    assert [rule["name"] for rule in rules] == ["first", "late", "unknown"]
    assert [[(each["path"], each["name"], each["effect"]) for each in rule["writes"]] for rule in rules] == [
        [("/traits", "CUSTOM_A", "add"), ("/traits", "CUSTOM_B", "remove"),
         ("/properties/capabilities", "boot_mode", "set"), ("/ports/extra/c", None, "set"),
         ("/plugin_data/site/rack", None, "set")],
        [("/extra/a", None, "set"), ("/properties/tags", None, "add"), ("/extra/b", None, "remove")],
        []]
    assert [rule["conflicts"] for rule in rules] == [[], [], []]


def test_rules_conflict_if_one_overwrites_what_the_other_wrote(app):
    same = ("set-attribute", {"path": "/extra/a", "value": 1})
    create(app, "one", same, ("add-trait", {"name": "CUSTOM_A"}), ("add-trait", {"name": "CUSTOM_B"}))
    create(app, "two", same, ("add-trait", {"name": "CUSTOM_A"}), ("remove-trait", {"name": "CUSTOM_B"}), priority=5)
    create(app, "disabled", same, enabled=False)
    create(app, "other path", ("set-attribute", {"path": "/extra/b", "value": 1}))
    assert fights(app, "one") == [("/extra/a", None, 1, ["two"]), ("/traits", "CUSTOM_B", 1, ["two"])]
    assert fights(app, "two") == [("/extra/a", None, 1, ["one"]), ("/traits", "CUSTOM_B", 1, ["one"])]
    assert fights(app, "disabled") == fights(app, "other path") == []
    assert listed(app)["disabled"]["writes"] != []


def test_rules_of_two_scopes_never_meet(app):
    same = ("set-attribute", {"path": "/extra/a", "value": 1})
    create(app, "a", same, scope="a")
    create(app, "b", same, scope="b")
    assert fights(app, "a") == fights(app, "b") == []
    create(app, "all", same)
    create(app, "b again", same, scope="b")
    assert [fights(app, name)[0][2:] for name in ("a", "b", "all", "b again")] == [
        (1, ["all"]), (2, ["all", "b again"]), (3, ["a", "b", "b again"]), (2, ["b", "all"])]


def test_a_sensitive_rule_is_in_no_conflict_and_shows_nothing(app):
    same = ("set-attribute", {"path": "/extra/hidden", "value": 1})
    create(app, "sealed", same, sensitive=True)
    create(app, "open", ("set-attribute", {"path": "/extra/other", "value": 1}))
    assert "hidden" not in app.get(CONFLICTS).text
    assert (listed(app)["sealed"]["writes"], listed(app)["sealed"]["conflicts"]) == (None, None)
    # Nor can it be guessed.
    create(app, "guess", same)
    assert fights(app, "guess") == []


def test_many_rules_are_counted_and_some_are_named_and_the_list_has_pages(app):
    uuids = [create(app, f"r{number:02}", ("set-attribute", {"path": "/extra/a", "value": number}))
             for number in range(15)]
    for place, found in enumerate(app.get(CONFLICTS).json["conflicts"]):
        conflict, = found["conflicts"]
        assert (conflict["count"], conflict["rules"]) == (14, [uuid for uuid in uuids if uuid != uuids[place]][:10])
    page = app.get(f"{CONFLICTS}?limit=10").json
    rest = app.get(page["next"]).json
    assert [found["uuid"] for found in page["conflicts"] + rest["conflicts"]] == uuids
    assert "next" not in rest
    app.get(f"{CONFLICTS}?marker=00000000-0000-4000-8000-000000000009", status=404)


def test_revisions_name_the_rules(app):
    uuid = create(app, "named", ("log", {"msg": "hello"}))
    app.patch_json(f"{RULES}/{uuid}", [{"op": "remove", "path": "/name"},
                                       {"op": "add", "path": "/description", "value": "what\nit is " + "x" * 240}])
    app.delete(f"{RULES}/{uuid}")
    gone, changed, created = (found["summary"] for found in app.get(f"{RULES}/revisions").json["revisions"])
    assert created == f"created rule {uuid} (named)"
    assert changed.startswith(f"changed rule {uuid} (what\\nit is xxx")
    assert gone.startswith(f"removed rule {uuid} (what") and gone.endswith("xxx)")
